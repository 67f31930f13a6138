//! The error of the connection use cases.

use crate::{
    builtin,
    provider::ProviderName,
    providers::{ProviderError, SECRET_PREFIX},
    revocation::RevokeError,
    state::{Ended, StateFault, invalid_state},
};
use auth::EntityId;
use problem::{Problem, ProblemKind, near};
use storage::{IdempotencyError, SealError, TableError};

/// The `Retry-After` after a failed revocation, in seconds. A failing provider needs more time than this service.
const REVOKE_AGAIN_SECONDS: u64 = 30;

/// Why a connection use case failed. The callback has a separate error, which names its stage.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The deployment has no such provider.
    #[error("the deployment has no payment provider with this name")]
    ProviderNotFound {
        /// The name in the path, which may be malformed.
        given: String,
    },
    /// The entity has no connection to the provider.
    #[error("the managing entity has no connection to the provider")]
    NotFound,
    /// The entity has a connection, and the request does not allow replacing it.
    #[error("the managing entity is already connected to the provider")]
    Exists {
        /// The account that is connected.
        account: Option<String>,
    },
    /// The entity has no connection with the identifier.
    #[error("the managing entity has no connection with this identifier")]
    UnknownIdentifier,
    /// The provider did not revoke the access, so the connection is kept.
    #[error("the provider did not revoke access")]
    NotRevoked(#[from] RevokeError),
    /// The entity connected the provider again while the access was being revoked.
    #[error("the provider was connected again while its access was being revoked")]
    Replaced,
    /// A refresh holds the connection.
    #[error("a refresh still held the connection when the wait ended")]
    Busy,
    /// The state is invalid.
    #[error(transparent)]
    InvalidState(#[from] StateFault),
    /// The state exists and has ended.
    #[error("{why}")]
    Ended {
        /// Why the state has ended.
        why: Ended,
        /// The managing entity that requested the connection.
        entity: EntityId,
    },
    /// The provider's stored address is invalid.
    #[error("the provider's address could not be parsed")]
    Address(#[from] url::ParseError),
    /// The provider's description could not be read.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The idempotency key was used with another request, or its response is not repeated.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
    /// A verifier could not be sealed, or tokens could not be opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The table failed.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl From<ConnectionError> for Problem {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::ProviderNotFound { given } => {
                Self::new(ProblemKind::ProviderNotFound, no_provider(&given))
            }
            ConnectionError::NotFound => {
                let detail = "This managing entity is not connected to the payment provider in the path; \
                    `payment/connection/list` lists its connections.";
                Self::new(ProblemKind::ConnectionNotFound, detail)
            }
            ConnectionError::UnknownIdentifier => {
                let detail = "This managing entity has no connection with the identifier in the path; \
                    `payment/connection/list` lists its connections. A requested connection exists only once a person \
                    has allowed access.";
                Self::new(ProblemKind::ConnectionNotFound, detail)
            }
            ConnectionError::NotRevoked(_) => {
                let detail = format!(
                    "The payment provider did not revoke access, so the connection is kept; try again in \
                     {REVOKE_AGAIN_SECONDS} seconds."
                );
                Self::new(ProblemKind::ProviderRevocationFailed, detail)
                    .with_retry_after(REVOKE_AGAIN_SECONDS)
                    .caused_by(error)
            }
            ConnectionError::Replaced => {
                let detail = "A person connected the payment provider again while its access was being revoked. The \
                    new connection is kept; to remove it too, send the request again.";
                Self::new(ProblemKind::ConnectionReplaced, detail)
            }
            ConnectionError::Exists { account } => {
                let detail = "This managing entity is already connected to the payment provider in the path. To \
                    replace the connection, with the same account or another, send {\"replace\": true}.";
                let problem = Self::new(ProblemKind::ConnectionExists, detail);
                match account {
                    Some(account) => problem.with_property("account", account),
                    None => problem,
                }
            }
            ConnectionError::InvalidState(_) | ConnectionError::Ended { .. } => invalid_state(error),
            ConnectionError::Busy => Self::unavailable(error),
            ConnectionError::Address(_) => Self::internal(error),
            ConnectionError::Provider(error) => error.into(),
            ConnectionError::Idempotency(error) => error.into(),
            ConnectionError::Seal(error) => error.into(),
            ConnectionError::Table(error) => error.into(),
        }
    }
}

/// The detail for a provider that is not set up. It lists only the built-in providers: the names of the others are in
/// the operator's secrets.
fn no_provider(given: &str) -> String {
    let known = ProviderName::parse(given).ok().filter(|name| builtin::find(name).is_some());
    if let Some(name) = known {
        return format!(
            "The payment provider `{name}` is not set up in this deployment. To set it up, the operator stores its \
             credentials in the secret `{SECRET_PREFIX}{name}`."
        );
    }
    let mut names: Vec<_> = builtin::all().iter().map(|built_in| built_in.name.as_str()).collect();
    names.sort_unstable();
    let all = format!("the built-in ones are {}, and an operator can add others", names.join(", "));
    let message = near::none_of("must name a payment provider that is set up here", given, names, &all);
    format!("The path {message}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_provider_is_answered_with_similar_and_built_in_ones() {
        let said = no_provider("strip");
        for part in ["`strip` is unknown (did you mean stripe?);", "adyen, mollie, paypal, revolut, square, stripe,"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!no_provider("a b").contains("did you mean"), "an unlike text has no neighbours");
        assert!(no_provider(&"x".repeat(1000)).len() < 300);
    }

    #[test]
    fn a_built_in_provider_that_is_not_set_up_is_reported_as_such() {
        let said = no_provider("mollie");
        assert!(said.contains("`mollie` is not set up") && said.contains("`provider-mollie`"), "{said}");
    }
}
