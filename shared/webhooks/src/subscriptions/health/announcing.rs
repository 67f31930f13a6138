//! Announces operational events of webhooks, each in the transaction of its change, up to a limit per hour.
//!
//! | item | pk / sk |
//! |---|---|
//! | operational event announced about a webhook | `ANNOUNCED#{webhook}` / type of the event |
//! | `webhook.failing` announced to an entity | `ANNOUNCED#ENT#{entity}` / type of the event |
//! | how many events of another type an entity had in an hour | `ANNOUNCED#ENT#{entity}` / `{type}#{hour}` |
//! Each event goes to all webhooks of the entity except those that it is about. With limits per entity, the number of
//! deliveries grows with the number of the entity's webhooks; with limits per webhook alone, it would grow with the
//! square of that number. One transaction writes the items, the change and the event in the outbox, on condition that
//! no earlier mark is valid and the count is below its limit. So if two dispatchers find the same change at the same
//! time, it is announced once. A change never depends on its announcement: it is made alone if a limit is reached or
//! the transaction is lost. If the outbox entry's identifier were derived from the webhook, the type and the hour, it
//! could replace a webhook's marks, but not its entity's limit.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::{time::timeout, try_join};

use crate::events::outbox::{Outbox, OutboxEvent};
use auth::EntityId;
use base::{Time, WebhookId, logging};
use storage::table::{Change, Put, Table, TableError, Transaction, Write, Written, absent, at_most, is_new};

/// The minimum time between two events of the same type about one webhook, and between two `webhook.failing` events for
/// one entity.
pub const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The time limit for reading the marks, since an attempt's record waits for them.
const READ_LIMIT: Duration = Duration::from_secs(2);
/// The maximum number of events of any other type per entity and clock hour.
pub(in crate::subscriptions) const MAX_TO_ENTITY: u32 = 10;

const HOUR: i64 = 60 * 60;
const DOING: &str = "announcing an event about a webhook";

/// Announces operational events of webhooks.
#[derive(Debug, Clone)]
pub struct Announcer {
    table: Table,
    outbox: Outbox,
}

/// The mark of an announced event, valid until the next event of its type may be announced.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnouncedItem {
    pk: String,
    sk: String,
    /// In whole seconds. The table removes the item some time later, so readers must compare the times.
    expires_at: i64,
}

/// The item with an entity's count for one hour.
#[derive(Debug, Deserialize)]
struct CountItem {
    count: u32,
}

impl AnnouncedItem {
    fn new((pk, sk): (String, String), now: Time) -> Self {
        // Rounded up: a mark of less than an hour would allow two events within one.
        Self { pk, sk, expires_at: (now + ANNOUNCEMENT_INTERVAL).as_seconds() + 1 }
    }

    fn is_valid(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }

    /// When the event was announced, rounded down to a second.
    fn announced(&self) -> Time {
        Time::from_millis((self.expires_at - 1 - HOUR) * 1000)
    }

    /// The write of the mark, which is lost while an earlier mark is valid.
    fn put(&self, now: Time) -> Result<Put, TableError> {
        Ok(Put::item(self, DOING)?.only_if(is_new().or(at_most("expiresAt", now.as_seconds()))))
    }
}

fn key_of_webhook(webhook: &WebhookId, kind: &str) -> (String, String) {
    (format!("ANNOUNCED#{webhook}"), kind.to_owned())
}

fn key_of_entity(entity: &EntityId, kind: &str) -> (String, String) {
    (format!("ANNOUNCED#ENT#{entity}"), kind.to_owned())
}

fn key_of_count(entity: &EntityId, kind: &str, now: Time) -> (String, String) {
    key_of_entity(entity, &format!("{kind}#{}", now.as_seconds().div_euclid(HOUR)))
}

/// The write that counts an event. It is lost if the entity has reached this hour's limit.
fn count(outbox_event: &OutboxEvent, now: Time) -> Change {
    Change::of(key_of_count(&outbox_event.owner_identifier, &outbox_event.kind, now))
        .set("expiresAt", now.as_seconds() + 2 * HOUR)
        .add("count", 1_u32)
        .only_if(absent("count").or(at_most("count", MAX_TO_ENTITY - 1)))
}

impl Announcer {
    /// Announces events about the webhooks in this table.
    pub fn new(table: Table) -> Self {
        Self { outbox: Outbox::new(table.clone()), table }
    }

    /// The writes that announce an event about a webhook, for the transaction of the change; empty if a limit is
    /// reached. If the transaction is lost, the caller makes the change without them: another dispatcher may have
    /// announced an event in the meantime.
    pub async fn writes(
        &self,
        webhook: &WebhookId,
        outbox_event: &OutboxEvent,
        now: Time,
    ) -> Result<Vec<Write>, TableError> {
        let OutboxEvent { owner_identifier, kind, .. } = outbox_event;
        // The reads only avoid transactions that would be lost, so errors in them are not fatal.
        let mark = self.table.read::<AnnouncedItem>(key_of_webhook(webhook, kind), DOING);
        let counted = self.table.read::<CountItem>(key_of_count(owner_identifier, kind, now), DOING);
        let marks = timeout(READ_LIMIT, async { try_join!(mark, counted) }).await;
        let marks = marks.map_err(|late| logging::chain(&late));
        let marks = marks.and_then(|read| read.map_err(|error| logging::chain(&error)));
        let (mark, counted) = marks.unwrap_or_else(|error| {
            tracing::warn!(
                error,
                webhookId = %webhook,
                "the record of announced events could not be read; the event is announced unless its transaction fails"
            );
            (None, None)
        });
        let is_full = counted.is_some_and(|item| item.count >= MAX_TO_ENTITY);
        if is_full || mark.is_some_and(|mark| mark.is_valid(now)) {
            return Ok(Vec::new());
        }
        let mark = AnnouncedItem::new(key_of_webhook(webhook, kind), now).put(now)?;
        Ok(vec![mark.into(), count(outbox_event, now).into(), self.outbox.put(outbox_event)?.into()])
    }

    /// Makes a change and announces it atomically, or makes the change alone if a limit is reached. Returns `Lost` if a
    /// condition of the change fails.
    pub async fn change(
        &self,
        change: Transaction,
        webhook: &WebhookId,
        outbox_event: &OutboxEvent,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let writes = self.writes(webhook, outbox_event, now).await?;
        if !writes.is_empty() && self.table.write_all(change.clone().with_all(writes), DOING).await?.is_done() {
            return Ok(Written::Done(()));
        }
        self.table.write_all(change, DOING).await
    }

    /// When an event of this type was last announced to the entity, if that was within the last hour.
    pub(in crate::subscriptions) async fn last_to_entity(
        &self,
        entity: &EntityId,
        kind: &str,
        now: Time,
    ) -> Result<Option<Time>, TableError> {
        let mark: Option<AnnouncedItem> = self.table.read(key_of_entity(entity, kind), DOING).await?;
        Ok(mark.filter(|mark| mark.is_valid(now)).map(|mark| mark.announced()))
    }

    /// The writes that announce an event to the entity. They are lost if an event of its type was announced within the
    /// last hour.
    pub(in crate::subscriptions) fn writes_to_entity(
        &self,
        outbox_event: &OutboxEvent,
        now: Time,
    ) -> Result<[Put; 2], TableError> {
        let key = key_of_entity(&outbox_event.owner_identifier, &outbox_event.kind);
        Ok([AnnouncedItem::new(key, now).put(now)?, self.outbox.put(outbox_event)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mark_of_an_announced_event_is_valid_for_an_hour(millis in 0i64..4_000_000_000_000) {
            let now = Time::from_millis(millis);
            let webhook = WebhookId::new(now, &CountingRandom::default());
            let mark = AnnouncedItem::new(key_of_webhook(&webhook, "webhook.disabled"), now);
            prop_assert!(mark.is_valid(now) && mark.is_valid(now + ANNOUNCEMENT_INTERVAL));
            prop_assert!(!mark.is_valid(now + ANNOUNCEMENT_INTERVAL + Duration::from_secs(2)));
            prop_assert!(mark.announced() <= now && now.since(mark.announced()) < Duration::from_secs(1));
        }
    }

    #[test]
    fn no_entity_shares_a_mark_with_a_webhook() {
        let webhook = WebhookId::new(Time::from_millis(0), &CountingRandom::default());
        let namesake = EntityId::parse(webhook.as_str()).expect("an entity may be called so");
        assert_ne!(key_of_webhook(&webhook, "webhook.disabled").0, key_of_entity(&namesake, "webhook.disabled").0);
    }
}
