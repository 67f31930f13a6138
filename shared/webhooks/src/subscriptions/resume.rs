//! Resuming a webhook: its owner ends the pause of its breaker, without waiting for a probe.
//!
//! One transaction closes the breaker and writes a job that has the deliveries which wait for it attempted now; a crash
//! leaves both or neither. An attempt that looked at the breaker just before may put its delivery off after the job has
//! passed: that delivery comes at the end of the pause.

use super::{
    error::WebhookError,
    health::{self, Healths},
    show::Showing,
    webhook::WebhookView,
};
use crate::deliveries::jobs::Jobs;
use auth::AuthorizedEntity;
use base::{SharedClock, Time, WebhookId, logging};
use storage::{Table, TableError};

/// The pauses of webhooks whose breakers are open.
#[derive(Debug, Clone)]
pub struct Pauses {
    healths: Healths,
    jobs: Jobs,
}

impl Pauses {
    /// The pauses of the webhooks in this table.
    pub fn new(table: &Table) -> Self {
        Self { healths: Healths::new(table.clone()), jobs: Jobs::new(table.clone()) }
    }

    /// Closes the breaker of a webhook, and has what waits for it attempted now. Nothing changes when it is closed.
    pub(crate) async fn end(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<(), TableError> {
        let found = self.healths.find(entity, webhook).await?;
        if found.is_none_or(|health| health.open_until.is_none()) {
            return Ok(());
        }
        let closing = health::closing(entity, webhook).into();
        if self.jobs.hasten_put_off(entity, webhook, vec![closing], now).await?.is_done() {
            tracing::info!(webhookId = %webhook, entity = %entity.id(), "the breaker is closed by hand");
        }
        Ok(())
    }

    /// Forgets the failures of a webhook, and returns whether it was paused.
    pub(super) async fn forget(&self, entity: &AuthorizedEntity, webhook: &WebhookId) -> Result<bool, TableError> {
        let Some(health) = self.healths.find(entity, webhook).await? else { return Ok(false) };
        self.healths.reset(entity, webhook).await?;
        Ok(health.open_until.is_some())
    }

    /// Has what waits for a breaker attempted now, which was closed before its time. Otherwise these deliveries come at
    /// the end of the pause, so that an error is logged.
    pub(crate) async fn let_go(&self, entity: &AuthorizedEntity, webhook: &WebhookId, now: Time) {
        if let Err(error) = self.jobs.hasten_put_off(entity, webhook, Vec::new(), now).await {
            tracing::warn!(error = %logging::chain(&error), webhookId = %webhook, "what waits for the breaker comes later");
        }
    }
}

/// Resumes webhooks.
pub struct Resuming {
    /// Reads and shows webhooks.
    pub showing: Showing,
    /// Their pauses.
    pub pauses: Pauses,
    /// Dates the job.
    pub clock: SharedClock,
}

impl Resuming {
    /// Ends the pause of a webhook, and returns the webhook as its owner sees it then.
    pub async fn resume(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<WebhookView, WebhookError> {
        let webhook = self.showing.webhooks.sendable(entity, id).await?;
        let now = self.clock.now();
        self.pauses.end(entity, id, now).await?;
        Ok(self.showing.read(entity, &webhook, now).await?)
    }
}
