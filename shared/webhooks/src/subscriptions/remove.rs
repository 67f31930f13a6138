//! Removing a webhook.
//!
//! In one transaction the webhook goes, with what is known of its health, and a job is noted that cancels the deliveries that
//! wait for it. A crash leaves all of it or nothing. A delivery that the job does not meet, since it is due or was published at
//! this very moment, is cancelled at its next attempt: there is no webhook any more. A webhook that was never sent anything
//! leaves no job.

use super::{Webhooks, health::Healths, stats::Stats};
use crate::deliveries::{
    Deliveries,
    jobs::{Job, Jobs},
};
use base::clock::SharedClock;
use gate::{EntityCall, Reply};
use problem::Problem;
use storage::table::Transacted;

/// Everything that removing a webhook needs.
pub struct Removal {
    /// Where webhooks are kept.
    pub webhooks: Webhooks,
    /// How they are doing.
    pub healths: Healths,
    /// What they were sent.
    pub stats: Stats,
    /// What waits for them.
    pub deliveries: Deliveries,
    /// What is done afterwards.
    pub jobs: Jobs,
    /// The clock.
    pub clock: SharedClock,
}

impl Removal {
    /// Answers a request to remove a webhook.
    pub async fn remove(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        let id = call.webhook_id()?;
        let now = self.clock.now();
        let mut along = vec![self.healths.removal(entity, &id)?];
        // What waits for it may still be under way, and be in no index yet.
        let (waits, tried) = tokio::try_join!(self.deliveries.any_waiting(&id), self.stats.any(entity, &id))?;
        if waits || tried {
            self.jobs.ask_for_turn(entity.id(), now).await?;
            along.push(self.jobs.put(entity, Job::Cancel { webhook: id.clone() }, now)?);
        }
        if self.webhooks.remove(entity, &id, along).await? == Transacted::ConditionLost {
            return Err(Problem::webhook_not_found());
        }
        tracing::info!(webhookId = %id, entity = %entity.id(), "removed a webhook");
        Reply::removed(&id, "The webhook is removed; deliveries to it that are still open are being cancelled.")
    }
}
