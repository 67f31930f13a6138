//! Making deliveries due again, and cancelling waiting ones. A final delivery gets a new schedule. A delivery that
//! waits for its next attempt gets an additional attempt, which its schedule does not count.
//!
//! Every change is on condition of the state that was read, so that only one of several concurrent requests has an
//! effect.

use crate::deliveries::{
    delivery::{CancelReason, Delivery, Status},
    lease_times::GRACE,
    store::{
        Deliveries,
        index_group::{self, IndexGroup},
        item::{HeadItem, due_shard, head_key},
        skip_unreadable,
    },
};
use auth::EntityId;
use base::{DeliveryId, Time, WebhookId};
use storage::table::{Change, Put, TableError, Transaction, Written, absent, at_most, is, is_new, more};
use storage::{IdempotencyError, Record};

const REOPENING: &str = "reopening a delivery";
const CANCELLING: &str = "cancelling a delivery";

/// The origin of a request to attempt a delivery again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requester {
    /// A person requested this delivery. The attempt does not wait for a breaker, and the caller announces it.
    Person,
    /// A job makes many deliveries due, and the sweep announces them.
    Job,
}

impl Requester {
    /// The due time for the sweep of a delivery that is due now.
    fn due(self, now: Time) -> Time {
        match self {
            Self::Person => now + GRACE,
            Self::Job => now,
        }
    }

    /// The initial `sweeps`. A delivery that a job makes due has no message: it starts at 1, so that the sweep does not
    /// expect one on a crowded queue.
    fn sweeps(self) -> u32 {
        u32::from(self == Self::Job)
    }

    /// Whether the attempt may be the first one and does not wait for the deliveries before it. That of a job waits.
    fn out_of_turn(self, delivery: &Delivery) -> Option<bool> {
        (self == Self::Person && delivery.may_be_first()).then_some(true)
    }

    /// The time of a person's request.
    fn asked_at(self, now: Time) -> Option<Time> {
        (self == Self::Person).then_some(now)
    }
}

/// The change that reopens a final delivery with a new schedule that begins now. The retention stays, so the change is
/// lost for a delivery whose retention is over.
fn reopening(read: &Delivery, requester: Requester, now: Time) -> Change {
    Change::of(head_key(&read.id))
        .set("status", Status::Pending.as_str())
        .set("scheduleBase", read.attempt_count)
        .set("nextAttemptDate", now)
        .set("claimableAt", now)
        .set("dueShard", due_shard(&read.id))
        .set("dueAt", requester.due(now))
        .set("sweeps", requester.sweeps())
        .set("lastUpdate", now)
        .set_or_remove("askedAt", requester.asked_at(now))
        .set_or_remove("outOfTurn", requester.out_of_turn(read))
        .remove("putOff")
        .remove("unanswered")
        .remove("slotAt")
        .remove("slotSince")
        .remove("slotMissedBy")
        .remove("waitingFor")
        .remove("heldBy")
        .remove("entityKey")
        .remove("cancelReason")
        .set("webhookKey", IndexGroup::Open.key(&read.webhook_identifier))
        .only_if(is("status", read.status.as_str()))
        .only_if(is("attemptCount", read.attempt_count))
        .only_if(more("expiresAt", now.as_seconds()))
        // Its content may have been erased since it was read.
        .only_if(absent("erasedDate"))
}

/// The change that makes an open delivery's next attempt due now, and keeps its scheduled time in `resumeAt`. An attempt that
/// is put off or due already is the attempt of the schedule itself, so it has no such time.
fn attempt_now(read: &HeadItem, requester: Requester, now: Time) -> Change {
    let in_between = |time: &Time| *time > now && read.resume_at.is_none() && !read.put_off;
    let scheduled = read.delivery.next_attempt_date.filter(in_between);
    let change = Change::of(head_key(&read.delivery.id))
        .set_some("resumeAt", scheduled)
        .set("nextAttemptDate", now)
        .set("claimableAt", now)
        .set("dueShard", due_shard(&read.delivery.id))
        .set("dueAt", requester.due(now))
        .set("sweeps", requester.sweeps())
        .set("lastUpdate", now)
        .set_or_remove("askedAt", requester.asked_at(now))
        .set_some("outOfTurn", requester.out_of_turn(&read.delivery))
        .remove("heldBy")
        .set("webhookKey", IndexGroup::Open.key(&read.delivery.webhook_identifier))
        .only_if(is("attemptCount", read.delivery.attempt_count))
        .only_if(more("expiresAt", now.as_seconds()))
        .only_if(absent("erasedDate"))
        .only_if(absent("lease"));
    read.claimable_at.iter().fold(change, |change, time| change.only_if(is("claimableAt", *time)))
}

impl Deliveries {
    /// Gives a final delivery a new schedule; the caller announces it. Lost when the delivery has changed since it was
    /// read.
    pub(crate) async fn reopen(
        &self,
        read: &Delivery,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<Option<HeadItem>>, IdempotencyError> {
        self.ask_again(reopening(read, Requester::Person, now), record, now).await
    }

    /// Gives a final delivery a new schedule; the sweep announces it.
    pub(crate) async fn reopen_for_sweep(&self, read: &Delivery, now: Time) -> Result<Written<()>, TableError> {
        self.table.write_together(reopening(read, Requester::Job, now), REOPENING).await
    }

    /// Makes the next attempt of an open delivery due now; the caller announces it. Lost when the delivery has changed
    /// since it was read.
    pub(crate) async fn expedite(
        &self,
        read: &HeadItem,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<Option<HeadItem>>, IdempotencyError> {
        if read.due_at.is_none() && read.delivery.attempt_count == 0 {
            // If no worker has claimed it yet, it has no head that could change.
            let put = Put::item(&read.clone().due(now), REOPENING)?.only_if(is_new());
            self.table.write_together(put, REOPENING).await?;
        }
        self.ask_again(attempt_now(read, Requester::Person, now), record, now).await
    }

    /// Makes the next attempt of an open delivery due now; the sweep announces it.
    pub(crate) async fn expedite_for_sweep(&self, read: &HeadItem, now: Time) -> Result<Written<()>, TableError> {
        self.table.write_together(attempt_now(read, Requester::Job, now), REOPENING).await
    }

    /// Makes a delivery in a feed due now, or at the end of the lease if a reader holds it; the sweep announces it.
    /// Returns whether it is due now. A delivery that cannot be read is left out.
    pub(crate) async fn release_unread(
        &self,
        id: &DeliveryId,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<bool, TableError> {
        let consequence = "the delivery stays in its feed, since its item cannot be read";
        let head = skip_unreadable(self.head(id).await, id, consequence)?.flatten();
        let Some(head) = head.filter(|head| head.delivery.webhook_identifier == *webhook && !head.is_final()) else {
            return Ok(false);
        };
        if !head.is_kept(now) {
            self.set_aside(&head, now).await?;
            return Ok(false);
        }
        if head.lease.is_some() {
            self.set_due_at_lease_end(&head).await?;
            return Ok(false);
        }
        Ok(self.expedite_for_sweep(&head, now).await?.is_done())
    }

    /// Moves a delivery whose retention is over to [`IndexGroup::Unrecoverable`]. The table may remove it days later;
    /// until then, readers would pass over it, recoveries would count it, and the release of a feed would wait for it.
    pub(crate) async fn set_aside(&self, expired: &HeadItem, now: Time) -> Result<(), TableError> {
        let Some(group) = &expired.webhook_key else { return Ok(()) };
        let change = Change::of(head_key(&expired.delivery.id))
            .set("webhookKey", IndexGroup::Unrecoverable.key(&expired.delivery.webhook_identifier))
            .only_if(is("webhookKey", group.as_str()))
            .only_if(at_most("expiresAt", now.as_seconds()));
        self.table.write_together(change, "setting an expired delivery aside").await.map(drop)
    }

    /// Makes a change that a person requested, together with the record of the request. The head is read back only
    /// without a record. If the change is lost to another one, nothing is written.
    async fn ask_again(
        &self,
        change: Change,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<Option<HeadItem>>, IdempotencyError> {
        if record.is_none() {
            let written: Written<HeadItem> = self.table.write_together_and_read(change, REOPENING).await?;
            let is_own = |head: &HeadItem| head.asked_at == Some(now) && head.delivery.last_update == now;
            return Ok(written.or_own(is_own).map(Some));
        }
        let written = self.table.write_recorded(Transaction::new().with(change), record, REOPENING).await?;
        Ok(written.map(|()| None))
    }

    /// Writes the record of a request that changes nothing.
    pub(crate) async fn leave_as_is(&self, record: Option<Record>) -> Result<(), IdempotencyError> {
        self.table.write_recorded(Transaction::new(), record, REOPENING).await.map(drop)
    }

    /// Cancels a waiting delivery of a removed webhook. Lost when the delivery is claimed: its worker then cancels it.
    pub(crate) async fn cancel_waiting(
        &self,
        id: &DeliveryId,
        webhook: &WebhookId,
        entity: &EntityId,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let cancelled = Change::of(head_key(id))
            .set("status", Status::Cancelled.as_str())
            .set("cancelReason", CancelReason::WebhookRemoved.as_str())
            .set("lastUpdate", now)
            .remove("nextAttemptDate")
            .remove("claimableAt")
            .remove("resumeAt")
            .remove("heldBy")
            .remove("dueShard")
            .remove("dueAt")
            .set("webhookKey", IndexGroup::Unrecoverable.key(webhook))
            .set_some("entityKey", index_group::entity_key(Status::Cancelled, entity))
            .only_if(is("webhookKey", IndexGroup::Waiting.key(webhook)))
            // Any time matches: only a final delivery has none.
            .only_if(more("claimableAt", Time::from_millis(0)))
            // An attempt without an outcome is recorded first.
            .only_if(absent("handedOutAt"))
            .only_if(absent("interruptedAt"))
            .only_if(absent("lease"));
        self.table.write_together(cancelled, CANCELLING).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::store::item::tests::{LATER, NOW, head};

    #[test]
    fn a_pause_of_a_breaker_is_no_time_of_the_schedule() {
        let waiting = || {
            let mut head = HeadItem { claimable_at: Some(LATER), ..head() };
            head.delivery.next_attempt_date = Some(LATER);
            head
        };
        let resumes = |head: &HeadItem| format!("{:?}", attempt_now(head, Requester::Person, NOW)).contains("resumeAt");
        assert!(resumes(&waiting()));
        assert!(!resumes(&HeadItem { put_off: true, ..waiting() }), "it is the attempt of the schedule itself");
        let mut due = waiting();
        due.delivery.next_attempt_date = Some(NOW);
        assert!(!resumes(&due), "it is the attempt of the schedule itself");
        assert!(!resumes(&HeadItem { resume_at: Some(LATER), ..waiting() }), "the stored time stays");
    }

    #[test]
    fn a_person_gets_an_announcement_at_once_and_a_job_leaves_it_to_the_sweep() {
        assert_eq!((Requester::Person.due(NOW), Requester::Person.asked_at(NOW)), (NOW + GRACE, Some(NOW)));
        assert_eq!(
            (Requester::Job.due(NOW), Requester::Job.asked_at(NOW)),
            (NOW, None),
            "many attempts do not pass a breaker"
        );
    }
}
