//! Sending to strangers: which addresses may be dialled, and an HTTP exchange in which every step has a limit.

pub mod addresses;
#[cfg(test)]
mod addresses_tests;
pub mod dial;
#[cfg(test)]
mod dial_tests;
pub mod exchange;
pub mod stream;
mod trust;

pub use addresses::EndpointSettings;
pub use dial::{Resolver, SharedResolver, SystemResolver};
pub use exchange::{Answer, AttemptError, Limits, Outbound};
pub use stream::{Opened, StreamLimits};

/// What we call ourselves.
pub const USER_AGENT: &str = concat!("Waypost/", env!("CARGO_PKG_VERSION"));
