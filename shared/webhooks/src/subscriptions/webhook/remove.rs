//! Removes a webhook. One transaction removes the webhook and its health, and writes a job that cancels its waiting
//! deliveries. If an attempt in progress fails, its delivery is cancelled by the next attempt, which finds no webhook,
//! or by a late pass of the job. A delivery that is being published at this moment is cancelled by its first attempt.

use crate::{
    deliveries::jobs::Jobs,
    subscriptions::{error::WebhookError, health::Healths, webhook::store::Webhooks},
};
use auth::AuthorizedEntity;
use base::{SharedClock, WebhookId};
use storage::Record;

/// Removes webhooks.
pub struct Removal {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Webhooks' health, which is removed with them.
    pub healths: Healths,
    /// The jobs that cancel their waiting deliveries.
    pub jobs: Jobs,
    /// The clock for the job.
    pub clock: SharedClock,
}

impl Removal {
    /// Removes a webhook, together with the request's idempotency record, if any.
    pub async fn remove(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        record: Option<Record>,
    ) -> Result<(), WebhookError> {
        let now = self.clock.now();
        let [job, turn] = self.jobs.cancellation(entity, id, now)?;
        // The deliveries in a pull webhook's feed; the dispatcher cancels them.
        let [release, _] = self.jobs.release(entity, id, now)?;
        let along = vec![self.healths.removal(entity, id).into(), job, release, turn];
        if !self.webhooks.remove(entity, id, along, record).await?.is_done() {
            return Err(WebhookError::NotFound);
        }
        tracing::info!(webhookId = %id, entity = %entity.id(), "removed a webhook");
        Ok(())
    }
}
