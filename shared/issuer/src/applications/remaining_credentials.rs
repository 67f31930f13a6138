//! The credentials of an application after one was added or removed.

use super::{client_key::ClientKey, client_secret::ClientSecret};
use base::Time;

/// The credentials that an application has after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemainingCredentials {
    /// Its secrets.
    pub secrets: Vec<ClientSecret>,
    /// Its keys.
    pub keys: Vec<ClientKey>,
    /// The removed credentials, by the identifiers that tokens carry. The tokens that were got with
    /// them are revoked.
    pub gone: Vec<String>,
}

impl RemainingCredentials {
    /// Whether the application gets no more tokens once its secrets with an end have ended.
    pub fn will_be_nothing(&self) -> bool {
        self.keys.is_empty() && self.secrets.iter().all(|secret| secret.expires_date.is_some())
    }

    /// Whether the application gets no more tokens.
    pub fn is_nothing(&self, now: Time) -> bool {
        self.keys.is_empty() && !self.secrets.iter().any(|secret| secret.is_live(now))
    }
}
