//! Webhooks: subscriptions of endpoints, with their secrets, their health and their statistics.

pub mod announcing;
pub mod breaker;
pub mod change;
pub mod disable;
pub mod endpoint;
pub mod headers;
pub mod health;
pub mod masked;
mod members;
pub mod operational;
#[cfg(test)]
mod operational_tests;
pub mod pace;
pub mod problems;
pub mod register;
pub mod remove;
mod revision;
pub mod rotate;
pub mod secret;
pub mod show;
pub mod stats;
pub mod store;
pub mod test_event;
pub mod webhook;

pub use outbound::endpoint_url;
pub use store::Webhooks;
pub use webhook::Webhook;
