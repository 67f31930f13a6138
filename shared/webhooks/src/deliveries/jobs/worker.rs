//! The sweep's worker: takes turns and works on jobs, page by page.

use std::time::Duration;

use futures::{FutureExt, future::join_all};

use super::{
    cancel_page, entity_turns,
    job::{DueJob, JobItem, LEASE, Piece, Progress, Work},
    recover_page,
    store::{Jobs, TRIES, WRITING},
};
use crate::{deliveries::store::Deliveries, subscriptions::store::Webhooks};
use base::{SharedClock, SharedRandom, Time, random};
use storage::TableError;

/// How many entities have their turn at once.
const AT_ONCE: i32 = 8;
/// After this long no new page of a job is begun, and it is the next entity's turn.
const TURN: Duration = Duration::from_secs(1);

/// Works on jobs.
pub struct Worker {
    /// The jobs.
    pub jobs: Jobs,
    /// The deliveries that they change.
    pub deliveries: Deliveries,
    /// The webhooks of the deliveries.
    pub webhooks: Webhooks,
    /// Decides which jobs are due.
    pub clock: SharedClock,
    /// Makes leases.
    pub random: SharedRandom,
}

impl Worker {
    /// Works on the jobs that are due until there are none, or until that time. Returns the number of deliveries that
    /// are due because of it. A job that fails leaves the others alone.
    pub async fn work(&self, until: Time) -> Result<usize, TableError> {
        let (mut reopened, mut failed) = (0, None);
        loop {
            let now = self.clock.now();
            let due = self.jobs.first_turns(AT_ONCE, now).await?;
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
                    // The others go on; the entity of the job that failed has its next turn after the lease.
                    Err(error) => {
                        worked = true;
                        failed = Some(error);
                    }
                }
            }
            if !worked {
                // Other sweeps have taken all that the index shows.
                return failed.map_or(Ok(reopened), Err);
            }
        }
    }

    /// Works on the first job of an entity; `None` when another sweep has taken its turn. A turn without a job counts
    /// as work, since its place has moved and others may stand behind it.
    async fn turn(&self, due: DueJob, until: Time) -> Result<Option<usize>, TableError> {
        let now = self.clock.now();
        let until = until.min(now + TURN);
        let Some(entity) = entity_turns::entity_of(&due) else { return self.one(due, until).await };
        let Some(turn) = self.jobs.take_turn(&due, now).await?.done() else { return Ok(None) };
        let worked = match self.jobs.first_due(&entity, now).await? {
            Some(job) => self.one(job, until).await?,
            None => None,
        };
        self.jobs.end_turn(&turn, &entity, worked.is_some(), self.clock.now()).await?;
        Ok(Some(worked.unwrap_or_default()))
    }

    /// Works on one job; `None` when another sweep works on it.
    async fn one(&self, due: DueJob, until: Time) -> Result<Option<usize>, TableError> {
        let now = self.clock.now();
        let Some(mut item) = self.jobs.get(&due.pk, &due.sk).await?.filter(|item| item.due_at <= now) else {
            return Ok(None);
        };
        let lease = random::uuid(&*self.random);
        item.lease = Some(lease.clone());
        item.due_at = now + LEASE;
        if !self.jobs.write(&mut item).await?.is_done() {
            return Ok(None);
        }
        let mut reopened = 0;
        loop {
            let (piece, made_due) = self.page(&item).await?;
            reopened += made_due;
            let now = self.clock.now();
            let (progress, held_until) = match piece {
                Piece::Over if self.jobs.remove(&item).await?.is_done() => return Ok(Some(reopened)),
                // More was asked for meanwhile.
                Piece::Over => (None, None),
                Piece::Next(progress) if now >= until => (Some(progress), Some(now)),
                Piece::Next(progress) => (Some(progress), None),
                Piece::Wait(progress, time) => (Some(progress), Some(time)),
            };
            match self.save(item, &lease, progress.as_ref(), held_until).await? {
                Some(saved) if held_until.is_none() => item = saved,
                _ => return Ok(Some(reopened)),
            }
        }
    }

    /// Works through a page of a job; the number is of the deliveries that are due because of it.
    async fn page(&self, item: &JobItem) -> Result<(Piece, usize), TableError> {
        match &item.work {
            _ if item.is_done() => Ok((Piece::Over, 0)),
            Work::Recover(_) => recover_page::work_through(&self.deliveries, &self.webhooks, item, &*self.clock).await,
            Work::Cancel(cancellation) => {
                let piece =
                    cancel_page::work_through(&self.deliveries, &item.webhook, cancellation, self.clock.now()).await?;
                Ok((piece, 0))
            }
        }
    }

    /// Writes the progress and keeps the lease, or gives the job back until that time; `None` when another sweep has
    /// the job by now.
    async fn save(
        &self,
        mut item: JobItem,
        lease: &str,
        progress: Option<&Progress>,
        held_until: Option<Time>,
    ) -> Result<Option<JobItem>, TableError> {
        for _ in 0..TRIES {
            let (pk, sk) = (item.pk.clone(), item.sk.clone());
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
