//! The canary: an event that the deployment publishes for itself every few minutes, as a client does, and takes in as a
//! receiver does. It sees what customers see, while none of them sends anything as well.
//!
//! It has a managing entity of its own, whose identifier is drawn at random: no customer's entity is called so, and of
//! all tokens only its own and those for every entity cover it. Its secret, application and webhook are made by
//! `waypost-admin provision`; without the secret the canary does nothing and says so.

mod arrivals;
mod receiver;
mod run;
mod secret;

pub use receiver::{CanaryReceiver, ReceiveError, Received};
pub use run::{Canary, CanarySettings};
pub use secret::{CanarySecret, PATH, SECRET, fresh_signing_key, provide};
