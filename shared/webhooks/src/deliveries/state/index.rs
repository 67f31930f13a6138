//! The positions of a delivery in two indexes. The sweep finds it in `byDue`. In `byWebhook`, each group of a webhook's
//! deliveries is a separate partition, with the newest delivery at its end, so that a list by webhook and state reads
//! little more than it shows.
//!
//! A delivery is in `byDue` while it has a due time, and in `byWebhook` once it has been opened, postponed, put into a
//! feed, recorded or ended. An early retry changes no index.

use std::time::Duration;

use base::{Time, WebhookId};

use crate::deliveries::state::times::{GRACE, MAX_DELAY, OPENS_AFTER};

/// The longest delay that does not count as waiting.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// The groups of a webhook's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexGroup {
    /// Open, and the next attempt is due now or within a minute.
    Open,
    /// Open, and the next attempt is more than a minute away, or is waiting for a breaker, its owner, a slot or the
    /// preceding delivery. Removing the webhook cancels these deliveries; its other open deliveries are cancelled by
    /// their attempts.
    Waiting,
    /// Open, and waiting in the feed of a pull webhook, or with a reader of the feed.
    Unread,
    /// Failed, or cancelled because its webhook was disabled; with fewer attempts than the limit, and not erased.
    Recoverable,
    /// Failed or cancelled for good: its attempts are used up, its webhook is removed, its event is erased, or its
    /// owner cancelled it. Also an expired delivery, until the table removes it.
    Unrecoverable,
    /// Delivered.
    Delivered,
}

impl IndexGroup {
    /// The groups of open deliveries.
    pub const OPEN: [Self; 3] = [Self::Open, Self::Waiting, Self::Unread];

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

    /// The partition key of a webhook's deliveries in this group.
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

/// The positions of a delivery in the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Index {
    /// Its group, once it is in the index `byWebhook`.
    pub(crate) group: Option<IndexGroup>,
    /// When the sweep checks it; `None` if it is final, or if nothing has needed a due time yet.
    pub(crate) due_at: Option<Time>,
    /// How often the sweep has postponed the due time since it was set. Starts at 1 if no message announces the
    /// attempt, so that the sweep does not expect one on a crowded queue.
    pub(crate) sweeps: u32,
}

/// Who announces an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnnouncedBy {
    /// A message, which the caller sends. If the message is lost, the sweep announces the attempt.
    Message,
    /// The sweep: the caller sends no message.
    Sweep,
}

/// The age at which the dispatcher first checks a delivery in a feed. It then publishes an event about the unread feed.
pub(crate) const UNREAD_LIMIT: Duration = Duration::from_secs(60 * 60);
/// The longest time between two checks of a delivery in a feed.
const LONGEST_LOOK: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest time between two checks of a held delivery.
pub(super) const LONGEST_LOOK_AT_HELD: Duration = Duration::from_secs(6 * 60 * 60);

/// When the dispatcher next checks a delivery in a feed: when its age has doubled, and at least daily. Its webhook may
/// have been removed, disabled or changed by then.
fn next_look(created: Time, now: Time) -> Time {
    let age = now.since(created);
    if age < UNREAD_LIMIT { created + UNREAD_LIMIT } else { now + age.min(LONGEST_LOOK) }
}

/// When the dispatcher next checks a held delivery. Usually, the end of the preceding delivery makes it due. The checks
/// cover crashes, and preceding deliveries cancelled by a removed webhook's job. So a young line that lost its wake-ups
/// continues within a minute, and a long wait costs few checks.
pub(crate) fn next_look_at_held(created: Time, now: Time) -> Time {
    now + (now.since(created) / 8).clamp(OPENS_AFTER, LONGEST_LOOK_AT_HELD)
}

impl Index {
    /// The positions of a delivery whose next attempt becomes due now.
    pub(crate) fn due_now(announced_by: AnnouncedBy, now: Time) -> Self {
        Self { group: Some(IndexGroup::Open), ..Self::announced(now, announced_by, now) }
    }

    /// The positions of a delivery in its webhook's feed. No message announces it; the due time only makes the
    /// dispatcher check it.
    pub(crate) fn in_feed(created: Time, now: Time) -> Self {
        Self { group: Some(IndexGroup::Unread), due_at: Some(next_look(created, now)), sweeps: 1 }
    }

    /// The due time of an attempt at this time. A delayed message announces it before the sweep does. If the attempt is
    /// beyond the longest delay, only the sweep announces it, immediately.
    pub(super) fn announced(next: Time, announced_by: AnnouncedBy, now: Time) -> Self {
        let by_message = announced_by == AnnouncedBy::Message && next.since(now) <= MAX_DELAY;
        let due_at = if by_message { next + GRACE } else { next };
        Self { group: None, due_at: Some(due_at), sweeps: u32::from(!by_message) }
    }

    /// Whether the due time is at or soon after this attempt.
    pub(super) fn is_soon_after(self, next: Time) -> bool {
        let soon = next..=next + GRACE;
        self.sweeps == 0 && self.due_at.is_some_and(|due| soon.contains(&due))
    }
}
