//! The progress of a job that goes through all of a changed webhook's waiting deliveries. The index does not show all
//! of them at once: it lags, and a delivery whose attempt is under way may begin to wait later. So the sweep makes
//! further passes, until one that began a few minutes after the change finds none.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::deliveries::queries::range::{KeyRange, ListPosition};
use base::Time;

/// How long after the change a delivery may still begin to wait: its attempt or its publication may be under way, and
/// the sweep opens the delivery afterwards.
const SETTLED: Duration = Duration::from_secs(150);
/// The pause before the next pass, for deliveries whose attempt was under way.
const LOOK_INTERVAL: Duration = Duration::from_secs(20);

/// The change that a pass makes to each delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Cancel a removed webhook's waiting deliveries. A delivery whose next attempt is due soon is left to that
    /// attempt, which finds that there is no webhook.
    Cancel,
    /// Take the deliveries out of a feed whose webhook is removed, disabled or no longer pulled. Each becomes due, and
    /// the dispatcher sends it, cancels it, or puts it into the feed again. A delivery that a reader holds becomes due
    /// at the end of its lease, unless the reader answers first.
    Release,
    /// Make due the deliveries that are waiting for their owner's pause to end.
    Resume,
}

/// The passes over a webhook's waiting deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Passes {
    /// When the webhook was changed.
    since: Time,
    /// The beginning of the current pass.
    began: Time,
    /// The remaining part of the pass.
    pub(super) left: KeyRange,
    /// Whether the pass has found a waiting delivery.
    found: bool,
}

impl Passes {
    pub(super) fn new(now: Time) -> Self {
        Self { since: now, began: now, left: KeyRange::since(Time::from_millis(0)), found: false }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left.is_empty() && !self.found && self.began >= self.since + SETTLED
    }

    /// The pass to continue, or a new one after the end of the last.
    pub(super) fn next_pass(&self, now: Time) -> Self {
        if self.left.is_empty() { Self { since: self.since, ..Self::new(now) } } else { self.clone() }
    }

    /// The time of the next pass: soon if this pass found deliveries, since others may have had an attempt under way;
    /// otherwise a few minutes after the change.
    pub(super) fn next(&self, now: Time) -> Time {
        let pause = now + LOOK_INTERVAL;
        if self.found { pause } else { pause.max(self.since + SETTLED) }
    }

    /// This pass after a page that may have found deliveries, and that reached this position or the end.
    pub(super) fn after_page(self, found: bool, end: Option<&ListPosition>) -> Self {
        let left = match end {
            Some(position) => self.left.after(position),
            None => KeyRange::nothing(),
        };
        Self { left, found: self.found || found, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOVED: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn a_job_is_over_when_a_late_pass_has_found_nothing() {
        let job = Passes::new(REMOVED);
        assert!(!job.is_done());
        let first = job.next_pass(REMOVED).after_page(true, None);
        assert!(!first.is_done());
        let second = first.next_pass(REMOVED + LOOK_INTERVAL).after_page(false, None);
        assert!(!second.is_done(), "deliveries may still begin to wait");
        let third = second.next_pass(REMOVED + SETTLED).after_page(true, None);
        assert!(!third.is_done(), "it found a delivery");
        assert!(third.next_pass(REMOVED + SETTLED + LOOK_INTERVAL).after_page(false, None).is_done());
    }

    #[test]
    fn after_a_pass_that_found_nothing_the_next_one_is_the_last() {
        let first = Passes::new(REMOVED).after_page(false, None);
        assert_eq!(first.next(REMOVED), REMOVED + SETTLED);
        assert!(first.next_pass(REMOVED + SETTLED).after_page(false, None).is_done());
        assert_eq!(Passes::new(REMOVED).after_page(true, None).next(REMOVED), REMOVED + LOOK_INTERVAL);
    }

    #[test]
    fn a_pass_under_way_continues_at_its_position() {
        let position = ListPosition::parse("dlv_01m7w5gmev32p3wwt3y0b8j32h").expect("a position");
        let begun = Passes::new(REMOVED).after_page(true, Some(&position));
        let later = begun.next_pass(REMOVED + SETTLED);
        assert_eq!(later, begun);
        assert!(later.after_page(false, None).found, "findings of an earlier page count");
    }
}
