//! Webhooks: subscriptions of endpoints, with their secrets, their health and their statistics.
//!
//! | module | contents |
//! |---|---|
//! | `webhook` | a webhook, and its owner's operations: register, show, change, remove |
//! | `endpoint` | the destination of its events: address, headers, and the secrets that sign |
//! | `health` | whether its endpoint responds: breaker, pauses, disabling, the events about it |
//! | `stats` | its attempts by hour |
//! | `filter` | which events it receives, by their data |
//! | `attempt_settings` | the timeout and the retries of its attempts |
//! | `rate_limit`, `request_limits` | limits on its attempts, and on the requests of its owner |
//! | `test_event` | test events that its owner requests |

pub(crate) mod attempt_settings;
pub mod endpoint;
pub mod error;
pub mod filter;
pub mod health;
pub(crate) mod rate_limit;
pub mod request_limits;
pub mod stats;
pub mod test_event;
pub mod webhook;

pub use error::WebhookError;
pub use webhook::{Webhook, WebhookView, store::Webhooks};
