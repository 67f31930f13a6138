//! Makes deliveries due again. A final delivery gets a new schedule. A delivery waiting for its next attempt gets an
//! additional attempt, which does not count in its schedule.
//!
//! Every change is conditional on the state that was read, so that only one of several concurrent requests has an
//! effect.

use crate::deliveries::{
    state::{
        head::Head,
        index::{AnnouncedBy, Index, IndexGroup},
        transition::{Requester, Transition, apply},
    },
    store::{Deliveries, attributes::HeadChange, head_write, skip_unreadable},
};
use base::{DeliveryId, Time, WebhookId};
use storage::table::{TableError, Transaction, Write, Written};
use storage::{IdempotencyError, Record};

const REOPENING: &str = "reopening a delivery";

/// A delivery before and after a request to attempt it now: a final one gets a new schedule, and an open one an
/// additional attempt.
struct Request<'a> {
    read: &'a Head,
    new: Head,
    due: Option<Index>,
    now: Time,
}

impl<'a> Request<'a> {
    fn of(read: &'a Head, requester: Requester, now: Time) -> Self {
        let transition = if read.is_final() { Transition::Reopen(requester) } else { Transition::Expedite(requester) };
        let announced_by = match requester {
            Requester::Person => AnnouncedBy::Message,
            Requester::Job => AnnouncedBy::Sweep,
        };
        Self { read, new: apply(read, transition, now), due: Some(Index::due_now(announced_by, now)), now }
    }

    /// Requires the delivery to be as it was read, unleased, and neither expired nor erased: a request does not extend
    /// the retention.
    fn unchanged(&self, change: HeadChange) -> HeadChange {
        change.if_as_read(self.read).if_unleased().if_kept(self.now).if_not_erased()
    }

    fn write(&self) -> Result<Write, TableError> {
        head_write(self.read, &self.new, self.due, |change| self.unchanged(change), REOPENING)
    }
}

impl Deliveries {
    /// Attempts a delivery again at a person's request, and writes the request's record as well; the caller announces
    /// the attempt. Without a record, the head is read back. Returns `Lost`, and writes nothing, if the delivery has
    /// changed since it was read.
    pub(crate) async fn request(
        &self,
        read: &Head,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<Option<Head>>, IdempotencyError> {
        let request = Request::of(read, Requester::Person, now);
        if record.is_some() {
            let writes = Transaction::new().with(request.write()?);
            return Ok(self.table.write_recorded(writes, record, REOPENING).await?.map(|()| None));
        }
        let unchanged = |change| request.unchanged(change);
        let written = self.write_head_and_read(read, &request.new, request.due, unchanged, REOPENING).await?;
        let asked_at = |head: &Head| head.state.open().and_then(|open| open.asked_at);
        let is_own = |head: &Head| asked_at(head) == Some(now) && head.delivery.last_update == now;
        Ok(written.or_own(is_own).map(Some))
    }

    /// Attempts a delivery again at a job's request; the sweep announces the attempt.
    pub(crate) async fn request_by_job(&self, read: &Head, now: Time) -> Result<Written<()>, TableError> {
        self.table.write_together(Request::of(read, Requester::Job, now).write()?, REOPENING).await
    }

    /// Makes a delivery in a feed due now, or at the end of the lease if a reader holds it; the sweep announces it.
    /// Returns whether it is due now. A delivery that cannot be read is left out.
    pub(crate) async fn release_unread(
        &self,
        id: &DeliveryId,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<bool, TableError> {
        let consequence = "the delivery stays in its feed because its item cannot be read";
        let head = skip_unreadable(self.head(id).await, id, consequence)?.flatten();
        let Some(head) = head.filter(|head| head.delivery.webhook_identifier == *webhook && !head.is_final()) else {
            return Ok(false);
        };
        if !head.is_kept(now) {
            self.set_aside(&head, now).await?;
            return Ok(false);
        }
        if head.lease().is_some() {
            self.set_due_at_lease_end(&head).await?;
            return Ok(false);
        }
        Ok(self.request_by_job(&head, now).await?.is_done())
    }

    /// Moves an expired delivery to [`IndexGroup::Unrecoverable`]. The table may remove it days later; until then,
    /// readers would skip it each time, recoveries would count it, and a feed's release would wait for it.
    pub(crate) async fn set_aside(&self, expired: &Head, now: Time) -> Result<(), TableError> {
        let Some(group) = expired.index.group else { return Ok(()) };
        let webhook = &expired.delivery.webhook_identifier;
        let change = HeadChange::in_group(&expired.delivery.id, IndexGroup::Unrecoverable, webhook)
            .if_in_group(group, webhook)
            .if_expired(now);
        self.table.write_together(change, "setting an expired delivery aside").await.map(drop)
    }

    /// Writes the record of a request that changes nothing.
    pub(crate) async fn leave_as_is(&self, record: Option<Record>) -> Result<(), IdempotencyError> {
        self.table.write_recorded(Transaction::new(), record, REOPENING).await.map(drop)
    }
}
