//! An owner's requests: resending or recovering deliveries, replaying events, cancelling one, and erasing an event's
//! content.

pub mod cancel;
pub mod erase;
pub mod recover;
pub mod replay;
pub mod resend;
