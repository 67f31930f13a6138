//! Jobs in the table.

use std::time::Duration;

use crate::deliveries::{
    error::DeliveryError,
    jobs::{
        job::{DueJob, ERASE, JobItem, LEASE, RECOVER, REPLAY, Work, partition, partition_of_event, turn},
        passes::Passes,
        replay::Replay,
        scope::RecoveryScope,
    },
    queries::range::KeyRange,
};
use auth::AuthorizedEntity;
use base::{EventId, Time, WebhookId};
use storage::table::{Change, Delete, Put, Table, TableError, Transaction, Write, Written, exists, is, is_new};
use storage::{IdempotencyError, Record};

/// How many times a write that conflicts with others is tried.
pub(super) const TRIES: usize = 20;

pub(super) const TAKING: &str = "taking up a job";
pub(super) const WRITING: &str = "writing a job";
const REMOVING: &str = "removing a job";
const POSTPONING: &str = "postponing a job";

/// How long a temporary webhook exists after its feed was last read.
pub(super) const TEMPORARY: Duration = Duration::from_secs(60 * 60);
/// How long an erasure's job waits for the request that wrote it.
const ERASURE_WAIT: Duration = Duration::from_secs(20);

/// The remaining ranges of a recovery, for each kind.
#[derive(Debug)]
pub(in crate::deliveries) struct Left {
    /// Whether the webhook is being recovered.
    pub(in crate::deliveries) is_begun: bool,
    pub(in crate::deliveries) failed: Vec<KeyRange>,
    pub(in crate::deliveries) waiting: Vec<KeyRange>,
}

/// The jobs in the table.
#[derive(Debug, Clone)]
pub struct Jobs(pub(super) Table);

impl Jobs {
    /// The jobs in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Writes for the transaction that removes a webhook: the job that cancels its waiting deliveries, and a turn for
    /// its entity.
    pub(crate) fn cancellation(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<[Write; 2], TableError> {
        self.job(entity, webhook, Work::Cancel(Passes::new(now)), now, now)
    }

    /// Writes for the transaction that removes, disables or changes a webhook: the job that takes the deliveries out of
    /// its feed, and a turn for its entity.
    pub(crate) fn release(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<[Write; 2], TableError> {
        self.job(entity, webhook, Work::Release(Passes::new(now)), now, now)
    }

    /// Writes for the transaction that begins or ends an owner's pause: the job that makes the waiting deliveries due
    /// at its end, and a turn for the entity.
    pub(crate) fn resumption(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        end: Time,
        now: Time,
    ) -> Result<[Write; 2], TableError> {
        self.job(entity, webhook, Work::Resume(Passes::new(end)), end, now)
    }

    /// Writes for the transaction that adds a temporary webhook: the job that removes it, and a turn for its entity.
    pub(crate) fn expiry(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<[Write; 2], TableError> {
        self.job(entity, webhook, Work::Expire, now + TEMPORARY, now)
    }

    /// The writes for a new job that is due at this time. It replaces an earlier job of its kind and includes that
    /// job's work. A sweep may hold the earlier job, so the new version differs from all of its versions. The turn is
    /// due now: a later one would postpone the entity's other jobs.
    fn job(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        work: Work,
        due: Time,
        now: Time,
    ) -> Result<[Write; 2], TableError> {
        let version = now.as_millis().unsigned_abs();
        let job = Put::item(&JobItem { version, ..JobItem::new(entity.id(), webhook, work, due) }, WRITING)?;
        Ok([job.into(), turn(entity.id(), now).into()])
    }

    /// Writes for the transaction that erases an event: the job that erases the content in its deliveries, and a turn
    /// for its entity. The job begins once the request must have ended, since the request usually does the work itself
    /// and removes the job.
    pub(in crate::deliveries) fn erasure(
        &self,
        entity: &AuthorizedEntity,
        event: &EventId,
        now: Time,
    ) -> Result<[Write; 2], TableError> {
        let due = now + ERASURE_WAIT;
        let job = Put::item(&JobItem { version: 1, ..JobItem::erasure(entity.id(), event, due) }, WRITING)?;
        // Due now, as in `Self::job`.
        Ok([job.into(), turn(entity.id(), now).into()])
    }

    /// Whether the content in an erased event's deliveries is still being erased.
    pub(in crate::deliveries) async fn is_erasing(&self, event: &EventId) -> Result<bool, TableError> {
        Ok(self.get(&partition_of_event(event), ERASE).await?.is_some())
    }

    /// Removes an event's erasure job once all of its deliveries are erased. A sweep working on the job finds it gone.
    pub(in crate::deliveries) async fn end_erasure(&self, event: &EventId) -> Result<(), TableError> {
        let job = Delete::of((partition_of_event(event), ERASE.to_owned())).only_if(exists());
        self.0.write(job, REMOVING).await.map(drop)
    }

    /// The ranges of a scope that a recovery still has to process: less than the whole scope if a recovery is in
    /// progress.
    pub(in crate::deliveries) async fn left(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        scope: RecoveryScope,
        now: Time,
    ) -> Result<Left, DeliveryError> {
        let mut item = self.recovery(entity, webhook, now).await?;
        let is_begun = !item.is_done();
        item.ask(scope)?;
        let RecoveryScope { since, until, include } = scope;
        let failed = match &item.work {
            Work::Recover(failed) if include.failed() => failed.left_between(since, until),
            _ => Vec::new(),
        };
        let waiting = &item.expedited.ranges;
        let waiting = if include.waiting() { waiting.left_between(since, until) } else { Vec::new() };
        Ok(Left { is_begun, failed, waiting })
    }

    /// Adds a scope to the recovery of a webhook's deliveries, which begins at this time. Ranges in progress do not
    /// start over. If the request has an idempotency key, its record is written with the job.
    pub(in crate::deliveries) async fn recover(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        scope: RecoveryScope,
        record: Option<Record>,
        from: Time,
    ) -> Result<(), DeliveryError> {
        for _ in 0..TRIES {
            let mut item = self.recovery(entity, webhook, from).await?;
            if !item.ask(scope)? {
                return Ok(self.nothing_to_recover(record).await?);
            }
            let write = Transaction::new().with(next_version(&mut item)?).with(turn(entity.id(), from));
            if self.0.write_recorded(write, record.clone(), WRITING).await?.is_done() {
                return Ok(());
            }
        }
        Err(conflict().into())
    }

    /// Begins a replay, or continues the current one of the same scope. If the request has an idempotency key, its
    /// record is written with the job.
    pub(in crate::deliveries) async fn replay(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        asked: Replay,
        record: Option<Record>,
        now: Time,
    ) -> Result<(), DeliveryError> {
        for _ in 0..TRIES {
            let found = self.get(&partition(webhook), REPLAY).await?;
            let mut item = found.unwrap_or_else(|| JobItem::replay(entity.id(), webhook, asked.clone(), now));
            if let Work::Replay(replay) = &mut item.work {
                replay.ask(&asked)?;
            }
            if item.lease.is_none() {
                // The job may be waiting for the last events of its range.
                item.due_at = now;
            }
            let write = Transaction::new().with(next_version(&mut item)?).with(turn(entity.id(), now));
            if self.0.write_recorded(write, record.clone(), WRITING).await?.is_done() {
                return Ok(());
            }
        }
        Err(conflict().into())
    }

    /// Adds all of a webhook's postponed deliveries to its recovery, in one transaction with these writes and, if the
    /// request has an idempotency key, its record. Returns `Lost` if one of the writes is lost.
    pub(crate) async fn expedite_put_off(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        along: Vec<Write>,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<()>, IdempotencyError> {
        let mut lost_at = None;
        for _ in 0..TRIES {
            let mut item = self.recovery(entity, webhook, now).await?;
            let read = item.version;
            if lost_at == Some(read) {
                return Ok(Written::Lost(None));
            }
            item.expedited.add_put_off();
            let job = next_version(&mut item)?;
            let together = Transaction::new().with_all(along.clone()).with(job).with(turn(entity.id(), now));
            if self.0.write_recorded(together, record.clone(), WRITING).await?.is_done() {
                return Ok(Written::Done(()));
            }
            lost_at = Some(read);
        }
        Err(conflict().into())
    }

    /// A webhook's recovery, or a new, empty one.
    async fn recovery(&self, entity: &AuthorizedEntity, webhook: &WebhookId, now: Time) -> Result<JobItem, TableError> {
        let found = self.get(&partition(webhook), RECOVER).await?;
        Ok(found.unwrap_or_else(|| JobItem::recovery(entity.id(), webhook, now)))
    }

    /// Writes the record of a request for a recovery that found nothing to recover.
    pub(in crate::deliveries) async fn nothing_to_recover(
        &self,
        record: Option<Record>,
    ) -> Result<(), IdempotencyError> {
        self.0.write_recorded(Transaction::new(), record, WRITING).await.map(drop)
    }

    pub(super) async fn get(&self, pk: &str, sk: &str) -> Result<Option<JobItem>, TableError> {
        self.0.get((pk.to_owned(), sk.to_owned()), true, TAKING).await
    }

    /// Postpones a job that cannot be read. Returns `Lost` if another sweep has taken it.
    pub(super) async fn postpone_unreadable(&self, job: &DueJob, now: Time) -> Result<Written<()>, TableError> {
        self.0.write(postponing(job, now), POSTPONING).await
    }

    /// Writes an item, on condition that it still has the version that was read; version 0 means a new item.
    pub(super) async fn write(&self, item: &mut JobItem) -> Result<Written<()>, TableError> {
        self.0.write(next_version(item)?, WRITING).await
    }

    /// Removes an item, on condition that it still has the version that was read.
    pub(super) async fn remove(&self, item: &JobItem) -> Result<Written<()>, TableError> {
        let delete = Delete::of((item.pk.clone(), item.sk.clone())).only_if(is("version", item.version));
        self.0.write(delete, REMOVING).await
    }
}

/// Makes a job due again after the lease. Leaves everything else for a release that can read it.
fn postponing(job: &DueJob, now: Time) -> Change {
    let change = Change::of((job.pk.clone(), job.sk.clone())).set("dueAt", now + LEASE);
    change.only_if(is("dueAt", job.due_at))
}

/// The write of an item's next version, on condition that it still has the version that was read.
fn next_version(item: &mut JobItem) -> Result<Put, TableError> {
    let read = item.version;
    item.version += 1;
    Ok(Put::item(item, WRITING)?.only_if(if read == 0 { is_new() } else { is("version", read) }))
}

fn conflict() -> TableError {
    TableError::code(WRITING, "TransactionConflict")
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::EntityId;
    use base::testing::CountingRandom;
    use serde_json::json;

    #[test]
    fn a_job_that_is_postponed_is_due_after_the_lease_and_otherwise_unchanged() {
        let due_at = Time::from_millis(1_795_167_900_000);
        let now = due_at + Duration::from_secs(60);
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let job = JobItem::recovery(&entity, &WebhookId::new(due_at, &CountingRandom::default()), due_at);
        let mut job = serde_json::to_value(&job).expect("it is JSON");
        assert!(serde_json::from_value::<JobItem>(job.clone()).is_ok());
        job["work"] = json!({ "archive": { "left": [1, 2] } });
        assert!(serde_json::from_value::<JobItem>(job.clone()).is_err(), "this release has no such job");
        let shown: DueJob = serde_json::from_value(job.clone()).expect("the entry of the index can be read");
        let postponed = postponing(&shown, now).applied(&job);
        job["dueAt"] = json!(now + LEASE);
        assert_eq!(postponed, job);
    }
}
