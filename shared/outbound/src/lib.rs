#![doc = include_str!("../README.md")]

pub mod addresses;
#[cfg(test)]
mod addresses_tests;
mod attempt_error;
mod body_text;
mod client;
mod connections;
#[cfg(test)]
mod connections_tests;
mod content_coding;
pub mod dial;
#[cfg(test)]
mod dial_tests;
pub mod endpoint_url;
#[cfg(test)]
mod endpoint_url_tests;
pub mod exchange;
#[cfg(test)]
mod exchange_tests;
mod location;
pub mod network;
mod response_head;
mod retry_after;
pub mod stream;
#[cfg(test)]
mod tls_tests;
mod trust;
mod write_tracker;

pub use addresses::AddressRules;
pub use attempt_error::AttemptError;
pub use dial::{Resolver, SharedResolver, SystemResolver};
pub use exchange::{HttpResponse, Limits, Outbound};
pub use network::{Link, Network, SharedNetwork, SystemNetwork};
pub use stream::{ResponseStream, StreamLimits};

/// The `User-Agent` of this service.
pub const USER_AGENT: &str = concat!("Waypost/", env!("CARGO_PKG_VERSION"));
