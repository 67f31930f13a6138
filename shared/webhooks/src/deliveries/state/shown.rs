//! Why an open delivery is waiting, as its owner sees it. Waiting for a permit writes nothing, so this reason is
//! derived from an overdue attempt.

use crate::deliveries::{
    state::{State, Wait, delivery::WaitingFor, head::Head, times::SWEEP_EVERY},
    view::DeliveryView,
};
use base::Time;

impl Head {
    /// Why the delivery is waiting; `None` if it is final or due now, or its attempt is under way.
    pub(crate) fn waiting_for(&self, now: Time) -> Option<WaitingFor> {
        let open = self.state.open()?;
        let is_under_way = open.claim.lease.as_ref().is_some_and(|lease| now < lease.until);
        // The sweep announces a delivery that a job made due.
        let is_left_to_sweep = self.index.sweeps > 0 && self.index.due_at == Some(open.next);
        let announced = if is_left_to_sweep { open.next + SWEEP_EVERY } else { open.next };
        if is_under_way { None } else { open.wait.shown(open.next, announced, now) }
    }

    /// The delivery as its owner sees it at this moment.
    pub(crate) fn shown(self, now: Time) -> DeliveryView {
        let waiting_for = self.waiting_for(now);
        let (mut next_attempt_date, mut held_by) = (None, None);
        if let State::Open(open) = &self.state {
            next_attempt_date = match (&open.wait, waiting_for) {
                // At any time, a reader may get it, the preceding delivery may become final, or the owner may resume
                // the webhook.
                (_, Some(WaitingFor::Reader | WaitingFor::Order | WaitingFor::Pause)) => None,
                (Wait::Slot(slot), Some(WaitingFor::Rate)) => Some(slot.at),
                _ => Some(open.next),
            };
            held_by = open.wait.before().filter(|_| waiting_for == Some(WaitingFor::Order)).cloned();
        }
        let (status, cancel_reason) = (self.status(), self.state.cancel_reason());
        let delivery = self.delivery;
        DeliveryView {
            attempt_count: delivery.attempt_count,
            cancel_reason,
            created_date: delivery.created_date,
            erased_date: delivery.erased_date,
            event_identifier: delivery.id.event(),
            held_by,
            id: delivery.id,
            last_error_code: delivery.last_error,
            last_http_status: delivery.last_http_status,
            last_update: delivery.last_update,
            next_attempt_date,
            owner_identifier: delivery.owner_identifier,
            status,
            subject: delivery.subject,
            test: delivery.test,
            r#type: delivery.r#type,
            url: delivery.url,
            waiting_for,
            webhook_identifier: delivery.webhook_identifier,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::{
        delivery::CancelReason,
        head::tests::{LATER, NOW, head},
        index::{AnnouncedBy, Index},
        slot::Slot,
        times::GRACE,
    };

    /// Why a delivery in this state is waiting.
    fn waits_for(wait: &Wait, next: Time) -> Option<WaitingFor> {
        head().waiting(next, wait.clone()).waiting_for(NOW)
    }

    #[test]
    fn a_delivery_says_what_it_waits_for_while_it_waits() {
        let slot = Slot { at: LATER, since: NOW, missed_by: 0 };
        for (wait, early) in [
            (Wait::Schedule, WaitingFor::Schedule),
            (Wait::Content, WaitingFor::Schedule),
            (Wait::Breaker, WaitingFor::Breaker),
            (Wait::Slot(slot), WaitingFor::Rate),
        ] {
            assert_eq!(waits_for(&wait, LATER), Some(early));
            assert_eq!(waits_for(&wait, NOW), None, "it is due, and goes at once");
            assert_eq!(waits_for(&wait, NOW - GRACE), Some(WaitingFor::Limit));
        }
        assert_eq!(head().waiting(LATER, Wait::Slot(slot)).shown(NOW).next_attempt_date, Some(slot.at));
    }

    #[test]
    fn a_delivery_that_the_sweep_announces_waits_for_no_permit_before_that() {
        let made_due = Head { index: Index::due_now(AnnouncedBy::Sweep, NOW), ..head().waiting(NOW, Wait::Schedule) };
        for now in [NOW, NOW + GRACE, NOW + SWEEP_EVERY] {
            assert_eq!(made_due.waiting_for(now), None);
        }
        assert_eq!(made_due.waiting_for(NOW + SWEEP_EVERY + GRACE), Some(WaitingFor::Limit));
    }

    #[test]
    fn a_delivery_waits_for_the_end_of_a_pause_until_it_is_made_due() {
        for next in [LATER, NOW, NOW - GRACE] {
            let paused = head().waiting(next, Wait::Pause);
            assert_eq!(paused.waiting_for(NOW), Some(WaitingFor::Pause));
            assert_eq!(paused.shown(NOW).next_attempt_date, None, "its owner ends the pause");
        }
    }

    #[test]
    fn a_delivery_whose_attempt_is_under_way_waits_for_nothing() {
        let leased = head().waiting(NOW, Wait::Schedule).leased(LATER);
        assert_eq!(leased.waiting_for(NOW + GRACE), None);
        assert!(!leased.waits(NOW));
        assert_eq!(leased.waiting_for(LATER), Some(WaitingFor::Limit), "its worker has died");
    }

    #[test]
    fn a_held_delivery_waits_for_its_order_until_it_is_made_due() {
        let held = head().waiting(LATER, Wait::Before(head().delivery.id));
        for now in [NOW, LATER + GRACE] {
            assert_eq!(held.waiting_for(now), Some(WaitingFor::Order));
            let shown = held.clone().shown(now);
            assert!(shown.held_by.is_some() && shown.next_attempt_date.is_none());
        }
        assert!(held.leased(LATER).shown(NOW).held_by.is_none(), "its attempt may be under way");
    }

    #[test]
    fn a_feed_has_a_delivery_at_once_or_after_a_reported_failure() {
        assert_eq!(waits_for(&Wait::Reader, NOW), Some(WaitingFor::Reader));
        assert_eq!(waits_for(&Wait::Reader, LATER), Some(WaitingFor::Schedule));
        assert_eq!(head().waiting(NOW, Wait::Reader).shown(NOW).next_attempt_date, None);
    }

    #[test]
    fn a_final_delivery_waits_for_nothing() {
        for state in [State::Delivered, State::Failed, State::Cancelled(CancelReason::Owner)] {
            let shown = head().with(state.clone()).shown(NOW);
            assert!(shown.waiting_for.is_none() && shown.next_attempt_date.is_none(), "{state:?}");
            assert_eq!(shown.cancel_reason, state.cancel_reason());
        }
    }

    #[test]
    fn the_words_are_those_of_the_contract() {
        for word in [WaitingFor::Breaker, WaitingFor::Limit, WaitingFor::Order, WaitingFor::Pause, WaitingFor::Schedule]
        {
            assert_eq!(serde_json::to_value(word).expect("JSON"), word.as_str());
        }
    }
}
