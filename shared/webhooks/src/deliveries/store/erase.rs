//! Erasing the content in an erased event's deliveries: the subject, and the responses of endpoints and reasons of
//! readers, which may repeat the event. An open delivery is cancelled, since nothing is left to send.
//!
//! If an attempt is under way, its worker ends the delivery: the mark `erasedDate` keeps the response out of the
//! record. A delivery that was handed to a reader stays open as well, even after the visibility time: the dispatcher
//! records the reader's attempt before it cancels the delivery. A delivery without a head gets one, so that no worker
//! can claim it with a stale event.

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::try_join_all, stream};
use tokio::time::Instant;

use crate::{
    deliveries::{
        attempt::Attempt,
        delivery::{CancelReason, Status},
        store::{
            Deliveries,
            cancel::{cancelling, if_unchanged},
            index_group::IndexGroup,
            item::{ATTEMPT, AttemptItem, HeadItem, head_key, partition},
            skip_unreadable,
        },
    },
    events::store::EventItem,
};
use base::{DeliveryId, Time};
use storage::table::{Change, Put, Query, Table, TableError, Value, is, is_new};

/// How many deliveries of an event are erased at once. Each may have more than a hundred large attempts.
const PAGE: usize = 10;
/// Time limit for the erasures of a page. A page must take less than the lease of a job.
const LIMIT: Duration = Duration::from_secs(5);
/// How many large attempts of a delivery are changed at once.
const ATTEMPTS_AT_ONCE: usize = 25;
/// Number of tries for a delivery that changes meanwhile. Each change is a claim or a record.
const TRIES: usize = 5;

const ERASING: &str = "erasing the content of a delivery";

impl Deliveries {
    /// Erases the content in a page of an erased event's deliveries, from number `from` on, and releases the deliveries
    /// that they hold. Returns the number of the next delivery; `None` after the last. A repetition changes nothing.
    pub(crate) async fn erase_page(
        &self,
        event: &EventItem,
        from: usize,
        now: Time,
    ) -> Result<Option<usize>, TableError> {
        let page: Vec<_> = event.deliveries().skip(from).take(PAGE).collect();
        let table = &self.table.until(Instant::now() + LIMIT);
        let erasures = page.iter().map(|(id, target)| {
            // Boxed: the nested types of futures exceed the compiler's limits.
            async move {
                erase_delivery(table, event, id, now).await?;
                self.release_next(id, &target.webhook, now).await
            }
            .boxed()
        });
        try_join_all(erasures).await?;
        let next = from + page.len();
        Ok((next < event.targets.len()).then_some(next))
    }
}

/// Erases the content in a delivery. The head is marked before the large attempts are read: after the mark, no attempt
/// with a response body is added.
async fn erase_delivery(table: &Table, event: &EventItem, id: &DeliveryId, now: Time) -> Result<(), TableError> {
    for _ in 0..TRIES {
        let head = table.read::<HeadItem>(head_key(id), ERASING).await;
        let consequence = "the delivery is not erased, since its item cannot be read; an operator must remove the item";
        let Some(head) = skip_unreadable(head, id, consequence)? else { return Ok(()) };
        let Some(head) = head else {
            let Some(cancelled) = HeadItem::new(event, id) else { return Ok(()) };
            let put = Put::item(&cancelled, ERASING)?.only_if(is_new());
            if table.write_together(put, ERASING).await?.is_done() {
                return Ok(());
            }
            continue;
        };
        if head.is_erased() || table.write_together(erasing(&head, event, now)?, ERASING).await?.is_done() {
            return if head.has_large_attempts() { erase_large_attempts(table, id).await } else { Ok(()) };
        }
    }
    Err(TableError::code(ERASING, "TransactionConflict"))
}

/// The change of a head. Lost when the delivery has changed since it was read.
fn erasing(head: &HeadItem, event: &EventItem, now: Time) -> Result<Change, TableError> {
    let delivery = &head.delivery;
    let change = if_unchanged(head).set_some("erasedDate", event.erased_date).remove("subject");
    let change = if head.attempts.is_empty() {
        change
    } else {
        let attempts: Vec<_> = head.attempts.iter().cloned().map(Attempt::without_answer).collect();
        change.set("attempts", Value::of(&attempts, ERASING)?)
    };
    let no_recovery = IndexGroup::Unrecoverable.key(&delivery.webhook_identifier);
    Ok(match delivery.status {
        Status::Delivered => change,
        Status::Failed | Status::Cancelled => change.set("webhookKey", no_recovery),
        // The attempt under way is still to be recorded. No reader sees the delivery any more, and its due time may be a
        // day away: the dispatcher looks at the end of the lease.
        Status::Pending | Status::Retrying if head.has_attempt_to_record() => {
            change.set_some("dueAt", head.due_at.and(head.claimable_at))
        }
        Status::Pending | Status::Retrying => cancelling(change, delivery, CancelReason::Erased, now),
    })
}

async fn erase_large_attempts(table: &Table, id: &DeliveryId) -> Result<(), TableError> {
    let rows = table.rows(Query::partition(partition(id)), ERASING).await?;
    let mut changes = Vec::new();
    for row in rows {
        if !row.sort().starts_with(ATTEMPT) {
            continue;
        }
        let key = (partition(id), row.sort().to_owned());
        let attempt = row.read::<AttemptItem>(ERASING)?.attempt;
        if attempt.has_answer() {
            let change = Change::of(key).set_some("error", attempt.error_without_reason()).remove("responseBody");
            changes.push(change.only_if(is("attemptNumber", attempt.attempt_number)));
        }
    }
    let writes: Vec<_> = changes.into_iter().map(|change| table.write_together(change, ERASING).boxed()).collect();
    let written: Vec<_> = stream::iter(writes).buffer_unordered(ATTEMPTS_AT_ONCE).collect().await;
    written.into_iter().try_for_each(|written| written.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::{
        lease_times::{CLOCK_SKEW, LEASE},
        store::item::tests::{LATER, NOW, erased_event_and_head},
    };

    fn change_of(head: &HeadItem, event: &EventItem) -> String {
        format!("{:?}", erasing(head, event, NOW).expect("it can be written"))
    }

    #[test]
    fn an_open_delivery_is_cancelled_and_one_under_way_is_marked() {
        let (event, head) = erased_event_and_head();
        let waiting = HeadItem { claimable_at: Some(LATER), ..head };
        assert!(change_of(&waiting, &event).contains("cancelled"));
        let leased = HeadItem { lease: Some("worker".into()), claimable_at: Some(NOW + LEASE), ..waiting.clone() };
        let marked = change_of(&leased, &event);
        assert!(!marked.contains("cancelled") && marked.contains("erasedDate") && marked.contains("subject"));
        let dead = HeadItem { claimable_at: Some(NOW - CLOCK_SKEW), ..leased };
        assert!(!change_of(&dead, &event).contains("cancelled"), "its attempt is still to be recorded");
    }

    #[test]
    fn a_reader_that_did_not_answer_leaves_an_attempt_to_record() {
        let (event, head) = erased_event_and_head();
        for end in [NOW + LEASE, NOW - LEASE] {
            let read = HeadItem {
                lease: Some("reader".into()),
                handed_out_at: Some(NOW - LEASE),
                claimable_at: Some(end),
                due_at: Some(LATER),
                ..head.clone()
            };
            let change = erasing(&read, &event, NOW).expect("it can be written");
            let text = format!("{change:?}");
            assert!(!text.contains("cancelled") && text.contains("erasedDate"), "{text}");
            let looks_at_its_end =
                if_unchanged(&read).set_some("erasedDate", event.erased_date).remove("subject").set("dueAt", end);
            assert_eq!(change, looks_at_its_end);
        }
    }

    #[test]
    fn a_final_delivery_keeps_its_outcome_and_is_not_recovered() {
        let (event, head) = erased_event_and_head();
        for (status, moves) in [(Status::Delivered, false), (Status::Failed, true), (Status::Cancelled, true)] {
            let mut head = HeadItem { claimable_at: None, ..head.clone() };
            head.delivery.status = status;
            let change = change_of(&head, &event);
            assert_eq!(change.contains("UNRECOVERABLE"), moves, "{status:?}");
            assert!(!change.contains("cancelReason"), "{status:?}");
        }
    }

    #[test]
    fn no_response_stays_in_a_head() {
        let (event, mut head) = erased_event_and_head();
        let attempt: Attempt = serde_json::from_str(
            r#"{"attemptDate":"2026-11-20T09:45:00.000Z","attemptNumber":1,"durationMs":5,"httpStatus":200,"responseBody":"Jane Doe"}"#,
        )
        .expect("an attempt");
        head.attempts = vec![attempt];
        let change = change_of(&head, &event);
        assert!(change.contains("attemptDate") && !change.contains("Jane Doe"), "{change}");
    }

    #[test]
    fn a_delivery_that_no_worker_has_claimed_is_cancelled_from_the_start() {
        let (event, head) = erased_event_and_head();
        let new = HeadItem::new(&event, &head.delivery.id).expect("a target");
        assert!(new.is_final() && new.is_erased() && new.delivery.subject.is_none());
        assert_eq!(new.delivery.cancel_reason, Some(CancelReason::Erased));
    }
}
