//! A job: its item, and how far its work has come.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{
    cancel_progress::Cancellation,
    recover_ranges::{Range, Ranges},
};
use crate::deliveries::by_entity::ListPosition;
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
    /// A range was recovered up to a place, or to the end that it had then.
    Recovered { range: Range, up_to: Option<ListPosition> },
    /// Waiting deliveries were cancelled; this cancellation is left.
    Cancelled(Cancellation),
}

/// How a page of work ended.
#[derive(Debug)]
pub(super) enum Piece {
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

impl Work {
    const fn sort_key(&self) -> &'static str {
        match self {
            Self::Recover(_) => RECOVER,
            Self::Cancel(_) => CANCEL,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Recover(ranges) => ranges.is_empty(),
            Self::Cancel(cancellation) => cancellation.is_done(),
        }
    }

    /// Takes a page of work off. Progress of another kind of work changes nothing.
    pub(super) fn advance(&mut self, progress: &Progress) {
        match (self, progress) {
            (Self::Recover(ranges), Progress::Recovered { range, up_to }) => ranges.done(range, up_to.as_ref()),
            // It can be replaced, since only the sweep that holds the job changes a cancellation.
            (Self::Cancel(cancellation), Progress::Cancelled(left)) => *cancellation = left.clone(),
            (Self::Recover(_), Progress::Cancelled(_)) | (Self::Cancel(_), Progress::Recovered { .. }) => {}
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
            lease: None,
            due_shard: shard_of(entity),
            due_at: now,
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

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn progress_counts_for_the_job_as_it_is_by_then() {
        let mut seen = Ranges::default();
        seen.ask(at(10), at(20)).expect("few");
        let range = seen.first().expect("asked for").clone();
        let mut now = seen.clone();
        now.ask(at(30), at(40)).expect("few");
        let mut work = Work::Recover(now);
        work.advance(&Progress::Recovered { range, up_to: None });
        let Work::Recover(left) = &work else { panic!("still a recovery") };
        assert!(left.left_between(at(10), at(20)).is_empty() && !left.left_between(at(30), at(40)).is_empty());
        let before = work.clone();
        work.advance(&Progress::Cancelled(Cancellation::new(at(0))));
        assert_eq!(work, before, "progress of another kind changes nothing");
    }
}
