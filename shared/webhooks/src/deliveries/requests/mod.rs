//! An owner's requests: resending, recovering or cancelling deliveries, replaying events, and erasing an event's
//! content.

pub mod cancel;
pub mod erase;
pub mod recover;
pub mod replay;
pub mod resend;
