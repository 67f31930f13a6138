//! Jobs: a job's item, and its progress.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use crate::deliveries::{
    jobs::{
        expedited_ranges::ExpeditedRanges,
        passes::Passes,
        recover_ranges::{Range, Ranges, TooManyRanges},
        replay::Replay,
        scope::RecoveryScope,
    },
    queries::range::{KeyRange, ListPosition},
    state::index::IndexGroup,
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId};
use storage::{TableError, table::Change};

/// The prefix of the partition keys of turns.
pub(super) const TURN: &str = "TURN#";
/// The sort key of turns.
pub(super) const TURN_SORT: &str = "JOBS";

/// The shard of turns in the index `byDue`.
pub(super) const SHARD: &str = "JOBS";
/// The sort keys of jobs, by their [`Work`].
pub(super) const RECOVER: &str = "RECOVER";
const CANCEL: &str = "CANCEL";
const RELEASE: &str = "RELEASE";
const RESUME: &str = "RESUME";
const EXPIRE: &str = "EXPIRE";
pub(super) const REPLAY: &str = "REPLAY";
pub(super) const ERASE: &str = "ERASE";
/// How long a sweep holds a job after its last write: longer than a page takes.
pub(super) const LEASE: Duration = Duration::from_secs(15);
/// How many deliveries are read for a page.
pub(super) const PAGE: i32 = 1_000;
/// How many deliveries are changed at once.
const CHANGES_AT_ONCE: usize = 100;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobItem {
    pub(super) pk: String,
    pub(super) sk: String,
    pub(super) entity: EntityId,
    /// The deliveries' webhook; `None` if they are an event's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) webhook: Option<WebhookId>,
    /// The number of writes so far.
    pub(super) version: u64,
    pub(super) work: Work,
    /// The waiting deliveries of a recovery.
    pub(super) expedited: ExpeditedRanges,
    /// Identifies the sweep that is working on the job, until the job is due again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<String>,
    pub(super) due_shard: String,
    pub(super) due_at: Time,
}

/// The remaining work of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Work {
    Recover(Ranges),
    /// Add a delivery to the webhook for each matching event that has none.
    Replay(Replay),
    /// Cancel a removed webhook's waiting deliveries.
    Cancel(Passes),
    /// Take the deliveries out of a feed that can no longer be read, so that the dispatcher decides what to do with
    /// them.
    Release(Passes),
    /// Make due the deliveries that are waiting for their owner's pause to end.
    Resume(Passes),
    /// Remove a temporary webhook when its feed has not been read for a long time.
    Expire,
    /// Erase the content in an event's deliveries.
    Erase(Erasure),
}

/// Progress in erasing the content in an event's deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Erasure {
    pub(super) event: EventId,
    /// The number of the first remaining delivery.
    pub(super) next: usize,
}

/// The progress that a page of work made. It is applied to the job's current state, since requests may have added to
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// A part was recovered up to a position or, if there is none, up to the end that it had when the page was read.
    Recovered { part: Part, up_to: Option<ListPosition> },
    /// A part of a replay was processed up to a position, or to its end.
    Replayed { replay: Replay, part: KeyRange, up_to: Option<ListPosition> },
    /// Deliveries were cancelled, released or made due; these passes remain.
    Passed(Passes),
    /// A temporary webhook's feed was read, a pause ends at another time, or a replay is waiting for the last events.
    Seen,
    /// Deliveries of an event were erased; this much remains.
    Erased(Erasure),
}

/// A part of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Failed and cancelled deliveries in a range.
    Failed(Range),
    /// Waiting deliveries in a range.
    Waiting(Range),
    /// Postponed deliveries, after the breaker was closed early.
    PutOff(KeyRange),
}

impl Part {
    /// The index group of its deliveries.
    pub(super) const fn group(&self) -> IndexGroup {
        match self {
            Self::Failed(_) => IndexGroup::Recoverable,
            Self::Waiting(_) | Self::PutOff(_) => IndexGroup::Waiting,
        }
    }

    /// The remaining part.
    pub(super) fn left(&self) -> &KeyRange {
        match self {
            Self::Failed(range) | Self::Waiting(range) => range.left(),
            Self::PutOff(range) => range,
        }
    }
}

/// The result of a page of work.
#[derive(Debug)]
pub(super) enum PageResult {
    /// More work is due now.
    Next(Progress),
    /// More work is due at this time.
    Wait(Progress, Time),
    /// The job is no longer needed.
    Over,
}

impl PageResult {
    /// The result of one page of a pass that may have found deliveries, and that reached this position or the end.
    pub(super) fn of_pass(pass: Passes, found: bool, end: Option<&ListPosition>, now: Time) -> Self {
        let pass = pass.after_page(found, end);
        let is_over = pass.left.is_empty() && !pass.is_done();
        let next = pass.next(now);
        let progress = Progress::Passed(pass);
        if is_over { Self::Wait(progress, next) } else { Self::Next(progress) }
    }
}

/// An entry in the index of due jobs and turns.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DueJob {
    pub(super) pk: String,
    pub(super) sk: String,
    pub(super) due_at: Time,
}

impl DueJob {
    pub(super) fn of(job: JobItem) -> Self {
        let JobItem { pk, sk, due_at, .. } = job;
        Self { pk, sk, due_at }
    }
}

impl Work {
    const fn sort_key(&self) -> &'static str {
        match self {
            Self::Recover(_) => RECOVER,
            Self::Replay(_) => REPLAY,
            Self::Cancel(_) => CANCEL,
            Self::Release(_) => RELEASE,
            Self::Resume(_) => RESUME,
            Self::Expire => EXPIRE,
            Self::Erase(_) => ERASE,
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Recover(ranges) => ranges.is_empty(),
            Self::Replay(replay) => replay.is_done(),
            Self::Cancel(passes) | Self::Release(passes) | Self::Resume(passes) => passes.is_done(),
            // The job ends with its last page.
            Self::Expire | Self::Erase(_) => false,
        }
    }
}

/// A turn for the entity, due at this time, for the transaction that writes a job.
pub(super) fn turn(entity: &EntityId, due: Time) -> Change {
    let turn = Change::of((format!("{TURN}{entity}"), TURN_SORT.to_owned()));
    turn.set("dueShard", SHARD).set("dueAt", due).remove("idleSince")
}

impl JobItem {
    /// Whether the item lacks a webhook even though its work needs one: a later release wrote it in another format.
    pub(super) fn lacks_webhook(&self) -> bool {
        self.webhook.is_none() && !self.is_done() && !matches!(self.work, Work::Erase(_))
    }

    pub(super) fn new(entity: &EntityId, webhook: &WebhookId, work: Work, now: Time) -> Self {
        Self { webhook: Some(webhook.clone()), ..Self::of(entity, partition(webhook), work, now) }
    }

    /// The job that erases the content in an event's deliveries, due at this time.
    pub(super) fn erasure(entity: &EntityId, event: &EventId, due: Time) -> Self {
        let work = Work::Erase(Erasure { event: event.clone(), next: 0 });
        Self::of(entity, partition_of_event(event), work, due)
    }

    fn of(entity: &EntityId, pk: String, work: Work, now: Time) -> Self {
        Self {
            pk,
            sk: work.sort_key().to_owned(),
            entity: entity.clone(),
            webhook: None,
            version: 0,
            work,
            expedited: ExpeditedRanges::default(),
            lease: None,
            due_shard: shard_of(entity),
            due_at: now,
        }
    }

    /// A new, empty recovery.
    pub(super) fn recovery(entity: &EntityId, webhook: &WebhookId, now: Time) -> Self {
        Self::new(entity, webhook, Work::Recover(Ranges::default()), now)
    }

    /// A new job for a replay.
    pub(super) fn replay(entity: &EntityId, webhook: &WebhookId, replay: Replay, now: Time) -> Self {
        Self::new(entity, webhook, Work::Replay(replay), now)
    }

    /// Adds a scope to a recovery. Returns whether the scope has deliveries that the recovery did not include before.
    pub(super) fn ask(&mut self, scope: RecoveryScope) -> Result<bool, TooManyRanges> {
        let RecoveryScope { since, until, include } = scope;
        let mut asked = false;
        if let Work::Recover(failed) = &mut self.work
            && include.failed()
        {
            asked |= failed.ask(since, until)?;
        }
        if include.waiting() {
            asked |= self.expedited.ranges.ask(since, until)?;
        }
        Ok(asked)
    }

    pub(super) fn is_done(&self) -> bool {
        self.work.is_done() && self.expedited.is_done()
    }

    /// The part of a recovery to work on. Waiting deliveries come first, so that one that then fails permanently is
    /// still recovered.
    pub(super) fn part(&self) -> Option<Part> {
        let Work::Recover(failed) = &self.work else { return None };
        let ExpeditedRanges { ranges: waiting, put_off } = &self.expedited;
        let put_off = || (!put_off.is_empty()).then(|| Part::PutOff(put_off.clone()));
        let failed = || failed.first().cloned().map(Part::Failed);
        waiting.first().cloned().map(Part::Waiting).or_else(put_off).or_else(failed)
    }

    /// Applies a page's progress. Progress of a different kind of work has no effect.
    pub(super) fn advance(&mut self, progress: &Progress) {
        match (&mut self.work, progress) {
            (Work::Recover(failed), Progress::Recovered { part, up_to }) => match part {
                Part::Failed(range) => failed.done(range, up_to.as_ref()),
                Part::Waiting(range) => self.expedited.ranges.done(range, up_to.as_ref()),
                Part::PutOff(range) => self.expedited.put_off_done(range, up_to.as_ref()),
            },
            (Work::Replay(replay), Progress::Replayed { replay: worked_on, part, up_to }) => {
                replay.done(worked_on, part, up_to.as_ref());
            }
            // The passes are replaced, since only the sweep that holds the job changes them.
            (Work::Cancel(passes) | Work::Release(passes) | Work::Resume(passes), Progress::Passed(left)) => {
                *passes = left.clone();
            }
            (Work::Erase(erasure), Progress::Erased(left)) => *erasure = left.clone(),
            _ => {}
        }
    }
}

/// Changes deliveries and returns how many of the changes took effect.
pub(super) async fn count_done<F: Future<Output = Result<bool, TableError>>>(
    found: Vec<DeliveryId>,
    change: impl Fn(DeliveryId) -> F,
) -> Result<usize, TableError> {
    let changes: Vec<_> = stream::iter(found).map(change).buffer_unordered(CHANGES_AT_ONCE).collect().await;
    changes.into_iter().map(|done| done.map(usize::from)).sum()
}

pub(super) fn partition(webhook: &WebhookId) -> String {
    format!("JOB#{webhook}")
}

pub(super) fn partition_of_event(event: &EventId) -> String {
    format!("JOB#{event}")
}

/// The shard of an entity's jobs in the index `byDue`.
pub(super) fn shard_of(entity: &EntityId) -> String {
    format!("{SHARD}#{entity}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::jobs::Include;
    use base::testing::CountingRandom;

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn recovery() -> JobItem {
        let random = CountingRandom::default();
        JobItem::recovery(&EntityId::parse("hotel").expect("an entity"), &WebhookId::new(at(0), &random), at(0))
    }

    fn scope(since: i64, until: i64, include: Include) -> RecoveryScope {
        RecoveryScope { since: at(since), until: at(until), include }
    }

    #[test]
    fn a_page_of_a_pass_leads_to_the_next_one_or_to_a_later_pass() {
        let (removed, pause) = (at(1_795_167_900_000), Duration::from_secs(20));
        let settled = removed + Duration::from_secs(150);
        let position = ListPosition::parse("dlv_01m7w5gmev32p3wwt3y0b8j32h").expect("a position");
        let begun = PageResult::of_pass(Passes::new(removed), true, Some(&position), removed);
        assert!(matches!(begun, PageResult::Next(_)), "{begun:?}");
        let waits = PageResult::of_pass(Passes::new(removed), true, None, removed);
        assert!(matches!(waits, PageResult::Wait(_, time) if time == removed + pause), "{waits:?}");
        let last = Passes::new(removed).after_page(false, None).next_pass(settled);
        let last = PageResult::of_pass(last, false, None, settled);
        assert!(matches!(&last, PageResult::Next(Progress::Passed(pass)) if pass.is_done()), "{last:?}");
    }

    #[test]
    fn progress_counts_for_the_job_as_it_is_by_then() {
        let mut job = recovery();
        assert_eq!(job.ask(scope(10, 20, Include::Failed)), Ok(true));
        let part = job.part().expect("asked for");
        assert_eq!(job.ask(scope(30, 40, Include::Failed)), Ok(true));
        job.advance(&Progress::Recovered { part, up_to: None });
        let Work::Recover(left) = &job.work else { panic!("still a recovery") };
        assert!(left.left_between(at(10), at(20)).is_empty() && !left.left_between(at(30), at(40)).is_empty());
        let before = job.work.clone();
        job.advance(&Progress::Passed(Passes::new(at(0))));
        assert_eq!(job.work, before, "progress of another kind changes nothing");
    }

    #[test]
    fn a_recovery_is_over_when_each_requested_kind_is() {
        for (include, kinds) in [(Include::Failed, 1), (Include::Waiting, 1), (Include::Both, 2)] {
            let mut job = recovery();
            assert_eq!(job.ask(scope(10, 20, include)), Ok(true));
            assert_eq!(job.ask(scope(10, 20, include)), Ok(false), "it is being done");
            let mut groups = Vec::new();
            while let Some(part) = job.part() {
                assert!(!job.is_done());
                groups.push(part.group());
                job.advance(&Progress::Recovered { part, up_to: None });
            }
            assert!(job.is_done());
            assert_eq!(groups.len(), kinds, "{include:?}");
            assert_eq!(groups.contains(&IndexGroup::Waiting), include.waiting());
            assert_eq!(groups.contains(&IndexGroup::Recoverable), include.failed());
        }
    }
}
