//! The tokens that a token endpoint grants, or why it grants none.

use std::time::Duration;

use http::StatusCode;

use crate::{client_proof::SigningError, last_error::LastError};
use base::Time;
use outbound::AttemptError;
use storage::SecretText;

/// The tokens that a provider granted.
#[derive(Debug)]
pub struct GrantedTokens {
    pub access_token: SecretText,
    /// Absent if the provider returns none, or if the old one stays valid.
    pub refresh_token: Option<SecretText>,
    /// When the access token expires, if the provider says so.
    pub expires: Option<Time>,
    /// The scopes that the provider returns. If an exchange returns none, these are the requested ones.
    pub scopes: Vec<String>,
    /// The account, if the provider names it.
    pub account: Option<String>,
}

/// Why no tokens were granted. It contains no text from the provider.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("the provider did not answer")]
    Unreachable(#[source] AttemptError),
    #[error("the provider answered {status}")]
    Status { status: StatusCode, retry_after: Option<Duration> },
    #[error("the provider refused ({0}, {1})")]
    Refused(RefusalCode, StatusCode),
    #[error("the provider's answer is too large, or its compressed data is damaged")]
    TooLarge,
    #[error("the provider's answer is neither a JSON object nor a form")]
    Unreadable,
    #[error("the provider's answer is malformed: {0}")]
    Malformed(&'static str),
    #[error("the request to the provider could not be signed")]
    Client(#[source] SigningError),
}

/// The code of a refused grant (RFC 6749 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusalCode {
    #[error("invalid_request")]
    InvalidRequest,
    #[error("invalid_client")]
    InvalidClient,
    #[error("invalid_grant")]
    InvalidGrant,
    #[error("unauthorized_client")]
    UnauthorizedClient,
    #[error("unsupported_grant_type")]
    UnsupportedGrantType,
    #[error("invalid_scope")]
    InvalidScope,
    #[error("a code that RFC 6749 does not define")]
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
    /// Whether the code or the refresh token will never be valid again.
    pub fn is_dead_grant(&self) -> bool {
        matches!(self, Self::Refused(RefusalCode::InvalidGrant, _))
    }

    /// Whether the provider rejects this service as a client. Retries fail until the operator corrects the provider's
    /// secret.
    pub fn is_our_client(&self) -> bool {
        let refused = [RefusalCode::InvalidClient, RefusalCode::UnauthorizedClient];
        matches!(self, Self::Client(_)) || matches!(self, Self::Refused(code, _) if refused.contains(code))
    }

    /// Whether the provider may have granted access even though its response is missing or unreadable.
    pub fn may_have_granted(&self) -> bool {
        match self {
            Self::Unreachable(error) => matches!(error, AttemptError::Connect(_) | AttemptError::Timeout(_)),
            // A client error without a reason is still a refusal.
            Self::Status { status, .. } => !status.is_client_error(),
            Self::TooLarge | Self::Unreadable | Self::Malformed(_) => true,
            Self::Refused(..) | Self::Client(_) => false,
        }
    }

    /// The error as the connection's owner sees it.
    pub fn shown(&self) -> LastError {
        match self {
            Self::Unreachable(error) => error.into(),
            Self::Status { status, .. } => {
                LastError::new("status", format!("the provider answered {}", status.as_u16()))
            }
            Self::Refused(code, status) => {
                LastError::new("refused", format!("the provider answered {} with {code}", status.as_u16()))
            }
            Self::TooLarge | Self::Unreadable | Self::Malformed(_) => {
                LastError::new("answer", "the provider's answer has no readable tokens")
            }
            Self::Client(_) => LastError::of_service(),
        }
    }

    /// The pause that the provider requests.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> GrantError {
        GrantError::Refused(RefusalCode::of(code), StatusCode::BAD_REQUEST)
    }

    #[test]
    fn a_refusal_is_named_as_the_rfc_names_it() {
        for code in ["invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope"] {
            assert_eq!(refused(code).to_string(), format!("the provider refused ({code}, 400 Bad Request)"));
            let detail = format!("the provider answered 400 with {code}");
            assert_eq!(refused(code).shown(), LastError::new("refused", detail));
        }
        assert!(!refused("hunter2").to_string().contains("hunter2"), "no word of the provider's own is kept");
    }

    #[test]
    fn a_refused_client_and_possibly_granted_access_are_distinguished() {
        assert!(refused("invalid_client").is_our_client() && !refused("invalid_grant").is_our_client());
        let status = |status| GrantError::Status { status, retry_after: None };
        for may_stand in [
            GrantError::Unreachable(AttemptError::Connect("cut")),
            GrantError::Unreachable(AttemptError::Timeout("slow")),
            GrantError::Malformed("access_token"),
            GrantError::Unreadable,
            status(StatusCode::BAD_GATEWAY),
        ] {
            assert!(may_stand.may_have_granted() && !may_stand.is_our_client(), "{may_stand}");
        }
        let unresolved = GrantError::Unreachable(AttemptError::Dns("no such name"));
        for none in [refused("invalid_client"), refused("x"), unresolved, status(StatusCode::TOO_MANY_REQUESTS)] {
            assert!(!none.may_have_granted(), "{none}");
        }
    }
}
