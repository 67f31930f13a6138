//! The canary: every few minutes, the deployment publishes an event and receives it as a customer would, so that
//! failures are noticed even when no customer sends events.
//!
//! The canary has its own managing entity, whose random identifier no customer's entity shares. Only the canary's token
//! and tokens for every entity are valid for it. `waypost-admin provision` creates its secret, application and webhook.
//! Without the secret, the canary logs a warning and does nothing.

mod arrivals;
mod receiver;
mod run;
mod secret;

pub use receiver::{CanaryReceiver, ReceiveError, Received};
pub use run::Canary;
pub use secret::{CanarySecret, PATH, SECRET, fresh_signing_key, provide};
