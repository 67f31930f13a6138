//! Adds a delivery to an event, for a webhook that the event was not published to. One transaction adds the webhook as
//! a target of the event and inserts its delivery's head, which is due now. So a delivery without a due time belongs to
//! a publication, and the sweep that has passed the event need not check it again.
//!
//! The change to the event is conditional on the targets that were read. So an event has one delivery to a webhook, and
//! every delivery has a separate number, however often pages are repeated, even concurrently.

use crate::{
    deliveries::{
        queries::replayable::Wanted,
        state::{
            head::Head,
            index::{AnnouncedBy, Index},
        },
        store::{Deliveries, attributes::insertion},
    },
    events::{publish, store::EventItem},
    subscriptions::Webhook,
};
use base::{DeliveryId, EventId, Time};
use storage::table::{TableError, Transaction};

/// How many times a change to an event is tried if the event changes concurrently, since other replays add targets.
const TRIES: usize = 5;

const REPLAYING: &str = "adding a delivery to an event";

impl Deliveries {
    /// Adds a delivery of an event to a webhook, unless it has one already, or the event does not match the webhook.
    /// Returns the write units of the event if a delivery was added; the sweep announces it.
    pub(crate) async fn replay(
        &self,
        id: &EventId,
        wanted: Wanted<'_>,
        now: Time,
    ) -> Result<Option<usize>, TableError> {
        for attempt in 0..TRIES {
            // At worst, a stale read lacks a target, and the write is lost.
            let event = self.readable_event(id, attempt > 0).await?;
            let compared = self.compare_to_replay(event, wanted, now).await?;
            let Some(event) = compared.matching else { return Ok(None) };
            let Some(writes) = adding(&event, wanted.webhook, now)? else { return Ok(None) };
            if self.table.write_all(writes, REPLAYING).await?.is_done() {
                return Ok(Some(2 * event.write_units()));
            }
        }
        Err(TableError::code(REPLAYING, "TransactionConflict"))
    }
}

/// The writes that add a delivery to an event; `None` if the event's content is erased.
fn adding(event: &EventItem, webhook: &Webhook, now: Time) -> Result<Option<Transaction>, TableError> {
    let id = DeliveryId::of(event.id(), event.targets.len());
    let (added, change) = event.with_target(publish::target(webhook))?;
    let Some(head) = Head::replayed(&added, &id, now).filter(|head| !head.is_final()) else { return Ok(None) };
    let head = insertion(&head, Some(Index::due_now(AnnouncedBy::Sweep, now)), REPLAYING)?;
    Ok(Some(Transaction::new().with(change).with(head)))
}
