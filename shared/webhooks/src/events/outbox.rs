//! The outbox: the service's internal events waiting to be published.
//!
//! Such an event announces a change in the table, and is written in the transaction of the change, so that a crash
//! leaves both or neither. The sweep publishes each event and then removes it. After a crash in between, it publishes
//! the event again with the same identifier, which creates nothing new.
//!
//! | item | pk / sk | in the index `byDue` |
//! |---|---|---|
//! | event | `OUTBOX#{event}` / `EVENT` | `OUTBOX#{shard}` / time of the change |
//! The oldest events of a shard are published first, without turns between entities. An entity puts at most 31
//! operational events of webhooks into the outbox per hour (`health::announcing`), and one event for each payment
//! connection that is established, broken or removed. A publication to 200 webhooks takes about a tenth of a second,
//! and a shard has 32 under way at once. So the events that an entity adds in an hour delay others by less than a
//! second, which is little compared with waiting up to a minute for the sweep.

use std::time::Duration;

use futures::{
    FutureExt, StreamExt, TryStreamExt,
    future::{join_all, ready},
    stream::{self, BoxStream},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::events::{
    catalogue::{self, EventType},
    event::Event,
    publish::Publisher,
};
use auth::{AuthorizedEntity, EntityId};
use base::{EventId, Random, Time, WebhookId, logging, metric::Longest};
use storage::table::{Delete, Page, Put, Query, Table, TableError};

/// The number of shards of the outbox in the index `byDue`. DynamoDB accepts a thousand writes a second for one key of
/// an index, and a failure of many endpoints must not slow down the transactions that write into the outbox.
const SHARDS: u64 = 4;
/// How many events of a shard are read per call.
const PAGE: i32 = 32;
/// How many events of a shard are published concurrently.
const AT_ONCE: usize = 32;
/// The time after which no new publication begins; the next sweep continues. Half of a sweep's 60 s is left for the
/// publications under way, and for announcing the deliveries that jobs made due.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// An event in the outbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxEvent {
    /// The identifier, fixed so that publishing the event twice creates nothing new.
    pub event: EventId,
    /// The key of the event's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The managing entity that owns it.
    pub owner_identifier: EntityId,
    /// The time of the change.
    pub timestamp: Time,
    /// The data, a JSON object.
    pub data: String,
    /// The webhooks that it is about; it is not delivered to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<WebhookId>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutboxItem {
    pk: String,
    sk: String,
    due_shard: String,
    due_at: Time,
    #[serde(flatten)]
    outbox_event: OutboxEvent,
}

/// An index entry.
#[derive(Debug, Deserialize)]
struct Entry {
    pk: String,
}

impl Entry {
    fn event(self) -> Option<EventId> {
        let event = self.pk.strip_prefix("OUTBOX#").and_then(EventId::parse);
        if event.is_none() {
            tracing::error!(pk = self.pk, "an outbox entry names no event");
        }
        event
    }
}

/// Why an event of the outbox could not be published.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The table failed.
    #[error("a DynamoDB request for the outbox failed")]
    Table(#[from] TableError),
    /// A newer program wrote the event, or it is damaged.
    #[error("the event {0} stays in the outbox: its type is unknown, or it is too large or not JSON")]
    Unreadable(EventId),
}

impl OutboxEvent {
    /// A new event, about a change at this moment.
    pub fn new(
        kind: &'static EventType,
        entity: EntityId,
        data: &impl Serialize,
        now: Time,
        random: &dyn Random,
    ) -> Self {
        let data = serde_json::to_string(data).expect("the data of internal events have texts for names");
        Self {
            event: EventId::new(now, random),
            kind: kind.value.to_owned(),
            owner_identifier: entity,
            timestamp: now,
            data,
            about: Vec::new(),
        }
    }

    /// Names the webhooks that the event is about.
    pub fn about<'a>(self, webhooks: impl IntoIterator<Item = &'a WebhookId>) -> Self {
        Self { about: webhooks.into_iter().cloned().collect(), ..self }
    }

    /// The event; `None` if this program cannot publish it.
    pub fn event(&self) -> Option<Event> {
        let data: &RawValue = serde_json::from_str(&self.data).ok()?;
        let kind = catalogue::find(&self.kind)?;
        let event = Event::new(self.event.clone(), kind, self.timestamp, self.owner_identifier.clone(), data).ok()?;
        Some(Event { about: self.about.clone(), ..event })
    }
}

/// The events waiting to be published.
#[derive(Debug, Clone)]
pub struct Outbox(Table);

impl Outbox {
    /// The outbox in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// The write that puts an event into the outbox, for the transaction of the change that it announces.
    pub fn put(&self, outbox_event: &OutboxEvent) -> Result<Put, TableError> {
        let (pk, sk) = key(&outbox_event.event);
        let due_shard = shard_of(&outbox_event.event);
        let due_at = outbox_event.timestamp;
        let item = OutboxItem { pk, sk, due_shard, due_at, outbox_event: outbox_event.clone() };
        Put::item(&item, "putting an event into the outbox")
    }

    /// Publishes every event in the outbox and returns their number. A failing event does not affect the others, and
    /// the next sweep retries it; the first error is returned. Records how long the events have waited.
    pub async fn empty(&self, publisher: &Publisher, waited: &Longest) -> Result<usize, OutboxError> {
        let until = publisher.clock.now() + TIME_LIMIT;
        // Boxed, here and below, since the nested types of futures and streams exceed the compiler's limits.
        let emptied = (0..SHARDS).map(|shard| self.empty_shard(shard, publisher, until, waited).boxed());
        join_all(emptied).await.into_iter().sum()
    }

    async fn empty_shard(
        &self,
        shard: u64,
        publisher: &Publisher,
        until: Time,
        waited: &Longest,
    ) -> Result<usize, OutboxError> {
        let outcomes = self
            .waiting(shard, publisher.clock.now())
            .take_while(|_| ready(publisher.clock.now() < until))
            .map(|event| async move { self.publish(event?, publisher, waited).await })
            .buffer_unordered(AT_ONCE)
            .inspect_err(|error| {
                tracing::error!(
                    error = %logging::chain(error),
                    "an event could not be published and stays in the outbox"
                );
            });
        let outcomes: Vec<_> = outcomes.collect().await;
        let published = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        outcomes.into_iter().find_map(Result::err).map_or(Ok(published), Err)
    }

    async fn publish(&self, event: EventId, publisher: &Publisher, waited: &Longest) -> Result<(), OutboxError> {
        const DOING: &str = "reading an event from the outbox";
        let item: Option<OutboxItem> = self.0.get(key(&event), true, DOING).await?;
        // The index may still show an event that another sweep has just published.
        let Some(OutboxItem { outbox_event, .. }) = item else { return Ok(()) };
        waited.note(publisher.clock.now().since(outbox_event.timestamp));
        let whole = outbox_event.event().ok_or(OutboxError::Unreadable(event))?;
        let entity = AuthorizedEntity::owning_outbox_event(outbox_event.owner_identifier);
        publisher.publish_event(&entity, &whole).await?;
        Ok(self.remove(&whole.id).await?)
    }

    /// A shard's events, oldest first. Pages are read as needed, so that a slow publication at the end of one page does
    /// not delay the next.
    fn waiting(&self, shard: u64, now: Time) -> BoxStream<'_, Result<EventId, TableError>> {
        let pages = stream::try_unfold(Some(None), move |start| async move {
            let Some(start) = start else { return Ok(None) };
            let query = Query::due_by(shard_key(shard), now).limit(PAGE).after(start);
            let Page { entries, next } = self.0.page::<Entry>(query, "reading the outbox").await?;
            Ok(Some((stream::iter(entries.into_iter().filter_map(Entry::event).map(Ok)), next.map(Some))))
        });
        pages.try_flatten().boxed()
    }

    async fn remove(&self, event: &EventId) -> Result<(), TableError> {
        self.0.write(Delete::of(key(event)), "emptying the outbox").await.map(drop)
    }
}

/// An event's shard. The characters before the last two of an identifier are random.
fn shard_of(event: &EventId) -> String {
    let random = event.as_str().bytes().rev().nth(2).map_or(0, u64::from);
    shard_key(random % SHARDS)
}

fn shard_key(shard: u64) -> String {
    format!("OUTBOX#{shard}")
}

fn key(event: &EventId) -> (String, String) {
    (format!("OUTBOX#{event}"), "EVENT".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use serde_json::json;
    use std::collections::BTreeSet;

    const BROKEN: &EventType = catalogue::own("payment.connection.broken");

    fn outbox_event() -> OutboxEvent {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let now = Time::from_millis(1_795_167_900_123);
        OutboxEvent::new(BROKEN, entity, &json!({ "provider": "stripe" }), now, &CountingRandom::default())
    }

    #[test]
    fn an_event_of_the_outbox_is_published_identically_every_time() {
        let outbox_event = outbox_event();
        let first = outbox_event.event().expect("an event");
        let again = outbox_event.event().expect("an event");
        assert_eq!((&first.id, &first.body), (&again.id, &again.body));
        assert!(
            first.body.contains(r#""type":"payment.connection.broken""#)
                && first.body.contains(r#"{"provider":"stripe"}"#)
        );
    }

    #[test]
    fn events_are_spread_over_all_shards() {
        let random = CountingRandom::default();
        let shards: BTreeSet<_> = (0..100).map(|_| shard_of(&EventId::new(Time::from_millis(0), &random))).collect();
        assert_eq!(shards, (0..SHARDS).map(shard_key).collect());
    }

    #[test]
    fn an_event_of_the_outbox_that_cannot_be_read_is_none() {
        assert!(OutboxEvent { kind: "nothing.happened".into(), ..outbox_event() }.event().is_none());
        assert!(OutboxEvent { data: "{".into(), ..outbox_event() }.event().is_none());
    }
}
