//! The outbox: events of the platform's own that are still to be published.
//!
//! Such an event tells of a change in the table, and is written in the transaction that makes the change; so there is
//! never one without the other, whatever crashes. The sweep publishes what stands here and then removes it: a crash in
//! between publishes it again, under the same identifier, which makes nothing new.

use std::time::Duration;

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Event, EventType, catalogue, publish::Publisher};
use crate::{
    auth::entity::{AuthorizedEntity, EntityId},
    clock::Time,
    ids::{EventId, WebhookId},
    logging,
    random::Random,
    table::{Item, Table, TableError, text, write_item},
};

/// The outbox's key in the index of what is due.
const SHARD: &str = "OUTBOX";
/// How many are read at once.
const PAGE: i32 = 100;
/// How many are published at once.
const AT_ONCE: usize = 8;
/// After this long no new page is begun: the next sweep goes on, and the deliveries have their turn in this one.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// An event that is to be published.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// Its identifier, given once, so that publishing it twice makes nothing new.
    pub event: EventId,
    /// The key of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whom it is about.
    pub owner_identifier: EntityId,
    /// When it happened.
    pub timestamp: Time,
    /// What happened: a JSON object.
    pub data: String,
    /// The webhook that it is about, if any: everybody but this one is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<WebhookId>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnouncementItem {
    pk: String,
    sk: String,
    due_shard: String,
    due_at: Time,
    #[serde(flatten)]
    announcement: Announcement,
}

/// Why an event of the outbox could not be published.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The table failed.
    #[error("the table failed the outbox")]
    Table(#[from] TableError),
    /// It was written by a newer program, or is damaged.
    #[error("the event {0} of the outbox is of an unknown type, too large, or not JSON")]
    Unreadable(EventId),
}

impl Announcement {
    /// Something that happened now.
    pub fn new(
        kind: &'static EventType,
        entity: EntityId,
        data: &impl Serialize,
        now: Time,
        random: &dyn Random,
    ) -> Self {
        let data = serde_json::to_string(data).expect("what the platform says of itself has texts for names");
        Self {
            event: EventId::new(now, random),
            kind: kind.value.to_owned(),
            owner_identifier: entity,
            timestamp: now,
            data,
            about: None,
        }
    }

    /// The same, about a webhook.
    pub fn about(self, webhook: &WebhookId) -> Self {
        Self { about: Some(webhook.clone()), ..self }
    }

    fn event(&self) -> Option<Event> {
        let data: &RawValue = serde_json::from_str(&self.data).ok()?;
        let kind = catalogue::find(&self.kind)?;
        let event = Event::new(self.event.clone(), kind, self.timestamp, self.owner_identifier.clone(), data).ok()?;
        Some(Event { about: self.about.clone(), ..event })
    }
}

/// The events that are still to be published.
#[derive(Debug, Clone)]
pub struct Outbox(Table);

impl Outbox {
    /// The outbox in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// The write that puts an event into the outbox, for the transaction of what it tells of.
    pub fn put(&self, announcement: &Announcement) -> Result<TransactWriteItem, TableError> {
        const DOING: &str = "putting an event into the outbox";
        let (pk, sk) = key(&announcement.event);
        let (due_shard, due_at) = (SHARD.to_owned(), announcement.timestamp);
        let item = AnnouncementItem { pk, sk, due_shard, due_at, announcement: announcement.clone() };
        let put = Put::builder().table_name(&self.0.name).set_item(Some(write_item(&item, DOING)?)).build();
        Ok(TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build())
    }

    /// Publishes what stands in the outbox; gives the number. One that fails leaves the others alone, and is tried again by
    /// the next sweep; the last of such errors is told.
    pub async fn empty(&self, publisher: &Publisher) -> Result<usize, OutboxError> {
        let (now, mut published, mut start, mut failed) = (publisher.clock.now(), 0, None, None);
        loop {
            let (page, next) = self.due_before(now, start).await?;
            let outcomes = stream::iter(page).map(|event| self.publish(event, publisher)).buffer_unordered(AT_ONCE);
            for outcome in outcomes.collect::<Vec<_>>().await {
                match outcome {
                    Ok(()) => published += 1,
                    Err(error) => {
                        tracing::error!(error = %logging::chain(&error), "an event stays in the outbox");
                        failed = Some(error);
                    }
                }
            }
            start = next;
            if start.is_none() || publisher.clock.now().since(now) > TIME_LIMIT {
                return failed.map_or(Ok(published), Err);
            }
        }
    }

    async fn publish(&self, event: EventId, publisher: &Publisher) -> Result<(), OutboxError> {
        const DOING: &str = "reading an event of the outbox";
        let item: Option<AnnouncementItem> = self.0.get(key(&event), true, DOING).await?;
        // The index may still show what another sweep has just published.
        let Some(AnnouncementItem { announcement, .. }) = item else { return Ok(()) };
        let whole = announcement.event().ok_or(OutboxError::Unreadable(event))?;
        let entity = AuthorizedEntity::owning_announcement(announcement.owner_identifier);
        publisher.tell(&entity, &whole).await?;
        Ok(self.remove(&whole.id).await?)
    }

    async fn due_before(&self, now: Time, start: Option<Item>) -> Result<(Vec<EventId>, Option<Item>), TableError> {
        #[derive(Deserialize)]
        struct Entry {
            pk: String,
        }
        let (entries, next) = self.0.due_before::<Entry>(SHARD, now, PAGE, start, "looking into the outbox").await?;
        let events = entries.iter().filter_map(|entry| EventId::parse(entry.pk.strip_prefix("OUTBOX#")?));
        Ok((events.collect(), next))
    }

    async fn remove(&self, event: &EventId) -> Result<(), TableError> {
        let (pk, sk) = key(event);
        let request = self.0.client.delete_item().table_name(&self.0.name).key("pk", text(pk)).key("sk", text(sk));
        request.send().await.map_err(TableError::sdk("emptying the outbox"))?;
        Ok(())
    }
}

fn key(event: &EventId) -> (String, String) {
    (format!("OUTBOX#{event}"), "EVENT".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CountingRandom;
    use serde_json::json;

    const BROKEN: &EventType = catalogue::own("payment.connection.broken");

    fn announcement() -> Announcement {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let now = Time::from_millis(1_795_167_900_123);
        Announcement::new(BROKEN, entity, &json!({ "provider": "stripe" }), now, &CountingRandom::default())
    }

    #[test]
    fn what_is_published_from_the_outbox_is_the_same_every_time() {
        let announcement = announcement();
        let (first, again) = (announcement.event().expect("an event"), announcement.event().expect("an event"));
        assert_eq!((&first.id, &first.body), (&again.id, &again.body));
        assert!(
            first.body.contains(r#""type":"payment.connection.broken""#)
                && first.body.contains(r#"{"provider":"stripe"}"#)
        );
    }

    #[test]
    fn an_event_that_cannot_be_read_is_none() {
        assert!(Announcement { kind: "nothing.happened".into(), ..announcement() }.event().is_none());
        assert!(Announcement { data: "{".into(), ..announcement() }.event().is_none());
    }
}
