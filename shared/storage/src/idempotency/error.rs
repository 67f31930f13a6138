//! Why a request with an idempotency key was not carried out or its answer not repeated.

use problem::{Problem, ProblemKind};

use super::request::SECRET_REPEATED;
use crate::{sealing::SealError, table::TableError};

/// Why a request with an idempotency key was not carried out, or its first answer not repeated.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// The key came before with another body.
    #[error("the idempotency key was used for another request")]
    Conflict,
    /// The first answer shows a secret, and the time in which it is repeated is over.
    #[error("the first answer shows a secret and is not repeated any more")]
    SecretOver {
        /// The identifier of what the request made.
        id: String,
    },
    /// The same request was carried out at this very moment, and its record is there. [`super::Answers::once`] turns
    /// this error into the answer to that request.
    #[error("the same request was carried out at the same moment")]
    Overtaken,
    /// An answer could not be written as JSON, or is none.
    #[error("an answer could not be written or read")]
    Answer(#[source] serde_json::Error),
    /// An answer could not be sealed or opened.
    #[error("an answer could not be sealed or opened")]
    Seal(#[from] SealError),
    /// The table failed.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl OnceError {
    /// The Problem. Where the first answer shows a secret, `another` says how a client that lost it gets another one, by
    /// the identifier of what its request made.
    pub fn into_problem(self, another: impl FnOnce(&str) -> String) -> Problem {
        match self {
            Self::Conflict => {
                let detail = "This Idempotency-Key was sent before with another body; use a new key for a new request.";
                Problem::new(ProblemKind::IdempotencyConflict, detail)
            }
            Self::SecretOver { id } => {
                let minutes = SECRET_REPEATED.as_secs() / 60;
                let detail = format!(
                    "This request was carried out when its Idempotency-Key first came, and is not carried out again. Its \
                     answer shows a secret, which is repeated for {minutes} minutes only. If you do not have it: {}.",
                    another(&id)
                );
                Problem::new(ProblemKind::SecretNotRepeated, detail).with_property("id", id)
            }
            Self::Overtaken => Problem::unavailable(self),
            Self::Answer(error) => Problem::internal(error),
            Self::Seal(error) => error.into(),
            Self::Table(error) => error.into(),
        }
    }
}

impl From<OnceError> for Problem {
    fn from(error: OnceError) -> Self {
        error.into_problem(|_| "ask for another one with a new key".to_owned())
    }
}
