//! Why a connection was not made or removed, or a person not sent on to a provider.

use crate::{
    builtin,
    provider::ProviderName,
    providers::{ProviderError, SECRET_PREFIX},
    state::{Ended, StateFault, invalid_state},
};
use auth::EntityId;
use problem::{Problem, ProblemKind, near};
use storage::{IdempotencyError, SealError, TableError};

/// Why a use case of connections was not done. That of the callback has an error of its own, with its steps.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The deployment has no such provider.
    #[error("the deployment has no payment provider of this name")]
    ProviderNotFound {
        /// The name in the path, which may be none that a provider can have.
        given: String,
    },
    /// The entity has no connection to the provider.
    #[error("the managing entity has no connection to the provider")]
    NotFound,
    /// There is a connection, which the request does not replace.
    #[error("the managing entity is connected to the provider")]
    Exists {
        /// The account that is connected.
        account: Option<String>,
    },
    /// A refresh holds the connection.
    #[error("a refresh holds the connection for longer than it was waited for")]
    Busy,
    /// The state is not good.
    #[error(transparent)]
    InvalidState(#[from] StateFault),
    /// There is such a state, and it is not good any more.
    #[error("{why}")]
    Ended {
        /// Why it is not good.
        why: Ended,
        /// The managing entity that asked for the connection.
        entity: EntityId,
    },
    /// The address that leads on is none.
    #[error("the address that leads on could not be read")]
    Address(#[from] url::ParseError),
    /// The provider's description could not be read.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The idempotency key stands for another request, or for an answer that is not repeated.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
    /// A verifier could not be sealed, or tokens not opened.
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
                let detail = "This managing entity has no connection to the payment provider in the path; \
                              `payment/provider/list` lists those that it has.";
                Self::new(ProblemKind::ConnectionNotFound, detail)
            }
            ConnectionError::Exists { account } => {
                let detail = "This managing entity is connected to the payment provider in the path. Send {\"replace\": true} \
                              to connect in its place, with the same account or another one.";
                Self::new(ProblemKind::ConnectionExists, detail).with_property("account", account)
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

/// What is said to a client that names a provider which is not set up. Only the built-in ones are known by name: the
/// others are wherever the operator put a secret.
fn no_provider(given: &str) -> String {
    let known = ProviderName::parse(given).ok().filter(|name| builtin::find(name).is_some());
    if let Some(name) = known {
        return format!(
            "The payment provider `{name}` is not set up in this deployment: its operator puts this service's \
             credentials there into the secret `{SECRET_PREFIX}{name}`."
        );
    }
    let mut names: Vec<_> = builtin::all().iter().map(|built_in| built_in.name.as_str()).collect();
    names.sort_unstable();
    let all = format!("built in are {}, and an operator can add others", names.join(", "));
    let message = near::none_of("must name a payment provider that is set up here", given, names, &all);
    format!("The path {message}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_does_not_exist_is_told_with_those_near_it_and_those_that_are_built_in() {
        let said = no_provider("strip");
        for part in ["`strip` is none; near it: stripe;", "adyen, mollie, paypal, revolut, square, stripe,"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!no_provider("a b").contains("near it"), "a text that is like none has no neighbours");
        assert!(no_provider(&"x".repeat(1000)).len() < 300);
    }

    #[test]
    fn a_built_in_provider_that_is_not_set_up_is_told_as_that() {
        let said = no_provider("mollie");
        assert!(said.contains("`mollie` is not set up") && said.contains("`provider-mollie`"), "{said}");
    }
}
