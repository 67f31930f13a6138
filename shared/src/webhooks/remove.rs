//! Removing a webhook.
//!
//! In one transaction the webhook goes, with what is known of its health, and a job is noted that cancels its open
//! deliveries. A crash leaves all of it or nothing. A delivery that the job does not meet, since it was published at this
//! very moment, is cancelled at its next attempt: there is no webhook any more.

use super::{Webhooks, health::Healths};
use crate::{
    clock::SharedClock,
    deliveries::jobs::{Job, Jobs},
    http::{Call, Problem, Reply},
    ids::WebhookId,
    table::Transacted,
};

/// Everything that removing a webhook needs.
pub struct Removal {
    /// Where webhooks are kept.
    pub webhooks: Webhooks,
    /// How they are doing.
    pub healths: Healths,
    /// What is done afterwards.
    pub jobs: Jobs,
    /// The clock.
    pub clock: SharedClock,
}

impl Removal {
    /// Answers a request to remove a webhook.
    pub async fn remove(&self, call: &Call) -> Result<Reply, Problem> {
        let entity = call.entity();
        let id = WebhookId::of_path(call)?;
        let job = Job::Cancel { webhook: id.clone() };
        let along = vec![self.healths.removal(entity, &id)?, self.jobs.put(entity, job, self.clock.now())?];
        if self.webhooks.remove(entity, &id, along).await? == Transacted::ConditionLost {
            return Err(Problem::webhook_not_found());
        }
        tracing::info!(webhookId = %id, entity = %entity.id(), "removed a webhook");
        Reply::removed(&id, "The webhook is removed; deliveries to it that are still open are being cancelled.")
    }
}
