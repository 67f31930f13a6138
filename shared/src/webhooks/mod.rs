//! Webhooks: which endpoint is told of what, and with which secret.

pub mod endpoint_url;
pub mod headers;
pub mod register;
pub mod secret;
pub mod store;
pub mod webhook;

pub use store::Webhooks;
pub use webhook::Webhook;
