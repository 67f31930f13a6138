//! Payment providers: a managing entity's connection to its account there, by OAuth 2 (RFC 6749).
//!
//! An entity asks to be connected ([`connect`]), a person sees who asks ([`start`]), gives the permission at the provider and
//! comes back ([`callback`]), a schedule keeps the tokens fresh ([`refresh`]), and the entity gives the permission back
//! ([`disconnect`]). What differs from provider to provider is a description ([`provider`]); no code knows one by its name.

// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

pub mod answer;
pub mod authorization_url;
mod brought;
pub mod browser;
pub mod builtin;
pub mod callback;
pub mod client_authentication;
pub mod connect;
pub mod connection;
pub mod description;
pub mod disconnect;
pub mod grant;
pub mod item;
pub mod outcome_page;
pub mod panel;
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

pub use connection::{Connection, ConnectionStatus};
pub use grant::{GrantError, Granted, Grants, RefusalCode};
pub use outcome_page::Outcome;
pub use provider::{Provider, ProviderName};
pub use providers::{ProviderError, Providers};
pub use revocation::{Revocations, RevokeError, Revoked};
pub use state::PendingAuthorizations;
pub use store::Connections;

/// The name of the path parameter that holds the provider.
const PROVIDER_PARAMETER: &str = "provider";

/// Where a provider sends people back to.
fn redirect_uri(base_url: &str, provider: &ProviderName) -> String {
    format!("{base_url}/api/public/{provider}/oauth2/callback")
}
