//! Deliveries in the table: opening and reading them, and finding overdue ones. Every change is conditional, so that a
//! repeated, late or reordered change is lost.

pub mod index_group;
pub mod item;
pub mod listed_status;
mod reopen;
mod waiting;

use futures::{
    FutureExt,
    future::{BoxFuture, try_join_all},
};
use serde_json::value::RawValue;

use crate::{
    deliveries::{
        attempt::Attempt,
        delivery::{Status, WholeDelivery},
        store::{
            item::{ATTEMPT, AttemptItem, DUE_SHARDS, DueEntry, HEAD, HeadItem, head_key, partition, shard_key},
            listed_status::LISTED,
        },
    },
    events::store::Events,
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, logging};
use storage::table::{Change, Page, PageEnd, Put, Query, Table, TableError, Written, is, is_new};

/// The most bytes of addresses and header names of all attempts in one response.
const MAX_REQUESTS: usize = 96 * 1024;

const OPENING: &str = "opening deliveries";

/// The deliveries in the table.
#[derive(Debug, Clone)]
pub struct Deliveries {
    pub(crate) table: Table,
    pub(crate) events: Events,
}

/// A stored delivery with its event and its whole attempt history.
#[derive(Debug)]
pub(crate) struct StoredDelivery {
    pub(crate) head: HeadItem,
    /// Every attempt, the oldest first.
    attempts: Vec<Attempt>,
    event: Box<RawValue>,
}

impl StoredDelivery {
    /// The delivery with a head that was read later; `None` when an attempt was recorded in between, since then the
    /// history has to be read again.
    pub(crate) fn with_head(self, head: HeadItem) -> Option<Self> {
        let has_all_attempts = head.delivery.attempt_count == self.head.delivery.attempt_count;
        has_all_attempts.then_some(Self { head, ..self })
    }

    /// The delivery as its owner sees it at this moment.
    pub(crate) fn whole(self, now: Time) -> WholeDelivery {
        let Self { head, attempts, event } = self;
        let attempts = shown(attempts, &head.delivery.url);
        WholeDelivery { delivery: head.shown(now), attempts, event }
    }
}

/// The attempts as their owner sees them, the oldest first. Addresses and headers of the oldest attempts are left out
/// where they would make the response too large.
pub(crate) fn shown(attempts: Vec<Attempt>, delivery_url: &str) -> Vec<Attempt> {
    let mut left = MAX_REQUESTS;
    let newest_first = attempts.into_iter().rev().map(|attempt| attempt.shown(delivery_url));
    let mut shown: Vec<_> = newest_first
        .map(|attempt| {
            left = left.saturating_sub(attempt.request_size());
            if left > 0 { attempt } else { attempt.without_request() }
        })
        .collect();
    shown.reverse();
    shown
}

impl Deliveries {
    /// The deliveries in this table.
    pub fn new(table: Table) -> Self {
        Self { events: Events::new(table.clone()), table }
    }

    /// Opens a connection to the table by a read of a key that does not exist, so that the first delivery does not wait
    /// for the handshake. Errors are left to the first delivery.
    pub fn open_connection(&self) -> BoxFuture<'static, ()> {
        let table = self.table.clone();
        async move {
            let key = ("DLV#".to_owned(), HEAD.to_owned());
            let _nothing = table.read_eventual::<HeadItem>(key, "opening a connection to the table").await;
        }
        .boxed()
    }

    /// Writes the heads of new deliveries. Lost for a delivery that exists already, which stays unchanged.
    pub(crate) async fn open(&self, heads: &[HeadItem]) -> Result<Vec<Written<()>>, TableError> {
        let puts = heads.iter().map(Self::opening).collect::<Result<Vec<_>, TableError>>()?;
        try_join_all(puts.into_iter().map(|put| self.table.write_together(put, OPENING))).await
    }

    /// The write that opens a delivery.
    pub(crate) fn opening(head: &HeadItem) -> Result<Put, TableError> {
        Ok(Put::item(head, OPENING)?.only_if(is_new()))
    }

    /// A delivery with its event and its whole attempt history, as its owner sees it; `None` when the entity has no
    /// delivery with this identifier, or its retention is over: the table removes it some days later.
    pub async fn with_attempts(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        now: Time,
    ) -> Result<Option<WholeDelivery>, TableError> {
        Ok(self.find(entity, id, now).await?.map(|found| found.whole(now)))
    }

    /// A stored delivery with its event and its whole attempt history; `None` as in [`Self::with_attempts`].
    pub(crate) async fn find(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        now: Time,
    ) -> Result<Option<StoredDelivery>, TableError> {
        const DOING: &str = "reading a delivery with its attempts";
        let mut head = None;
        let mut attempts = Vec::new();
        for row in self.table.rows(Query::partition(partition(id)), DOING).await? {
            match row.sort() {
                HEAD => head = Some(row.read::<HeadItem>(DOING)?),
                sort if sort.starts_with(ATTEMPT) => attempts.push(row.read::<AttemptItem>(DOING)?.attempt),
                _ => {}
            }
        }
        let Some(head) = head.filter(|head| head.delivery.owner_identifier == *entity.id() && head.is_kept(now)) else {
            return Ok(None);
        };
        attempts.extend_from_slice(&head.attempts);
        attempts.sort_by_key(|attempt| attempt.attempt_number);
        // Event and delivery are kept equally long, but not removed in the same second.
        let Some(event) = self.events.find(&head.event).await? else { return Ok(None) };
        let event =
            RawValue::from_string(event.body).map_err(|_| TableError::Missing("well-formed JSON in an event"))?;
        Ok(Some(StoredDelivery { head, attempts, event }))
    }

    pub(crate) async fn head(&self, id: &DeliveryId) -> Result<Option<HeadItem>, TableError> {
        self.table.read(head_key(id), "looking at the head of a delivery").await
    }

    /// The heads of these deliveries, by an eventually consistent read; `None` for a delivery that is missing or cannot
    /// be read, which does not hold up the others.
    pub(crate) async fn heads(
        &self,
        ids: impl IntoIterator<Item = &DeliveryId>,
    ) -> Result<Vec<Option<HeadItem>>, TableError> {
        let heads =
            ids.into_iter().map(async |id| match self.table.read_eventual(head_key(id), "listing deliveries").await {
                Err(error @ TableError::Item { .. }) => {
                    tracing::error!(
                        error = %logging::chain(&error),
                        "a delivery is left out of a list, since its item cannot be read"
                    );
                    Ok(None)
                }
                head => head,
            });
        try_join_all(heads).await
    }

    /// A page of the overdue deliveries of one shard. The index may lag behind.
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

    /// Whether any delivery, of any entity, has been overdue since this time.
    pub(crate) async fn any_overdue_since(&self, time: Time) -> Result<bool, TableError> {
        let shards = (0..DUE_SHARDS).map(|shard| self.due_before(shard, time, 1, None));
        Ok(try_join_all(shards).await?.iter().any(|page| !page.entries.is_empty()))
    }

    /// Postpones the due time of a delivery before it is announced, and returns its head. Lost when the delivery is no
    /// longer due, or another sweep has moved the time.
    pub(crate) async fn postpone_sweep(&self, entry: &DueEntry, until: Time) -> Result<Written<HeadItem>, TableError> {
        // A delivery that was never attempted is listed as pending from now on.
        let still_pending = (entry.attempt_count == 0).then(|| Status::Pending.as_str());
        let postponed = Change::of((entry.pk.clone(), HEAD.to_owned()))
            .set("dueAt", until)
            .set("sweeps", entry.sweeps.saturating_add(1))
            .set_some(LISTED, still_pending)
            .only_if(is("dueAt", entry.due_at))
            // The index lags: an attempt may have been recorded without a change of the due time.
            .only_if(is("attemptCount", entry.attempt_count));
        self.table.write_together_and_read(postponed, "postponing a due time").await
    }
}
