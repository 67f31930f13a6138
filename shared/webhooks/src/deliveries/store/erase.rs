//! Erases the content in an erased event's deliveries: the subject, and endpoints' responses and readers' reasons,
//! which may repeat the event. An open delivery is cancelled, since there is nothing left to send.
//!
//! If an attempt is under way, its worker ends the delivery: the mark `erasedDate` keeps the response out of the
//! record. A delivery that was given to a reader stays open as well, even after the visibility timeout: the dispatcher
//! records the reader's attempt before it cancels the delivery. A delivery without a head gets one, so that no worker
//! can claim it with a stale event.

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::try_join_all, stream};
use tokio::time::Instant;

use crate::{
    deliveries::{
        state::{
            head::Head,
            index::{AnnouncedBy, Index},
            transition::{Transition, apply},
        },
        store::{
            Deliveries,
            attributes::{ATTEMPT, AttemptItem, HeadChange, head_key, partition},
            head_write, skip_unreadable,
        },
    },
    events::store::EventItem,
};
use base::{DeliveryId, Time};
use storage::table::{Query, Table, TableError, Write};

/// How many of an event's deliveries are erased concurrently. Each may have more than a hundred large attempts.
const PAGE: usize = 10;
/// Time limit for a page's erasures. A page must take less time than a job's lease.
const LIMIT: Duration = Duration::from_secs(5);
/// How many of a delivery's large attempts are changed concurrently.
const ATTEMPTS_AT_ONCE: usize = 25;
/// How many times a change to a delivery is tried if the delivery changes concurrently. Each change is a claim or a
/// record.
const TRIES: usize = 5;

const ERASING: &str = "erasing a delivery's content";

impl Deliveries {
    /// Erases the content in a page of an erased event's deliveries, starting with number `from`, and releases the
    /// deliveries that they hold. Returns the number of the next delivery, or `None` after the last. Repeating it
    /// changes nothing.
    pub(crate) async fn erase_page(
        &self,
        event: &EventItem,
        from: usize,
        now: Time,
    ) -> Result<Option<usize>, TableError> {
        let page: Vec<_> = event.deliveries().skip(from).take(PAGE).collect();
        let table = &self.table.until(Instant::now() + LIMIT);
        let erasures = page.iter().map(|(id, target)| {
            // Boxed, since the nested future types exceed the compiler's limits.
            async move {
                erase_delivery(table, event, id, now).await?;
                self.wake_next_by_sweep(id, &target.webhook, now).await
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
        let head = table.read::<Head>(head_key(id), ERASING).await;
        let consequence = "the delivery is not erased because its item cannot be read; remove the item";
        let Some(stored) = skip_unreadable(head, id, consequence)? else { return Ok(()) };
        let Some(head) = stored.or_else(|| Head::new(event, id)) else { return Ok(()) };
        let is_erased = head.is_stored && head.is_erased();
        if is_erased || table.write_together(erasing(&head, event, now)?, ERASING).await?.is_done() {
            return if head.has_large_attempts() { erase_large_attempts(table, id).await } else { Ok(()) };
        }
    }
    Err(TableError::code(ERASING, "TransactionConflict"))
}

/// The change to a head. The write is lost if the delivery has changed since it was read.
fn erasing(head: &Head, event: &EventItem, now: Time) -> Result<Write, TableError> {
    let erased = event.erased_date.map_or_else(|| head.clone(), |date| apply(head, Transition::Erase(date), now));
    let index = match erased.state.open() {
        // The attempt under way has yet to be recorded. Readers no longer see the delivery, and its due time may be a
        // day away, so the dispatcher checks it at the end of the lease.
        Some(open) => head.index.due_at.map(|_| Index { due_at: Some(open.claimable_at()), ..head.index }),
        None => Index::after(head, &erased, AnnouncedBy::Sweep, now)
            .filter(|index| !head.is_final() || index.group != head.index.group),
    };
    head_write(head, &erased, index, |change: HeadChange| change.if_as_read(head), ERASING)
}

async fn erase_large_attempts(table: &Table, id: &DeliveryId) -> Result<(), TableError> {
    let rows = table.rows(Query::partition(partition(id)), ERASING).await?;
    let mut changes = Vec::new();
    for row in rows {
        if row.sort().starts_with(ATTEMPT) {
            let sort_key = row.sort().to_owned();
            let attempt = row.read::<AttemptItem>(ERASING)?.attempt;
            changes.extend(AttemptItem::erasing(id, &sort_key, &attempt));
        }
    }
    let writes: Vec<_> = changes.into_iter().map(|change| table.write_together(change, ERASING).boxed()).collect();
    let written: Vec<_> = stream::iter(writes).buffer_unordered(ATTEMPTS_AT_ONCE).collect().await;
    written.into_iter().try_for_each(|written| written.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::{
        State, Unknown,
        attempt::Attempt,
        delivery::CancelReason,
        head::tests::{LATER, NOW, erased_event_and_head},
        index::IndexGroup,
        times::{CLOCK_SKEW, LEASE},
    };
    use storage::table::Change;

    fn change_of(head: &Head, event: &EventItem) -> Change {
        match erasing(head, event, NOW).expect("it can be written") {
            Write::Change(change) => change,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_open_delivery_is_cancelled_and_one_under_way_is_marked() {
        let (event, head) = erased_event_and_head();
        let after = |head: &Head| change_of(head, &event).applied(head);
        let cancelled = after(&head);
        assert_eq!((&cancelled.state, cancelled.index.due_at), (&State::Cancelled(CancelReason::Erased), None));
        for end in [NOW + LEASE, NOW - CLOCK_SKEW] {
            let marked = after(&head.clone().leased(end));
            assert!(!marked.is_final() && marked.is_erased() && marked.delivery.subject.is_none());
            assert_eq!(marked.index.due_at, Some(end), "its attempt is still to be recorded");
        }
    }

    #[test]
    fn a_delivery_without_a_head_gets_a_cancelled_one() {
        let (event, head) = erased_event_and_head();
        let new = Head::new(&event, &head.delivery.id).expect("a target");
        let Write::Put(put) = erasing(&new, &event, NOW).expect("it can be written") else { panic!("{new:?}") };
        let inserted: Head = put.read_back("testing").expect("a head");
        assert_eq!(inserted.state, State::Cancelled(CancelReason::Erased));
        assert_eq!((inserted.index.group, inserted.index.due_at), (Some(IndexGroup::Unrecoverable), None));
    }

    #[test]
    fn a_reader_that_did_not_answer_leaves_an_attempt_to_record() {
        let (event, head) = erased_event_and_head();
        for end in [NOW + LEASE, NOW - LEASE] {
            let mut read =
                head.clone().leased(end).opened(|open| open.claim.unknown = Some(Unknown::Reader(NOW - LEASE)));
            read.index.due_at = Some(LATER);
            let marked = change_of(&read, &event).applied(&read);
            assert!(!marked.is_final() && marked.is_erased());
            assert_eq!(marked.index, Index { due_at: Some(end), ..read.index }, "the dispatcher looks at its end");
        }
    }

    #[test]
    fn a_final_delivery_keeps_its_outcome_and_is_not_recovered() {
        let (event, head) = erased_event_and_head();
        let disabled = State::Cancelled(CancelReason::WebhookDisabled);
        for state in [State::Delivered, State::Failed, disabled] {
            let head = head.clone().with(state.clone());
            let erased = change_of(&head, &event).applied(&head);
            assert_eq!(erased.state, state);
            let group = erased.index.group.map(|group| group.as_str());
            assert_eq!(group, Some(if state == State::Delivered { "delivered" } else { "unrecoverable" }));
        }
    }

    #[test]
    fn an_expired_delivery_that_was_set_aside_keeps_no_due_time() {
        let (event, mut head) = erased_event_and_head();
        head.index.group = Some(IndexGroup::Unrecoverable);
        assert_eq!(change_of(&head, &event).applied(&head).index.due_at, None);
    }

    #[test]
    fn no_response_stays_in_a_head() {
        let (event, mut head) = erased_event_and_head();
        let attempt: Attempt = serde_json::from_str(
            r#"{"attemptDate":"2026-11-20T09:45:00.000Z","attemptNumber":1,"durationMs":5,"httpStatus":200,"responseBody":"Jane Doe"}"#,
        )
        .expect("an attempt");
        head.attempts = vec![attempt];
        let change = format!("{:?}", change_of(&head, &event));
        assert!(change.contains("attemptDate") && !change.contains("Jane Doe"), "{change}");
    }
}
