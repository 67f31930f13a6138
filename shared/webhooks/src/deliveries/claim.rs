//! A claim: the next attempt of a delivery, for one worker alone, until the attempt is recorded or the claim given
//! back.
//!
//! A claim and a record are one write of one item each, and share their calls with those of other deliveries. The first
//! attempt needs no claim while its message is fresh: one message carries the delivery, and before the
//! sweep comes nothing else has a worker look at the delivery. An attempt that lasts is claimed while it is under way.

use std::time::Duration;

use super::{
    attempt::Attempt,
    delivery::{Delivery, Status, WaitingFor},
    ending::Ending,
    item::{AttemptItem, HEAD, HeadItem, head_key},
    lease_times::{CARRIED, CLOCK_SKEW, LEASE},
    notice::Notice,
    schedule::Next,
    store::Deliveries,
};
use base::{DeliveryId, EventId, Time};
use storage::table::{Change, Put, TableError, Transaction, Value, Write, Written, absent, at_most, is, is_new};

/// For how long an attempt that a person asked for does not wait for the end of a breaker's pause. After that it waits
/// like any other, so that a thousand such requests do not look at a silent endpoint's breaker again and again.
const ASKED_FOR: Duration = Duration::from_secs(2 * 60);

const CLAIMING: &str = "claiming an attempt";
const RECORDING: &str = "recording an attempt";
const ENDING: &str = "giving a claim back";

/// A delivery whose next attempt is the caller's alone, for the length of a lease, or since only the caller has the
/// message that carries it.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    head: HeadItem,
    /// Proves, when the attempt is recorded, that the claim still holds.
    lease: String,
    /// Whether the attempt was begun without the lease, so that the head may lack it.
    by_message: bool,
}

impl Claimed {
    /// The first attempt of a delivery, for the holder of the message that carries it; `None` when a claim has to
    /// decide, since the message comes early or late.
    pub(super) fn by_message(head: HeadItem, lease: String, now: Time) -> Option<Self> {
        let is_due = head.claimable_at.is_some_and(|begins| begins <= now);
        let held = Self { head, lease, by_message: true };
        (is_due && !held.is_overdue_for_claim(now)).then_some(held)
    }

    /// Whether the attempt was begun without a claim, by the holder of its message.
    pub(super) const fn is_by_message(&self) -> bool {
        self.by_message
    }

    /// Whether the attempt is to be claimed before it is sent, since the message that it is held by is no longer fresh.
    pub(super) fn is_overdue_for_claim(&self, now: Time) -> bool {
        self.by_message && now >= self.head.delivery.created_date + CARRIED
    }

    /// A change of the head, on condition that the attempt is still the caller's.
    fn change(&self) -> Change {
        let change = Change::of((self.head.pk.clone(), HEAD.to_owned()));
        let mine = is("lease", self.lease.as_str());
        match self.head.claimable_at.filter(|_| self.by_message) {
            // As the message has it, or claimed since; the answer to that claim may have been lost on its way.
            Some(time) => change
                .only_if(is("attemptCount", self.head.delivery.attempt_count))
                .only_if(mine.or(absent("lease").and(is("claimableAt", time)))),
            None => change.only_if(mine),
        }
    }

    pub(super) fn delivery(&self) -> &Delivery {
        &self.head.delivery
    }

    pub(super) fn event(&self) -> &EventId {
        &self.head.event
    }

    /// The notice of an attempt of this delivery.
    pub(super) fn notice(&self, attempt: u32) -> Notice {
        Notice::of(&self.head, attempt)
    }

    /// The number of the claimed attempt, from 1.
    pub(super) fn attempt(&self) -> u32 {
        self.head.delivery.attempt_count.saturating_add(1)
    }

    /// The number of the claimed attempt in the present schedule: numbers go on after a resend, schedules start anew.
    pub(super) fn attempt_in_schedule(&self) -> u32 {
        self.attempt().saturating_sub(self.head.schedule_base)
    }

    /// When the schedule goes on, if this attempt was asked for by hand in between.
    pub(super) fn resumes_at(&self) -> Option<Time> {
        self.head.resume_at
    }

    /// Whether a person asked for this attempt just now.
    pub(super) fn is_asked_for(&self, now: Time) -> bool {
        self.head.asked_at.is_some_and(|asked| now < asked + ASKED_FOR)
    }
}

impl Deliveries {
    /// Claims an attempt. `None` when it was made already, another worker is making it, it is not due yet, or the
    /// delivery is final or gone. If the caller dies, the sweep finds the delivery when the lease is over.
    ///
    /// The due time stays as it is, which saves two units in the index; most attempts are over long before it. If it
    /// comes in the middle of an attempt, the sweep announces the delivery, and the claim that follows moves the due
    /// time to the lease's end.
    pub(super) async fn claim(
        &self,
        id: &DeliveryId,
        attempt: u32,
        lease: String,
        now: Time,
    ) -> Result<Option<Claimed>, TableError> {
        let made = attempt.saturating_sub(1);
        let claim = Change::of(head_key(id))
            .set("lease", lease.as_str())
            .set("claimableAt", now + LEASE)
            .only_if(is("attemptCount", made))
            // Its message may come early, by a clock that is ahead.
            .only_if(at_most("claimableAt", now + CLOCK_SKEW));
        let head: HeadItem = match self.table.write_together_and_read(claim, CLAIMING).await? {
            Written::Done(head) => head,
            Written::Lost(None) => return Ok(None),
            // The answer to the first try may have been lost on its way, and this is the second.
            Written::Lost(Some(head)) if is_first_try(&head, &lease, made) => head,
            Written::Lost(Some(head)) => {
                if head.due_at != head.claimable_at {
                    self.look_again_after_lease(&head).await?;
                }
                return Ok(None);
            }
        };
        // Later than the lease's end, if the sweep announced the delivery again and again.
        if head.due_at > head.claimable_at {
            self.look_again_after_lease(&head).await?;
        }
        Ok(Some(Claimed { head, lease, by_message: false }))
    }

    /// Claims an attempt that was begun without a claim. Lost when another worker has it by now.
    pub(super) async fn claim_under_way(&self, claimed: &Claimed, now: Time) -> Result<Written<()>, TableError> {
        let claim = claimed.change().set("lease", claimed.lease.as_str()).set("claimableAt", now + LEASE);
        self.table.write_together(claim, CLAIMING).await
    }

    /// Moves the due time of a claimed delivery to the end of the lease: if its worker dies, the sweep must find it
    /// then, neither before nor after.
    async fn look_again_after_lease(&self, head: &HeadItem) -> Result<(), TableError> {
        let HeadItem { lease: Some(lease), claimable_at: Some(end), due_at: Some(due), .. } = head else {
            return Ok(());
        };
        let then = Change::of((head.pk.clone(), HEAD.to_owned()))
            .set("dueAt", *end)
            .only_if(is("lease", lease.as_str()))
            .only_if(is("dueAt", *due));
        self.table.write_together(then, CLAIMING).await.map(drop)
    }

    /// Records an attempt and the delivery's state after it, both or neither; together with `along` in one transaction,
    /// if there is anything. If a write of `along` loses its own condition, the attempt is recorded without it. Lost
    /// means that the claim had run out, and another worker made the attempt as well, which counts.
    pub(super) async fn record<W: Into<Write>>(
        &self,
        claimed: &Claimed,
        attempt: Attempt,
        next: Next,
        now: Time,
        along: Vec<W>,
    ) -> Result<Written<()>, TableError> {
        let head = &claimed.head;
        let change = Ending::after(head, &attempt, next, now).complete(claimed.change(), head);
        if !along.is_empty() {
            let together = with_attempt_item(head, &attempt, change.clone())?.with_all(along);
            if self.table.write_all(together, RECORDING).await?.is_done() {
                return Ok(Written::Done(()));
            }
        }
        if head.has_room_for(&attempt) {
            let attempts: Vec<_> = head.attempts.iter().chain([&attempt]).collect();
            let change = change.set("attempts", Value::of(&attempts, RECORDING)?);
            return Ok(match self.table.write_together_or_read::<HeadItem>(change, RECORDING).await? {
                Written::Done(_) => Written::Done(()),
                // The answer to the first try may have been lost on its way, and this is the second.
                Written::Lost(Some(found)) if found.attempts.contains(&attempt) => Written::Done(()),
                Written::Lost(_) => Written::Lost(None),
            });
        }
        // A transaction, which is tried again if a message that came twice touches the head at this very moment.
        self.table.write_all(with_attempt_item(head, &attempt, change)?, RECORDING).await
    }

    /// Gives a claim back without an attempt: nothing is counted, and the delivery waits until then.
    pub(super) async fn put_off(
        &self,
        claimed: &Claimed,
        until: Time,
        waiting_for: Option<WaitingFor>,
        now: Time,
    ) -> Result<(), TableError> {
        let HeadItem { resume_at, asked_at, .. } = claimed.head;
        let waits = Ending { next: Some(until), resume_at, put_off: true, ..Ending::untried(&claimed.head, now) };
        let ending = Ending { asked_at, waiting_for, ..waits };
        self.table.write_together(ending.complete(claimed.change(), &claimed.head), ENDING).await.map(drop)
    }

    /// Ends a claimed delivery without an attempt: its webhook is gone or disabled.
    pub(super) async fn cancel(&self, claimed: &Claimed, now: Time) -> Result<(), TableError> {
        let ending = Ending { status: Status::Cancelled, ..Ending::untried(&claimed.head, now) };
        self.table.write_together(ending.complete(claimed.change(), &claimed.head), ENDING).await.map(drop)
    }
}

fn is_first_try(head: &HeadItem, lease: &str, made: u32) -> bool {
    head.lease.as_deref() == Some(lease) && head.delivery.attempt_count == made
}

/// The change of a head, with the attempt as an item of its own.
fn with_attempt_item(head: &HeadItem, attempt: &Attempt, change: Change) -> Result<Transaction, TableError> {
    let put = Put::item(&AttemptItem::new(head, attempt.clone()), RECORDING)?.only_if(is_new());
    Ok(Transaction::new().with(put).with(change))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::item::tests::{NOW, head};

    #[test]
    fn a_message_that_carries_a_delivery_is_enough_for_its_first_attempt_while_it_is_fresh() {
        let held = |head: HeadItem, now: Time| Claimed::by_message(head, "mine".to_owned(), now).is_some();
        let last = NOW + CARRIED.saturating_sub(Duration::from_millis(1));
        assert!(held(head(), NOW) && held(head(), last));
        assert!(!held(head(), NOW + CARRIED), "the sweep may come before the attempt is over or claimed");
        assert!(!held(HeadItem { claimable_at: Some(NOW + LEASE), ..head() }, NOW), "it is not due yet");
        assert!(!held(HeadItem { claimable_at: None, ..head() }, NOW), "it is final");
        let later = HeadItem { claimable_at: Some(NOW + CARRIED), ..head() };
        assert!(!held(later, NOW + CARRIED), "it waited for its first attempt, and may have been asked for meanwhile");
    }

    #[test]
    fn an_attempt_without_a_claim_ends_only_what_is_as_its_message_has_it() {
        let held = Claimed::by_message(head(), "mine".to_owned(), NOW).expect("fresh");
        let change = format!("{:?}", held.change());
        for condition in ["\"mine\"", "attemptCount", "claimableAt"] {
            assert!(change.contains(condition), "{change}");
        }
    }
}
