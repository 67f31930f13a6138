//! The transition at the end of a claim: the new state of the delivery, and the change of its head.

use crate::deliveries::{
    attempt::{Attempt, ErrorCode},
    delivery::{CancelReason, Status, WaitingFor},
    dispatch::schedule::Next,
    lease_times::{GRACE, MAX_DELAY},
    store::{
        index_group::{self, IndexGroup},
        item::{HeadItem, due_shard, next_look},
        slot::Slot,
    },
};
use base::{DeliveryId, Time};
use storage::table::Change;

/// The new state of a delivery at the end of a claim.
pub(crate) struct HeadTransition {
    pub(crate) status: Status,
    pub(crate) attempt_count: u32,
    pub(crate) schedule_base: u32,
    pub(crate) unanswered: u32,
    pub(crate) last_http_status: Option<u16>,
    pub(crate) last_error: Option<ErrorCode>,
    /// When the next attempt is due; a delivery without a next attempt is final.
    pub(crate) next: Option<Time>,
    pub(crate) resume_at: Option<Time>,
    pub(crate) put_off: bool,
    /// Whether a reader's request ends the claim: readers announce nothing.
    pub(crate) by_reader: bool,
    pub(crate) asked_at: Option<Time>,
    pub(crate) waiting_for: Option<WaitingFor>,
    pub(crate) slot: Option<Slot>,
    pub(crate) held_by: Option<DeliveryId>,
    pub(crate) cancel_reason: Option<CancelReason>,
    pub(crate) now: Time,
}

impl HeadTransition {
    /// The transition without an attempt; the delivery is final unless a next attempt is set.
    pub(crate) fn without_attempt(head: &HeadItem, now: Time) -> Self {
        let HeadItem { delivery, schedule_base, unanswered, .. } = head;
        Self {
            status: delivery.status,
            attempt_count: delivery.attempt_count,
            schedule_base: *schedule_base,
            unanswered: *unanswered,
            last_http_status: delivery.last_http_status,
            last_error: delivery.last_error,
            next: None,
            resume_at: None,
            put_off: false,
            by_reader: false,
            asked_at: None,
            waiting_for: None,
            slot: None,
            held_by: None,
            cancel_reason: None,
            now,
        }
    }

    /// The transition of an attempt that is put off until this time.
    pub(crate) fn put_off(head: &HeadItem, until: Time, now: Time) -> Self {
        let HeadItem { resume_at, asked_at, .. } = *head;
        Self { next: Some(until), resume_at, asked_at, put_off: true, ..Self::without_attempt(head, now) }
    }

    /// The transition after an attempt.
    pub(crate) fn after(head: &HeadItem, attempt: &Attempt, next: Next, now: Time) -> Self {
        let in_feed = matches!(next, Next::ReadFrom(_));
        let cancel_reason = (next == Next::Cancelled && head.is_erased()).then_some(CancelReason::Erased);
        let (status, next) = match next {
            Next::Delivered => (Status::Delivered, None),
            Next::RetryAt(time) | Next::ReadFrom(time) => (Status::Retrying, Some(time)),
            Next::Exhausted | Next::Gone => (Status::Failed, None),
            Next::Cancelled => (Status::Cancelled, None),
        };
        let last_error = attempt.error.as_deref().and_then(ErrorCode::of);
        let is_spared = last_error.is_some_and(ErrorCode::is_unknown_outcome) && head.spares_schedule();
        let is_by_hand = head.resume_at.is_some();
        let before = Self::without_attempt(head, now);
        // An attempt that was requested by hand is repeated as such.
        let is_repeated = is_spared && next.is_some();
        Self {
            status,
            resume_at: head.resume_at.filter(|_| is_repeated),
            asked_at: head.asked_at.filter(|_| is_repeated),
            attempt_count: attempt.attempt_number,
            schedule_base: before.schedule_base.saturating_add(u32::from(is_by_hand || is_spared)),
            unanswered: before.unanswered.saturating_add(u32::from(is_spared)),
            last_http_status: attempt.http_status,
            last_error,
            next,
            put_off: in_feed,
            waiting_for: in_feed.then_some(WaitingFor::Reader),
            cancel_reason,
            ..before
        }
    }

    /// Whether a message announces the next attempt. Otherwise `sweeps` starts at 1, so that the sweep does not expect
    /// a message on a crowded queue.
    fn is_announced(&self, next: Time) -> bool {
        let waits_for_its_event = self.put_off && self.waiting_for.is_none();
        !waits_for_its_event && !self.by_reader && next.since(self.now) <= MAX_DELAY
    }

    /// Whether no recovery may send the delivery again, because it has no content.
    fn is_undelivered_and_erased(&self, head: &HeadItem) -> bool {
        let is_erased = head.is_erased() || self.cancel_reason == Some(CancelReason::Erased);
        is_erased && matches!(self.status, Status::Failed | Status::Cancelled)
    }

    /// Adds this transition to a change of the head.
    pub(crate) fn complete(&self, change: Change, head: &HeadItem) -> Change {
        let change = change
            .remove("lease")
            .remove("handedOutAt")
            .remove("interruptedAt")
            .set("status", self.status.as_str())
            .set("attemptCount", self.attempt_count)
            .set("scheduleBase", self.schedule_base)
            .set_or_remove("unanswered", (self.unanswered > 0).then_some(self.unanswered))
            .set("lastHttpStatus", self.last_http_status)
            .set_or_remove("lastError", self.last_error.map(ErrorCode::as_str))
            .set_some("cancelReason", self.cancel_reason.map(CancelReason::as_str))
            .set("lastUpdate", self.now)
            .set_or_remove("resumeAt", self.resume_at)
            .set_or_remove("putOff", self.put_off.then_some(true))
            .set_or_remove("askedAt", self.asked_at)
            .set_or_remove("waitingFor", self.waiting_for.map(WaitingFor::as_str))
            .set_or_remove("slotAt", self.slot.map(|slot| slot.at))
            .set_or_remove("slotSince", self.slot.map(|slot| slot.since))
            .set_or_remove("slotMissedBy", self.slot.map(|slot| slot.missed_by).filter(|seconds| *seconds > 0))
            .set_or_remove("heldBy", self.held_by.as_ref().map(DeliveryId::as_str))
            .set_or_remove("nextAttemptDate", self.next)
            .set_or_remove("claimableAt", self.next);
        let group = match self.waiting_for {
            // Regardless of the wait's length: deliveries that wait for a breaker must be found when it closes.
            Some(WaitingFor::Reader) => IndexGroup::Unread,
            Some(_) => IndexGroup::Waiting,
            None if self.is_undelivered_and_erased(head) => IndexGroup::Unrecoverable,
            None => IndexGroup::of(self.status, self.attempt_count, self.next, self.now),
        };
        let group = group.key(&head.delivery.webhook_identifier);
        match self.next {
            // The feed has it. No message announces it, and the due time only makes the dispatcher look again.
            Some(_) if self.waiting_for == Some(WaitingFor::Reader) => change
                .set("dueAt", next_look(head.delivery.created_date, self.now))
                .set("dueShard", due_shard(&head.delivery.id))
                .set("sweeps", 1_u32)
                .set("webhookKey", group),
            // The end of the delivery before it makes it due, and no message announces the next look.
            Some(look) if self.held_by.is_some() => change
                .set("dueAt", look)
                .set("dueShard", due_shard(&head.delivery.id))
                .set("sweeps", 1_u32)
                .set("webhookKey", group),
            // The sweep opens it if the attempt does not come soon. A wait for a breaker is written at once: the job
            // that ends it finds the delivery by the index.
            Some(time) if !head.is_opened(self.now) && time.since(self.now) <= GRACE && self.waiting_for.is_none() => {
                change
            }
            Some(time) if head.is_swept_soon_after(time) => change,
            Some(time) => {
                // A delayed message announces the attempt before the sweep does. The sweep announces attempts beyond
                // the longest delay at once.
                let due = if time.since(self.now) > MAX_DELAY { time } else { time + GRACE };
                let change = change.set("dueAt", due).set("dueShard", due_shard(&head.delivery.id));
                change.set("sweeps", u32::from(!self.is_announced(time))).set("webhookKey", group)
            }
            None => {
                let entity_key = index_group::entity_key(self.status, &head.delivery.owner_identifier);
                let change = change.remove("dueShard").remove("dueAt").set("webhookKey", group);
                change.set_or_remove("entityKey", entity_key)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::store::item::{
        SPARED,
        tests::{LATER, NOW, head},
    };
    use std::time::Duration;

    #[test]
    fn no_message_announces_an_attempt_far_away_or_without_its_event() {
        let announced = |wait: Duration, put_off: bool, waiting_for: Option<WaitingFor>| {
            HeadTransition { put_off, waiting_for, ..HeadTransition::without_attempt(&head(), NOW) }
                .is_announced(NOW + wait)
        };
        let soon = MAX_DELAY;
        let far = MAX_DELAY + Duration::from_millis(1);
        assert!(announced(soon, false, None) && announced(soon, true, Some(WaitingFor::Breaker)));
        assert!(!announced(far, false, None) && !announced(far, true, Some(WaitingFor::Breaker)));
        assert!(!announced(soon, true, None));
        let by_reader = HeadTransition { by_reader: true, ..HeadTransition::without_attempt(&head(), NOW) };
        assert!(!by_reader.is_announced(NOW + soon), "readers announce nothing");
    }

    #[test]
    fn an_interrupted_attempt_that_was_requested_is_repeated_as_such() {
        let requested = HeadItem { resume_at: Some(LATER), asked_at: Some(NOW), ..head() };
        let attempt = Attempt::interrupted(1, NOW);
        let after = |head: &HeadItem, next| HeadTransition::after(head, &attempt, next, NOW);
        let repeated = after(&requested, Next::RetryAt(NOW));
        assert_eq!((repeated.resume_at, repeated.asked_at), (Some(LATER), Some(NOW)));
        assert_eq!((repeated.schedule_base, repeated.unanswered), (1, 1), "the schedule stays as it was");
        let often = HeadItem { unanswered: SPARED, ..requested.clone() };
        for ended in [after(&often, Next::RetryAt(LATER)), after(&requested, Next::Exhausted)] {
            assert_eq!((ended.resume_at, ended.asked_at), (None, None));
        }
    }
}
