//! Removing a webhook.
//!
//! One transaction removes the webhook and its health, and writes a job that cancels the deliveries which wait for it;
//! a crash leaves all of it or nothing. The job may miss a delivery that is due or published at this very moment: its
//! next attempt finds no webhook and cancels it. A webhook that was never sent anything leaves no job.

use super::{error::WebhookError, health::Healths, stats::Stats, store::Webhooks};
use crate::deliveries::{Deliveries, jobs::Jobs};
use auth::AuthorizedEntity;
use base::{SharedClock, WebhookId};
use storage::table::Write;

/// Removes webhooks.
pub struct Removal {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Their health, which goes with them.
    pub healths: Healths,
    /// Their statistics, which show whether they were sent anything.
    pub stats: Stats,
    /// The deliveries that wait for them.
    pub deliveries: Deliveries,
    /// The jobs that cancel these deliveries.
    pub jobs: Jobs,
    /// Dates the job.
    pub clock: SharedClock,
}

impl Removal {
    /// Removes a webhook.
    pub async fn remove(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<(), WebhookError> {
        let now = self.clock.now();
        let mut along = vec![Write::from(self.healths.removal(entity, id))];
        // A delivery that is under way may be in no index yet, but the statistics show that there was one.
        let (waits, tried) = tokio::try_join!(self.deliveries.any_waiting(id), self.stats.any(entity, id))?;
        if waits || tried {
            self.jobs.ask_for_turn(entity.id(), now).await?;
            along.push(self.jobs.cancellation(entity, id, now)?.into());
        }
        if !self.webhooks.remove(entity, id, along).await?.is_done() {
            return Err(WebhookError::NotFound);
        }
        tracing::info!(webhookId = %id, entity = %entity.id(), "removed a webhook");
        Ok(())
    }
}
