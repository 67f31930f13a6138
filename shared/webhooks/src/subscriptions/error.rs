//! Errors of the webhook use cases.

use crate::events::event::TooLarge;
use base::Time;
use problem::{Problem, ProblemKind, Violation};
use storage::{Allowance, IdempotencyError, SealError, TableError};

/// How many webhooks an entity may have: every publication reads them all, and one response lists them.
pub const MAX_WEBHOOKS: usize = 200;

/// Why a webhook was not shown, created, changed, removed or sent to.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The entity has no such webhook. The error is the same for another entity's webhook.
    #[error("the entity has no such webhook")]
    NotFound,
    /// The webhook is disabled, so no event is sent to it.
    #[error("the webhook is disabled")]
    Disabled,
    /// The webhook has no feed, since it is a push webhook.
    #[error("the webhook has no feed")]
    NotPulled,
    /// The webhook cannot be paused, since it is a pull webhook.
    #[error("the webhook has a feed")]
    Pulled,
    /// The entity has the maximum number of webhooks.
    #[error("the entity already has {MAX_WEBHOOKS} webhooks")]
    TooMany,
    /// The change names a version that is not the webhook's current one.
    #[error("the webhook was changed; its version is now {0}")]
    VersionConflict(u64),
    /// The previous secret signs until this time, and the request does not end it earlier.
    #[error("the previous signing secret is valid until {0}")]
    PreviousSecretLive(Time),
    /// The change is invalid once its masks are replaced with the stored values.
    #[error("the change is invalid once its masks are replaced by the stored values")]
    Invalid(Vec<Violation>),
    /// The data of a test event does not conform to its type's schema, and the deployment is strict.
    #[error("the test event's data does not conform to its type's schema")]
    InvalidTestData(Vec<Violation>),
    /// The test event is too large.
    #[error(transparent)]
    TestTooLarge(#[from] TooLarge),
    /// The entity has reached its limit on requests of this kind.
    #[error("the entity has sent {} requests of the kind {what:?} in {} s", what.limit(), what.window())]
    TooManyRequests {
        /// The kind.
        what: Allowance,
        /// Seconds until the limit starts again from zero.
        wait: u64,
    },
    /// Every try failed because of concurrent changes.
    #[error("gave up after repeated conflicts with other changes to the webhook")]
    NeverStill,
    /// The idempotency key was used for another request, or its response is not repeated.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
    /// A value of the webhook could not be sealed or opened.
    #[error("one of the webhook's values could not be sealed or opened")]
    Sealing(#[from] SealError),
    /// The table failed.
    #[error("a DynamoDB request for a webhook failed")]
    Table(#[from] TableError),
}

impl From<WebhookError> for Problem {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::NotFound => {
                let detail = "There is no such webhook; it may have been removed.";
                Self::new(ProblemKind::WebhookNotFound, detail)
            }
            WebhookError::Disabled => {
                let detail = "The webhook is disabled, so nothing is sent to it. Enable it first.";
                Self::new(ProblemKind::WebhookDisabled, detail)
            }
            WebhookError::NotPulled => {
                let detail = "The webhook has no feed: its events are sent to its `eventUrl`. To give it a feed, \
                    change `delivery` to `pull`.";
                Self::new(ProblemKind::WebhookNotPulled, detail)
            }
            WebhookError::Pulled => {
                let detail = "The webhook's events wait in its feed until the reader requests them. Stop the reader \
                    instead.";
                Self::new(ProblemKind::WebhookPulled, detail)
            }
            WebhookError::TooMany => {
                let detail =
                    format!("The managing entity already has {MAX_WEBHOOKS} webhooks, the maximum; remove one first.");
                Self::new(ProblemKind::WebhookLimit, detail).with_limit("webhooks", MAX_WEBHOOKS)
            }
            WebhookError::VersionConflict(current) => {
                let detail = format!(
                    "Another request changed the webhook; its version is now {current}. Your change was not applied. \
                     Fetch the webhook again, and send your change with that version."
                );
                Self::new(ProblemKind::VersionConflict, detail).with_property("currentVersion", current)
            }
            WebhookError::PreviousSecretLive(end) => {
                let detail = format!(
                    "The previous secret is active until {end}, and another replacement would deactivate it at once. \
                     If the endpoint has the current secret, wait until then, or set `endPrevious` to true. If the \
                     current secret was lost, set `endPrevious` to true and give the endpoint the new secret at once."
                );
                Self::new(ProblemKind::PreviousSecretLive, detail)
                    .with_property("previousSecretExpiresDate", end.to_string())
            }
            WebhookError::Invalid(violations) | WebhookError::InvalidTestData(violations) => Self::invalid(violations),
            WebhookError::TestTooLarge(error) => error.into(),
            WebhookError::TooManyRequests { what, wait } => {
                let detail = format!("A managing entity may {}; try again in {wait} seconds.", allowed(what));
                Self::rate_limited(ProblemKind::TooManyRequests, detail, what.rate_limit(), wait)
            }
            WebhookError::NeverStill => Self::unavailable(error),
            WebhookError::Idempotency(error) => error.into_problem(|webhook| {
                format!("the webhook {webhook} exists; `POST …/webhook/{webhook}/secret` gives it another secret")
            }),
            WebhookError::Sealing(error) => error.into(),
            WebhookError::Table(error) => error.into(),
        }
    }
}

/// The allowance, worded to complete "A managing entity may".
fn allowed(what: Allowance) -> String {
    let limit = what.limit();
    match what {
        Allowance::FeedWaits => format!("start {limit} waiting feed requests per {} seconds", what.window()),
        Allowance::OpenLists => format!(
            "list the open deliveries of {limit} webhooks per minute (a page without `webhookIdentifier` counts once \
             for each webhook)"
        ),
        _ => format!("send {limit} requests of this kind per minute"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_lost_a_signing_secret_learns_how_to_get_another() {
        let problem = Problem::from(WebhookError::Idempotency(IdempotencyError::SecretOver { id: "whk_1".to_owned() }));
        assert!(problem.detail.contains("`POST …/webhook/whk_1/secret` gives it another secret"), "{}", problem.detail);
    }
}
