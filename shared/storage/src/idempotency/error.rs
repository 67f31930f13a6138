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

impl From<OnceError> for Problem {
    fn from(error: OnceError) -> Self {
        match error {
            OnceError::Conflict => {
                let detail = "This Idempotency-Key was sent before with another body; use a new key for a new request.";
                Self::new(ProblemKind::IdempotencyConflict, detail)
            }
            OnceError::SecretOver { id } => {
                let minutes = SECRET_REPEATED.as_secs() / 60;
                let detail = format!(
                    "This request was carried out when its Idempotency-Key first came, and is not carried out again. Its \
                     answer shows a secret, which is repeated for {minutes} minutes only. If you do not have it, ask for \
                     another one with a new key; `properties.id` names what this request made."
                );
                Self::new(ProblemKind::SecretNotRepeated, detail).with_property("id", id)
            }
            OnceError::Overtaken => Self::unavailable(error),
            OnceError::Answer(error) => Self::internal(error),
            OnceError::Seal(error) => error.into(),
            OnceError::Table(error) => error.into(),
        }
    }
}
