//! The two groups of a webhook's deliveries in the index `byWebhook`: waiting deliveries, which a removal of the
//! webhook cancels, and recoverable deliveries.

use std::time::Duration;

use crate::deliveries::delivery::{MAX_ATTEMPTS, Status};
use base::{Time, WebhookId};

/// Waits up to this time are not written to the index.
const SHORT_WAIT: Duration = Duration::from_secs(60);

/// The groups of a webhook's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexGroup {
    /// Open, and the next attempt is more than a minute away or waits for a breaker.
    Waiting,
    /// Failed or cancelled, with fewer attempts than the limit. An existing webhook has cancelled deliveries only
    /// because it was disabled for a while, so they can be recovered.
    Recoverable,
}

impl IndexGroup {
    /// The group of a delivery in this state, if any.
    pub fn of(status: Status, attempts: u32, next_attempt: Option<Time>, now: Time) -> Option<Self> {
        match status {
            Status::Pending | Status::Retrying => {
                next_attempt.filter(|next| next.since(now) > SHORT_WAIT).map(|_| Self::Waiting)
            }
            Status::Failed | Status::Cancelled => (attempts < MAX_ATTEMPTS).then_some(Self::Recoverable),
            Status::Delivered => None,
        }
    }

    /// The group's name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Recoverable => "recoverable",
        }
    }

    /// The partition key of a webhook's deliveries of this group.
    pub fn key(self, webhook: &WebhookId) -> String {
        match self {
            Self::Waiting => format!("WAITING#{webhook}"),
            Self::Recoverable => format!("RECOVERABLE#{webhook}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn deliveries_that_are_delivered_or_attempted_soon_are_in_no_group() {
        let soon = Some(NOW + SHORT_WAIT);
        for status in [Status::Pending, Status::Retrying] {
            assert_eq!(IndexGroup::of(status, 1, soon, NOW), None);
            assert_eq!(IndexGroup::of(status, 1, Some(NOW), NOW), None);
        }
        assert_eq!(IndexGroup::of(Status::Delivered, 1, None, NOW), None);
    }

    #[test]
    fn a_removal_finds_waiting_deliveries_and_a_recovery_final_ones() {
        let late = Some(NOW + SHORT_WAIT + Duration::from_millis(1));
        for status in [Status::Pending, Status::Retrying] {
            assert_eq!(IndexGroup::of(status, 1, late, NOW), Some(IndexGroup::Waiting));
        }
        for status in [Status::Failed, Status::Cancelled] {
            assert_eq!(IndexGroup::of(status, MAX_ATTEMPTS - 1, None, NOW), Some(IndexGroup::Recoverable));
            assert_eq!(IndexGroup::of(status, MAX_ATTEMPTS, None, NOW), None, "it has had all its attempts");
        }
    }
}
