//! Payment providers: a managing entity's connection to its account there, by OAuth 2 (RFC 6749).
//!
//! An entity asks to be connected ([`connect`]), a person sees who asks ([`start`]), gives the permission at the
//! provider and comes back ([`callback`]), a schedule keeps the tokens fresh ([`refresh`]), and the entity gives the
//! permission back ([`disconnect`]). Providers differ in their descriptions (`provider`) alone; no code knows one by
//! its name.

// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

mod answer;
mod authorization_url;
pub mod browser;
pub mod builtin;
pub mod callback;
pub mod callback_query;
mod client_authentication;
pub mod connect;
mod connection;
mod description;
pub mod disconnect;
mod grant;
mod granted;
mod item;
pub mod outcome_page;
pub mod panel;
pub mod pending;
mod placeholder;
mod provider;
mod provider_request;
pub mod providers;
pub mod refresh;
mod revocation;
mod schedule;
pub mod start;
mod state;
mod store;
pub mod tokens;
mod verifier;

pub use connection::{Connection, ConnectionStatus};
pub use grant::Grants;
pub use outcome_page::AuthorizationOutcome;
pub use pending::PendingAuthorizations;
pub use provider::ProviderName;
pub use providers::{ProviderError, Providers};
pub use revocation::Revocations;
pub use store::Connections;
