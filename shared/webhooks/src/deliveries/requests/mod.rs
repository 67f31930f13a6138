//! Requests of an owner: attempting deliveries again, and erasing the content of an event.

pub mod erase;
pub mod recover;
pub mod resend;
