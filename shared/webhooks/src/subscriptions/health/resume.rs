//! Ends the pause of a webhook's breaker early: its owner resumes the webhook or gives it another address, or an
//! attempt that a person requested gets a response. The pause that an owner begins is in `webhook::pausing`.
//!
//! One transaction closes the breaker and writes a job that makes the deliveries waiting for it due now. An attempt
//! that had already read the breaker may postpone its delivery after the job has passed it; that delivery is attempted
//! at the end of the pause.

use crate::{
    deliveries::jobs::Jobs,
    subscriptions::health::{self, Healths},
};
use auth::AuthorizedEntity;
use base::{Time, WebhookId};
use storage::table::{Change, Transaction, Write, Written};
use storage::{IdempotencyError, Record, Table};

/// The parts of a webhook's state that changing the webhook resets.
#[derive(Default)]
pub(in crate::subscriptions) struct Reset {
    /// Removes the failures, and makes the deliveries waiting for an open breaker due now: past failures do not disable
    /// the webhook again, and no delivery is left waiting because of the former address.
    pub(in crate::subscriptions) failures: bool,
    /// Makes due now the deliveries waiting for a breaker, their slot or the preceding delivery.
    pub(in crate::subscriptions) put_off: bool,
    /// The job that takes deliveries out of a feed, or makes a paused webhook's deliveries due, and its turn.
    pub(in crate::subscriptions) job: Option<[Write; 2]>,
    /// The request's record, if it has an idempotency key.
    pub(in crate::subscriptions) record: Option<Record>,
}

/// Webhooks' breaker pauses.
#[derive(Debug, Clone)]
pub struct Pauses {
    table: Table,
    healths: Healths,
    pub(in crate::subscriptions) jobs: Jobs,
}

impl Pauses {
    /// The pauses of the webhooks in this table.
    pub fn new(table: &Table) -> Self {
        Self { table: table.clone(), healths: Healths::new(table.clone()), jobs: Jobs::new(table.clone()) }
    }

    /// Closes a webhook's breaker and makes the deliveries waiting for it due now. Has no effect on a closed breaker.
    pub(crate) async fn end(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<(), IdempotencyError> {
        let found = self.healths.find(entity, webhook).await?;
        if found.is_none_or(|health| health.open_until.is_none()) {
            return Ok(());
        }
        if self.close(entity, webhook, now).await? {
            tracing::info!(webhookId = %webhook, entity = %entity.id(), "a request closed the breaker");
        }
        Ok(())
    }

    /// Closes an open breaker and makes the deliveries waiting for it due now. Returns whether it was open.
    pub(crate) async fn close(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<bool, IdempotencyError> {
        let closing = health::closing(entity, webhook).into();
        Ok(self.jobs.expedite_put_off(entity, webhook, vec![closing], None, now).await?.is_done())
    }

    /// Makes a change atomically with the writes of a reset. Returns `None` if there is nothing to reset; the caller
    /// then makes the change alone.
    pub(in crate::subscriptions) async fn change_and_reset(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        change: &Change,
        Reset { failures, put_off, job, record }: Reset,
        now: Time,
    ) -> Result<Option<Written<()>>, IdempotencyError> {
        let health = if failures { self.healths.find(entity, webhook).await? } else { None };
        if health.is_none() && job.is_none() && !put_off {
            return Ok(None);
        }
        let mut writes: Vec<Write> = vec![change.clone().into()];
        writes.extend(health.is_some().then(|| self.healths.removal(entity, webhook).into()));
        let (job, turn) = job.map(|[job, turn]| (job, turn)).unzip();
        writes.extend(job);
        if put_off || health.is_some_and(|health| health.open_until.is_some()) {
            // This also writes the turn.
            return self.jobs.expedite_put_off(entity, webhook, writes, record, now).await.map(Some);
        }
        writes.extend(turn);
        let both = Transaction::new().with_all(writes);
        self.table.write_recorded(both, record, "changing a webhook and resetting its health").await.map(Some)
    }
}
