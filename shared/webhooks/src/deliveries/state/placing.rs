//! The positions of a delivery in the indexes, as a function of its state.
//!
//! Write units for the indexes, in addition to those for the items. An entry whose attributes change costs one more.
//!
//! | delivery | `byDue` | `byWebhook` | `byEntity` |
//! |---|---|---|---|
//! | arrives at once, or after retries within seconds | 0 | 1 | 0 |
//! | delivered after longer waits, or postponed by a breaker or its owner | 2, and 2 for each further wait or announcement | 3 | 0 |
//! | opened without a head, announced, and delivered | 4 | 3 | 0 |
//! | failed at once | 0 | 1 | 1 |
//! | failed after the whole schedule | as for longer waits | 3 | 1 |
//! | cancelled while waiting | 1 | 2 | 1 |
//! | resent after its end, and delivered; recovered: 2 more in `byDue` | 2 | 4 | 1 unless it was delivered |

use base::Time;

use crate::deliveries::state::{
    State,
    delivery::{CancelReason, MAX_ATTEMPTS},
    head::Head,
    index::{AnnouncedBy, Index, IndexGroup},
    times::{CROWDED_OPENS_AFTER, GRACE, MAX_DELAY},
    wait::Wakes,
};

impl IndexGroup {
    /// The group of a delivery in this state.
    pub(crate) fn of(head: &Head, now: Time) -> Self {
        match &head.state {
            State::Open(open) => open.wait.group(open.claimable_at(), now),
            State::Delivered => Self::Delivered,
            State::Failed | State::Cancelled(CancelReason::WebhookDisabled) => {
                let may_be_sent = head.delivery.attempt_count < MAX_ATTEMPTS && !head.is_erased();
                if may_be_sent { Self::Recoverable } else { Self::Unrecoverable }
            }
            State::Cancelled(_) => Self::Unrecoverable,
        }
    }
}

impl Index {
    /// The positions of a delivery that the sweep opens. Its message was sent when its event was published, unless its
    /// first attempt is beyond the longest delay of a message. A delivery that is opened late has waited long enough
    /// for its message, even on a crowded queue; if it is claimed, its worker has probably died with the message.
    pub(crate) fn opened(head: &Head, now: Time) -> Self {
        let first = head.claimable_at().unwrap_or(now);
        let has_no_message = !head.is_stored && first.since(head.delivery.created_date) > MAX_DELAY;
        let waits_since = if head.is_stored { head.delivery.created_date } else { first };
        let is_late = head.delivery.attempt_count == 0 && now.since(waits_since) >= CROWDED_OPENS_AFTER;
        let sweeps = head.index.sweeps.max(u32::from(has_no_message || is_late));
        Self { group: Some(IndexGroup::of_due(first, now)), due_at: Some(first.max(now)), sweeps }
    }

    /// The positions of a delivery in its new state; `None` if they do not change, which saves writes. An early retry
    /// is left to the sweep that opens the delivery. A retry after a few seconds does not move the due time, unless the
    /// previous attempt was late.
    pub(crate) fn after(read: &Head, new: &Head, announced_by: AnnouncedBy, now: Time) -> Option<Self> {
        let group = Some(IndexGroup::of(new, now));
        let Some(open) = new.state.open() else { return Some(Self { group, due_at: None, sweeps: read.index.sweeps }) };
        let next = open.next;
        match open.wait.wakes() {
            Wakes::Reader => return Some(Self::in_feed(new.delivery.created_date, now)),
            // No message announces the next check.
            Wakes::Event => return Some(Self { group, due_at: Some(next), sweeps: 1 }),
            Wakes::Time => {}
        }
        // A delivery that is sent again leaves the group in which it ended.
        let is_early_retry = !read.is_final() && !read.is_opened(now) && next.since(now) <= GRACE;
        // The job that ends any other wait finds the delivery by its group. A wait that ends within seconds of the due
        // time does without: its time comes before the job would find it.
        let needs_group = group != Some(IndexGroup::of_due(next, now));
        if (is_early_retry && !needs_group) || read.index.is_soon_after(next) {
            return None;
        }
        let announced_by = if open.wait.is_announced() { announced_by } else { AnnouncedBy::Sweep };
        Some(Self { group, ..Self::announced(next, announced_by, now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::{
        Wait,
        delivery::Status,
        head::tests::{LATER, NOW, head},
    };
    use crate::deliveries::state::{
        index::{LONGEST_LOOK_AT_HELD, SOON, next_look_at_held},
        times::OPENS_AFTER,
    };
    use std::time::Duration;

    #[test]
    fn a_removal_finds_waiting_deliveries_and_a_recovery_final_ones() {
        let soon = NOW + SOON;
        let of = |next| IndexGroup::of(&head().waiting(next, Wait::Schedule), NOW);
        assert_eq!((of(NOW), of(soon)), (IndexGroup::Open, IndexGroup::Open));
        assert_eq!(of(soon + Duration::from_millis(1)), IndexGroup::Waiting);
        for wait in [Wait::Breaker, Wait::Pause, Wait::Before(head().delivery.id)] {
            assert_eq!(IndexGroup::of(&head().waiting(NOW, wait), NOW), IndexGroup::Waiting, "however short");
        }
        let ended = |state: &State, attempts| {
            let mut head = head().with(state.clone());
            head.delivery.attempt_count = attempts;
            IndexGroup::of(&head, NOW)
        };
        for state in [State::Failed, State::Cancelled(CancelReason::WebhookDisabled)] {
            assert_eq!(ended(&state, MAX_ATTEMPTS - 1), IndexGroup::Recoverable);
            assert_eq!(ended(&state, MAX_ATTEMPTS), IndexGroup::Unrecoverable, "it has had all its attempts");
        }
        for reason in [CancelReason::Erased, CancelReason::Expired, CancelReason::Owner, CancelReason::WebhookRemoved] {
            assert_eq!(ended(&State::Cancelled(reason), 1), IndexGroup::Unrecoverable);
        }
        assert_eq!(ended(&State::Delivered, 1), IndexGroup::Delivered);
        assert_eq!(Status::Delivered, State::Delivered.status());
    }

    #[test]
    fn a_delivery_that_is_sent_again_at_once_leaves_the_group_of_its_end() {
        let mut failed = head().with(State::Failed);
        failed.index = Index { group: Some(IndexGroup::Recoverable), ..Index::default() };
        let again = head();
        let index = Index::after(&failed, &again, AnnouncedBy::Message, NOW).expect("it changes");
        assert_eq!((index.group, index.due_at.is_some()), (Some(IndexGroup::Open), true), "however young it is");
        assert_eq!(Index::after(&again, &again, AnnouncedBy::Message, NOW), None, "an early retry waits to be opened");
    }

    #[test]
    fn a_due_time_stays_if_it_is_at_or_soon_after_the_next_attempt() {
        let due = NOW + GRACE;
        let index = Index { due_at: Some(due), ..Index::default() };
        for (next, stays) in [(NOW, true), (due, true), (due + Duration::from_millis(1), false), (LATER, false)] {
            assert_eq!(index.is_soon_after(next), stays, "{next}");
        }
        let later = Index { due_at: Some(LATER), ..index };
        assert!(!later.is_soon_after(NOW), "a lost message would be noticed late");
        assert!(!Index { sweeps: 1, ..index }.is_soon_after(NOW), "the sweep counts from zero again");
    }

    #[test]
    fn no_message_announces_an_attempt_far_away() {
        let at = |wait: Duration, announced_by| Index::announced(NOW + wait, announced_by, NOW);
        let soon = at(MAX_DELAY, AnnouncedBy::Message);
        assert_eq!((soon.due_at, soon.sweeps), (Some(NOW + MAX_DELAY + GRACE), 0));
        let far = MAX_DELAY + Duration::from_millis(1);
        for announced_by in [AnnouncedBy::Message, AnnouncedBy::Sweep] {
            let far_away = at(far, announced_by);
            assert_eq!((far_away.due_at, far_away.sweeps), (Some(NOW + far), 1));
        }
        assert_eq!(at(Duration::ZERO, AnnouncedBy::Sweep).due_at, Some(NOW), "the sweep announces it at once");
    }

    #[test]
    fn a_first_attempt_that_no_message_announces_counts_as_announced_once() {
        let sweeps = |wait: u64| {
            let head = Head { is_stored: false, ..head() };
            Index::opened(&head.waiting(NOW + Duration::from_secs(wait), Wait::Schedule), NOW).sweeps
        };
        assert_eq!([0, 900, 901].map(sweeps), [0, 0, 1]);
    }

    #[test]
    fn a_delivery_that_is_opened_late_counts_as_announced_once() {
        let sweeps = |seconds: u64, attempts: u32| {
            let mut head = Head { is_stored: false, index: Index::default(), ..head() }.waiting(NOW, Wait::Schedule);
            head.delivery.attempt_count = attempts;
            Index::opened(&head, NOW + Duration::from_secs(seconds)).sweeps
        };
        assert_eq!([20, 159, 160, 300].map(|seconds| sweeps(seconds, 0)), [0, 0, 1, 1]);
        assert_eq!(sweeps(300, 1), 0, "its retry has a separate message");
        let claimed = Head { index: Index::default(), ..head() }.waiting(NOW, Wait::Schedule);
        let opened = |age: Duration| Index::opened(&claimed, claimed.delivery.created_date + age).sweeps;
        let before = CROWDED_OPENS_AFTER - Duration::from_millis(1);
        assert_eq!([before, CROWDED_OPENS_AFTER].map(opened), [0, 1], "its worker has probably died");
    }

    #[test]
    fn an_early_retry_changes_no_index_and_a_late_one_does() {
        let unopened = Head { index: Index::default(), ..head() };
        let retry = |wait: u64, read: &Head| {
            let new = read.clone().waiting(NOW + Duration::from_secs(wait), Wait::Schedule);
            Index::after(read, &new, AnnouncedBy::Message, NOW)
        };
        assert_eq!(retry(5, &unopened), None, "the sweep opens it");
        assert!(retry(11, &unopened).is_some_and(|index| index.group == Some(IndexGroup::Open)));
        assert!(retry(300, &head()).is_some_and(|index| index.group == Some(IndexGroup::Waiting)));
        let put_off = unopened.clone().waiting(NOW + GRACE, Wait::Breaker);
        let index = Index::after(&unopened, &put_off, AnnouncedBy::Message, NOW);
        assert_eq!(
            index.and_then(|index| index.group),
            Some(IndexGroup::Waiting),
            "the job that ends the wait finds it"
        );
    }

    #[test]
    fn a_held_delivery_is_looked_at_soon_while_it_is_young_and_rarely_later() {
        let minute = Duration::from_secs(60);
        let wait = |age: Duration| next_look_at_held(NOW, NOW + age).since(NOW + age);
        assert_eq!([Duration::ZERO, minute].map(wait), [OPENS_AFTER; 2]);
        assert_eq!(wait(8 * minute), minute);
        assert_eq!(wait(30 * 24 * 60 * minute), LONGEST_LOOK_AT_HELD);
        let mut looks = (0, NOW);
        while looks.1 < NOW + 75 * 60 * minute {
            looks = (looks.0 + 1, next_look_at_held(NOW, looks.1));
        }
        assert_eq!(looks.0, 72, "over a whole schedule");
    }

    #[test]
    fn a_final_delivery_has_no_due_time() {
        let ended = Index::after(&head(), &head().with(State::Delivered), AnnouncedBy::Message, NOW);
        assert_eq!(ended.map(|index| (index.group, index.due_at)), Some((Some(IndexGroup::Delivered), None)));
    }
}
