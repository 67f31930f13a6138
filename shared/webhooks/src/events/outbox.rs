//! The outbox: events of the service's own that wait to be published.
//!
//! Such an event announces a change in the table, and is written in the transaction of the change: a crash leaves both
//! or neither. The sweep publishes each event and then removes it. After a crash in between it publishes the event
//! again, under the same identifier, which makes nothing new.
//!
//! | item | pk / sk | in the index `byDue` |
//! |---|---|---|
//! | event | `OUTBOX#{event}` / `EVENT` | `OUTBOX#{shard}` / place of the entity, then the event |
//!
//! An entity's events stand side by side in one of a few shards, and are published a few at a time, in `outbox_turns.rs`.

use std::time::Duration;

use aws_lc_rs::digest;
use futures::{FutureExt, StreamExt, future::join_all, stream::FuturesUnordered};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::events::{
    catalogue::{self, EventType},
    event::Event,
    outbox_turns::{KeyRange, Turns, sort_key},
    publish::Publisher,
};
use auth::{AuthorizedEntity, EntityId};
use base::{EventId, Random, Time, WebhookId, logging, metric::Longest, random};
use storage::table::{Delete, Put, Query, Table, TableError};

/// How many shards the outbox has in the index `byDue`. They are emptied side by side.
const SHARDS: u64 = 4;
/// How many events are read and published in a turn, until another entity has its turn.
const SHARE: i32 = 4;
/// How many turns of a shard are under way at once: an entity with 200 webhooks takes long, and must not hold up the
/// next.
const TURNS_AT_ONCE: usize = 8;
/// After this long no new turn begins, and the next sweep goes on. Half of a sweep's 60 s is left for turns under way,
/// and for announcing the deliveries that jobs made due.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// An event in the outbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxEvent {
    /// Given once, so that publishing it twice makes nothing new.
    pub event: EventId,
    /// The key of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The managing entity that it is published to.
    pub owner_identifier: EntityId,
    /// The time of the change.
    pub timestamp: Time,
    /// A JSON object.
    pub data: String,
    /// The webhooks that it is about, to which it is not delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<WebhookId>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutboxItem {
    pk: String,
    sk: String,
    due_shard: String,
    due_at: String,
    #[serde(flatten)]
    outbox_event: OutboxEvent,
}

/// Why an event of the outbox could not be published.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The table failed.
    #[error("the table failed the outbox")]
    Table(#[from] TableError),
    /// A newer program wrote it, or it is damaged.
    #[error("the event {0} of the outbox is of an unknown type, too large, or not JSON")]
    Unreadable(EventId),
}

impl OutboxEvent {
    /// An event of this moment.
    pub fn new(
        kind: &'static EventType,
        entity: EntityId,
        data: &impl Serialize,
        now: Time,
        random: &dyn Random,
    ) -> Self {
        let data = serde_json::to_string(data).expect("the data of the service's own events have texts for names");
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

/// The events that wait to be published.
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
        let (due_shard, due_at) = stand(&outbox_event.owner_identifier, &outbox_event.event);
        let item = OutboxItem { pk, sk, due_shard, due_at, outbox_event: outbox_event.clone() };
        Put::item(&item, "putting an event into the outbox")
    }

    /// Publishes every event in the outbox, and returns their number. An event that fails leaves the others alone, and
    /// is tried again by the next sweep; one of such errors is returned. Notes how long the events have waited.
    pub async fn empty(&self, publisher: &Publisher, waited: &Longest) -> Result<usize, OutboxError> {
        let until = publisher.clock.now() + TIME_LIMIT;
        let shards = (0..SHARDS).map(shard_key);
        // Boxed, here and below: a future of futures of streams is more than the compiler follows.
        let emptied =
            shards.map(|shard| async move { self.empty_shard(&shard, publisher, (until, waited)).await }.boxed());
        join_all(emptied).await.into_iter().sum()
    }

    async fn empty_shard(
        &self,
        shard: &str,
        publisher: &Publisher,
        (until, waited): (Time, &Longest),
    ) -> Result<usize, OutboxError> {
        let mut turns = Turns::from(u64::from_be_bytes(random::bytes(&*publisher.random)));
        let (mut under_way, mut published, mut failed) = (FuturesUnordered::new(), 0, None);
        loop {
            while under_way.len() < TURNS_AT_ONCE && publisher.clock.now() < until {
                let Some(stretch) = turns.next() else { break };
                match self.page(shard, &stretch).await {
                    Ok((events, last)) => {
                        let rest = last.map(|last| turns.read_up_to(&last, stretch));
                        let turn =
                            join_all(events.into_iter().map(|event| self.publish(event, publisher, waited).boxed()));
                        under_way.push(turn.map(|outcomes| (outcomes, rest)).boxed());
                    }
                    Err(error) => failed = Some(error.into()),
                }
            }
            let Some((outcomes, rest)) = under_way.next().await else {
                return failed.map_or(Ok(published), Err);
            };
            for outcome in outcomes {
                match outcome {
                    Ok(()) => published += 1,
                    Err(error) => {
                        tracing::error!(error = %logging::chain(&error), "an event stays in the outbox");
                        failed = Some(error);
                    }
                }
            }
            rest.into_iter().for_each(|rest| turns.put_back(rest));
        }
    }

    async fn publish(&self, event: EventId, publisher: &Publisher, waited: &Longest) -> Result<(), OutboxError> {
        const DOING: &str = "reading an event of the outbox";
        let item: Option<OutboxItem> = self.0.get(key(&event), true, DOING).await?;
        // The index may still show an event that another sweep has just published.
        let Some(OutboxItem { outbox_event, .. }) = item else { return Ok(()) };
        waited.note(publisher.clock.now().since(outbox_event.timestamp));
        let whole = outbox_event.event().ok_or(OutboxError::Unreadable(event))?;
        let entity = AuthorizedEntity::owning_outbox_event(outbox_event.owner_identifier);
        publisher.publish_event(&entity, &whole).await?;
        Ok(self.remove(&whole.id).await?)
    }

    /// The next events of a stretch, and the key of the last entry if more may follow.
    async fn page(&self, shard: &str, stretch: &KeyRange) -> Result<(Vec<EventId>, Option<String>), TableError> {
        #[derive(Deserialize)]
        struct Entry {
            pk: String,
        }
        let query = Query::due(shard, (stretch.from.as_str(), stretch.to.as_str())).limit(SHARE);
        let page = self.0.page::<Entry>(query, "looking into the outbox").await?;
        let mut events = Vec::new();
        for Entry { pk } in page.entries {
            match pk.strip_prefix("OUTBOX#").and_then(EventId::parse) {
                Some(event) => events.push(event),
                None => tracing::error!(pk, "an entry of the outbox names no event"),
            }
        }
        Ok((events, page.next.and_then(|place| place.text("dueAt").map(str::to_owned))))
    }

    async fn remove(&self, event: &EventId) -> Result<(), TableError> {
        self.0.write(Delete::of(key(event)), "emptying the outbox").await.map(drop)
    }
}

/// The place of an event in the index: in its entity's shard, among the other events of its entity.
fn stand(entity: &EntityId, event: &EventId) -> (String, String) {
    let hash = digest::digest(&digest::SHA256, entity.as_str().as_bytes());
    let place = hash.as_ref().iter().take(8).fold(0, |place, byte| place << 8 | u64::from(*byte));
    (shard_key(place % SHARDS), sort_key(place, event.as_str()))
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

    const BROKEN: &EventType = catalogue::own("payment.connection.broken");

    fn outbox_event() -> OutboxEvent {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let now = Time::from_millis(1_795_167_900_123);
        OutboxEvent::new(BROKEN, entity, &json!({ "provider": "stripe" }), now, &CountingRandom::default())
    }

    #[test]
    fn an_event_of_the_outbox_is_the_same_every_time() {
        let outbox_event = outbox_event();
        let (first, again) = (outbox_event.event().expect("an event"), outbox_event.event().expect("an event"));
        assert_eq!((&first.id, &first.body), (&again.id, &again.body));
        assert!(
            first.body.contains(r#""type":"payment.connection.broken""#)
                && first.body.contains(r#"{"provider":"stripe"}"#)
        );
    }

    #[test]
    fn an_entitys_events_stand_side_by_side_in_one_shard_and_entities_in_all_of_them() {
        let random = CountingRandom::default();
        let entity = |number: u32| EntityId::parse(&format!("hotel-{number}")).expect("an entity");
        let stand_of = |number| stand(&entity(number), &EventId::new(Time::from_millis(0), &random));
        let place = |key: &str| key.split_once('#').map(|(place, _)| place.to_owned());
        let mut shards = std::collections::BTreeSet::new();
        for number in 0..100 {
            let [(shard, one), (same, other)] = [stand_of(number), stand_of(number)];
            assert_eq!((&shard, place(&one)), (&same, place(&other)));
            assert!(one != other && place(&one) != place(&stand_of(number + 1).1));
            shards.insert(shard);
        }
        assert_eq!(shards.len() as u64, SHARDS);
    }

    #[test]
    fn an_event_of_the_outbox_that_cannot_be_read_is_none() {
        assert!(OutboxEvent { kind: "nothing.happened".into(), ..outbox_event() }.event().is_none());
        assert!(OutboxEvent { data: "{".into(), ..outbox_event() }.event().is_none());
    }
}
