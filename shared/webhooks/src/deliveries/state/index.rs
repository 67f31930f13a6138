//! The indexes that have a delivery, as a function of its state: `byDue`, where the sweep finds it, and `byWebhook`, in
//! which each group of a webhook's deliveries is a separate partition, with the newest delivery at its end, so that a
//! list by webhook and state reads little more than it shows.
//!
//! A delivery is in `byDue` while it has a due time, and in `byWebhook` once it was opened, put off, put into a
//! feed, recorded or ended. An early retry changes no index.

use std::time::Duration;

use base::{Time, WebhookId};

use crate::deliveries::state::{
    State,
    delivery::{CancelReason, MAX_ATTEMPTS},
    head::Head,
    times::{GRACE, MAX_DELAY, OPENS_AFTER},
    wait::Wakes,
};

/// The longest wait that does not count as waiting.
const SOON: Duration = Duration::from_secs(60);

/// The groups of a webhook's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexGroup {
    /// Open, and the next attempt is due or comes within a minute.
    Open,
    /// Open, and the next attempt is more than a minute away, or waits for a breaker, a slot or the delivery before it.
    /// The removal of the webhook cancels these; its other open deliveries are cancelled by their attempts.
    Waiting,
    /// Open, and waiting in the feed of a webhook that is pulled, or with a reader of the feed.
    Unread,
    /// Failed, or cancelled because its webhook was disabled; with fewer attempts than the limit, and not erased.
    Recoverable,
    /// Failed or cancelled for good: its attempts are used up, its webhook is removed, its event is erased, or its
    /// owner cancelled it. Also a delivery whose retention is over, until the table removes it.
    Unrecoverable,
    /// Delivered.
    Delivered,
}

impl IndexGroup {
    /// The groups of open deliveries.
    pub const OPEN: [Self; 3] = [Self::Open, Self::Waiting, Self::Unread];

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

    /// The group of an open delivery that can be claimed from this time on.
    pub(crate) fn of_due(claimable_at: Time, now: Time) -> Self {
        if claimable_at.since(now) > SOON { Self::Waiting } else { Self::Open }
    }

    /// The group's name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Waiting => "waiting",
            Self::Unread => "unread",
            Self::Recoverable => "recoverable",
            Self::Unrecoverable => "unrecoverable",
            Self::Delivered => "delivered",
        }
    }

    /// The group with this partition key.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        Some(match key.split_once('#')?.0 {
            "OPEN" => Self::Open,
            "WAITING" => Self::Waiting,
            "UNREAD" => Self::Unread,
            "RECOVERABLE" => Self::Recoverable,
            "UNRECOVERABLE" => Self::Unrecoverable,
            "DELIVERED" => Self::Delivered,
            _ => return None,
        })
    }

    /// The partition key of a webhook's deliveries of this group.
    pub fn key(self, webhook: &WebhookId) -> String {
        match self {
            Self::Open => format!("OPEN#{webhook}"),
            Self::Waiting => format!("WAITING#{webhook}"),
            Self::Unread => format!("UNREAD#{webhook}"),
            Self::Recoverable => format!("RECOVERABLE#{webhook}"),
            Self::Unrecoverable => format!("UNRECOVERABLE#{webhook}"),
            Self::Delivered => format!("DELIVERED#{webhook}"),
        }
    }
}

/// The places of a delivery in the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Index {
    /// Its group, once it is in the index `byWebhook`.
    pub(crate) group: Option<IndexGroup>,
    /// When the sweep looks at it; `None` if it is final, or not opened yet.
    pub(crate) due_at: Option<Time>,
    /// How often the sweep has postponed the due time since it was set. Starts at 1 if no message announces the
    /// attempt, so that the sweep does not expect one on a crowded queue.
    pub(crate) sweeps: u32,
}

/// Who announces an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnnouncedBy {
    /// A message, which the caller sends. The sweep announces the attempt if the message is lost.
    Message,
    /// The sweep: the caller sends no message.
    Sweep,
}

/// The age at which the dispatcher first looks again at a delivery in a feed. It then publishes an event about the
/// unread feed.
pub(crate) const UNREAD_LIMIT: Duration = Duration::from_secs(60 * 60);
/// The longest time between two looks at a delivery in a feed.
const LONGEST_LOOK: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest time between two looks at a held delivery.
const LONGEST_LOOK_AT_HELD: Duration = Duration::from_secs(6 * 60 * 60);

/// The time of the dispatcher's next look at a delivery in a feed: when its age has doubled, and at least every day.
/// Its webhook may have been removed, disabled or changed by then.
fn next_look(created: Time, now: Time) -> Time {
    let age = now.since(created);
    if age < UNREAD_LIMIT { created + UNREAD_LIMIT } else { now + age.min(LONGEST_LOOK) }
}

/// The time of the dispatcher's next look at a held delivery. Usually the end of the delivery before it makes it due; the
/// look is for crashes, and for predecessors that the job of a removed webhook cancelled. So a line that lost its
/// wake-ups continues within a minute while it is young, and a long wait costs few looks.
pub(crate) fn next_look_at_held(created: Time, now: Time) -> Time {
    now + (now.since(created) / 8).clamp(OPENS_AFTER, LONGEST_LOOK_AT_HELD)
}

impl Index {
    /// The places of a delivery that the sweep opens: its message was sent when its event was published, unless its
    /// first attempt is later than a message can be delayed.
    pub(crate) fn opened(head: &Head, now: Time) -> Self {
        let first = head.claimable_at().unwrap_or(now);
        let sweeps = if head.is_stored {
            head.index.sweeps
        } else {
            u32::from(first.since(head.delivery.created_date) > MAX_DELAY)
        };
        Self { group: Some(IndexGroup::of_due(first, now)), due_at: Some(first.max(now)), sweeps }
    }

    /// The places of a delivery whose next attempt was made due now.
    pub(crate) fn due_now(announced_by: AnnouncedBy, now: Time) -> Self {
        Self { group: Some(IndexGroup::Open), ..Self::announced(now, announced_by, now) }
    }

    /// The places of a delivery in the feed of its webhook. No message announces it, and the due time only makes the
    /// dispatcher look again.
    pub(crate) fn in_feed(created: Time, now: Time) -> Self {
        Self { group: Some(IndexGroup::Unread), due_at: Some(next_look(created, now)), sweeps: 1 }
    }

    /// The due time of an attempt at this time. A delayed message announces it before the sweep does. The sweep announces
    /// attempts beyond the longest delay at once.
    fn announced(next: Time, announced_by: AnnouncedBy, now: Time) -> Self {
        let by_message = announced_by == AnnouncedBy::Message && next.since(now) <= MAX_DELAY;
        let due_at = if by_message { next + GRACE } else { next };
        Self { group: None, due_at: Some(due_at), sweeps: u32::from(!by_message) }
    }

    /// The places of a delivery in its new state; `None` if they stay as they are, which saves writes: an early retry is
    /// left to the sweep that opens the delivery, and a retry after seconds moves no due time, unless the attempt before
    /// it was late.
    pub(crate) fn after(read: &Head, new: &Head, announced_by: AnnouncedBy, now: Time) -> Option<Self> {
        let group = Some(IndexGroup::of(new, now));
        let Some(open) = new.state.open() else { return Some(Self { group, due_at: None, sweeps: read.index.sweeps }) };
        let next = open.next;
        match open.wait.wakes() {
            Wakes::Reader => return Some(Self::in_feed(new.delivery.created_date, now)),
            // No message announces the next look.
            Wakes::Event => return Some(Self { group, due_at: Some(next), sweeps: 1 }),
            Wakes::Time => {}
        }
        let is_early_retry = !read.is_opened(now) && next.since(now) <= GRACE;
        // The job that ends another wait finds the delivery by its group.
        let needs_group = group != Some(IndexGroup::of_due(next, now));
        if (is_early_retry && !needs_group) || read.index.is_soon_after(next) {
            return None;
        }
        let announced_by = if open.wait.is_announced() { announced_by } else { AnnouncedBy::Sweep };
        Some(Self { group, ..Self::announced(next, announced_by, now) })
    }

    /// Whether the due time is at or soon after this attempt.
    fn is_soon_after(self, next: Time) -> bool {
        let soon = next..=next + GRACE;
        self.sweeps == 0 && self.due_at.is_some_and(|due| soon.contains(&due))
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

    #[test]
    fn a_removal_finds_waiting_deliveries_and_a_recovery_final_ones() {
        let soon = NOW + SOON;
        let of = |next| IndexGroup::of(&head().waiting(next, Wait::Schedule), NOW);
        assert_eq!((of(NOW), of(soon)), (IndexGroup::Open, IndexGroup::Open));
        assert_eq!(of(soon + Duration::from_millis(1)), IndexGroup::Waiting);
        for wait in [Wait::Breaker, Wait::Before(head().delivery.id)] {
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
