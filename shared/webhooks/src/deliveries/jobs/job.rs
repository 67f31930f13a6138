//! A job: its item, and how far its work has come.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use crate::deliveries::{
    jobs::{
        cancel_progress::Cancellation,
        expedited_ranges::ExpeditedRanges,
        recover_ranges::{Range, Ranges, TooManyRanges},
        scope::RecoveryScope,
    },
    queries::by_owner::{KeyRange, ListPosition},
    store::index_group::IndexGroup,
};
use auth::EntityId;
use base::{DeliveryId, Time, WebhookId};
use storage::TableError;

/// The shard of turns in the index `byDue`.
pub(super) const SHARD: &str = "JOBS";
/// The sort key of recoveries.
pub(super) const RECOVER: &str = "RECOVER";
/// The sort key of cancellations.
const CANCEL: &str = "CANCEL";
/// How long a sweep holds a job after its last write: longer than a page takes.
pub(super) const LEASE: Duration = Duration::from_secs(15);
/// How many deliveries are read for a page.
pub(super) const PAGE: i32 = 1_000;
/// How many deliveries are changed at once.
const CHANGES_AT_ONCE: usize = 100;

/// A job as an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobItem {
    pub(super) pk: String,
    pub(super) sk: String,
    pub(super) entity: EntityId,
    pub(super) webhook: WebhookId,
    /// Counts its writes, from 1.
    pub(super) version: u64,
    pub(super) work: Work,
    /// The part of a recovery that concerns waiting deliveries.
    pub(super) expedited: ExpeditedRanges,
    /// Identifies the sweep that works on it, until it is due again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<String>,
    pub(super) due_shard: String,
    pub(super) due_at: Time,
}

/// The work that is left of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Work {
    Recover(Ranges),
    Cancel(Cancellation),
}

/// How far a page of work has come. It is applied to the job as it is by then, since requests may have added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// A part was recovered up to a place, or to the end that it had then.
    Recovered { part: Part, up_to: Option<ListPosition> },
    /// Waiting deliveries were cancelled; this cancellation is left.
    Cancelled(Cancellation),
}

/// A part of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Deliveries of a range that failed or were cancelled.
    Failed(Range),
    /// Deliveries of a range that wait.
    Waiting(Range),
    /// Deliveries that wait for the breaker, which was closed before its time.
    PutOff(KeyRange),
}

impl Part {
    /// The group of its deliveries.
    pub(super) const fn group(&self) -> IndexGroup {
        match self {
            Self::Failed(_) => IndexGroup::Recoverable,
            Self::Waiting(_) | Self::PutOff(_) => IndexGroup::Waiting,
        }
    }

    /// The rest of it that is not done.
    pub(super) fn left(&self) -> &KeyRange {
        match self {
            Self::Failed(range) | Self::Waiting(range) => range.left(),
            Self::PutOff(stretch) => stretch,
        }
    }
}

/// How a page of work ended.
#[derive(Debug)]
pub(super) enum PageResult {
    /// There is more to do now.
    Next(Progress),
    /// There is nothing to do before this time.
    Wait(Progress, Time),
    /// The job has no purpose any more.
    Over,
}

/// An entry of the index of due jobs and turns.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DueJob {
    pub(super) pk: String,
    pub(super) sk: String,
    pub(super) due_at: Time,
}

impl DueJob {
    /// What the index will show of a job.
    pub(super) fn of(job: JobItem) -> Self {
        let JobItem { pk, sk, due_at, .. } = job;
        Self { pk, sk, due_at }
    }
}

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
    pub(super) fn new(entity: &EntityId, webhook: &WebhookId, work: Work, now: Time) -> Self {
        Self {
            pk: partition(webhook),
            sk: work.sort_key().to_owned(),
            entity: entity.clone(),
            webhook: webhook.clone(),
            version: 0,
            work,
            expedited: ExpeditedRanges::default(),
            lease: None,
            due_shard: shard_of(entity),
            due_at: now,
        }
    }

    /// A recovery of nothing yet.
    pub(super) fn recovery(entity: &EntityId, webhook: &WebhookId, now: Time) -> Self {
        Self::new(entity, webhook, Work::Recover(Ranges::default()), now)
    }

    /// Adds to a recovery what it does not have yet; returns whether there is any.
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

    /// The part of a recovery to work on. Those that wait come first: one that fails now may come to its end, and is
    /// recovered then.
    pub(super) fn part(&self) -> Option<Part> {
        let Work::Recover(failed) = &self.work else { return None };
        let ExpeditedRanges { ranges: waiting, put_off } = &self.expedited;
        let put_off = || (!put_off.is_empty()).then(|| Part::PutOff(put_off.clone()));
        let failed = || failed.first().cloned().map(Part::Failed);
        waiting.first().cloned().map(Part::Waiting).or_else(put_off).or_else(failed)
    }

    /// Takes a page of work off. Progress of another kind of work changes nothing.
    pub(super) fn advance(&mut self, progress: &Progress) {
        match (&mut self.work, progress) {
            (Work::Recover(failed), Progress::Recovered { part, up_to }) => match part {
                Part::Failed(range) => failed.done(range, up_to.as_ref()),
                Part::Waiting(range) => self.expedited.ranges.done(range, up_to.as_ref()),
                Part::PutOff(stretch) => self.expedited.put_off_done(stretch, up_to.as_ref()),
            },
            // It can be replaced, since only the sweep that holds the job changes a cancellation.
            (Work::Cancel(cancellation), Progress::Cancelled(left)) => *cancellation = left.clone(),
            (Work::Recover(_), Progress::Cancelled(_)) | (Work::Cancel(_), Progress::Recovered { .. }) => {}
        }
    }
}

/// Changes deliveries, and returns how many of the changes were not lost.
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
    fn progress_counts_for_the_job_as_it_is_by_then() {
        let mut job = recovery();
        assert_eq!(job.ask(scope(10, 20, Include::Failed)), Ok(true));
        let part = job.part().expect("asked for");
        assert_eq!(job.ask(scope(30, 40, Include::Failed)), Ok(true));
        job.advance(&Progress::Recovered { part, up_to: None });
        let Work::Recover(left) = &job.work else { panic!("still a recovery") };
        assert!(left.left_between(at(10), at(20)).is_empty() && !left.left_between(at(30), at(40)).is_empty());
        let before = job.work.clone();
        job.advance(&Progress::Cancelled(Cancellation::new(at(0))));
        assert_eq!(job.work, before, "progress of another kind changes nothing");
    }

    #[test]
    fn a_recovery_is_over_when_each_kind_that_was_asked_for_is() {
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
