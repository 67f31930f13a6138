#![doc = include_str!("../README.md")]
// The futures, from the runtime down to the SDK, nest deeper than the default limit.
#![recursion_limit = "256"]

mod authorization_url;
pub mod browser;
pub mod builtin;
pub mod callback;
pub mod callback_query;
mod client_proof;
pub mod connect;
mod connection;
mod description;
pub mod disconnect;
mod error;
mod grant;
mod granted_tokens;
mod item;
mod last_error;
pub mod list;
pub mod outcome_address;
pub mod page;
pub mod panel;
mod pem;
pub mod pending;
mod pkce;
mod placeholder;
mod provider;
pub mod provider_list;
mod provider_request;
pub mod providers;
pub mod refresh;
mod revocation;
mod schedule;
pub mod start;
mod state;
mod store;
mod token_response;
pub mod tokens;

pub use connection::{Connection, ConnectionStatus, ConnectionView};
pub use error::ConnectionError;
pub use grant::Grants;
pub use last_error::LastError;
pub use outcome_address::{AuthorizationOutcome, ErrorCode};
pub use pending::PendingAuthorizations;
pub use provider::ProviderName;
pub use providers::{ProviderError, Providers};
pub use revocation::Revocations;
pub use state::{Ended, StateFault};
pub use store::Connections;
