//! The sweep's worker: takes entities' turns and works on their jobs, page by page.

use std::time::Duration;

use futures::{FutureExt, future::join_all};

use crate::{
    deliveries::{
        jobs::{
            entity_turns,
            job::{DueJob, JobItem, LEASE, PageResult, Progress, Work},
            passes::Pass,
            store::{Jobs, TEMPORARY, TRIES, WRITING},
        },
        store::Deliveries,
    },
    subscriptions::{
        Webhook,
        error::WebhookError,
        health::Healths,
        webhook::{remove::Removal, store::Webhooks},
    },
};
use auth::{AuthorizedEntity, EntityId};
use base::{SharedClock, SharedRandom, Time, WebhookId, random};
use storage::{IdempotencyError, TableError};

/// How many turns are taken at once.
const AT_ONCE: u8 = 8;
/// The time after which a turn begins no new page.
const TURN: Duration = Duration::from_secs(1);

/// The sweep's job worker.
pub struct Worker {
    /// The jobs.
    pub jobs: Jobs,
    /// The deliveries that they change.
    pub deliveries: Deliveries,
    /// The deliveries' webhooks.
    pub webhooks: Webhooks,
    /// The clock that determines which jobs are due.
    pub clock: SharedClock,
    /// The random source for leases.
    pub random: SharedRandom,
}

struct DueTurn {
    entry: DueJob,
    /// The unfinished job of the entity's previous turn in this sweep.
    left: Option<DueJob>,
}

/// The result of a turn.
struct Worked {
    /// How many deliveries it made due.
    made_due: usize,
    /// The entity's next turn, if it is due immediately.
    next: Option<DueTurn>,
}

impl Worker {
    /// Works on due jobs until there are none, or until this time, and returns how many deliveries became due. A
    /// failing job does not affect the others.
    pub async fn work(&self, until: Time) -> Result<usize, TableError> {
        let mut made_due = 0;
        let mut failed = None;
        // The index lags, and does not yet show the turns that this sweep has put back.
        let mut put_back = Vec::new();
        loop {
            let now = self.clock.now();
            let due = due_turns(self.jobs.first_turns(i32::from(AT_ONCE), now).await?, &mut put_back);
            if due.is_empty() || now >= until {
                return failed.map_or(Ok(made_due), Err);
            }
            // Boxed, since the nested types of futures and streams exceed the compiler's limits.
            let outcomes = join_all(due.into_iter().map(|due| self.turn(due, until).boxed())).await;
            let mut worked = false;
            for outcome in outcomes {
                match outcome {
                    Ok(None) => {}
                    Ok(Some(done)) => {
                        worked = true;
                        made_due += done.made_due;
                        put_back.extend(done.next);
                    }
                    // The other jobs continue. The failed job's entity takes its next turn after the lease.
                    Err(error) => {
                        worked = true;
                        failed = Some(error);
                    }
                }
            }
            if !worked {
                // Other sweeps have taken every turn that the index shows.
                return failed.map_or(Ok(made_due), Err);
            }
        }
    }

    /// Works on the first job of an entity; `None` if another sweep has taken its turn. A turn without a job counts as
    /// work: it was moved, and other turns may follow.
    async fn turn(&self, due: DueTurn, until: Time) -> Result<Option<Worked>, TableError> {
        let now = self.clock.now();
        let until = until.min(now + TURN);
        let DueTurn { entry, left } = due;
        let Some(entity) = entity_turns::entity_of(&entry) else {
            tracing::error!(pk = entry.pk, "a turn names no entity");
            return Ok(None);
        };
        let Some(turn) = self.jobs.take_turn(&entry, now).await?.done() else { return Ok(None) };
        let mut worked = None;
        // The unfinished job comes after the job that the index shows, or replaces it if that job no longer exists.
        for job in self.jobs.first_due(&entity, now).await?.into_iter().chain(left) {
            worked = self.one(job, until).await?;
            if worked.is_some() {
                break;
            }
        }
        let is_worked = worked.is_some();
        let (made_due, left) = worked.unwrap_or_default();
        let entry = self.jobs.end_turn(turn, &entity, is_worked, left.as_ref(), self.clock.now()).await?;
        Ok(Some(Worked { made_due, next: entry.map(|entry| DueTurn { entry, left }) }))
    }

    /// Works on one job; `None` if another sweep is working on it. Returns how many deliveries it made due, and the job
    /// if work remains. A job that cannot be read is postponed, so that it does not block the entity's other jobs.
    async fn one(&self, due: DueJob, until: Time) -> Result<Option<(usize, Option<DueJob>)>, TableError> {
        let now = self.clock.now();
        let read = self.jobs.get(&due.pk, &due.sk).await;
        let is_unreadable = match &read {
            Err(TableError::Item { .. }) => true,
            Ok(item) => item.as_ref().is_some_and(JobItem::lacks_webhook),
            Err(_) => false,
        };
        if is_unreadable {
            let is_postponed = self.jobs.postpone_unreadable(&due, now).await?.is_done();
            if is_postponed {
                warn_of_unreadable(&due.pk, &due.sk);
            }
            return Ok(is_postponed.then_some((0, None)));
        }
        let Some(mut item) = read?.filter(|item| item.due_at <= now) else { return Ok(None) };
        let lease = random::uuid(&*self.random);
        item.lease = Some(lease.clone());
        item.due_at = now + LEASE;
        if !self.jobs.write(&mut item).await?.is_done() {
            return Ok(None);
        }
        let mut total = 0;
        loop {
            let (page, made_due) = self.page(&item).await?;
            total += made_due;
            let now = self.clock.now();
            let (progress, held_until) = match page {
                PageResult::Over if self.jobs.remove(&item).await?.is_done() => return Ok(Some((total, None))),
                // A request has added work in the meantime.
                PageResult::Over => (None, None),
                PageResult::Next(progress) if now >= until => (Some(progress), Some(now)),
                PageResult::Next(progress) => (Some(progress), None),
                PageResult::Wait(progress, time) => (Some(progress), Some(time)),
            };
            match self.save(item, &lease, progress.as_ref(), held_until).await? {
                Some(saved) if held_until.is_none() => item = saved,
                left => return Ok(Some((total, left.map(DueJob::of)))),
            }
        }
    }

    /// Works through a page of a job. Returns its result and how many deliveries it made due.
    async fn page(&self, item: &JobItem) -> Result<(PageResult, usize), TableError> {
        match (&item.work, &item.webhook) {
            _ if item.is_done() => Ok((PageResult::Over, 0)),
            (Work::Erase(erasure), _) => Ok((self.erase_page(&item.entity, erasure).await?, 0)),
            // Unreachable: such a job was postponed.
            (_, None) => Ok((PageResult::Wait(Progress::Seen, self.clock.now() + LEASE), 0)),
            (Work::Recover(_), Some(webhook)) => self.recover_page(item, webhook).await,
            (Work::Replay(replay), Some(webhook)) => self.replay_page((item, webhook), replay).await,
            (Work::Cancel(passes), Some(webhook)) => self.pass_page(Pass::Cancel, (item, webhook), passes).await,
            (Work::Release(passes), Some(webhook)) => self.pass_page(Pass::Release, (item, webhook), passes).await,
            (Work::Resume(passes), Some(webhook)) => self.pass_page(Pass::Resume, (item, webhook), passes).await,
            (Work::Expire, Some(webhook)) => Ok((self.expire(&item.entity, webhook).await?, 0)),
        }
    }

    /// A job's webhook; `None` if it was removed or disabled.
    pub(super) async fn enabled_webhook(
        &self,
        job: &JobItem,
        webhook: &WebhookId,
    ) -> Result<Option<Webhook>, TableError> {
        let owner = AuthorizedEntity::owning_delivery(job.entity.clone());
        let found = self.webhooks.find(&owner, webhook).await?.map(|found| found.webhook);
        Ok(found.filter(|found| found.enabled))
    }

    /// Removes a temporary webhook whose feed has not been read for a long time.
    async fn expire(&self, entity: &EntityId, id: &WebhookId) -> Result<PageResult, TableError> {
        let entity = AuthorizedEntity::owning_delivery(entity.clone());
        let found = self.webhooks.find(&entity, id).await?;
        let Some(webhook) = found.map(|found| found.webhook).filter(|webhook| webhook.temporary) else {
            return Ok(PageResult::Over);
        };
        let end = webhook.read_at.unwrap_or(webhook.created_date) + TEMPORARY;
        let now = self.clock.now();
        if now < end {
            return Ok(PageResult::Wait(Progress::Seen, end));
        }
        tracing::info!(webhookId = %id, "a temporary webhook is removed because its feed has no reader");
        let removal = Removal {
            webhooks: self.webhooks.clone(),
            healths: Healths::new(self.webhooks.table().clone()),
            jobs: self.jobs.clone(),
            clock: self.clock.clone(),
        };
        match removal.remove(&entity, id, None).await {
            Ok(()) | Err(WebhookError::NotFound) => Ok(PageResult::Over),
            Err(WebhookError::Table(error) | WebhookError::Idempotency(IdempotencyError::Table(error))) => Err(error),
            // No other error is expected; the job is retried.
            Err(_) => Ok(PageResult::Wait(Progress::Seen, now + LEASE)),
        }
    }

    /// Writes the progress and keeps the lease, or releases the job until this time; `None` if another sweep has taken
    /// the job.
    async fn save(
        &self,
        mut item: JobItem,
        lease: &str,
        progress: Option<&Progress>,
        held_until: Option<Time>,
    ) -> Result<Option<JobItem>, TableError> {
        for _ in 0..TRIES {
            let pk = item.pk.clone();
            let sk = item.sk.clone();
            progress.into_iter().for_each(|progress| item.advance(progress));
            item.lease = held_until.is_none().then(|| lease.to_owned());
            item.due_at = held_until.unwrap_or_else(|| self.clock.now() + LEASE);
            if self.jobs.write(&mut item).await?.is_done() {
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

/// Warns about a job that was postponed. The reason is left out, since it may contain values from the item.
fn warn_of_unreadable(pk: &str, sk: &str) {
    tracing::warn!(
        pk,
        sk,
        "a job is postponed because this release cannot read it; deploy the release that wrote it, or remove the item"
    );
}

/// The due turns: first those that the index shows, then the turns that were put back, while there is room.
fn due_turns(shown: Vec<DueJob>, put_back: &mut Vec<DueTurn>) -> Vec<DueTurn> {
    let is_put_back = |entry: &DueJob| put_back.iter().any(|turn| turn.entry.pk == entry.pk);
    let shown = shown.into_iter().filter(|entry| !is_put_back(entry));
    let mut due: Vec<_> = shown.map(|entry| DueTurn { entry, left: None }).collect();
    let room = usize::from(AT_ONCE).saturating_sub(due.len()).min(put_back.len());
    due.extend(put_back.drain(..room));
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> DueJob {
        DueJob { pk: name.to_owned(), sk: "JOBS".to_owned(), due_at: Time::from_millis(1_795_167_900_000) }
    }

    fn turns(shown: &[&str], put_back: &mut Vec<DueTurn>) -> Vec<String> {
        let due = due_turns(shown.iter().map(|name| entry(name)).collect(), put_back);
        due.into_iter().map(|turn| turn.entry.pk).collect()
    }

    fn returned(names: &[&str]) -> Vec<DueTurn> {
        names.iter().map(|name| DueTurn { entry: entry(name), left: Some(entry("job")) }).collect()
    }

    #[test]
    fn a_put_back_turn_comes_before_the_index_shows_it() {
        assert_eq!(turns(&[], &mut returned(&["a"])), ["a"]);
        let mut twice = returned(&["a"]);
        assert_eq!(turns(&["a", "b"], &mut twice), ["b", "a"], "once, and behind the others");
        assert!(twice.is_empty());
    }

    #[test]
    fn turns_for_which_there_is_no_room_come_later() {
        let mut put_back = returned(&["x", "y"]);
        assert_eq!(turns(&["1", "2", "3", "4", "5", "6", "7"], &mut put_back).last().map(String::as_str), Some("x"));
        assert_eq!(turns(&["8"], &mut put_back), ["8", "y"]);
    }
}
