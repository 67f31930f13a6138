//! One delivery of any managing entity: shows it, or resends it as its owner could. The audit trail records a resend.

use std::sync::Arc;

use crate::{Deployment, DeploymentError, deployment};
use auth::AuthorizedEntity;
use base::audit::{Action, Notes};
use base::{Clock, DeliveryId, SystemClock};
use storage::{IdempotencyStore, TableError};
use webhooks::{
    deliveries::{Deliveries, DeliveryError as Cause, requests::resend::Resending, state::delivery::MAX_ATTEMPTS},
    subscriptions::{WebhookError, Webhooks, request_limits::RequestLimits},
};

pub use problem::Violation;
pub use webhooks::deliveries::{
    queries::advice::Advice,
    state::attempt::Attempt,
    view::{AttemptView, DeliveryView, WholeDelivery},
};

/// Why a delivery was not shown or not resent.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// No delivery has this identifier, or it is past its retention.
    #[error("there is no delivery {0}, or its retention has ended")]
    NotFound(DeliveryId),
    /// The delivery's webhook was removed.
    #[error("the delivery's webhook was removed, so the delivery cannot be resent")]
    WebhookRemoved,
    /// The delivery's webhook is disabled.
    #[error("the delivery's webhook is disabled; its owner must enable it first")]
    WebhookDisabled,
    /// The delivery has already had too many attempts.
    #[error("the delivery has reached the limit of {MAX_ATTEMPTS} attempts, so it cannot be resent")]
    TooManyAttempts,
    /// The deployment does not name its queues.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The table failed, or the managing entity has used up its resends for the current minute.
    #[error("the delivery could not be read or resent; run this again")]
    Other(#[source] Cause),
}

impl DeliveryError {
    /// Whether the current state rules out the request, in which case nothing was changed and a retry would fail again.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Deployment(error) => error.is_refusal(),
            Self::NotFound(_) | Self::WebhookRemoved | Self::WebhookDisabled | Self::TooManyAttempts => true,
            Self::Other(_) => false,
        }
    }

    fn of(cause: Cause, id: &DeliveryId) -> Self {
        match cause {
            Cause::NotFound => Self::NotFound(id.clone()),
            Cause::WebhookRemoved => Self::WebhookRemoved,
            Cause::Webhook(WebhookError::Disabled) => Self::WebhookDisabled,
            Cause::TooManyAttempts => Self::TooManyAttempts,
            other => Self::Other(other),
        }
    }
}

impl From<TableError> for DeliveryError {
    fn from(error: TableError) -> Self {
        Self::Other(error.into())
    }
}

/// Shows a delivery, regardless of the managing entity that owns it.
pub async fn show(deployment: &Deployment, id: &DeliveryId) -> Result<WholeDelivery, DeliveryError> {
    let deliveries = Deliveries::new(deployment.table.clone());
    let owner = owner(&deliveries, id).await?;
    let found = deliveries.with_attempts(&owner, id, SystemClock.now()).await?;
    found.ok_or_else(|| DeliveryError::NotFound(id.clone()))
}

/// Resends a delivery now, as the API does at its owner's request, and returns it. It counts towards the owner's limit
/// of resends.
pub async fn resend(deployment: &Deployment, id: &DeliveryId) -> Result<WholeDelivery, DeliveryError> {
    let table = &deployment.table;
    let deliveries = Deliveries::new(table.clone());
    let owner = owner(&deliveries, id).await?;
    let resending = Resending {
        deliveries,
        webhooks: Webhooks::new(table.clone()),
        answers: IdempotencyStore::new(table.clone()),
        limits: RequestLimits::new(table.clone()),
        queue: deployment.delivery_queues().await?,
        clock: Arc::new(SystemClock),
    };
    let resent = resending.resend(&owner, id, None).await.map_err(|cause| DeliveryError::of(cause, id))?;
    let notes = Notes::default();
    notes.entity(owner.id().as_str());
    notes.subject(id.as_str());
    deployment::audit(&deployment.environment, Action::ResendDelivery, &notes);
    Ok(resent.into_whole())
}

/// The managing entity that owns the delivery.
async fn owner(deliveries: &Deliveries, id: &DeliveryId) -> Result<AuthorizedEntity, DeliveryError> {
    let owner = deliveries.owner(id).await?.ok_or_else(|| DeliveryError::NotFound(id.clone()))?;
    Ok(AuthorizedEntity::by_operator(owner))
}

#[cfg(test)]
mod tests {
    use base::{EventId, SystemRandom};

    use super::*;

    #[test]
    fn a_refusal_says_why_and_a_failure_to_try_again() {
        let id = DeliveryId::of(&EventId::new(SystemClock.now(), &SystemRandom), 0);
        let refused = [
            (Cause::NotFound, "its retention has ended"),
            (Cause::WebhookRemoved, "was removed"),
            (Cause::Webhook(WebhookError::Disabled), "enable it first"),
            (Cause::TooManyAttempts, "100 attempts"),
        ];
        for (cause, said) in refused {
            let error = DeliveryError::of(cause, &id);
            assert!(error.is_refusal() && error.to_string().contains(said), "{error}");
        }
        let failed = DeliveryError::of(Cause::Webhook(WebhookError::NeverStill), &id);
        assert!(!failed.is_refusal() && failed.to_string().contains("run this again"), "{failed}");
    }
}
