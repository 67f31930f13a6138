//! Problems of webhooks that more than one use case answers with. Those of a single use case stand
//! beside its error.

use problem::{Problem, ProblemKind};

/// The entity has no such webhook; another entity's webhook looks the same.
pub fn webhook_not_found() -> Problem {
    let detail = "This managing entity has no webhook with the identifier in the path, or no longer.";
    Problem::new(ProblemKind::WebhookNotFound, detail)
}

/// The webhook of a delivery was removed, so that nothing can be sent.
pub fn webhook_removed() -> Problem {
    let detail = "The webhook of this delivery was removed; it cannot be sent again.";
    Problem::new(ProblemKind::WebhookRemoved, detail)
}

/// The webhook is disabled, and nothing is sent to it.
pub fn webhook_disabled() -> Problem {
    let detail = "The webhook is disabled, so nothing is sent to it; enable it first.";
    Problem::new(ProblemKind::WebhookDisabled, detail)
}
