//! Why a delivery's next attempt is waiting, and the rules for each reason.

use base::{DeliveryId, Time};

use crate::deliveries::state::{delivery::WaitingFor, index::IndexGroup, slot::Slot, times::GRACE};

/// Why the next attempt is waiting. What ends a wait before its time:
///
/// | reason | ended early by |
/// |---|---|
/// | `Schedule`, `Slot` | a request for an attempt now |
/// | `Breaker` | a successful probe, whose job makes the deliveries due (`jobs::recover_page`) |
/// | `Pause` | the owner's resume, whose job makes them due (`jobs::pass_page`) |
/// | `Before` | the end of that delivery (`store::held`) |
/// | `Reader` | a reader (`feed`) |
/// | `Content` | nothing: the dispatcher reads it again at its time |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The scheduled time; nothing once that has passed.
    Schedule,
    /// Its webhook's breaker.
    Breaker,
    /// The end of its owner's pause, when a job makes the delivery due. Until then, the time of the next attempt is
    /// only that of the next check.
    Pause,
    /// A slot under its webhook's rate limit.
    Slot(Slot),
    /// The end of this delivery, which precedes it in its subject's line.
    Before(DeliveryId),
    /// A reader: the delivery is in its webhook's feed, or was when someone requested an attempt.
    Reader,
    /// Its request's content: its event, which a late publication has not written yet, or a sealed value that an
    /// operator has to repair.
    Content,
}

/// How a waiting delivery becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// Its time, or a job that ends the wait before it.
    Time,
    /// An event. The time is only that of the dispatcher's next check.
    Event,
    /// A reader, who may fetch it at any time. The dispatcher rarely checks it.
    Reader,
}

impl Wait {
    /// How the delivery becomes due.
    pub(crate) fn wakes(&self) -> Wakes {
        match self {
            Self::Schedule | Self::Breaker | Self::Pause | Self::Slot(_) | Self::Content => Wakes::Time,
            Self::Before(_) => Wakes::Event,
            Self::Reader => Wakes::Reader,
        }
    }

    /// The group in the webhook's index. If a delivery is waiting for its breaker, its owner, a slot or another
    /// delivery, the length of the wait does not matter: the job that ends the wait must find the delivery.
    pub(crate) fn group(&self, claimable_at: Time, now: Time) -> IndexGroup {
        match self {
            Self::Reader => IndexGroup::Unread,
            Self::Breaker | Self::Pause | Self::Slot(_) | Self::Before(_) => IndexGroup::Waiting,
            Self::Schedule | Self::Content => IndexGroup::of_due(claimable_at, now),
        }
    }

    /// Whether a message announces the end of the wait. The waits for content and for the end of a pause have no
    /// message, since their times are guesses.
    pub(crate) fn is_announced(&self) -> bool {
        match self {
            Self::Schedule | Self::Breaker | Self::Slot(_) => true,
            Self::Pause | Self::Before(_) | Self::Reader | Self::Content => false,
        }
    }

    /// The wait that remains when the attempt is requested now. A delivery in a feed still counts as having had its
    /// turn in the line, and one with a slot keeps it.
    pub(crate) fn after_request(self) -> Self {
        match self {
            Self::Reader | Self::Slot(_) => self,
            Self::Schedule | Self::Breaker | Self::Pause | Self::Before(_) | Self::Content => Self::Schedule,
        }
    }

    /// The reason as the owner sees it, for an attempt at this time that is not under way; `None` if it is due now, and
    /// was announced at this time or will be. An overdue attempt counts as waiting for a permit, since that wait is not
    /// stored: the grace period for its message is over, and the sweep announces it again.
    pub(crate) fn shown(&self, next: Time, announced: Time, now: Time) -> Option<WaitingFor> {
        let is_early = now < next;
        match self {
            Self::Before(_) => Some(WaitingFor::Order),
            Self::Pause => Some(WaitingFor::Pause),
            // After a failure that a reader reported, the feed offers the delivery again after the schedule's wait.
            Self::Reader => Some(if is_early { WaitingFor::Schedule } else { WaitingFor::Reader }),
            _ if !is_early => (announced + GRACE <= now).then_some(WaitingFor::Limit),
            Self::Breaker => Some(WaitingFor::Breaker),
            Self::Slot(_) => Some(WaitingFor::Rate),
            Self::Schedule | Self::Content => Some(WaitingFor::Schedule),
        }
    }

    /// The delivery that it is waiting for.
    pub(crate) fn before(&self) -> Option<&DeliveryId> {
        if let Self::Before(before) = self { Some(before) } else { None }
    }

    /// Its slot under its webhook's rate limit.
    pub(crate) fn slot(&self) -> Option<Slot> {
        if let Self::Slot(slot) = self { Some(*slot) } else { None }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::deliveries::state::head::tests::{NOW, head};

    /// One wait for each reason. A new reason does not compile until it has its place here.
    pub(crate) fn each() -> impl Iterator<Item = Wait> {
        std::iter::successors(Some(Wait::Schedule), |wait| match wait {
            Wait::Schedule => Some(Wait::Breaker),
            Wait::Breaker => Some(Wait::Pause),
            Wait::Pause => Some(Wait::Slot(Slot { at: NOW, since: NOW, missed_by: 0 })),
            Wait::Slot(_) => Some(Wait::Before(head().delivery.id)),
            Wait::Before(_) => Some(Wait::Reader),
            Wait::Reader => Some(Wait::Content),
            Wait::Content => None,
        })
    }

    #[test]
    fn each_reason_is_shown_before_its_end() {
        for wait in each() {
            assert!(wait.shown(NOW + GRACE, NOW + GRACE, NOW).is_some(), "{wait:?}");
        }
    }
}
