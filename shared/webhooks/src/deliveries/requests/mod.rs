//! Requests of an owner to attempt deliveries again.

pub mod recover;
pub mod resend;
