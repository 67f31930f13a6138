//! Removing a webhook.
//!
//! One transaction removes the webhook and its health, and notes a job that cancels the deliveries
//! that wait for it; a crash leaves all of it or nothing. The job may miss a delivery that is due
//! or published at this very moment: its next attempt finds no webhook and cancels it. A webhook
//! that was never sent anything leaves no job.

use super::{health::Healths, problems::webhook_not_found, stats::Stats, store::Webhooks};
use crate::deliveries::{
    Deliveries,
    jobs::{Job, Jobs},
};
use auth::entity::AuthorizedEntity;
use base::{clock::SharedClock, ids::WebhookId};
use problem::Problem;
use storage::table::{TableError, Write};

/// Removes webhooks.
pub struct Removal {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Their health, which goes with them.
    pub healths: Healths,
    /// Their statistics, which say whether they were sent anything.
    pub stats: Stats,
    /// The deliveries that wait for them.
    pub deliveries: Deliveries,
    /// The jobs that cancel these.
    pub jobs: Jobs,
    /// Gives the time of the job.
    pub clock: SharedClock,
}

/// Why a webhook was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The entity has no such webhook; another entity's webhook looks the same.
    #[error("the entity has no such webhook")]
    NotFound,
    /// The table failed.
    #[error("the table failed a removal")]
    Table(#[from] TableError),
}

impl From<RemoveError> for Problem {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::NotFound => webhook_not_found(),
            RemoveError::Table(error) => error.into(),
        }
    }
}

impl Removal {
    /// Removes a webhook.
    ///
    /// # Errors
    /// When the entity has no such webhook, or the table fails.
    pub async fn remove(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<(), RemoveError> {
        let now = self.clock.now();
        let mut along = vec![Write::from(self.healths.removal(entity, id))];
        // A delivery that is under way may be in no index yet; the statistics say that there was
        // one.
        let (waits, tried) = tokio::try_join!(self.deliveries.any_waiting(id), self.stats.any(entity, id))?;
        if waits || tried {
            self.jobs.ask_for_turn(entity.id(), now).await?;
            along.push(self.jobs.put(entity, Job::Cancel { webhook: id.clone() }, now)?.into());
        }
        if !self.webhooks.remove(entity, id, along).await?.is_done() {
            return Err(RemoveError::NotFound);
        }
        tracing::info!(webhookId = %id, entity = %entity.id(), "removed a webhook");
        Ok(())
    }
}
