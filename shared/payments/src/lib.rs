#![doc = include_str!("../README.md")]
// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

pub mod answer;
pub mod authorization_url;
pub mod brought;
pub mod browser;
pub mod builtin;
pub mod callback;
pub mod client_authentication;
pub mod connect;
pub mod connection;
pub mod description;
pub mod disconnect;
pub mod grant;
pub mod granted;
pub mod item;
pub mod outcome_page;
pub mod panel;
pub mod pending;
pub mod placeholder;
pub mod provider;
pub mod provider_request;
pub mod providers;
pub mod refresh;
pub mod revocation;
pub mod schedule;
pub mod start;
pub mod state;
pub mod store;
pub mod tokens;
pub mod verifier;

pub use connection::{Connection, ConnectionStatus};
pub use grant::Grants;
pub use granted::{GrantError, Granted, RefusalCode};
pub use outcome_page::AuthorizationOutcome;
pub use pending::PendingAuthorizations;
pub use provider::{Provider, ProviderName};
pub use providers::{ProviderError, Providers};
pub use revocation::{Revocations, RevokeError, Revoked};
pub use store::Connections;
