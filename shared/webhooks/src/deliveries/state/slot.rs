//! A delivery's slot, if its webhook has a rate limit.

use std::time::Duration;

use crate::{deliveries::state::times::MAX_DELAY, subscriptions::rate_limit::RateLimit};
use base::Time;

/// The longest wait for a slot in memory. Deliveries may be claimed this long before their slot, so that a message is
/// not refused if it arrives early or on a machine whose clock is slow.
pub(crate) const WAITS_IN_MEMORY: Duration = Duration::from_secs(1);
/// How late an attempt may use its first slot. If it could be later, a backlog would exceed the rate limit.
const LATENESS: Duration = Duration::from_secs(2);
/// The maximum lateness at the first slot that counts for the second one.
const MAX_LAG: Duration = Duration::from_secs(60);
/// How long before its slot a delivery becomes due if a message cannot be delayed until then: the sweep, which may have
/// to announce it, runs once a minute. After the claim, the delivery gets a message for the exact slot.
const EARLIER: Duration = Duration::from_secs(10 * 60);
const _: () = assert!(EARLIER.as_secs() < MAX_DELAY.as_secs());

/// A delivery's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The earliest time of its attempt.
    pub(crate) at: Time,
    /// When the rate limit was set under which the slot was reserved.
    pub(crate) since: Time,
    /// By how many seconds the attempt missed its previous slot, up to the maximum that counts.
    pub(crate) missed_by: u32,
}

impl Slot {
    /// The slot at this time, for an attempt that missed `missed` under the same limit, if any.
    pub(crate) fn after(missed: Option<Self>, at: Time, since: Time, now: Time) -> Self {
        // Only a missed second slot shows that the queue still lags.
        let counted = |missed: Self| now.since(missed.at).min(if missed.missed_by == 0 { MAX_LAG } else { MAX_DELAY });
        let missed_by = missed.map(counted).unwrap_or_default();
        Self { at, since, missed_by: u32::try_from(missed_by.as_secs()).unwrap_or(u32::MAX) }
    }

    /// Whether an attempt may still use it under this limit. Each missed slot extends the next one's grace period to
    /// twice its lateness. Otherwise, an attempt behind a lagging queue would keep reserving and missing slots forever.
    pub(crate) fn is_valid(self, limit: RateLimit, now: Time) -> bool {
        let lag = Duration::from_secs(self.missed_by.into());
        self.since == limit.since && now < self.at + LATENESS.max(lag * 2)
    }

    /// When its delivery can be claimed, if its wait begins now.
    pub(crate) fn claimable_at(self, now: Time) -> Time {
        self.at - if self.at.since(now) > MAX_DELAY { EARLIER } else { WAITS_IN_MEMORY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::rate_limit::tests::per_second;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn a_slot_holds_until_it_is_late_or_the_limit_is_another() {
        let limit = RateLimit { per_second: per_second(5), since: NOW };
        let slot = Slot { at: NOW + MAX_DELAY, since: NOW, missed_by: 0 };
        assert!(slot.is_valid(limit, NOW) && slot.is_valid(limit, slot.at));
        assert!(!slot.is_valid(limit, slot.at + LATENESS));
        assert!(!slot.is_valid(RateLimit { since: NOW + LATENESS, ..limit }, NOW));
    }

    #[test]
    fn an_attempt_that_lags_uses_its_second_or_third_slot() {
        let limit = RateLimit { per_second: per_second(5), since: NOW };
        let next = |missed: Slot, lag: Duration| Slot::after(Some(missed), NOW, NOW, missed.at + lag);
        let first = Slot::after(None, NOW, NOW, NOW);
        assert_eq!(first, Slot { at: NOW, since: NOW, missed_by: 0 });
        let lag = Duration::from_secs(40);
        let second = next(first, lag);
        assert!(second.is_valid(limit, second.at + lag) && !second.is_valid(limit, second.at + lag * 2));
        let lag = Duration::from_secs(150);
        let second = next(first, lag);
        assert!(!second.is_valid(limit, second.at + MAX_LAG * 2), "a single interruption is followed by no burst");
        let third = next(second, lag);
        assert!(third.is_valid(limit, third.at + lag) && !third.is_valid(limit, third.at + lag * 2));
        assert!(next(third, Duration::from_secs(86_400)).missed_by <= 900, "the delay of a message is limited, too");
    }

    #[test]
    fn a_delivery_with_a_far_slot_is_looked_at_before_it() {
        let claimable = |wait: Duration| Slot { at: NOW + wait, since: NOW, missed_by: 0 }.claimable_at(NOW).since(NOW);
        assert_eq!(claimable(MAX_DELAY), MAX_DELAY - WAITS_IN_MEMORY);
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(claimable(day), day - EARLIER);
    }
}
