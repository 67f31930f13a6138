//! Erases the content of an event at its owner's request: the body, the subject, and the responses of endpoints. The
//! receivers, times and outcomes of its deliveries are kept until the retention is over.
//!
//! One transaction erases the event and writes a job for its deliveries, so that the erasure completes even if this
//! process dies. The request erases as many deliveries as it has time for. If it erases all of them, as for most
//! events, it removes the job; otherwise, the sweep continues.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::{
    deliveries::{error::DeliveryError, jobs::Jobs, store::Deliveries},
    events::store::EventItem,
};
use auth::AuthorizedEntity;
use base::{EventId, SharedClock, Time, logging};
use storage::{
    Changed, Once, Record,
    table::{TableError, Transaction},
};

/// Time limit for the transaction that erases the event.
const EVENT_LIMIT: Duration = Duration::from_secs(3);
/// The time after which the request leaves the remaining deliveries to the job.
const DELIVERIES_LIMIT: Duration = Duration::from_secs(3);

/// Erases the content of events.
pub struct Erasing {
    /// The deliveries, with their events.
    pub deliveries: Deliveries,
    /// The jobs that complete erasures.
    pub jobs: Jobs,
    /// The clock for the time of an erasure.
    pub clock: SharedClock,
}

/// An erased event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    id: EventId,
    erased_date: Time,
    message: &'static str,
    /// Whether all of its deliveries are erased as well. If not, a job erases the rest.
    #[serde(skip)]
    pub is_complete: bool,
}

impl Erasing {
    /// Erases an event's content. Repeating the request, with or without an idempotency key, completes an interrupted
    /// erasure.
    ///
    /// # Errors
    /// [`DeliveryError::EventNotFound`] if the entity has no such event, or its retention is over.
    pub async fn erase(
        &self,
        entity: &AuthorizedEntity,
        id: &EventId,
        once: Once<'_>,
    ) -> Result<Changed<Erased>, DeliveryError> {
        let now = self.clock.now();
        once.change(now, self.erase_now(entity, id, once), self.erase_now(entity, id, Once::NO_KEY)).await
    }

    async fn erase_now(
        &self,
        entity: &AuthorizedEntity,
        id: &EventId,
        once: Once<'_>,
    ) -> Result<Erased, DeliveryError> {
        let began = Instant::now();
        let mut event = self.event(entity, id).await?;
        let record = once.record(&(), id, self.clock.now()).await?;
        if event.erased_date.is_none() {
            self.erase_event(entity, &event, record, began + EVENT_LIMIT).await?;
            event = self.event(entity, id).await?;
        } else {
            self.deliveries.table.write_recorded(Transaction::new(), record, ERASING).await?;
        }
        // The date is missing only if another request removed or restored the event in the meantime.
        let erased_date = event.erased_date.ok_or(TableError::code(ERASING, "TransactionConflict"))?;
        let is_complete = self.erase_deliveries(&event).await.unwrap_or_else(|error| {
            tracing::warn!(
                error = %logging::chain(&error),
                eventId = %id,
                "not all of an event's deliveries could be erased; the sweep will erase the rest"
            );
            false
        });
        let message = if is_complete {
            "The event's content is erased; the time, address and outcome of each attempt are kept."
        } else {
            "The event's content is erased; the responses in its remaining deliveries are being erased."
        };
        Ok(Erased { id: id.clone(), erased_date, message, is_complete })
    }

    async fn event(&self, entity: &AuthorizedEntity, id: &EventId) -> Result<EventItem, DeliveryError> {
        let now = self.clock.now();
        let event = self.deliveries.events.item(id).await?;
        let event = event.filter(|event| event.is_kept(now) && event.owner_identifier == *entity.id());
        event.ok_or(DeliveryError::EventNotFound)
    }

    async fn erase_event(
        &self,
        entity: &AuthorizedEntity,
        event: &EventItem,
        record: Option<Record>,
        until: Instant,
    ) -> Result<(), DeliveryError> {
        let now = self.clock.now();
        let job = self.jobs.erasure(entity, event.id(), now)?;
        let writes = Transaction::new().with_all(self.deliveries.events.erasing(event, now)).with_all(job);
        // The write is lost if another request has erased the event in the meantime.
        let written = self.deliveries.table.until(until).write_recorded(writes, record, ERASING).await?;
        tracing::info!(eventId = %event.id(), entity = %entity.id(), done = written.is_done(), "erased an event");
        Ok(())
    }

    /// Erases the content in an event's deliveries, unless that is already done. Returns whether no content is left.
    async fn erase_deliveries(&self, event: &EventItem) -> Result<bool, TableError> {
        if !self.jobs.is_erasing(event.id()).await? {
            return Ok(true);
        }
        let until = Instant::now() + DELIVERIES_LIMIT;
        let mut next = Some(0);
        while let Some(from) = next {
            if Instant::now() >= until {
                return Ok(false);
            }
            next = self.deliveries.erase_page(event, from, self.clock.now()).await?;
        }
        self.jobs.end_erasure(event.id()).await?;
        Ok(true)
    }
}

const ERASING: &str = "erasing an event's content";
