//! Errors of the delivery use cases.

use crate::{
    deliveries::{
        jobs::{MAX_RANGES, ReplayUnderWay, TooManyRanges},
        queries::cursor::NotACursor,
        state::delivery::{MAX_ATTEMPTS, Status},
    },
    subscriptions::error::WebhookError,
};
use base::Time;
use problem::{Problem, ProblemKind};
use storage::{IdempotencyError, SealError, TableError};

/// Why deliveries were not shown, listed, recovered, replayed, cancelled or resent.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The entity has no such delivery. The error is the same for another entity's delivery.
    #[error("the entity has no such delivery")]
    NotFound,
    /// The entity has no such event, or its retention is over. The error is the same for another entity's event.
    #[error("the entity has no such event")]
    EventNotFound,
    /// The event's content was erased, so there is nothing left to send.
    #[error("the event's content was erased on {0}")]
    EventErased(Time),
    /// The delivery's webhook was removed, so it cannot be sent.
    #[error("the delivery's webhook was removed")]
    WebhookRemoved,
    /// The webhook is missing or disabled.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// The delivery has had too many attempts to be sent again.
    #[error("the delivery has reached the limit of {MAX_ATTEMPTS} attempts")]
    TooManyAttempts,
    /// An attempt of the delivery is under way, until this time at the latest, so the delivery cannot be cancelled.
    #[error("a delivery attempt is under way until {0} at the latest")]
    AttemptUnderWay(Time),
    /// The delivery was delivered or has failed, so there is nothing to cancel.
    #[error("the delivery is final: {}", .0.as_str())]
    Final(Status),
    /// Too many ranges are being recovered.
    #[error(transparent)]
    TooManyRanges(#[from] TooManyRanges),
    /// Another replay of the webhook is under way.
    #[error(transparent)]
    ReplayUnderWay(#[from] ReplayUnderWay),
    /// The cursor is invalid, or belongs to another list.
    #[error(transparent)]
    Cursor(#[from] NotACursor),
    /// The idempotency key was used for another request.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
    /// The keys that seal cursors cannot be read.
    #[error("the keys that seal cursors cannot be read")]
    Keys(#[from] SealError),
    /// The table failed.
    #[error("a DynamoDB request for a delivery failed")]
    Table(#[from] TableError),
}

impl From<DeliveryError> for Problem {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::NotFound => {
                let detail = "There is no such delivery; its retention may have ended.";
                Self::new(ProblemKind::DeliveryNotFound, detail)
            }
            DeliveryError::EventNotFound => {
                let detail = "There is no such event; its retention may have ended. An event published with the \
                    response `kept: false` is not stored.";
                Self::new(ProblemKind::EventNotFound, detail)
            }
            DeliveryError::EventErased(erased) => {
                let detail = format!("This event's content was erased on {erased}; there is nothing left to send.");
                Self::new(ProblemKind::EventErased, detail).with_property("erasedDate", erased.to_string())
            }
            DeliveryError::WebhookRemoved => {
                let detail = "This delivery's webhook was removed, so the delivery cannot be sent again.";
                Self::new(ProblemKind::WebhookRemoved, detail)
            }
            DeliveryError::Webhook(error) => error.into(),
            DeliveryError::TooManyAttempts => {
                let detail =
                    format!("The delivery has reached the limit of {MAX_ATTEMPTS} attempts and cannot be sent again.");
                Self::new(ProblemKind::AttemptLimit, detail).with_limit("attempts", MAX_ATTEMPTS)
            }
            DeliveryError::AttemptUnderWay(until) => {
                let detail = format!(
                    "An attempt of this delivery is under way and cannot be stopped. It will end by {until}; try again \
                     after that."
                );
                Self::new(ProblemKind::AttemptUnderWay, detail).with_property("attemptEndsBy", until.to_string())
            }
            DeliveryError::Final(status) => {
                let detail = format!("The delivery is `{}`; only an open delivery can be cancelled.", status.as_str());
                Self::new(ProblemKind::DeliveryFinal, detail).with_property("status", status.as_str())
            }
            DeliveryError::TooManyRanges(TooManyRanges) => {
                let detail = format!(
                    "{MAX_RANGES} ranges of this webhook are already being recovered; try again when some have \
                     finished."
                );
                Self::new(ProblemKind::RecoveryLimit, detail).with_limit("recovered-ranges", MAX_RANGES)
            }
            DeliveryError::ReplayUnderWay(ReplayUnderWay { since, until }) => {
                let detail = format!(
                    "A replay of the webhook is under way: it delivers events published from {since} until {until}. \
                     Wait until it ends."
                );
                Self::new(ProblemKind::ReplayUnderWay, detail)
            }
            DeliveryError::Cursor(error) => error.into(),
            DeliveryError::Idempotency(error) => error.into(),
            DeliveryError::Keys(error) => error.into(),
            DeliveryError::Table(error) => error.into(),
        }
    }
}
