//! What Waypost's functions have in common, one concern per module.
//!
//! A function's `main.rs` reads the request, calls this library and answers; what is decided and what is stored is
//! decided and stored here. AWS is reached through the narrow [`table`], [`secrets`], [`deliveries::queue`],
//! [`events::rejected`] and [`geo_ip::store`] only;
//! the clock, randomness and the environment are read in [`clock`], [`random`] and [`settings`] only.

// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

pub mod allowance;
pub mod applications;
pub mod audit;
pub mod auth;
pub mod aws;
pub mod clock;
pub mod deliveries;
pub mod events;
pub mod gather;
pub mod geo_ip;
pub mod http;
pub mod ids;
pub mod logging;
pub mod oauth;
pub mod outbound;
pub mod payments;
#[cfg(feature = "operator")]
pub mod provision;
pub mod random;
pub mod refreshed;
pub mod sealing;
pub mod secrets;
pub mod service;
pub mod settings;
pub mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod webhooks;

pub use service::{Service, StartError};
