//! A claim: the next attempt of a delivery, for one worker alone, until the attempt is recorded or the claim given
//! back.
//!
//! A claim and a record are one write of one item each, and share their calls with those of other deliveries. Every
//! attempt is claimed before it is sent. The record is repeated until shortly before the lease ends, so that a throttled
//! table does not turn an answer into a second request.

use std::time::Duration;

use tokio::time::Instant;

use crate::deliveries::{
    attempt::Attempt,
    delivery::{Delivery, Status, WaitingFor},
    dispatch::{schedule::Next, transition::HeadTransition},
    lease_times::{BEGIN_LIMIT, CLAIM_LIMIT, CLOCK_SKEW, LEASE},
    queue::message::AttemptMessage,
    store::{
        Deliveries,
        item::{AttemptItem, HEAD, HeadItem, head_key},
    },
};
use base::{DeliveryId, EventId, Time};
use storage::table::{Change, Put, TableError, Transaction, Value, Write, Written, at_most, is, is_new};

/// For how long an attempt that a person asked for does not wait for the end of a breaker's pause. After that it waits
/// like any other, so that a thousand such requests do not look at a silent endpoint's breaker again and again.
const ASKED_FOR: Duration = Duration::from_secs(2 * 60);

const CLAIMING: &str = "claiming an attempt";
const RECORDING: &str = "recording an attempt";
const ENDING: &str = "giving a claim back";

/// The longest time for the record together with other writes. It is repeated without them.
const ALONG_LIMIT: Duration = Duration::from_secs(5);

/// A delivery whose next attempt is the caller's alone, for the length of a lease.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    head: HeadItem,
    /// Proves, when the attempt is recorded, that the claim still holds.
    lease: String,
    /// When the claim began.
    began: Instant,
}

impl Claimed {
    /// Until when the outcome of the claim may be written: before another worker, whose clock may be ahead, can claim.
    fn deadline(&self) -> Instant {
        self.began + (LEASE - CLOCK_SKEW)
    }

    /// Whether the rest of the lease suffices for an exchange and its record.
    pub(crate) fn may_begin(&self) -> bool {
        self.began.elapsed() < BEGIN_LIMIT
    }

    /// When the delivery's retention ends.
    pub(crate) fn expires(&self) -> Time {
        Time::from_millis(self.head.expires_at.saturating_mul(1000))
    }

    /// A change of the head, on condition that the claim still holds.
    fn change(&self) -> Change {
        Change::of((self.head.pk.clone(), HEAD.to_owned())).only_if(is("lease", self.lease.as_str()))
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.head.delivery
    }

    pub(crate) fn event(&self) -> &EventId {
        &self.head.event
    }

    /// The notice of an attempt of this delivery.
    pub(crate) fn notice(&self, attempt: u32) -> AttemptMessage {
        AttemptMessage::of(&self.head, attempt)
    }

    /// The number of the claimed attempt, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.head.delivery.attempt_count.saturating_add(1)
    }

    /// The number of the claimed attempt in the present schedule: numbers go on after a resend, schedules start anew.
    pub(crate) fn attempt_in_schedule(&self) -> u32 {
        self.attempt().saturating_sub(self.head.schedule_base)
    }

    /// When the schedule goes on, if this attempt was asked for by hand in between.
    pub(crate) fn resumes_at(&self) -> Option<Time> {
        self.head.resume_at
    }

    /// Whether a person asked for this attempt just now.
    pub(crate) fn is_asked_for(&self, now: Time) -> bool {
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
    pub(crate) async fn claim(
        &self,
        id: &DeliveryId,
        attempt: u32,
        lease: String,
        now: Time,
    ) -> Result<Option<Claimed>, TableError> {
        let made = attempt.saturating_sub(1);
        let began = Instant::now();
        let claim = Change::of(head_key(id))
            .set("lease", lease.as_str())
            .set("claimableAt", now + LEASE)
            .only_if(is("attemptCount", made))
            // Its message may come early, by a clock that is ahead.
            .only_if(at_most("claimableAt", now + CLOCK_SKEW));
        let head: HeadItem =
            match self.table.until(began + CLAIM_LIMIT).write_together_and_read(claim, CLAIMING).await? {
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
        Ok(Some(Claimed { head, lease, began }))
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
    /// means that the claim had run out, and another worker makes the attempt as well.
    ///
    /// The record is repeated until shortly before the lease ends: an attempt that is not recorded is made again.
    pub(crate) async fn record<W: Into<Write>>(
        &self,
        claimed: &Claimed,
        attempt: Attempt,
        next: Next,
        now: Time,
        along: Vec<W>,
    ) -> Result<Written<()>, TableError> {
        let head = &claimed.head;
        let change = HeadTransition::after(head, &attempt, next, now).complete(claimed.change(), head);
        if !along.is_empty() {
            let together = with_attempt_item(head, &attempt, change.clone())?.with_all(along);
            let table = self.table.until(claimed.deadline().min(Instant::now() + ALONG_LIMIT));
            match table.write_all(together, RECORDING).await {
                Ok(Written::Done(())) => return Ok(Written::Done(())),
                // Lost by a condition of `along`, perhaps, or throttled on one of its items.
                Ok(Written::Lost(_)) | Err(TableError::Unavailable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let table = self.table.until(claimed.deadline());
        if head.has_room_for(&attempt) {
            let attempts: Vec<_> = head.attempts.iter().chain([&attempt]).collect();
            let change = change.set("attempts", Value::of(&attempts, RECORDING)?);
            match table.write_together_or_read::<HeadItem>(change, RECORDING).await? {
                Written::Done(()) => return Ok(Written::Done(())),
                // The response to the first write may have been lost.
                Written::Lost(Some(found)) if found.attempts.contains(&attempt) => return Ok(Written::Done(())),
                Written::Lost(_) => {}
            }
        } else if table.write_all(with_attempt_item(head, &attempt, change)?, RECORDING).await?.is_done() {
            return Ok(Written::Done(()));
        }
        // The response to a transaction may have been lost.
        let item = AttemptItem::new(head, attempt);
        let found: Option<AttemptItem> = table.read(item.key(), RECORDING).await?;
        Ok(if found.is_some_and(|found| found.attempt == item.attempt) {
            Written::Done(())
        } else {
            Written::Lost(None)
        })
    }

    /// Ends a claim as if it had not been made: no attempt is counted, and the next one stays due.
    pub(crate) async fn release(&self, claimed: &Claimed) -> Result<(), TableError> {
        let change = claimed.change().remove("lease");
        let change = change.set_or_remove("claimableAt", claimed.head.delivery.next_attempt_date);
        self.table.until(claimed.deadline()).write_together(change, ENDING).await.map(drop)
    }

    /// Gives a claim back without an attempt: nothing is counted, and the delivery waits until then.
    pub(crate) async fn put_off(
        &self,
        claimed: &Claimed,
        until: Time,
        waiting_for: Option<WaitingFor>,
        now: Time,
    ) -> Result<(), TableError> {
        let HeadItem { resume_at, asked_at, .. } = claimed.head;
        let waits = HeadTransition {
            next: Some(until),
            resume_at,
            put_off: true,
            ..HeadTransition::untried(&claimed.head, now)
        };
        let ending = HeadTransition { asked_at, waiting_for, ..waits };
        self.table
            .until(claimed.deadline())
            .write_together(ending.complete(claimed.change(), &claimed.head), ENDING)
            .await
            .map(drop)
    }

    /// Ends a claimed delivery without an attempt: its webhook is gone or disabled.
    pub(crate) async fn cancel(&self, claimed: &Claimed, now: Time) -> Result<(), TableError> {
        let ending = HeadTransition { status: Status::Cancelled, ..HeadTransition::untried(&claimed.head, now) };
        self.table
            .until(claimed.deadline())
            .write_together(ending.complete(claimed.change(), &claimed.head), ENDING)
            .await
            .map(drop)
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
