//! Problems of webhooks that several use cases answer with. Those of a single use case stand beside its error.

use problem::{Problem, ProblemKind};
use storage::TableError;

/// Why a webhook was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The entity has no such webhook; another entity's webhook looks the same.
    #[error("the entity has no such webhook")]
    NotFound,
    /// The table failed.
    #[error("the table failed a webhook")]
    Table(#[from] TableError),
}

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        match error {
            FindError::NotFound => webhook_not_found(),
            FindError::Table(error) => error.into(),
        }
    }
}

/// The entity has no such webhook; another entity's webhook looks the same.
pub fn webhook_not_found() -> Problem {
    let detail = "This managing entity has no webhook with the identifier in the path, or no longer.";
    Problem::new(ProblemKind::WebhookNotFound, detail)
}

/// The webhook of a delivery was removed, so that it cannot be sent.
pub(crate) fn webhook_removed() -> Problem {
    let detail = "The webhook of this delivery was removed; it cannot be sent again.";
    Problem::new(ProblemKind::WebhookRemoved, detail)
}

/// The webhook is disabled, so that no event is sent to it.
pub(super) fn webhook_disabled() -> Problem {
    let detail = "The webhook is disabled, so nothing is sent to it; enable it first.";
    Problem::new(ProblemKind::WebhookDisabled, detail)
}
