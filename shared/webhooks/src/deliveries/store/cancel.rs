//! Cancelling open deliveries without an attempt. The change requires the delivery to be as it was read, so that only
//! one of a concurrent cancellation and claim succeeds.

use crate::deliveries::{
    delivery::{CancelReason, Delivery, Status},
    store::{
        Deliveries, StoredDelivery,
        index_group::{self, IndexGroup},
        item::{HeadItem, head_key},
    },
};
use base::Time;
use storage::table::{Change, Condition, Put, TableError, Value, Written, absent, is, is_new};

const CANCELLING: &str = "cancelling a delivery";

impl Deliveries {
    /// Cancels an open delivery at its owner's request, by one write. A delivery that no worker has claimed gets a
    /// final head. Lost when the delivery has changed since it was read.
    pub(crate) async fn cancel_open(&self, read: &StoredDelivery, now: Time) -> Result<Written<HeadItem>, TableError> {
        let reason = CancelReason::Owner;
        if read.has_head {
            // Its content may have been erased since it was read.
            let change = if_unchanged(&read.head).only_if(absent("erasedDate"));
            let change = cancelling(change, &read.head.delivery, reason, now);
            return self.table.write_together_and_read(change, CANCELLING).await;
        }
        let cancelled = read.head.clone().cancelled(reason, now);
        let put = Put::item(&cancelled, CANCELLING)?.only_if(is_new());
        let written = self.table.write_together(put, CANCELLING).await?;
        Ok(if written.is_done() { Written::Done(cancelled) } else { Written::Lost(None) })
    }
}

/// A change of a head, on condition that no claim, record or request has changed it since it was read.
pub(super) fn if_unchanged(read: &HeadItem) -> Change {
    Change::of(head_key(&read.delivery.id))
        .only_if(is("attemptCount", read.delivery.attempt_count))
        .only_if(is("status", read.delivery.status.as_str()))
        .only_if(as_read("lease", read.lease.as_deref()))
        .only_if(as_read("claimableAt", read.claimable_at))
}

/// Completes a change of the head of an open delivery: it becomes final, and no recovery sends it again.
pub(super) fn cancelling(change: Change, read: &Delivery, reason: CancelReason, now: Time) -> Change {
    change
        .set("status", Status::Cancelled.as_str())
        .set("cancelReason", reason.as_str())
        .set("lastUpdate", now)
        .set("webhookKey", IndexGroup::Unrecoverable.key(&read.webhook_identifier))
        .set_some("entityKey", index_group::entity_key(Status::Cancelled, &read.owner_identifier))
        .remove("lease")
        // A resend must not count the time of a reader that did not answer.
        .remove("handedOutAt")
        .remove("interruptedAt")
        .remove("nextAttemptDate")
        .remove("claimableAt")
        .remove("resumeAt")
        .remove("putOff")
        .remove("askedAt")
        .remove("waitingFor")
        .remove("heldBy")
        .remove("dueShard")
        .remove("dueAt")
}

fn as_read(attribute: &'static str, value: Option<impl Into<Value>>) -> Condition {
    value.map_or_else(|| absent(attribute), |value| is(attribute, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::{
        lease_times::{CLOCK_SKEW, LEASE},
        store::item::tests::{NOW, erased_event_and_head, head},
    };

    #[test]
    fn no_recovery_finds_a_delivery_that_its_owner_cancelled() {
        let head = head();
        let change = format!("{:?}", cancelling(if_unchanged(&head), head.delivery(), CancelReason::Owner, NOW));
        assert!(
            change.contains("owner") && change.contains("UNRECOVERABLE") && change.contains("UNDELIVERED"),
            "{change}"
        );
    }

    #[test]
    fn an_unclaimed_delivery_is_final_from_the_start() {
        let (mut event, head) = erased_event_and_head();
        event.erased_date = None;
        let new = HeadItem::new(&event, &head.delivery.id).expect("a target").cancelled(CancelReason::Owner, NOW);
        assert!(new.is_final() && new.due_at.is_none() && !new.is_erased());
        assert_eq!((new.delivery.status, new.delivery.next_attempt_date), (Status::Cancelled, None));
        assert!(new.webhook_key.is_some_and(|key| key.starts_with("UNRECOVERABLE#")) && new.entity_key.is_some());
    }

    #[test]
    fn an_attempt_is_under_way_until_no_worker_can_record_it() {
        let leased = HeadItem { lease: Some("worker".into()), claimable_at: Some(NOW + LEASE), ..head() };
        assert_eq!(leased.under_way_until(NOW), Some(NOW + LEASE));
        assert_eq!(leased.under_way_until(NOW + LEASE), Some(NOW + LEASE), "clocks differ");
        assert_eq!(leased.under_way_until(NOW + LEASE + CLOCK_SKEW), None, "its worker has died");
        assert_eq!(HeadItem { lease: None, ..leased }.under_way_until(NOW), None);
    }
}
