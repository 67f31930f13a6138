//! Requests of an owner: resending or recovering deliveries, replaying events, cancelling one, and erasing the content
//! of an event.

pub mod cancel;
pub mod erase;
pub mod recover;
pub mod replay;
pub mod resend;
