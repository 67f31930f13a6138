//! Work on many deliveries of a webhook, done in the background by the sweep: recovering those that failed or were
//! cancelled, and cancelling those that wait for a webhook that was removed.
//!
//! A job is an item, `JOB#{webhook}` / `RECOVER` or `CANCEL`, in its entity's shard of the index `byDue`. When it is its
//! entity's turn, a sweep takes it by a lease, which it renews with every page that it has worked through, together
//! with the place that it has reached. After a crash another sweep goes on there; the page that is then done twice changes
//! nothing twice, since every delivery is changed on condition of what it was. An item has a version, on condition of which it
//! is written.

mod cancel;
mod ranges;
mod recover;
mod turns;

use std::time::Duration;

use futures::{FutureExt, future::join_all};
use serde::{Deserialize, Serialize};

use super::Deliveries;
use crate::subscriptions::Webhooks;
use auth::entity::{AuthorizedEntity, EntityId};
use base::{
    clock::{SharedClock, Time},
    ids::WebhookId,
    random::{self, SharedRandom},
};
use cancel::Cancellation;
pub use ranges::{MAX_RANGES, Ranges, TooManyRanges};
use storage::table::{Put, Table, TableError, number, text, write_item};

/// The shard of the index `byDue` that has the turns.
const SHARD: &str = "JOBS";
/// The sort key of recoveries.
const RECOVER: &str = "RECOVER";
/// The sort key of cancellations.
const CANCEL: &str = "CANCEL";
/// How long a job is a sweep's alone after its last sign of life: longer than a page takes.
const LEASE: Duration = Duration::from_secs(15);
/// How many entities have their turn at once. Those that are left come first the next time.
const AT_ONCE: i32 = 8;
/// After this long no new page of a job is begun, and it is the next entity's turn.
const TURN: Duration = Duration::from_secs(1);
/// How many deliveries are looked at for a page.
const PAGE: i32 = 1_000;
/// How many deliveries are changed at once.
const CHANGES_AT_ONCE: usize = 100;
/// How often a write is tried that meets others'.
const TRIES: usize = 20;

const TAKING: &str = "taking up a job";
const WRITING: &str = "writing a job";
const REMOVING: &str = "removing a job";

/// The jobs in the table.
#[derive(Debug, Clone)]
pub struct Jobs(Table);

/// What there is to do for a webhook that was removed, as a part of the transaction that removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Ending the deliveries that wait for it.
    Cancel {
        /// The webhook.
        webhook: WebhookId,
    },
}

/// What does the jobs.
pub struct Worker {
    /// Where they are.
    pub jobs: Jobs,
    /// What they are about.
    pub deliveries: Deliveries,
    /// Whose they are.
    pub webhooks: Webhooks,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

/// A job as an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobItem {
    pk: String,
    sk: String,
    entity: EntityId,
    webhook: WebhookId,
    /// Counts its writes, from 1.
    version: u64,
    work: Work,
    /// Whose it is at the moment; until it is due again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    due_shard: String,
    due_at: Time,
}

/// What is left of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Work {
    Recover(Ranges),
    Cancel(Cancellation),
}

/// What the index of due jobs and turns shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DueJob {
    pk: String,
    sk: String,
    due_at: Time,
}

/// How a piece of work ended.
enum Piece {
    /// There is more to do.
    Next(Change),
    /// There is nothing to do before this time.
    Wait(Change, Time),
    /// The job has no purpose any more.
    Over,
}

/// What a piece of work changes in the job, as it is by then: others may have added to it.
type Change = Box<dyn Fn(&mut Work) + Send + Sync>;

impl Work {
    const fn sort_key(&self) -> &'static str {
        match self {
            Self::Recover(_) => RECOVER,
            Self::Cancel(_) => CANCEL,
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Recover(ranges) => ranges.is_empty(),
            Self::Cancel(cancellation) => cancellation.is_done(),
        }
    }
}

impl JobItem {
    fn new(entity: &EntityId, webhook: &WebhookId, work: Work, now: Time) -> Self {
        Self {
            pk: partition(webhook),
            sk: work.sort_key().to_owned(),
            entity: entity.clone(),
            webhook: webhook.clone(),
            version: 0,
            work,
            lease: None,
            due_shard: turns::shard_of(entity),
            due_at: now,
        }
    }
}

fn partition(webhook: &WebhookId) -> String {
    format!("JOB#{webhook}")
}

impl Jobs {
    /// The jobs in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// A job as a part of the transaction that makes it necessary. Its entity has a place already.
    pub fn put(&self, entity: &AuthorizedEntity, job: Job, now: Time) -> Result<Put, TableError> {
        let Job::Cancel { webhook } = job;
        let work = Work::Cancel(Cancellation::new(now));
        Put::item(&JobItem { version: 1, ..JobItem::new(entity.id(), &webhook, work, now) }, WRITING)
    }

    /// The ranges of a webhook's deliveries that are being recovered.
    pub async fn ranges(&self, webhook: &WebhookId) -> Result<Ranges, TableError> {
        match self.get(&partition(webhook), RECOVER).await?.map(|item| item.work) {
            Some(Work::Recover(ranges)) => Ok(ranges),
            _ => Ok(Ranges::default()),
        }
    }

    /// Has a range of a webhook's failed and cancelled deliveries recovered; what is being recovered already is not begun again.
    pub async fn recover(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        (since, until): (Time, Time),
        now: Time,
    ) -> Result<Result<(), TooManyRanges>, TableError> {
        self.ask_for_turn(entity.id(), now).await?;
        for _ in 0..TRIES {
            let found = self.get(&partition(webhook), RECOVER).await?;
            let mut item =
                found.unwrap_or_else(|| JobItem::new(entity.id(), webhook, Work::Recover(Ranges::default()), now));
            let Work::Recover(ranges) = &mut item.work else {
                return Err(TableError::Missing("the ranges of a recovery"));
            };
            match ranges.ask(since, until) {
                Ok(false) => return Ok(Ok(())),
                Ok(true) => {}
                Err(too_many) => return Ok(Err(too_many)),
            }
            if self.write(&mut item).await? {
                return Ok(Ok(()));
            }
        }
        Err(TableError::code(WRITING, "TransactionConflict"))
    }

    async fn get(&self, pk: &str, sk: &str) -> Result<Option<JobItem>, TableError> {
        self.0.get((pk.to_owned(), sk.to_owned()), true, TAKING).await
    }

    /// Writes an item on condition that it is the version that was read; false when it is not. A version of 0 is one that
    /// is not there yet.
    async fn write(&self, item: &mut JobItem) -> Result<bool, TableError> {
        let read = item.version;
        item.version += 1;
        let put = self.0.client.put_item().table_name(&self.0.name).set_item(Some(write_item(item, WRITING)?));
        let put = match read {
            0 => put.condition_expression("attribute_not_exists(pk)"),
            _ => put.condition_expression("version = :read").expression_attribute_values(":read", number(read)),
        };
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error)
                if error.as_service_error().is_some_and(|error| error.is_conditional_check_failed_exception()) =>
            {
                Ok(false)
            }
            Err(error) => Err(TableError::sdk(WRITING)(error)),
        }
    }

    /// Removes an item on condition that it is the version that was read; false when it is not.
    async fn remove(&self, item: &JobItem) -> Result<bool, TableError> {
        let delete = self.0.client.delete_item().table_name(&self.0.name);
        let delete = delete.key("pk", text(&item.pk)).key("sk", text(&item.sk));
        let delete =
            delete.condition_expression("version = :read").expression_attribute_values(":read", number(item.version));
        match delete.send().await {
            Ok(_) => Ok(true),
            Err(error)
                if error.as_service_error().is_some_and(|error| error.is_conditional_check_failed_exception()) =>
            {
                Ok(false)
            }
            Err(error) => Err(TableError::sdk(REMOVING)(error)),
        }
    }
}

impl Worker {
    /// Works on the jobs that are due until there are none, or until that time; gives the number of deliveries that are due
    /// because of it. A job that fails leaves the others alone.
    pub async fn work(&self, until: Time) -> Result<usize, TableError> {
        let (mut reopened, mut failed) = (0, None);
        loop {
            let now = self.clock.now();
            let (due, _) = self.jobs.0.due_before::<DueJob>(SHARD, now, AT_ONCE, None, "looking for jobs").await?;
            if due.is_empty() || now >= until {
                return failed.map_or(Ok(reopened), Err);
            }
            // Boxed: a future of futures of streams is more than the compiler follows.
            let outcomes = join_all(due.into_iter().map(|due| self.turn(due, until).boxed())).await;
            let mut worked = false;
            for outcome in outcomes {
                match outcome {
                    Ok(made_due) => {
                        worked |= made_due.is_some();
                        reopened += made_due.unwrap_or_default();
                    }
                    // The others go on, those behind it too; its own entity has its next turn when the lease of this one is over.
                    Err(error) => {
                        worked = true;
                        failed = Some(error);
                    }
                }
            }
            if !worked {
                // Other sweeps are at it, and the index does not know yet.
                return failed.map_or(Ok(reopened), Err);
            }
        }
    }

    /// Works on the first job of the entity whose turn it is; `None` when another sweep has taken the turn. A turn without a
    /// job counts as well, since its place has moved and others may stand behind it.
    async fn turn(&self, due: DueJob, until: Time) -> Result<Option<usize>, TableError> {
        let now = self.clock.now();
        let until = until.min(now + TURN);
        let Some(entity) = turns::entity_of(&due) else { return self.one(due, until).await };
        let Some(turn) = self.jobs.take_turn(&due, now).await? else { return Ok(None) };
        let worked = match self.jobs.first_due(&entity, now).await? {
            Some(job) => self.one(job, until).await?,
            None => None,
        };
        self.jobs.end_turn(&turn, &entity, worked.is_some(), self.clock.now()).await?;
        Ok(Some(worked.unwrap_or_default()))
    }

    /// Works on one job; `None` when it is somebody else's.
    async fn one(&self, due: DueJob, until: Time) -> Result<Option<usize>, TableError> {
        let now = self.clock.now();
        let Some(mut item) = self.jobs.get(&due.pk, &due.sk).await?.filter(|item| item.due_at <= now) else {
            return Ok(None);
        };
        let lease = random::uuid(&*self.random);
        item.lease = Some(lease.clone());
        item.due_at = now + LEASE;
        if !self.jobs.write(&mut item).await? {
            return Ok(None);
        }
        let mut reopened = 0;
        loop {
            let piece = match &item.work {
                work if work.is_done() => Piece::Over,
                Work::Recover(ranges) => {
                    let (piece, made_due) = self.recover_page(&item, ranges).await?;
                    reopened += made_due;
                    piece
                }
                Work::Cancel(cancellation) => self.cancel_page(&item, cancellation).await?,
            };
            let now = self.clock.now();
            let (change, held_until) = match piece {
                Piece::Over if self.jobs.remove(&item).await? => return Ok(Some(reopened)),
                // More was asked for meanwhile.
                Piece::Over => (Box::new(|_: &mut Work| ()) as Change, None),
                Piece::Next(change) if now >= until => (change, Some(now)),
                Piece::Next(change) => (change, None),
                Piece::Wait(change, time) => (change, Some(time)),
            };
            match self.save(item, &lease, change, held_until).await? {
                Some(saved) if held_until.is_none() => item = saved,
                _ => return Ok(Some(reopened)),
            }
        }
    }

    /// Keeps what was done, and the lease, or gives it back until that time; `None` when the job is somebody else's by now.
    async fn save(
        &self,
        mut item: JobItem,
        lease: &str,
        change: Change,
        held_until: Option<Time>,
    ) -> Result<Option<JobItem>, TableError> {
        for _ in 0..TRIES {
            let (pk, sk) = (item.pk.clone(), item.sk.clone());
            change(&mut item.work);
            item.lease = held_until.is_none().then(|| lease.to_owned());
            item.due_at = held_until.unwrap_or_else(|| self.clock.now() + LEASE);
            if self.jobs.write(&mut item).await? {
                return Ok(Some(item));
            }
            match self.jobs.get(&pk, &sk).await? {
                Some(found) if found.lease.as_deref() == Some(lease) => item = found,
                _ => return Ok(None),
            }
        }
        Err(TableError::code(WRITING, "TransactionConflict"))
    }
}
