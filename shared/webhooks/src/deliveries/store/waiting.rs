//! The reason why an open delivery waits, derived from its head. Waiting for a permit writes nothing, so this reason is
//! derived from an overdue attempt.

use crate::deliveries::{delivery::WaitingFor, lease_times::GRACE, store::item::HeadItem};
use base::Time;

impl HeadItem {
    /// The reason for the delivery's wait; `None` when it is final, its attempt is under way, or it is due now.
    pub(crate) fn waiting_for(&self, now: Time) -> Option<WaitingFor> {
        let next = self.delivery.next_attempt_date?;
        if self.lease.is_some() && self.claimable_at.is_some_and(|end| now < end) {
            None
        } else if self.delivery.held_by.is_some() {
            // Its time is only that of the next look.
            Some(WaitingFor::Order)
        } else if now < next && self.delivery.waiting_for == Some(WaitingFor::Reader) {
            // A reader reported a failure: the feed has it again after the wait of the schedule.
            Some(WaitingFor::Schedule)
        } else if self.delivery.waiting_for == Some(WaitingFor::Reader) {
            Some(WaitingFor::Reader)
        } else if now < next {
            Some(self.delivery.waiting_for.unwrap_or(WaitingFor::Schedule))
        } else {
            // The time for the queue is over, and the sweep announces the delivery again.
            (next + GRACE <= now).then_some(WaitingFor::Limit)
        }
    }

    /// Whether the next attempt is later than now, and no worker has claimed it.
    pub(crate) fn waits(&self, now: Time) -> bool {
        self.lease.is_none() && self.claimable_at.is_some_and(|time| now < time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::store::item::tests::{LATER, NOW, head};

    fn waiting(next: Option<Time>, kept: Option<WaitingFor>) -> HeadItem {
        let mut head = HeadItem { claimable_at: next, ..head() };
        head.delivery.next_attempt_date = next;
        head.delivery.waiting_for = kept;
        head
    }

    #[test]
    fn a_delivery_says_what_it_waits_for_while_it_waits() {
        let breaker = Some(WaitingFor::Breaker);
        assert_eq!(waiting(None, None).waiting_for(NOW), None, "it is over");
        assert_eq!(waiting(Some(LATER), None).waiting_for(NOW), Some(WaitingFor::Schedule));
        assert_eq!(waiting(Some(LATER), breaker).waiting_for(NOW), breaker);
        assert_eq!(waiting(Some(NOW), breaker).waiting_for(NOW), None, "it is due, and goes at once");
        for kept in [None, breaker] {
            assert_eq!(waiting(Some(NOW), kept).waiting_for(NOW + GRACE), Some(WaitingFor::Limit));
        }
    }

    #[test]
    fn a_delivery_whose_attempt_is_under_way_waits_for_nothing() {
        let leased = HeadItem { lease: Some("worker".into()), claimable_at: Some(LATER), ..waiting(Some(NOW), None) };
        assert_eq!(leased.waiting_for(NOW + GRACE), None);
        assert!(!leased.waits(NOW));
        assert_eq!(leased.waiting_for(LATER), Some(WaitingFor::Limit), "its worker has died");
    }

    #[test]
    fn a_held_delivery_waits_for_its_order_until_it_is_made_due() {
        let mut held = waiting(Some(LATER), Some(WaitingFor::Order));
        held.delivery.held_by = Some(held.delivery.id.clone());
        for now in [NOW, LATER + GRACE] {
            assert_eq!(held.waiting_for(now), Some(WaitingFor::Order));
            let shown = held.clone().shown(now);
            assert!(shown.held_by.is_some() && shown.next_attempt_date.is_none());
        }
        let leased = HeadItem { lease: Some("worker".into()), ..held };
        assert!(leased.shown(NOW).held_by.is_none(), "its attempt may be under way");
    }

    #[test]
    fn the_words_are_those_of_the_contract() {
        for word in [WaitingFor::Breaker, WaitingFor::Limit, WaitingFor::Order, WaitingFor::Schedule] {
            assert_eq!(serde_json::to_value(word).expect("JSON"), word.as_str());
        }
    }
}
