//! Deliveries in the table. `state::transition` decides how an event changes a delivery. The store writes the
//! difference between the head that was read and its new form, on condition that the stored head has not changed, so
//! that a repeated, late or reordered change has no effect. A few changes are made without a read, to save its cost: a
//! claim, an extension, and changes to deliveries known only by their identifiers.
//!
//! | module | change |
//! |---|---|
//! | `attributes` | the items and their attributes, which no other file names |
//! | `open` | a due time for each delivery of a new event |
//! | `claim` | the claim of an attempt, and its end: record, release, wait |
//! | `held` | waiting for the preceding delivery, and waking the next |
//! | `reopen` | attempts that a person or a job requests |
//! | `replay` | a further delivery of a stored event |
//! | `cancel`, `erase` | the end of a delivery, or of its content |
//! | `rate` | the slots of a webhook with a rate limit |
//! | `sweep_positions` | how far the sweep has opened the deliveries of new events |

pub(crate) mod attributes;
mod cancel;
pub(crate) mod claim;
mod erase;
pub(crate) mod held;
mod open;
pub(crate) mod rate;
mod reopen;
mod replay;
pub(crate) mod sweep_positions;

use futures::{
    FutureExt,
    future::{BoxFuture, try_join_all},
};
use serde_json::value::RawValue;

use crate::{
    deliveries::{
        state::{attempt::Attempt, head::Head, index::Index},
        store::attributes::{ATTEMPT, AttemptItem, DueEntry, HeadChange, head_key, insertion, partition, shard_key},
        view::{AttemptView, WholeDelivery},
    },
    events::store::{EventItem, Events},
    subscriptions::Webhooks,
};
use auth::{AuthorizedEntity, EntityId};
use base::{DeliveryId, Time, logging};
use problem::Violation;
use storage::table::{Page, PageEnd, Query, Table, TableError, Write, Written};

/// The maximum total size of the addresses and header names of all attempts in one response, in bytes.
const MAX_REQUESTS: usize = 96 * 1024;

/// The deliveries in the table.
#[derive(Debug, Clone)]
pub struct Deliveries {
    pub(crate) table: Table,
    pub(crate) events: Events,
    pub(crate) webhooks: Webhooks,
}

/// A stored delivery with its event and its whole attempt history.
#[derive(Debug)]
pub(crate) struct StoredDelivery {
    pub(crate) head: Head,
    /// Every attempt, oldest first.
    attempts: Vec<Attempt>,
    event: Box<RawValue>,
    event_warnings: Vec<Violation>,
}

impl StoredDelivery {
    /// The delivery with a head that was read later; `None` if an attempt was recorded in between, so that the history
    /// must be read again.
    pub(crate) fn with_head(self, head: Head) -> Option<Self> {
        let has_all_attempts = head.delivery.attempt_count == self.head.delivery.attempt_count;
        let head = head.erased_with_its_event(self.head.delivery.erased_date);
        has_all_attempts.then_some(Self { head, ..self })
    }

    /// The delivery as its owner sees it at this moment.
    pub(crate) fn whole(self, now: Time) -> WholeDelivery {
        let Self { head, attempts, event, event_warnings, .. } = self;
        let attempts = shown(attempts, &head.delivery.url);
        WholeDelivery::of(head.shown(now), attempts, event, event_warnings)
    }
}

/// The result of reading or changing a delivery. Returns `None` if its item cannot be read, and logs this and its
/// consequence. This is not an error: the item stays unreadable, and an error would block other deliveries.
pub(crate) fn skip_unreadable<T>(
    result: Result<T, TableError>,
    id: &DeliveryId,
    consequence: &str,
) -> Result<Option<T>, TableError> {
    match result {
        Err(error @ TableError::Item { .. }) => {
            tracing::error!(error = %logging::chain(&error), deliveryId = %id, "{consequence}");
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// The attempts as their owner sees them, oldest first. Addresses and headers of the oldest attempts are left out where
/// they would make the response too large.
pub(crate) fn shown(attempts: Vec<Attempt>, delivery_url: &str) -> Vec<AttemptView> {
    let mut left = MAX_REQUESTS;
    let newest_first = attempts.into_iter().rev().map(|attempt| attempt.shown(delivery_url));
    let mut shown: Vec<_> = newest_first
        .map(|attempt| {
            left = left.saturating_sub(attempt.request_size());
            AttemptView::of(if left > 0 { attempt } else { attempt.without_request() })
        })
        .collect();
    shown.reverse();
    shown
}

/// The write of a delivery's new form, with these positions in the indexes (`None` leaves them unchanged): the whole
/// head if the table has none, and otherwise the difference, under the conditions that `guard` adds.
fn head_write(
    read: &Head,
    new: &Head,
    index: Option<Index>,
    guard: impl FnOnce(HeadChange) -> HeadChange,
    doing: &'static str,
) -> Result<Write, TableError> {
    if !read.is_stored {
        return insertion(new, index, doing).map(Write::from);
    }
    HeadChange::between(read, new, index, doing).map(|change| guard(change).into())
}

impl Deliveries {
    /// The deliveries in this table.
    pub fn new(table: Table) -> Self {
        Self { events: Events::new(table.clone()), webhooks: Webhooks::new(table.clone()), table }
    }

    /// Opens a connection to the table by reading a key that does not exist, so that the first delivery does not wait
    /// for the handshake. Any error is left for the first delivery to report.
    pub fn open_connection(&self) -> BoxFuture<'static, ()> {
        let table = self.table.clone();
        async move {
            let key = ("EVT#".to_owned(), "-".to_owned());
            let _nothing = table.read_eventual::<Head>(key, "opening a connection to the table").await;
        }
        .boxed()
    }

    /// A delivery with its event and its whole attempt history, as its owner sees it; `None` if the entity has no
    /// delivery with this identifier, or its retention is over. The table removes it some days later.
    pub async fn with_attempts(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        now: Time,
    ) -> Result<Option<WholeDelivery>, TableError> {
        Ok(self.find(entity, id, now).await?.map(|found| found.whole(now)))
    }

    /// The managing entity that owns a delivery; `None` if the table has no event with such a delivery. For operators,
    /// who only know a delivery's identifier.
    pub async fn owner(&self, id: &DeliveryId) -> Result<Option<EntityId>, TableError> {
        Ok(self.events.item(&id.event()).await?.map(|event| event.owner_identifier))
    }

    /// A stored delivery with its event and its whole attempt history; `None` as in [`Self::with_attempts`].
    pub(crate) async fn find(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        now: Time,
    ) -> Result<Option<StoredDelivery>, TableError> {
        const DOING: &str = "reading a delivery with its attempts";
        let event_id = id.event();
        let head = self.table.read::<Head>(head_key(id), DOING);
        let (stored, event) = tokio::try_join!(head, self.events.find(&event_id))?;
        // An event and its delivery are stored for the same length of time, but not removed in the same second.
        let Some(event) = event else { return Ok(None) };
        let Some(head) = stored.or_else(|| Head::new(&event.item, id)) else { return Ok(None) };
        if head.delivery.owner_identifier != *entity.id() || !head.is_kept(now) {
            return Ok(None);
        }
        let head = head.erased_with_its_event(event.item.erased_date);
        let mut attempts = head.attempts.clone();
        if head.has_large_attempts() {
            for row in self.table.rows(Query::partition(partition(id)), DOING).await? {
                if row.sort().starts_with(ATTEMPT) {
                    attempts.push(row.read::<AttemptItem>(DOING)?.attempt);
                }
            }
            // Leaves out attempts that were recorded after the head was read.
            attempts.retain(|attempt| attempt.attempt_number <= head.delivery.attempt_count);
        }
        if head.is_erased() {
            // The job that erases them may be under way.
            attempts = attempts.into_iter().map(Attempt::without_answer).collect();
        }
        attempts.sort_by_key(|attempt| attempt.attempt_number);
        let event_warnings = event.item.warnings;
        let event =
            RawValue::from_string(event.body).map_err(|_| TableError::Missing("well-formed JSON in an event"))?;
        Ok(Some(StoredDelivery { head, attempts, event, event_warnings }))
    }

    /// The stored head of a delivery, if it has one.
    pub(crate) async fn head(&self, id: &DeliveryId) -> Result<Option<Head>, TableError> {
        self.table.read(head_key(id), "reading a delivery").await
    }

    /// The states of an event's deliveries, in the order of their numbers, from an eventually consistent read. A
    /// delivery that cannot be read is left out.
    pub(crate) async fn of_event(&self, event: &EventItem) -> Result<Vec<Head>, TableError> {
        let ids: Vec<_> = event.deliveries().map(|(id, _)| id).collect();
        let heads = self.heads(ids.iter().map(|id| (id, Some(event))).collect()).await?;
        Ok(heads.into_iter().flatten().collect())
    }

    /// The heads of these deliveries, from an eventually consistent read: stored, or derived from the event if one is
    /// given. `None` for a delivery with neither, and for a head that cannot be read, which does not hold up the
    /// others.
    pub(crate) async fn heads(
        &self,
        deliveries: Vec<(&DeliveryId, Option<&EventItem>)>,
    ) -> Result<Vec<Option<Head>>, TableError> {
        let heads = deliveries.into_iter().map(async |(id, event)| {
            let stored = self.table.read_eventual(head_key(id), "listing deliveries").await;
            let stored = skip_unreadable(stored, id, "the delivery is skipped because its item cannot be read");
            stored.map(|stored| stored.and_then(|stored| stored.or_else(|| Head::new(event?, id))))
        });
        try_join_all(heads).await
    }

    /// A page of the overdue deliveries of one shard. The index may lag.
    pub(crate) async fn due_before(
        &self,
        shard: u8,
        now: Time,
        limit: i32,
        start: Option<PageEnd>,
    ) -> Result<Page<DueEntry>, TableError> {
        let query = Query::due_by(shard_key(shard), now).limit(limit).after(start);
        self.table.page(query, "looking for overdue deliveries").await
    }

    /// Writes a delivery's new form, like [`head_write`], and returns it. Returns `Lost` if it has changed since it was
    /// read.
    async fn write_head_and_read(
        &self,
        read: &Head,
        new: &Head,
        index: Option<Index>,
        guard: impl FnOnce(HeadChange) -> HeadChange,
        doing: &'static str,
    ) -> Result<Written<Head>, TableError> {
        if read.is_stored {
            let change = guard(HeadChange::between(read, new, index, doing)?);
            return self.table.write_together_and_read(change.into(), doing).await;
        }
        let put = insertion(new, index, doing)?;
        let stored = put.read_back(doing)?;
        let written = self.table.write_together(put, doing).await?;
        Ok(if written.is_done() { Written::Done(stored) } else { Written::Lost(None) })
    }

    /// Postpones a delivery's due time before it is announced and returns its head. Returns `Lost` if the delivery is
    /// no longer due, or another sweep has moved the time.
    pub(crate) async fn postpone_sweep(&self, entry: &DueEntry, until: Time) -> Result<Written<Head>, TableError> {
        let sweeps = entry.sweeps.saturating_add(1);
        let postponed = HeadChange::postponed(&entry.delivery, until, sweeps)
            .if_due_at(entry.due_at)
            // The index lags: an attempt may have been recorded without changing the due time.
            .if_attempts(entry.attempt_count);
        let written: Written<Head> =
            self.table.write_together_and_read(postponed.into(), "postponing a due time").await?;
        let is_own = |head: &Head| head.index.due_at == Some(until) && head.index.sweeps == sweeps;
        Ok(written.or_own(is_own))
    }
}
