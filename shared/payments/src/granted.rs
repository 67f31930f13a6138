//! What a token endpoint gives, or why it gives nothing.

use std::time::Duration;

use http::StatusCode;

use crate::client_authentication::SigningError;
use base::clock::Time;
use outbound::AttemptError;
use storage::secrets::SecretText;

/// What a provider granted.
#[derive(Debug)]
pub struct Granted {
    /// What opens the account.
    pub access_token: SecretText,
    /// What gets the next tokens; absent where the provider gives none, or where the old one stays good.
    pub refresh_token: Option<SecretText>,
    /// When the access token expires; none where the provider does not say.
    pub expires: Option<Time>,
    /// What was granted: what the provider says, else what was asked for. Empty after a refresh, which changes nothing of it.
    pub scopes: Vec<String>,
    /// The account at the provider, where it names it. None after a refresh.
    pub account: Option<String>,
}

/// Why there are no tokens, by the stage at which it ended. Nothing of the provider's own words is kept.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// There was no complete answer.
    #[error("the provider gave no answer")]
    Unreachable(#[source] AttemptError),
    /// It failed, or refused without a readable reason.
    #[error("the provider answered {status}")]
    Status {
        /// With this status.
        status: StatusCode,
        /// And asks to be left alone for so long.
        retry_after: Option<Duration>,
    },
    /// It refused.
    #[error("the provider refused ({0:?}, {1})")]
    Refused(RefusalCode, StatusCode),
    /// The answer is larger than any grant.
    #[error("the provider's answer is too large")]
    TooLarge,
    /// The answer is no JSON object.
    #[error("the provider's answer is no JSON object")]
    NotJson,
    /// The answer is no grant.
    #[error("the provider's answer is malformed: {0}")]
    Malformed(&'static str),
    /// The request could not be signed.
    #[error("the request to the provider could not be signed")]
    Client(#[source] SigningError),
}

/// Why a grant was refused (RFC 6749 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCode {
    /// The request is not as the provider wants it.
    InvalidRequest,
    /// We are not who we say.
    InvalidClient,
    /// The code or the refresh token is not good, or no longer.
    InvalidGrant,
    /// We may not use this grant.
    UnauthorizedClient,
    /// The provider does not know this grant.
    UnsupportedGrantType,
    /// The scope is not what was granted.
    InvalidScope,
    /// Something else.
    Other,
}

impl RefusalCode {
    /// The code of this text.
    pub(super) fn of(text: &str) -> Self {
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
    /// Whether it says that the code or the refresh token will never be good again.
    pub fn is_dead_grant(&self) -> bool {
        matches!(self, Self::Refused(RefusalCode::InvalidGrant, _))
    }

    /// How long the provider asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
