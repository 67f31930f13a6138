//! Claims: a claim gives one worker the next attempt of a delivery, until the worker records the attempt or releases
//! the claim.
//!
//! Every attempt is claimed before it is sent. A claim is one write of one item, and so is the record of a small
//! attempt; such writes share their calls with those of other deliveries. The record is retried until shortly before
//! the lease ends, so that throttling does not turn an answered attempt into a second request.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    deliveries::{
        attempt::Attempt,
        delivery::{CancelReason, Delivery, Status, WaitingFor},
        dispatch::{schedule::Next, transition::HeadTransition},
        lease_times::{BEGIN_LIMIT, CLAIM_LIMIT, CLOCK_SKEW, LEASE},
        queue::message::AttemptMessage,
        store::{
            Deliveries,
            index_group::IndexGroup,
            item::{AttemptItem, HeadItem, head_key, next_look_at_held},
            slot::Slot,
        },
    },
    events::store::EventItem,
    subscriptions::operational::is_operational,
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId, logging};
use storage::table::{
    Change, Condition, Put, TableError, Transaction, Value, Write, Written, absent, at_most, is, is_new, present,
};

/// How long an attempt that a person requested does not wait for the end of a breaker's pause. After that it waits like
/// any other, so that a thousand requests do not keep reading the breaker of a silent endpoint.
const REQUESTED_RECENTLY: Duration = Duration::from_secs(2 * 60);

const CLAIMING: &str = "claiming an attempt";
const EXTENDING: &str = "extending the lease of a reader";
const RECORDING: &str = "recording an attempt";
const RELEASING: &str = "releasing a claim";

/// Time limit for recording an attempt together with other writes, or half of the time that is left. After it, the
/// attempt is recorded alone.
const TOGETHER_LIMIT: Duration = Duration::from_secs(5);

/// A delivery whose next attempt belongs to the caller for the length of a lease.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    head: HeadItem,
    /// Proves, when the attempt is recorded, that the claim still holds.
    lease: String,
    began: Instant,
    /// The latest time to write the outcome, if a reader's request makes the claim, which has less time than the lease.
    until: Option<Instant>,
}

/// The outcome of a claim.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The attempt belongs to the caller.
    Done(Box<Claimed>),
    /// The attempt was made already, another worker is making it, it is not due yet, or the delivery is final.
    Refused,
    /// The delivery has no head: it is neither claimed nor opened yet, or is gone.
    NoHead,
}

/// A delivery that a reader of a feed holds, as its receipt says.
pub(crate) struct HeldByReader<'a> {
    pub(crate) owner: &'a EntityId,
    pub(crate) webhook: &'a WebhookId,
    pub(crate) delivery: &'a DeliveryId,
    /// The number of the attempt.
    pub(crate) attempt: u32,
    pub(crate) lease: &'a str,
}

impl Claim {
    pub(crate) fn done(self) -> Option<Claimed> {
        match self {
            Self::Done(claimed) => Some(*claimed),
            Self::Refused | Self::NoHead => None,
        }
    }
}

impl Claimed {
    /// A delivery that a reader of its webhook's feed holds with this lease.
    pub(crate) fn by_reader(head: HeadItem, lease: String) -> Self {
        Self { head, lease, began: Instant::now(), until: None }
    }

    /// The claim of a reader's request that has to end by this time.
    pub(crate) fn until(self, end: Instant) -> Self {
        Self { until: Some(end), ..self }
    }

    /// When a reader of the webhook's feed got the attempt, if one did and has not answered.
    pub(crate) fn handed_out_at(&self) -> Option<Time> {
        self.head.handed_out_at
    }

    /// When a former worker claimed the attempt, if it ended without recording the outcome.
    pub(crate) fn interrupted_at(&self) -> Option<Time> {
        self.head.interrupted_at
    }

    /// Whether the attempt was made before, by a reader or a worker of whom no outcome is known.
    pub(crate) fn has_unknown_outcome(&self) -> bool {
        self.head.has_unknown_outcome()
    }

    /// The slot that the attempt has waited for, if any.
    pub(crate) fn slot(&self) -> Option<Slot> {
        self.head.slot
    }

    /// The latest time to write the outcome: before another worker, whose clock may be ahead, can claim.
    pub(crate) fn deadline(&self) -> Instant {
        let end_of_lease = self.began + (LEASE - CLOCK_SKEW);
        self.until.map_or(end_of_lease, |until| until.min(end_of_lease))
    }

    /// Whether the rest of the lease suffices for an exchange and its record.
    pub(crate) fn may_begin(&self) -> bool {
        self.began.elapsed() < BEGIN_LIMIT
    }

    /// The end of the delivery's retention.
    pub(crate) fn expires(&self) -> Time {
        Time::from_millis(self.head.expires_at.saturating_mul(1000))
    }

    /// Whether the content of the event is erased, so that there is nothing to send.
    pub(crate) fn is_erased(&self) -> bool {
        self.head.is_erased()
    }

    /// The transition of the delivery, whose head was read as `head`, after the claimed attempt.
    fn after(&self, head: &HeadItem, attempt: &Attempt, next: Next, now: Time) -> HeadTransition {
        HeadTransition { by_reader: self.until.is_some(), ..HeadTransition::after(head, attempt, next, now) }
    }

    /// A change of the head that is lost with the claim.
    fn change(&self) -> Change {
        Change::of(head_key(&self.head.delivery.id)).only_if(is("lease", self.lease.as_str()))
    }

    pub(crate) fn head(&self) -> &HeadItem {
        &self.head
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.head.delivery
    }

    pub(crate) fn event(&self) -> EventId {
        self.head.event()
    }

    /// The message that announces an attempt of this delivery.
    pub(crate) fn message(&self, attempt: u32) -> AttemptMessage {
        AttemptMessage::of(&self.head, attempt)
    }

    /// The number of the claimed attempt, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.head.delivery.attempt_count.saturating_add(1)
    }

    /// The number of the claimed attempt within the current schedule. A resend starts a new schedule and continues the
    /// attempt numbers.
    pub(crate) fn attempt_in_schedule(&self) -> u32 {
        self.attempt().saturating_sub(self.head.schedule_base)
    }

    /// Applies the delivery's limits to the next step. A requested attempt neither uses up nor moves an attempt of the
    /// schedule, but the pause that the endpoint asked for is kept. No attempt is due after the end of the retention:
    /// the last one before it makes the delivery final.
    pub(crate) fn limited(&self, next: Next, asked: Duration, now: Time) -> Next {
        let next = match (self.head.resume_at, next) {
            (Some(resume), Next::RetryAt(_) | Next::Exhausted) => Next::RetryAt(resume.max(now + asked)),
            _ => next,
        };
        match next {
            Next::RetryAt(time) if time >= self.expires() => Next::Exhausted,
            next => next,
        }
    }

    /// Whether the attempt uses up none of the schedule if its outcome is unknown.
    pub(crate) fn spares_schedule(&self) -> bool {
        self.head.spares_schedule()
    }

    /// Whether no request may have been sent before.
    pub(crate) fn may_be_first(&self) -> bool {
        self.delivery().may_be_first()
    }

    /// Whether the attempt was requested in addition to those of the schedule.
    pub(crate) fn is_in_between(&self) -> bool {
        self.head.resume_at.is_some()
    }

    pub(crate) fn is_operational(&self) -> bool {
        carries_operational(self.delivery())
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.head.asked_at.is_some()
    }

    pub(crate) fn was_requested_recently(&self, now: Time) -> bool {
        self.head.asked_at.is_some_and(|asked| now < asked + REQUESTED_RECENTLY)
    }
}

impl Deliveries {
    /// Claims the first attempt of a delivery that probably has no head yet.
    pub(crate) async fn claim_first(
        &self,
        event: &EventItem,
        id: &DeliveryId,
        lease: String,
        now: Time,
    ) -> Result<Option<Claimed>, TableError> {
        let began = Instant::now();
        let head = HeadItem::new(event, id).filter(|head| head.is_kept(now) && !head.is_final());
        let Some(head) = head else { return Ok(None) };
        if event.first_attempt() > now + CLOCK_SKEW {
            return Ok(None);
        }
        let head = head.claimed(&lease, now);
        let put = Put::item(&head, CLAIMING)?.only_if(is_new());
        if self.table.until(began + CLAIM_LIMIT).write_together(put, CLAIMING).await?.is_done() {
            return Ok(Some(Claimed { head, lease, began, until: None }));
        }
        self.claim_since((began, now), id, 1, lease).await.map(Claim::done)
    }

    /// Puts a new delivery into the feed of its webhook. Returns false if it has a head already.
    pub(crate) async fn add_unread(&self, event: &EventItem, id: &DeliveryId, now: Time) -> Result<bool, TableError> {
        let Some(head) = HeadItem::new(event, id).filter(|head| head.is_kept(now)) else { return Ok(false) };
        let put = Put::item(&head.unread(now), CLAIMING)?.only_if(is_new());
        Ok(self.table.until(Instant::now() + CLAIM_LIMIT).write_together(put, CLAIMING).await?.is_done())
    }

    /// Gives a delivery that waits in the feed of its webhook to a reader, until this time. `None` when another reader
    /// or the dispatcher has claimed it, or it has changed since it was read.
    pub(crate) async fn hand_out(
        &self,
        read: &HeadItem,
        lease: &str,
        until: Time,
        now: Time,
    ) -> Result<Option<HeadItem>, TableError> {
        let made = read.delivery.attempt_count;
        let claim = Change::of(head_key(&read.delivery.id))
            .set("lease", lease)
            .set("claimableAt", until)
            .set("handedOutAt", now)
            .only_if(is("attemptCount", made))
            .only_if(is("webhookKey", IndexGroup::Unread.key(&read.delivery.webhook_identifier)))
            .only_if(at_most("claimableAt", now))
            // The attempt of a former reader or worker must be recorded first.
            .only_if(absent("lease"))
            .only_if(absent("handedOutAt"))
            .only_if(absent("interruptedAt"))
            .only_if(absent("erasedDate"));
        let table = self.table.until(Instant::now() + CLAIM_LIMIT);
        let claimed: Written<HeadItem> = table.write_together_and_read(claim, CLAIMING).await?;
        Ok(claimed.or_own(|head| is_own_claim(head, lease, made)).done())
    }

    /// Lets the reader that holds a delivery of this webhook by this lease hold it until `end`. Returns false if the
    /// lease was lost, or the delivery is another's or final. A repetition changes nothing more.
    pub(crate) async fn extend_lease(
        &self,
        held: &HeldByReader<'_>,
        end: Time,
        deadline: Instant,
    ) -> Result<bool, TableError> {
        let change = Change::of(head_key(held.delivery))
            .set("claimableAt", end)
            .only_if(is("lease", held.lease))
            .only_if(is("attemptCount", held.attempt.saturating_sub(1)))
            .only_if(is("ownerIdentifier", held.owner.as_str()))
            .only_if(is("webhookIdentifier", held.webhook.as_str()))
            .only_if(present("handedOutAt"))
            .only_if(absent("erasedDate"));
        Ok(self.table.until(deadline).write_together(change, EXTENDING).await?.is_done())
    }

    /// Claims an attempt of a delivery that has a head. If the caller dies, the sweep finds the delivery after the
    /// lease. The due time stays, which saves two write units in the index; most attempts end long before it. If it
    /// passes during an attempt, the sweep announces the delivery, and the claim for that announcement, which is
    /// refused, moves the due time to the end of the lease.
    pub(crate) async fn claim(
        &self,
        id: &DeliveryId,
        attempt: u32,
        lease: String,
        now: Time,
    ) -> Result<Claim, TableError> {
        self.claim_since((Instant::now(), now), id, attempt, lease).await
    }

    /// Claims with a lease from this moment on, given by both clocks.
    async fn claim_since(
        &self,
        (began, now): (Instant, Time),
        id: &DeliveryId,
        attempt: u32,
        lease: String,
    ) -> Result<Claim, TableError> {
        let made = attempt.saturating_sub(1);
        let claim = Change::of(head_key(id))
            .set("lease", lease.as_str())
            .set("claimableAt", now + LEASE)
            .only_if(is("attemptCount", made))
            // Clocks differ, so a message may come early.
            .only_if(at_most("claimableAt", now + CLOCK_SKEW))
            .only_if(Condition::Any(vec![absent("lease"), present("handedOutAt"), present("interruptedAt")]));
        let table = self.table.until(began + CLAIM_LIMIT);
        let claimed: Written<HeadItem> = table.write_together_and_read(claim, CLAIMING).await?;
        let head = match claimed.or_own(|head| is_own_claim(head, &lease, made)) {
            Written::Done(head) => head,
            Written::Lost(None) => return Ok(Claim::NoHead),
            Written::Lost(Some(head)) if head.delivery.attempt_count == made && head.is_abandoned(now) => {
                return self.take_over((began, now), &head, lease).await;
            }
            Written::Lost(Some(head)) => {
                if head.due_at != head.claimable_at {
                    self.set_due_at_lease_end(&head).await?;
                }
                return Ok(Claim::Refused);
            }
        };
        Ok(self.done((began, head), lease).await)
    }

    /// The claim that was made of a head, whose due time is after the end of the lease if the sweep announced the
    /// delivery several times.
    async fn done(&self, (began, head): (Instant, HeadItem), lease: String) -> Claim {
        if head.due_at > head.claimable_at
            && let Err(error) = self.set_due_at_lease_end(&head).await
        {
            // The claim is made, and its attempt must not wait for the sweep.
            let (error, id) = (logging::chain(&error), &head.delivery.id);
            tracing::warn!(error, deliveryId = %id, "if this worker dies, the sweep finds the delivery late");
        }
        Claim::Done(Box::new(Claimed { head, lease, began, until: None }))
    }

    /// Claims an attempt whose worker ended without recording the outcome, and notes that in the head.
    async fn take_over(
        &self,
        (began, now): (Instant, Time),
        abandoned: &HeadItem,
        lease: String,
    ) -> Result<Claim, TableError> {
        let HeadItem { lease: Some(former), claimable_at: Some(end), delivery, .. } = abandoned else {
            return Ok(Claim::Refused);
        };
        let claim = Change::of(head_key(&delivery.id))
            .set("lease", lease.as_str())
            .set("claimableAt", now + LEASE)
            .set("interruptedAt", *end - LEASE)
            .only_if(is("attemptCount", delivery.attempt_count))
            .only_if(is("lease", former.as_str()));
        let table = self.table.until(began + CLAIM_LIMIT);
        let claimed: Written<HeadItem> = table.write_together_and_read(claim, CLAIMING).await?;
        match claimed.or_own(|head| is_own_claim(head, &lease, delivery.attempt_count)) {
            Written::Done(head) => Ok(self.done((began, head), lease).await),
            Written::Lost(_) => Ok(Claim::Refused),
        }
    }

    /// Moves the due time of a claimed delivery to the end of the lease, when the sweep must find it if its worker
    /// died.
    pub(crate) async fn set_due_at_lease_end(&self, head: &HeadItem) -> Result<(), TableError> {
        let HeadItem { lease: Some(lease), claimable_at: Some(end), due_at: Some(due), .. } = head else {
            return Ok(());
        };
        let then = Change::of(head_key(&head.delivery.id))
            .set("dueAt", *end)
            .only_if(is("lease", lease.as_str()))
            .only_if(is("dueAt", *due));
        self.table.write_together(then, CLAIMING).await.map(drop)
    }

    /// Records an attempt and the delivery's new state atomically, in one transaction with the writes of `along`. If a
    /// condition of `along` fails, or the transaction is throttled, the attempt is recorded alone. Returns the next
    /// step; `None` if the lease was lost, so that another worker makes the attempt as well. The record is retried
    /// until shortly before the lease ends, since an attempt that is not recorded is made again.
    ///
    /// If the event was erased during the attempt, the record has no response body, and no retry follows.
    pub(crate) async fn record<W: Into<Write>>(
        &self,
        claimed: &Claimed,
        attempt: Attempt,
        next: Next,
        now: Time,
        along: Vec<W>,
    ) -> Result<Option<Next>, TableError> {
        let erased = match self.record_with_content(claimed, attempt.clone(), next, now, along).await? {
            Written::Lost(Some(head)) if head.is_erased() && head.lease.as_ref() == Some(&claimed.lease) => head,
            written => return Ok(written.is_done().then_some(next)),
        };
        // An erased delivery stays erased, so the condition need not be checked again.
        let head = &erased;
        let attempt = attempt.without_answer();
        let next = if next.retry_at().is_some() { Next::Cancelled } else { next };
        let change = claimed.after(head, &attempt, next, now).complete(claimed.change(), head);
        Ok(self.record_attempt(claimed, head, &attempt, change, now).await?.is_done().then_some(next))
    }

    /// Records an attempt with its response body, unless the event was erased meanwhile. A lost write returns the head.
    async fn record_with_content<W: Into<Write>>(
        &self,
        claimed: &Claimed,
        attempt: Attempt,
        next: Next,
        now: Time,
        along: Vec<W>,
    ) -> Result<Written<HeadItem>, TableError> {
        let head = &claimed.head;
        let change = claimed.change().only_if(absent("erasedDate"));
        let change = claimed.after(head, &attempt, next, now).complete(change, head);
        if !along.is_empty() {
            let together = with_attempt_item(head, &attempt, change.clone())?.with_all(along);
            let began = Instant::now();
            let left = claimed.deadline().saturating_duration_since(began);
            let table = self.table.until(began + TOGETHER_LIMIT.min(left / 2));
            match table.write_all(together, RECORDING).await {
                Ok(Written::Done(())) => return Ok(Written::Done(head.clone())),
                // A condition of `along` may have failed, or one of its items was throttled.
                Ok(Written::Lost(_)) | Err(TableError::Unavailable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.record_attempt(claimed, head, &attempt, change, now).await
    }

    /// Writes an attempt with a change of its head, which was read as `head`. A lost write returns the current head.
    async fn record_attempt(
        &self,
        claimed: &Claimed,
        head: &HeadItem,
        attempt: &Attempt,
        change: Change,
        now: Time,
    ) -> Result<Written<HeadItem>, TableError> {
        let done = || Ok(Written::Done(head.clone()));
        let table = self.table.until(claimed.deadline());
        if head.has_room_for(attempt) {
            let attempts: Vec<_> = head.attempts.iter().chain([attempt]).collect();
            let change = change.set("attempts", Value::of(&attempts, RECORDING)?);
            if table.write_together(change, RECORDING).await?.is_done() {
                return done();
            }
        } else if table.write_all(with_attempt_item(head, attempt, change)?, RECORDING).await?.is_done() {
            return done();
        }
        // The response to an earlier write may have been lost.
        let found = table.read::<HeadItem>(head_key(&head.delivery.id), RECORDING).await?;
        let is_own = |found: &HeadItem| {
            let is_last = found.delivery.attempt_count == attempt.attempt_number && found.delivery.last_update == now;
            is_last || found.attempts.contains(attempt)
        };
        if found.as_ref().is_some_and(is_own) { done() } else { Ok(Written::Lost(found)) }
    }

    /// Releases a claim: no attempt is counted, and the next one stays due.
    pub(crate) async fn release(&self, claimed: &Claimed) -> Result<(), TableError> {
        let change = claimed.change().remove("lease");
        let change = change.set_or_remove("claimableAt", claimed.head.delivery.next_attempt_date);
        self.table.until(claimed.deadline()).write_together(change, RELEASING).await.map(drop)
    }

    /// Releases a claim without an attempt: nothing is counted, and the delivery waits until this time.
    pub(crate) async fn release_until(
        &self,
        claimed: &Claimed,
        until: Time,
        waiting_for: Option<WaitingFor>,
        now: Time,
    ) -> Result<(), TableError> {
        let waits = HeadTransition { waiting_for, ..HeadTransition::put_off(&claimed.head, until, now) };
        self.release_waiting(claimed, &waits, now).await
    }

    /// Releases a claim without an attempt: the delivery waits for its slot, and can be claimed from `until` on.
    pub(crate) async fn release_to_slot(
        &self,
        claimed: &Claimed,
        slot: Slot,
        until: Time,
        now: Time,
    ) -> Result<(), TableError> {
        let waits = HeadTransition::put_off(&claimed.head, until, now);
        let waits = HeadTransition { waiting_for: Some(WaitingFor::Rate), slot: Some(slot), ..waits };
        self.release_waiting(claimed, &waits, now).await
    }

    /// Releases a claim without an attempt: the delivery is held until this one is final.
    pub(crate) async fn release_held(
        &self,
        claimed: &Claimed,
        before: &DeliveryId,
        now: Time,
    ) -> Result<(), TableError> {
        let until = next_look_at_held(claimed.delivery().created_date, now);
        let waits = HeadTransition::put_off(&claimed.head, until, now);
        let (waiting_for, held_by) = (Some(WaitingFor::Order), Some(before.clone()));
        self.release_waiting(claimed, &HeadTransition { waiting_for, held_by, ..waits }, now).await
    }

    async fn release_waiting(&self, claimed: &Claimed, waits: &HeadTransition, now: Time) -> Result<(), TableError> {
        let change = claimed.change().only_if(absent("erasedDate"));
        let table = self.table.until(claimed.deadline());
        if table.write_together(waits.complete(change, &claimed.head), RELEASING).await?.is_done() {
            return Ok(());
        }
        // Either the claim was lost, and then this write is lost as well, or the event was erased meanwhile.
        self.cancel(claimed, CancelReason::Erased, now).await
    }

    /// The change that puts a claimed delivery into the feed of its webhook, or back into it. Lost when the event was
    /// erased meanwhile.
    pub(crate) fn to_feed(claimed: &Claimed, now: Time) -> Change {
        let HeadItem { resume_at, .. } = claimed.head;
        let waits = HeadTransition {
            next: Some(now),
            resume_at,
            put_off: true,
            waiting_for: Some(WaitingFor::Reader),
            ..HeadTransition::without_attempt(&claimed.head, now)
        };
        waits.complete(claimed.change().only_if(absent("erasedDate")), &claimed.head)
    }

    /// Cancels a claimed delivery without an attempt.
    pub(crate) async fn cancel(&self, claimed: &Claimed, reason: CancelReason, now: Time) -> Result<(), TableError> {
        let before = HeadTransition::without_attempt(&claimed.head, now);
        let transition = HeadTransition { status: Status::Cancelled, cancel_reason: Some(reason), ..before };
        self.table
            .until(claimed.deadline())
            .write_together(transition.complete(claimed.change(), &claimed.head), RELEASING)
            .await
            .map(drop)
    }
}

/// Whether a delivery carries an operational event. A test does not count, even with the sample of an operational type:
/// the person who sends it wants to see whether the endpoint works.
pub(crate) fn carries_operational(delivery: &Delivery) -> bool {
    !delivery.test && is_operational(&delivery.r#type)
}

fn is_own_claim(head: &HeadItem, lease: &str, made: u32) -> bool {
    head.lease.as_deref() == Some(lease) && head.delivery.attempt_count == made
}

/// The change of a head, and the attempt as a separate item.
fn with_attempt_item(head: &HeadItem, attempt: &Attempt, change: Change) -> Result<Transaction, TableError> {
    let put = Put::item(&AttemptItem::new(head, attempt.clone()), RECORDING)?.only_if(is_new());
    Ok(Transaction::new().with(put).with(change))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{deliveries::store::item::tests::head, events::catalogue};

    #[test]
    fn an_operational_event_is_operational_unless_it_is_a_test() {
        let is_operational = |kind: &str, test: bool| {
            let mut head = head();
            head.delivery.r#type = kind.to_owned();
            head.delivery.test = test;
            Claimed::by_reader(head, String::new()).is_operational()
        };
        let operational = catalogue::all().iter().filter(|kind| is_operational(kind.value, false));
        let operational: Vec<_> = operational.map(|kind| kind.value).collect();
        assert_eq!(operational.len(), 4, "{operational:?}");
        assert!(operational.contains(&"webhook.failing") && !operational.contains(&"webhook.test"));
        assert!(catalogue::all().iter().all(|kind| !is_operational(kind.value, true)));
    }
}
