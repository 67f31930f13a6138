//! A claim: the next attempt of a delivery, for one worker alone, until the attempt is recorded or the claim given
//! back.
//!
//! A claim and a record are one write of one item each, and share their calls with those of other deliveries.

use std::time::Duration;

use super::{
    attempt::Attempt,
    delivery::{Delivery, Status, WaitingFor},
    index_group::IndexGroup,
    item::{AttemptItem, HEAD, HeadItem, head_key},
    lease_times::{GRACE, LEASE},
    notice::Notice,
    queue::MAX_DELAY,
    schedule::Next,
    store::Deliveries,
};
use base::{DeliveryId, EventId, Time};
use storage::table::{Change, Put, TableError, Transaction, Value, Write, Written, at_most, is, is_new};

/// How much earlier than its time an attempt may be claimed: the clocks of two machines may differ so much.
const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// For how long an attempt that a person asked for does not wait for the end of a breaker's pause. After that it waits
/// like any other, so that a thousand such requests do not look at a silent endpoint's breaker again and again.
const ASKED_FOR: Duration = Duration::from_secs(2 * 60);

const CLAIMING: &str = "claiming an attempt";
const RECORDING: &str = "recording an attempt";
const ENDING: &str = "giving a claim back";

/// A delivery whose next attempt is the caller's alone, for the length of a lease.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    head: HeadItem,
    /// Proves, when the attempt is recorded, that the claim still holds.
    lease: String,
}

impl Claimed {
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
        Ok(Some(Claimed { head, lease }))
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
        let change = Ending::after(claimed, &attempt, next, now).change(claimed);
        if !along.is_empty() {
            let together = with_attempt_item(head, &attempt, change.clone())?.with_all(along);
            if self.table.write_all(together, RECORDING).await?.is_done() {
                return Ok(Written::Done(()));
            }
        }
        if head.has_room_for(&attempt) {
            let attempts: Vec<_> = head.attempts.iter().chain([&attempt]).collect();
            let change = change.set("attempts", Value::of(&attempts, RECORDING)?);
            return Ok(match self.table.write_together_and_read::<HeadItem>(change, RECORDING).await? {
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
        let waits = Ending { next: Some(until), resume_at, put_off: true, ..Ending::untried(claimed, now) };
        let ending = Ending { asked_at, waiting_for, ..waits };
        self.table.write_together(ending.change(claimed), ENDING).await.map(drop)
    }

    /// Ends a claimed delivery without an attempt: its webhook is gone or disabled.
    pub(super) async fn cancel(&self, claimed: &Claimed, now: Time) -> Result<(), TableError> {
        let ending = Ending { status: Status::Cancelled, ..Ending::untried(claimed, now) };
        self.table.write_together(ending.change(claimed), ENDING).await.map(drop)
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

/// The state of a delivery after a claim.
struct Ending {
    status: Status,
    attempt_count: u32,
    schedule_base: u32,
    last_http_status: Option<u16>,
    /// When the next attempt is due; a delivery without a next attempt is final.
    next: Option<Time>,
    resume_at: Option<Time>,
    put_off: bool,
    asked_at: Option<Time>,
    waiting_for: Option<WaitingFor>,
    now: Time,
}

impl Ending {
    /// No attempt was made; without a next attempt the delivery is final.
    fn untried(claimed: &Claimed, now: Time) -> Self {
        let HeadItem { delivery, schedule_base, .. } = &claimed.head;
        Self {
            status: delivery.status,
            attempt_count: delivery.attempt_count,
            schedule_base: *schedule_base,
            last_http_status: delivery.last_http_status,
            next: None,
            resume_at: None,
            put_off: false,
            asked_at: None,
            waiting_for: None,
            now,
        }
    }

    /// An attempt was made.
    fn after(claimed: &Claimed, attempt: &Attempt, next: Next, now: Time) -> Self {
        let (status, next) = match next {
            Next::Delivered => (Status::Delivered, None),
            Next::RetryAt(time) => (Status::Retrying, Some(time)),
            Next::Exhausted | Next::Gone => (Status::Failed, None),
        };
        // An attempt that was asked for by hand takes none away from the schedule.
        let by_hand = u32::from(claimed.head.resume_at.is_some());
        let before = Self::untried(claimed, now);
        Self {
            status,
            attempt_count: attempt.attempt_number,
            schedule_base: before.schedule_base.saturating_add(by_hand),
            last_http_status: attempt.http_status,
            next,
            ..before
        }
    }

    /// The change of the head, on condition that the claim still holds.
    fn change(&self, claimed: &Claimed) -> Change {
        let group = match self.waiting_for {
            // However short the wait is: the deliveries that wait for a breaker must be found when it closes.
            Some(_) => Some(IndexGroup::Waiting),
            None => IndexGroup::of(self.status, self.attempt_count, self.next, self.now),
        };
        let group = group.map(|group| group.key(&claimed.delivery().webhook_identifier));
        let change = Change::of((claimed.head.pk.clone(), HEAD.to_owned()))
            .only_if(is("lease", claimed.lease.as_str()))
            .remove("lease")
            .set("status", self.status.as_str())
            .set("attemptCount", self.attempt_count)
            .set("scheduleBase", self.schedule_base)
            .set("lastHttpStatus", self.last_http_status)
            .set("lastUpdate", self.now)
            .set_or_remove("resumeAt", self.resume_at)
            .set_or_remove("webhookKey", group)
            .set_or_remove("putOff", self.put_off.then_some(true))
            .set_or_remove("askedAt", self.asked_at)
            .set_or_remove("waitingFor", self.waiting_for.map(WaitingFor::as_str))
            .set_or_remove("nextAttemptDate", self.next)
            .set_or_remove("claimableAt", self.next);
        match self.next {
            Some(time) if claimed.head.is_swept_soon_after(time) => change,
            Some(time) => {
                // An attempt that a delayed message announces has a grace; one that is too far away for that is the
                // sweep's from the start.
                let due = if time.since(self.now) > MAX_DELAY { time } else { time + GRACE };
                change.set("dueAt", due).set("sweeps", 0_u32)
            }
            None => change.remove("dueShard").remove("dueAt"),
        }
    }
}
