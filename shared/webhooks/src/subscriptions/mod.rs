//! Webhooks: subscriptions of endpoints, with their secrets, their health and their statistics.

pub mod announcing;
mod attempt_count;
pub mod breaker;
pub mod change;
pub(crate) mod disable;
pub mod endpoint;
pub mod error;
pub mod failing;
pub mod filter;
pub(crate) mod headers;
pub mod health;
pub mod health_tracker;
mod held_stats;
mod histogram;
pub mod key_pair;
pub mod masked;
pub(crate) mod members;
pub(crate) mod operational;
#[cfg(test)]
mod operational_tests;
pub(crate) mod pace;
pub(crate) mod rate_limit;
pub mod register;
pub mod remove;
pub mod request_limits;
pub mod resume;
mod revision;
pub mod rotate;
pub mod secret;
pub mod show;
pub mod stats;
pub(crate) mod store;
pub(crate) mod tally;
pub mod test_event;
pub(crate) mod webhook;
mod webhook_status;

pub use error::WebhookError;
pub use store::Webhooks;
pub use webhook::{Webhook, WebhookView};
