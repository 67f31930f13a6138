//! The canary: every few minutes the deployment publishes an event as a client and receives it as a receiver. So
//! failures that customers would see are noticed even while no customer sends events.
//!
//! The canary has a separate managing entity with a random identifier, so no customer's entity has the same one. Only
//! the canary's token and tokens for every entity cover it. `waypost-admin provision` creates its secret, application
//! and webhook. Without the secret the canary logs a warning and does nothing.

mod arrivals;
mod receiver;
mod run;
mod secret;

pub use receiver::{CanaryReceiver, ReceiveError, Received};
pub use run::Canary;
pub use secret::{CanarySecret, PATH, SECRET, fresh_signing_key, provide};
