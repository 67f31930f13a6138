//! The groups of a webhook's deliveries in the index `byWebhook`. Each is a separate partition, with the newest
//! delivery at its end, so that a list by webhook and state reads little more than it shows.

use std::time::Duration;

use crate::deliveries::delivery::{MAX_ATTEMPTS, Status};
use auth::EntityId;
use base::{Time, WebhookId};

/// The longest wait that does not count as waiting.
const SHORT_WAIT: Duration = Duration::from_secs(60);

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
    /// Failed, or cancelled because the webhook was disabled for a while, with fewer attempts than the limit.
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
    pub fn of(status: Status, attempts: u32, next_attempt: Option<Time>, now: Time) -> Self {
        match status {
            Status::Pending | Status::Retrying => Self::of_open(next_attempt, now),
            Status::Failed | Status::Cancelled if attempts < MAX_ATTEMPTS => Self::Recoverable,
            Status::Failed | Status::Cancelled => Self::Unrecoverable,
            Status::Delivered => Self::Delivered,
        }
    }

    /// The group of an open delivery with this next attempt.
    pub fn of_open(next_attempt: Option<Time>, now: Time) -> Self {
        match next_attempt.filter(|next| next.since(now) > SHORT_WAIT) {
            Some(_) => Self::Waiting,
            None => Self::Open,
        }
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

/// The partition of an entity's failed and cancelled deliveries in the index `byEntity`. Their webhooks may be gone.
pub(crate) fn undelivered_key(entity: &EntityId) -> String {
    format!("UNDELIVERED#{entity}")
}

/// The partition in `byEntity` of a delivery in this state.
pub(crate) fn entity_key(status: Status, entity: &EntityId) -> Option<String> {
    matches!(status, Status::Failed | Status::Cancelled).then(|| undelivered_key(entity))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn a_removal_finds_waiting_deliveries_and_a_recovery_final_ones() {
        let soon = NOW + SHORT_WAIT;
        for status in [Status::Pending, Status::Retrying] {
            let of = |next| IndexGroup::of(status, MAX_ATTEMPTS, Some(next), NOW);
            assert_eq!((of(NOW), of(soon)), (IndexGroup::Open, IndexGroup::Open));
            assert_eq!(of(soon + Duration::from_millis(1)), IndexGroup::Waiting);
        }
        for status in [Status::Failed, Status::Cancelled] {
            assert_eq!(IndexGroup::of(status, MAX_ATTEMPTS - 1, None, NOW), IndexGroup::Recoverable);
            assert_eq!(
                IndexGroup::of(status, MAX_ATTEMPTS, None, NOW),
                IndexGroup::Unrecoverable,
                "it has had all its attempts"
            );
        }
        assert_eq!(IndexGroup::of(Status::Delivered, 1, None, NOW), IndexGroup::Delivered);
    }
}
