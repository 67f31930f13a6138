//! Claims: a claim entitles one worker to a delivery's next attempt, until the worker records the attempt or ends the
//! claim without one.
//!
//! Every attempt is claimed before it is sent. A claim is one write of one item, as is the record of a small attempt;
//! such writes share calls with those for other deliveries. The record is retried until shortly before the lease ends,
//! so that throttling does not cause a second request after an attempt that got a response.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    deliveries::{
        queue::message::AttemptMessage,
        state::{
            Lease, Open, Unknown,
            attempt::Attempt,
            delivery::{CancelReason, Delivery},
            head::Head,
            index::{AnnouncedBy, Index, IndexGroup},
            schedule::Next,
            slot::Slot,
            times::{BEGIN_LIMIT, CLAIM_LIMIT, CLOCK_SKEW, LEASE},
            transition::{Transition, apply},
        },
        store::{
            Deliveries,
            attributes::{AttemptItem, HeadChange, head_key, insertion},
        },
    },
    events::store::EventItem,
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId, logging};
use storage::table::{Change, Put, TableError, Transaction, Write, Written, is_new};

const CLAIMING: &str = "claiming an attempt";
const EXTENDING: &str = "extending a reader's lease";
const RECORDING: &str = "recording an attempt";
const RELEASING: &str = "releasing a claim";

/// Time limit for recording an attempt together with other writes: at most half of the remaining time. After that, the
/// attempt is recorded alone.
const TOGETHER_LIMIT: Duration = Duration::from_secs(5);

/// A delivery whose next attempt belongs to the caller for the length of a lease.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    head: Head,
    /// Proves, when the attempt is recorded, that the claim is still valid.
    lease: String,
    began: Instant,
    /// The latest time to write the outcome, if a reader's request made the claim: the request has less time than the
    /// lease.
    until: Option<Instant>,
}

/// A claim's outcome.
#[derive(Debug)]
pub(crate) enum ClaimOutcome {
    /// The attempt belongs to the caller.
    Done(Box<Claimed>),
    /// The attempt has already been made, another worker is making it, it is not due yet, or its event is gone.
    Refused,
    /// The delivery is final. Its last worker may have died before it woke the next delivery in the line.
    Ended(Box<Head>),
    /// The delivery has no head: it is neither claimed nor opened yet, or was removed.
    NoHead,
}

/// A delivery that a reader of a feed holds, as named by its receipt.
pub(crate) struct ReaderLease<'a> {
    pub(crate) owner: &'a EntityId,
    pub(crate) webhook: &'a WebhookId,
    pub(crate) delivery: &'a DeliveryId,
    /// The number of the attempt.
    pub(crate) attempt: u32,
    pub(crate) lease: &'a str,
}

impl ClaimOutcome {
    pub(crate) fn done(self) -> Option<Claimed> {
        match self {
            Self::Done(claimed) => Some(*claimed),
            Self::Refused | Self::Ended(_) | Self::NoHead => None,
        }
    }
}

impl Claimed {
    /// A delivery that a reader of its webhook's feed holds with this lease.
    pub(crate) fn by_reader(head: Head, lease: String) -> Self {
        Self { head, lease, began: Instant::now(), until: None }
    }

    /// The claim made by a reader's request, which has to end by this time.
    pub(crate) fn until(self, end: Instant) -> Self {
        Self { until: Some(end), ..self }
    }

    /// The head when the attempt was claimed.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        &self.head.delivery
    }

    /// The claimed attempt; `None` only if the claim's holder has ended the delivery.
    fn open(&self) -> Option<&Open> {
        self.head.state.open()
    }

    /// The attempt that a reader or a worker has already made, with an unknown outcome.
    pub(crate) fn unknown(&self) -> Option<Unknown> {
        self.open().and_then(|open| open.claim.unknown)
    }

    /// The slot that the attempt has waited for, if any.
    pub(crate) fn slot(&self) -> Option<Slot> {
        self.open().and_then(|open| open.wait.slot())
    }

    /// The latest time to write the outcome: before another worker, whose clock may be fast, can claim.
    pub(crate) fn deadline(&self) -> Instant {
        let end_of_lease = self.began + (LEASE - CLOCK_SKEW);
        self.until.map_or(end_of_lease, |until| until.min(end_of_lease))
    }

    /// Whether the rest of the lease is long enough for an exchange and its record.
    pub(crate) fn may_begin(&self) -> bool {
        self.began.elapsed() < BEGIN_LIMIT
    }

    /// The delivery's event.
    pub(crate) fn event(&self) -> EventId {
        self.head.event()
    }

    /// The message that announces an attempt of this delivery.
    pub(crate) fn message(&self, attempt: u32) -> AttemptMessage {
        AttemptMessage::of(&self.head, attempt)
    }

    /// The number of the claimed attempt, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.head.next_attempt()
    }

    /// The number of the claimed attempt within the current schedule. A resend starts a new schedule, but the numbering
    /// of attempts continues.
    pub(crate) fn attempt_in_schedule(&self) -> u32 {
        self.attempt().saturating_sub(self.head.schedule_base)
    }

    /// Applies the delivery's limits to the next step. A requested attempt neither uses up nor moves an attempt of the
    /// schedule, but a pause that the endpoint asked for is respected. No attempt is due after the end of the
    /// retention: the last attempt before then makes the delivery final.
    pub(crate) fn limited(&self, next: Next, asked: Duration, now: Time) -> Next {
        let resume_at = self.open().and_then(|open| open.resume_at);
        let next = match (resume_at, next) {
            (Some(resume), Next::RetryAt(_) | Next::Exhausted) => Next::RetryAt(resume.max(now + asked)),
            _ => next,
        };
        match next {
            Next::RetryAt(time) if time >= self.head.expires() => Next::Exhausted,
            next => next,
        }
    }

    /// Whether the attempt was requested in addition to those of the schedule.
    pub(crate) fn is_in_between(&self) -> bool {
        self.open().is_some_and(|open| open.resume_at.is_some())
    }

    /// Who announces the next attempt: readers announce nothing.
    fn announced_by(&self) -> AnnouncedBy {
        if self.until.is_some() { AnnouncedBy::Sweep } else { AnnouncedBy::Message }
    }

    /// The change from a head, as it was read (`read`), to its new form. The write is lost if the claim was lost.
    fn change(&self, read: &Head, new: &Head, now: Time, doing: &'static str) -> Result<HeadChange, TableError> {
        let index = Index::after(read, new, self.announced_by(), now);
        Ok(HeadChange::between(read, new, index, doing)?.if_leased(&self.lease))
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
    ) -> Result<ClaimOutcome, TableError> {
        let began = Instant::now();
        let Some(new) = first(event, id, now) else { return Ok(ClaimOutcome::Refused) };
        let claimed = apply(&new, Transition::Claim { lease: &lease }, now);
        if self
            .table
            .until(began + CLAIM_LIMIT)
            .write_together(insertion(&claimed, None, CLAIMING)?, CLAIMING)
            .await?
            .is_done()
        {
            let head = Head { is_stored: true, ..claimed };
            return Ok(ClaimOutcome::Done(Box::new(Claimed { head, lease, began, until: None })));
        }
        self.claim_since((began, now), id, 1, lease).await
    }

    /// Makes a delivery without a head wait, with one write and without a claim: in its webhook's feed, or for the end
    /// of another delivery. Returns false if it already has a head, is final or expired, or is not due.
    pub(crate) async fn put_off_first(
        &self,
        event: &EventItem,
        id: &DeliveryId,
        transition: Transition<'_>,
        now: Time,
    ) -> Result<bool, TableError> {
        let Some(new) = first(event, id, now) else { return Ok(false) };
        let waiting = apply(&new, transition, now);
        let index = Index::after(&new, &waiting, AnnouncedBy::Sweep, now);
        let put = insertion(&waiting, index, CLAIMING)?;
        Ok(self.table.until(Instant::now() + CLAIM_LIMIT).write_together(put, CLAIMING).await?.is_done())
    }

    /// Gives a delivery waiting in its webhook's feed to a reader, until this time. Returns `None` if another reader or
    /// the dispatcher has claimed it, or it has changed since it was read.
    pub(crate) async fn hand_out(
        &self,
        read: &Head,
        lease: &str,
        until: Time,
        now: Time,
    ) -> Result<Option<Head>, TableError> {
        let made = read.delivery.attempt_count;
        let handed_out = apply(read, Transition::HandOut { lease, until }, now);
        let claim = HeadChange::between(read, &handed_out, None, CLAIMING)?
            .if_attempts(made)
            .if_in_group(IndexGroup::Unread, &read.delivery.webhook_identifier)
            .if_claimable(now)
            // The attempt of an earlier reader or worker must be recorded first.
            .if_nothing_to_record()
            .if_not_erased();
        let table = self.table.until(Instant::now() + CLAIM_LIMIT);
        let claimed: Written<Head> = table.write_together_and_read(claim.into(), CLAIMING).await?;
        Ok(claimed.or_own(|head| is_own_claim(head, lease, made)).done())
    }

    /// Extends to `end` the lease with which a reader holds a delivery of this webhook. Returns false if the lease was
    /// lost, or the delivery is final or belongs to another webhook. Repeating it changes nothing.
    pub(crate) async fn extend_lease(
        &self,
        held: &ReaderLease<'_>,
        end: Time,
        deadline: Instant,
    ) -> Result<bool, TableError> {
        let change = HeadChange::extending(held.delivery, end)
            .if_leased(held.lease)
            .if_attempts(held.attempt.saturating_sub(1))
            .if_of(held.owner, held.webhook)
            .if_handed_out()
            .if_not_erased();
        Ok(self.table.until(deadline).write_together(change, EXTENDING).await?.is_done())
    }

    /// Claims an attempt of a delivery that has a head. If the caller dies, the sweep finds the delivery after the
    /// lease. The due time does not change, which saves two write units in the index, since most attempts end long
    /// before it. If the due time passes during an attempt, the sweep announces the delivery. The claim for that
    /// announcement is refused, and moves the due time to the end of the lease.
    pub(crate) async fn claim(
        &self,
        id: &DeliveryId,
        attempt: u32,
        lease: String,
        now: Time,
    ) -> Result<ClaimOutcome, TableError> {
        self.claim_since((Instant::now(), now), id, attempt, lease).await
    }

    /// Claims with a lease that begins at this moment, as given by both clocks.
    async fn claim_since(
        &self,
        (began, now): (Instant, Time),
        id: &DeliveryId,
        attempt: u32,
        lease: String,
    ) -> Result<ClaimOutcome, TableError> {
        let made = attempt.saturating_sub(1);
        let claim = HeadChange::claiming(id, &lease, now + LEASE)
            .if_attempts(made)
            // Clocks differ, so a message may arrive early.
            .if_claimable(now + CLOCK_SKEW)
            .if_unleased_or_unrecorded();
        let table = self.table.until(began + CLAIM_LIMIT);
        let claimed: Written<Head> = table.write_together_and_read(claim.into(), CLAIMING).await?;
        let head = match claimed.or_own(|head| is_own_claim(head, &lease, made)) {
            Written::Done(head) => head,
            Written::Lost(None) => return Ok(ClaimOutcome::NoHead),
            Written::Lost(Some(head)) if head.is_final() => return Ok(ClaimOutcome::Ended(Box::new(head))),
            Written::Lost(Some(head)) if head.delivery.attempt_count == made && head.is_abandoned(now) => {
                return self.take_over((began, now), &head, lease).await;
            }
            Written::Lost(Some(head)) => {
                if head.index.due_at != head.claimable_at() {
                    self.set_due_at_lease_end(&head).await?;
                }
                return Ok(ClaimOutcome::Refused);
            }
        };
        Ok(self.complete_claim((began, head), lease).await)
    }

    /// Completes a claim: if the sweep has postponed the due time, moves it back to the end of the lease.
    async fn complete_claim(&self, (began, head): (Instant, Head), lease: String) -> ClaimOutcome {
        if head.index.due_at > head.claimable_at()
            && let Err(error) = self.set_due_at_lease_end(&head).await
        {
            // The claim is made, and its attempt must not wait for the sweep.
            let (error, id) = (logging::chain(&error), &head.delivery.id);
            tracing::warn!(error, deliveryId = %id, "if this worker dies, the sweep finds the delivery late");
        }
        ClaimOutcome::Done(Box::new(Claimed { head, lease, began, until: None }))
    }

    /// Claims an attempt whose worker died without recording the outcome, and notes that in the head.
    async fn take_over(
        &self,
        (began, now): (Instant, Time),
        abandoned: &Head,
        lease: String,
    ) -> Result<ClaimOutcome, TableError> {
        let Some(Lease { id: former, .. }) = abandoned.lease() else { return Ok(ClaimOutcome::Refused) };
        let made = abandoned.delivery.attempt_count;
        let taken_over = apply(abandoned, Transition::TakeOver { lease: &lease }, now);
        let claim = HeadChange::between(abandoned, &taken_over, None, CLAIMING)?.if_attempts(made).if_leased(former);
        let table = self.table.until(began + CLAIM_LIMIT);
        let claimed: Written<Head> = table.write_together_and_read(claim.into(), CLAIMING).await?;
        match claimed.or_own(|head| is_own_claim(head, &lease, made)) {
            Written::Done(head) => Ok(self.complete_claim((began, head), lease).await),
            Written::Lost(_) => Ok(ClaimOutcome::Refused),
        }
    }

    /// Moves a claimed delivery's due time to the end of the lease, when the sweep must find it if its worker has died.
    pub(crate) async fn set_due_at_lease_end(&self, head: &Head) -> Result<(), TableError> {
        let (Some(lease), Some(due)) = (head.lease(), head.index.due_at) else { return Ok(()) };
        let then = HeadChange::due_at(&head.delivery.id, lease.until).if_leased(&lease.id).if_due_at(due);
        self.table.write_together(then, CLAIMING).await.map(drop)
    }

    /// Records an attempt and the delivery's new state atomically, in one transaction with the writes in `along`. If a
    /// condition in `along` fails, or the transaction is throttled, the attempt is recorded alone. Returns the next
    /// step; `None` if the lease was lost, in which case another worker makes the attempt as well. The record is
    /// retried until shortly before the lease ends, since an unrecorded attempt is made again.
    ///
    /// If the event was erased during the attempt, the record has no response body, and no retry follows.
    pub(crate) async fn record<W: Into<Write>>(
        &self,
        claimed: &Claimed,
        attempt: &Attempt,
        next: Next,
        now: Time,
        along: Vec<W>,
    ) -> Result<Option<Next>, TableError> {
        let record = Record::of(claimed, &claimed.head, attempt, next, now)?;
        let record = Record { change: record.change.if_not_erased(), ..record };
        if !along.is_empty() {
            let together = record.transaction().with_all(along);
            let began = Instant::now();
            let left = claimed.deadline().saturating_duration_since(began);
            let table = self.table.until(began + TOGETHER_LIMIT.min(left / 2));
            match table.write_all(together, RECORDING).await {
                Ok(Written::Done(())) => return Ok(Some(next)),
                // A condition in `along` may have failed, or one of its items was throttled.
                Ok(Written::Lost(_)) | Err(TableError::Unavailable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let erased = match self.write_record(claimed, &record, now).await? {
            Written::Done(_) => return Ok(Some(next)),
            Written::Lost(Some(head)) if head.is_erased() && head.is_leased_by(&claimed.lease) => head,
            Written::Lost(_) => return Ok(None),
        };
        // An erased delivery stays erased, so the condition need not be checked again.
        let record = Record::of(claimed, &erased, attempt, next, now)?;
        let next = if next.retry_at().is_some() { Next::Cancelled } else { next };
        Ok(self.write_record(claimed, &record, now).await?.is_done().then_some(next))
    }

    /// Writes an attempt. A lost write returns the current head.
    async fn write_record(&self, claimed: &Claimed, record: &Record, now: Time) -> Result<Written<Head>, TableError> {
        let table = self.table.until(claimed.deadline());
        let written = match &record.item {
            None => table.write_together(record.change.clone(), RECORDING).await?,
            Some(_) => table.write_all(record.transaction(), RECORDING).await?,
        };
        let done = || Ok(Written::Done(claimed.head.clone()));
        if written.is_done() {
            return done();
        }
        // The response to an earlier write may have been lost.
        let found = table.read::<Head>(head_key(&claimed.head.delivery.id), RECORDING).await?;
        let is_own = |found: &Head| {
            let is_last = found.delivery.attempt_count == claimed.attempt() && found.delivery.last_update == now;
            is_last || found.attempts.contains(&record.attempt)
        };
        if found.as_ref().is_some_and(is_own) { done() } else { Ok(Written::Lost(found)) }
    }

    /// Releases a claim: no attempt is counted, and the next one remains due.
    pub(crate) async fn release(&self, claimed: &Claimed) -> Result<(), TableError> {
        let released = apply(&claimed.head, Transition::Release, claimed.head.delivery.last_update);
        let change = HeadChange::between(&claimed.head, &released, None, RELEASING)?.if_leased(&claimed.lease);
        self.table.until(claimed.deadline()).write_together(change, RELEASING).await.map(drop)
    }

    /// Ends a claim without an attempt: the delivery waits or is cancelled. If its event was erased in the meantime, it
    /// is cancelled for that reason.
    pub(crate) async fn end_claim(
        &self,
        claimed: &Claimed,
        transition: Transition<'_>,
        now: Time,
    ) -> Result<(), TableError> {
        let table = self.table.until(claimed.deadline());
        let ended = apply(&claimed.head, transition, now);
        let change = claimed.change(&claimed.head, &ended, now, RELEASING)?;
        if table.write_together(change.if_not_erased(), RELEASING).await?.is_done() {
            return Ok(());
        }
        // If the claim was lost, this write fails too. Otherwise, the event was erased in the meantime.
        self.cancel_erased(claimed, now).await
    }

    /// Cancels a claimed delivery whose event is erased.
    pub(crate) async fn cancel_erased(&self, claimed: &Claimed, now: Time) -> Result<(), TableError> {
        let cancelled = apply(&claimed.head, Transition::Cancel(CancelReason::Erased), now);
        let change = claimed.change(&claimed.head, &cancelled, now, RELEASING)?;
        self.table.until(claimed.deadline()).write_together(change, RELEASING).await.map(drop)
    }

    /// The change that puts a claimed delivery into its webhook's feed, or back into it. The write is lost if the event
    /// was erased in the meantime.
    pub(crate) fn into_feed(claimed: &Claimed, now: Time) -> Result<Change, TableError> {
        let in_feed = apply(&claimed.head, Transition::PutIntoFeed, now);
        Ok(claimed.change(&claimed.head, &in_feed, now, RELEASING)?.if_not_erased().into())
    }
}

/// An attempt's record: the change to its head, and the attempt as a separate item if it does not fit there.
struct Record {
    attempt: Attempt,
    change: HeadChange,
    item: Option<Put>,
}

impl Record {
    /// The record of a claimed attempt in this head.
    fn of(claimed: &Claimed, head: &Head, attempt: &Attempt, next: Next, now: Time) -> Result<Self, TableError> {
        let attempt = if head.is_erased() { attempt.clone().without_answer() } else { attempt.clone() };
        let recorded = apply(head, Transition::Record { attempt: &attempt, next }, now);
        let change = claimed.change(head, &recorded, now, RECORDING)?;
        let item = if head.has_room_for(&attempt) {
            None
        } else {
            Some(Put::item(&AttemptItem::new(head, attempt.clone()), RECORDING)?.only_if(is_new()))
        };
        Ok(Self { attempt, change, item })
    }

    fn transaction(&self) -> Transaction {
        let head: Change = self.change.clone().into();
        Transaction::new().with_all(self.item.clone()).with(head)
    }
}

/// A delivery without a head that may be attempted now; `None` if the event has no such delivery, or it is final,
/// expired or not due.
fn first(event: &EventItem, id: &DeliveryId, now: Time) -> Option<Head> {
    let new = Head::new(event, id).filter(|head| head.is_kept(now) && !head.is_final())?;
    (event.first_attempt() <= now + CLOCK_SKEW).then_some(new)
}

fn is_own_claim(head: &Head, lease: &str, made: u32) -> bool {
    head.is_leased_by(lease) && head.delivery.attempt_count == made
}
