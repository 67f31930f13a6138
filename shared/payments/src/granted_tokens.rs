//! The tokens that a token endpoint grants, or why it grants none.

use std::time::Duration;

use http::StatusCode;

use crate::client_proof::SigningError;
use base::Time;
use outbound::AttemptError;
use storage::SecretText;

/// The tokens that a provider granted.
#[derive(Debug)]
pub struct GrantedTokens {
    pub access_token: SecretText,
    /// Absent where the provider gives none, or where the old one stays good.
    pub refresh_token: Option<SecretText>,
    /// When the access token expires, where the provider says so.
    pub expires: Option<Time>,
    /// The scopes that the provider names, else those that were asked for. Empty after a refresh, which does not change
    /// them.
    pub scopes: Vec<String>,
    /// The account, where the provider names it. None after a refresh.
    pub account: Option<String>,
}

/// Why there are no tokens. Nothing of the provider's own words is kept.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("the provider gave no answer")]
    Unreachable(#[source] AttemptError),
    #[error("the provider answered {status}")]
    Status { status: StatusCode, retry_after: Option<Duration> },
    #[error("the provider refused ({0:?}, {1})")]
    Refused(RefusalCode, StatusCode),
    #[error("the provider's answer is too large")]
    TooLarge,
    #[error("the provider's answer is no JSON object")]
    NotJson,
    #[error("the provider's answer is malformed: {0}")]
    Malformed(&'static str),
    #[error("the request to the provider could not be signed")]
    Client(#[source] SigningError),
}

/// Why a grant was refused (RFC 6749 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCode {
    InvalidRequest,
    InvalidClient,
    InvalidGrant,
    UnauthorizedClient,
    UnsupportedGrantType,
    InvalidScope,
    Other,
}

impl RefusalCode {
    pub fn of(text: &str) -> Self {
        match text {
            "invalid_request" => Self::InvalidRequest,
            "invalid_client" => Self::InvalidClient,
            "invalid_grant" => Self::InvalidGrant,
            "unauthorized_client" => Self::UnauthorizedClient,
            "unsupported_grant_type" => Self::UnsupportedGrantType,
            "invalid_scope" => Self::InvalidScope,
            _ => Self::Other,
        }
    }
}

impl GrantError {
    /// Whether the provider says that the code or the refresh token will never be good again.
    pub fn is_dead_grant(&self) -> bool {
        matches!(self, Self::Refused(RefusalCode::InvalidGrant, _))
    }

    /// The pause that the provider asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
