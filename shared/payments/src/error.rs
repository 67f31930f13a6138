//! Why a connection was not made or removed, or a person not sent on to a provider.

use crate::{pending::Ended, providers::ProviderError, state::invalid_state};
use auth::EntityId;
use problem::{Problem, ProblemKind};
use storage::{OnceError, SealError, TableError};

/// Why a use case of connections was not done. That of the callback has an error of its own, with its steps.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The deployment has no such provider.
    #[error("the deployment has no payment provider of this name")]
    ProviderNotFound,
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
    /// There is no such state: it never was, is long over, or is of another provider.
    #[error("the state is not good for this provider")]
    InvalidState,
    /// There is such a state, and it is not good any more.
    #[error("the state has ended")]
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
    Once(#[from] OnceError),
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
            ConnectionError::ProviderNotFound => {
                let detail = "This deployment has no payment provider of the name in the path, or none that is set up.";
                Self::new(ProblemKind::ProviderNotFound, detail)
            }
            ConnectionError::NotFound => {
                let detail = "This managing entity has no connection to the payment provider in the path.";
                Self::new(ProblemKind::ConnectionNotFound, detail)
            }
            ConnectionError::Exists { account } => {
                let detail = "This managing entity is connected to the payment provider in the path. Send {\"replace\": true} \
                              to connect in its place, with the same account or another one.";
                Self::new(ProblemKind::ConnectionExists, detail).with_property("account", account)
            }
            ConnectionError::InvalidState | ConnectionError::Ended { .. } => invalid_state(),
            ConnectionError::Busy => Self::unavailable(error),
            ConnectionError::Address(_) => Self::internal(error),
            ConnectionError::Provider(error) => error.into(),
            ConnectionError::Once(error) => error.into(),
            ConnectionError::Seal(error) => error.into(),
            ConnectionError::Table(error) => error.into(),
        }
    }
}
