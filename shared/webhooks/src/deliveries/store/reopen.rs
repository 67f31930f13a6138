//! Making a delivery due again: a final delivery gets a fresh schedule, and one that waits for its next attempt gets an
//! attempt in between, which its schedule does not count. And ending one that waits.
//!
//! Every change is on condition of the state that was read before, so that of several requests at the same moment one
//! has an effect.

use crate::deliveries::{
    delivery::{Delivery, Status},
    lease_times::GRACE,
    store::{
        Deliveries,
        index_group::IndexGroup,
        item::{HEAD, HeadItem, due_shard, head_key},
        listed_status::LISTED,
    },
};
use base::{DeliveryId, Time, WebhookId};
use storage::table::{Change, TableError, Transaction, Written, absent, is, more};
use storage::{IdempotencyError, Record};

const REOPENING: &str = "reopening a delivery";
const CANCELLING: &str = "cancelling a delivery";

/// Who has a delivery attempted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    /// A person asked for this delivery. The attempt does not wait for a breaker, and the caller announces it.
    Person,
    /// A job makes many due, and the sweep announces them.
    Job,
}

impl Asker {
    /// From when on the sweep announces a delivery that is due now.
    fn due(self, now: Time) -> Time {
        match self {
            Self::Person => now + GRACE,
            Self::Job => now,
        }
    }

    /// How often the sweep counts as having announced it. What a job makes due was never announced: a count of one tells
    /// the sweep that a crowded queue has no message for it.
    fn sweeps(self) -> u32 {
        u32::from(self == Self::Job)
    }

    /// When a person asked.
    fn asked_at(self, now: Time) -> Option<Time> {
        (self == Self::Person).then_some(now)
    }
}

/// A final delivery becomes open, with a fresh schedule that begins now. It is kept as long as before, so a delivery
/// whose retention is over stays as it is.
fn reopening(seen: &Delivery, asker: Asker, now: Time) -> Change {
    Change::of(head_key(&seen.id))
        .set("status", Status::Pending.as_str())
        .set(LISTED, Status::Pending.as_str())
        .set("scheduleBase", seen.attempt_count)
        .set("nextAttemptDate", now)
        .set("claimableAt", now)
        .set("dueShard", due_shard(&seen.id))
        .set("dueAt", asker.due(now))
        .set("sweeps", asker.sweeps())
        .set("lastUpdate", now)
        .set_or_remove("askedAt", asker.asked_at(now))
        .remove("putOff")
        .remove("waitingFor")
        .remove("webhookKey")
        .only_if(is("status", seen.status.as_str()))
        .only_if(is("attemptCount", seen.attempt_count))
        .only_if(more("expiresAt", now.as_seconds()))
}

/// An open delivery's next attempt becomes due now, and the time that the schedule had for it is remembered. An attempt
/// that was put off is the schedule's own, so it has no such time.
fn attempt_now(seen: &HeadItem, asker: Asker, now: Time) -> Change {
    let scheduled = seen.delivery.next_attempt_date.filter(|_| seen.resume_at.is_none() && !seen.put_off);
    let change = Change::of((seen.pk.clone(), HEAD.to_owned()))
        .set_some("resumeAt", scheduled)
        .set("nextAttemptDate", now)
        .set("claimableAt", now)
        .set("dueAt", asker.due(now))
        .set("sweeps", asker.sweeps())
        .set("lastUpdate", now)
        .set_or_remove("askedAt", asker.asked_at(now))
        .remove("webhookKey")
        .only_if(is("attemptCount", seen.delivery.attempt_count))
        .only_if(more("expiresAt", now.as_seconds()))
        .only_if(absent("lease"));
    seen.claimable_at.iter().fold(change, |change, time| change.only_if(is("claimableAt", *time)))
}

impl Deliveries {
    /// Gives a final delivery a fresh schedule; the caller announces it. Lost when it is not as it was read.
    pub(crate) async fn reopen(
        &self,
        seen: &Delivery,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<Option<HeadItem>>, IdempotencyError> {
        self.ask_again(reopening(seen, Asker::Person, now), record).await
    }

    /// The same; the sweep announces it.
    pub(crate) async fn reopen_for_sweep(&self, seen: &Delivery, now: Time) -> Result<Written<()>, TableError> {
        self.table.write_together(reopening(seen, Asker::Job, now), REOPENING).await
    }

    /// Makes the next attempt of an open delivery due now; the caller announces it. Lost when it is not as it was read.
    pub(crate) async fn hasten(
        &self,
        seen: &HeadItem,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<Option<HeadItem>>, IdempotencyError> {
        self.ask_again(attempt_now(seen, Asker::Person, now), record).await
    }

    /// The same; the sweep announces it.
    pub(crate) async fn hasten_for_sweep(&self, seen: &HeadItem, now: Time) -> Result<Written<()>, TableError> {
        self.table.write_together(attempt_now(seen, Asker::Job, now), REOPENING).await
    }

    /// Makes a change that a person asked for, together with the record of the request. The head is read back only where
    /// there is no record. Where the change is lost, the one that came first counts, so that the record is written.
    async fn ask_again(
        &self,
        change: Change,
        record: Option<Record>,
    ) -> Result<Written<Option<HeadItem>>, IdempotencyError> {
        if record.is_none() {
            return Ok(self.table.write_together_and_read(change, REOPENING).await?.map(Some));
        }
        let written = self.table.write_recorded(Transaction::new().with(change), record.clone(), REOPENING).await?;
        if !written.is_done() {
            self.leave_as_is(record).await?;
        }
        Ok(written.map(|()| None))
    }

    /// Writes the record of a request that changes nothing.
    pub(crate) async fn leave_as_is(&self, record: Option<Record>) -> Result<(), IdempotencyError> {
        self.table.write_recorded(Transaction::new(), record, REOPENING).await.map(drop)
    }

    /// Ends a delivery that waits for a removed webhook. Lost when it is claimed at this moment: its worker ends it.
    pub(crate) async fn cancel_waiting(
        &self,
        id: &DeliveryId,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let cancelled = Change::of(head_key(id))
            .set("status", Status::Cancelled.as_str())
            .set(LISTED, Status::Cancelled.as_str())
            .set("lastUpdate", now)
            .remove("nextAttemptDate")
            .remove("claimableAt")
            .remove("resumeAt")
            .remove("dueShard")
            .remove("dueAt")
            // No delivery of a removed webhook is recovered.
            .remove("webhookKey")
            .only_if(is("webhookKey", IndexGroup::Waiting.key(webhook)))
            // Any time will do: a final delivery has none.
            .only_if(more("claimableAt", Time::from_millis(0)))
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
        let resumes = |head: &HeadItem| format!("{:?}", attempt_now(head, Asker::Person, NOW)).contains("resumeAt");
        assert!(resumes(&waiting()));
        assert!(!resumes(&HeadItem { put_off: true, ..waiting() }), "it is itself the attempt of the schedule");
        assert!(!resumes(&HeadItem { resume_at: Some(LATER), ..waiting() }), "what is remembered stays");
    }

    #[test]
    fn what_a_person_asked_for_is_announced_at_once_and_what_a_job_makes_due_by_the_sweep() {
        assert_eq!((Asker::Person.due(NOW), Asker::Person.asked_at(NOW)), (NOW + GRACE, Some(NOW)));
        assert_eq!((Asker::Job.due(NOW), Asker::Job.asked_at(NOW)), (NOW, None), "many attempts do not pass a breaker");
    }
}
