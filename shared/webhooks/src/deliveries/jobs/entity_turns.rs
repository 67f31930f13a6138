//! Entities' turns. Every entity with jobs has one turn, regardless of how many jobs it has, so that one entity's jobs
//! delay another's only briefly.
//!
//! One sweep per minute has 30 s for all jobs. It changes about a thousand deliveries a second: its 256 MB come with a
//! seventh of a processor, and DynamoDB accepts a thousand writes a second for one key of an index, such as that of one
//! webhook's deliveries in `byWebhook`. An entity may have 200 webhooks. Recovering 10 000 deliveries of each takes
//! more than half an hour of work, and so more than an hour of sweeps. If jobs ran in the order of their due times,
//! another entity would wait that long for a recovery of ten deliveries. If single jobs took turns, eight at once for a
//! second each, it would wait 25 s for each of its turns. With turns for entities, it waits a second for every eight
//! entities ahead of it. A queue with one page per message cannot replace the turns: a FIFO queue cannot delay a single
//! message, but jobs wait for certain times. A message that ended up in the dead-letter queue would end its job, so a
//! sweep would have to look for jobs anyway.
//!
//! A turn is an item, `TURN#{entity}` / `JOBS`, in the shard `JOBS` of the index `byDue`. An entity's jobs are in a
//! separate shard, `JOBS#{entity}`. A sweep takes the turns that have been due longest, works briefly on one job of
//! each entity, and puts each turn behind all others, or at the time when the entity's next job is due. A turn is
//! written in its job's transaction, and deleted only when sweeps have found no job for a minute. So neither a sandbox
//! that freezes before the transaction nor a lagging index leaves a job without a turn.

use std::time::Duration;

use serde::Deserialize;

use crate::deliveries::jobs::{
    job::{DueJob, LEASE, SHARD, TURN, TURN_SORT, shard_of},
    store::Jobs,
};
use auth::EntityId;
use base::Time;
use storage::table::{Change, Delete, Query, TableError, Written, is};

/// How long a turn without a job is kept: longer than the index may lag.
const KEPT: Duration = Duration::from_secs(60);
/// The pause after a turn that did no work even though the index shows its job as due: the index lags, or another sweep
/// is working on that job.
const PAUSE_WITHOUT_WORK: Duration = Duration::from_secs(1);
/// The pause before the next turn of an entity whose job is not in the index yet.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// A time later than that of any job.
const EVER: Time = Time::from_millis(253_402_300_799_000);

const TAKING: &str = "taking an entity's turn";
const ENDING: &str = "ending an entity's turn";

/// A turn that this sweep has taken.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Turn {
    pk: String,
    /// When sweeps stopped finding jobs for the entity.
    #[serde(default)]
    idle_since: Option<Time>,
    /// The end of the sweep's lease.
    due_at: Time,
}

/// The entity whose turn is due; `None` if the key does not name one.
pub(super) fn entity_of(due: &DueJob) -> Option<EntityId> {
    due.pk.strip_prefix(TURN).and_then(|entity| EntityId::parse(entity).ok())
}

impl Jobs {
    /// The turns that have been due longest.
    pub(super) async fn first_turns(&self, limit: i32, now: Time) -> Result<Vec<DueJob>, TableError> {
        Ok(self.0.page(Query::due_by(SHARD, now).limit(limit), "looking for jobs").await?.entries)
    }

    /// Takes a turn. Returns `Lost` if another sweep has taken it, or if it was requested again in the meantime.
    pub(super) async fn take_turn(&self, due: &DueJob, now: Time) -> Result<Written<Turn>, TableError> {
        let taken = Change::of((due.pk.clone(), due.sk.clone()));
        let taken = taken.set("dueAt", now + LEASE).only_if(is("dueAt", due.due_at));
        self.0.write_together_and_read(taken, TAKING).await
    }

    /// The job of an entity that has been due longest.
    pub(super) async fn first_due(&self, entity: &EntityId, now: Time) -> Result<Option<DueJob>, TableError> {
        let page = self.0.page(Query::due_by(shard_of(entity), now).limit(1), TAKING).await?;
        Ok(page.entries.into_iter().next())
    }

    /// Ends a turn. The entity's next turn is behind all others, or at the time when its next job is due: the first job
    /// in the index, or the job that this turn left unfinished. A turn that was requested in the meantime stays due.
    ///
    /// Returns the entry of the next turn if it is due immediately.
    pub(super) async fn end_turn(
        &self,
        turn: Turn,
        entity: &EntityId,
        worked: bool,
        left: Option<&DueJob>,
        now: Time,
    ) -> Result<Option<DueJob>, TableError> {
        let shown = self.first_due(entity, EVER).await?;
        let job = shown.iter().chain(left).map(|job| job.due_at).min();
        let idle_since = job.is_none().then(|| turn.idle_since.unwrap_or(now));
        let Some(next) = next_turn(job, idle_since, worked, now) else {
            return self.delete(&turn).await.map(|()| None);
        };
        let change = Change::of(turn.key()).set("dueAt", next).set_or_remove("idleSince", idle_since);
        let change = change.only_if(is("dueAt", turn.due_at));
        let put_back = self.0.write_together(change, ENDING).await?.is_done() && next <= now;
        Ok(put_back.then(|| DueJob { pk: turn.pk, sk: TURN_SORT.to_owned(), due_at: next }))
    }

    async fn delete(&self, turn: &Turn) -> Result<(), TableError> {
        let delete = Delete::of(turn.key()).only_if(is("dueAt", turn.due_at));
        self.0.write(delete, ENDING).await.map(drop)
    }
}

impl Turn {
    fn key(&self) -> (String, String) {
        (self.pk.clone(), TURN_SORT.to_owned())
    }
}

/// The time of an entity's next turn, given its next job; `None` if no turn is needed.
fn next_turn(job: Option<Time>, idle_since: Option<Time>, worked: bool, now: Time) -> Option<Time> {
    match job {
        Some(due) => Some(due.max(if worked { now } else { now + PAUSE_WITHOUT_WORK })),
        None => idle_since.is_none_or(|since| now.since(since) < KEPT).then(|| now + LOOK_AGAIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn an_entity_with_more_to_do_comes_behind_all_that_wait() {
        let due = NOW - Duration::from_secs(10);
        assert_eq!(next_turn(Some(due), None, true, NOW), Some(NOW));
        assert_eq!(next_turn(Some(NOW + KEPT), None, true, NOW), Some(NOW + KEPT), "nothing is to be done before");
    }

    #[test]
    fn a_turn_without_work_is_not_taken_again_at_once_by_the_same_sweep() {
        assert_eq!(next_turn(Some(NOW), None, false, NOW), Some(NOW + PAUSE_WITHOUT_WORK));
    }

    #[test]
    fn a_turn_is_kept_until_the_index_must_show_its_job() {
        let almost = NOW - (KEPT - Duration::from_millis(1));
        for idle_since in [None, Some(NOW), Some(almost)] {
            assert_eq!(next_turn(None, idle_since, false, NOW), Some(NOW + LOOK_AGAIN));
        }
        assert_eq!(next_turn(None, Some(NOW - KEPT), false, NOW), None);
    }
}
