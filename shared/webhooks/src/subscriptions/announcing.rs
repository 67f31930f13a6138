//! Announcing operational events of webhooks: each together with its change, and once an hour at most.
//!
//! | item | pk / sk |
//! |---|---|
//! | operational event announced of a webhook | `TOLD#{webhook}` / type of the event |
//!
//! The item is written in one transaction with the change and the event in the outbox, unless an earlier item still
//! holds. So two dispatchers that find the same at once announce it once. A change never depends on its announcement:
//! within the hour the change is made alone, and if the transaction is lost it is made again alone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::events::outbox::{Outbox, OutboxEvent};
use base::{Time, WebhookId, logging};
use storage::table::{Put, Table, TableError, Transaction, Written, at_most, is_new};

/// The least time between two events of one type about one webhook.
pub const PAUSE: Duration = Duration::from_secs(60 * 60);

const DOING: &str = "announcing an event about a webhook";

/// Announces operational events of webhooks.
#[derive(Debug, Clone)]
pub struct Announcer {
    table: Table,
    outbox: Outbox,
}

/// Marks that an event was announced, until the next of its type may be.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnouncedItem {
    pk: String,
    sk: String,
    /// In whole seconds. The table removes the item some time later, so every reader compares.
    expires_at: i64,
}

/// Whether the event of a change is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// With the change.
    Now,
    /// No: an event of its type was announced within the hour before.
    Before,
}

impl AnnouncedItem {
    fn new(webhook: &WebhookId, kind: &str, now: Time) -> Self {
        let (pk, sk) = key(webhook, kind);
        // Rounded up: a mark of less than an hour would allow two events in one.
        Self { pk, sk, expires_at: (now + PAUSE).as_seconds() + 1 }
    }

    fn holds(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }
}

fn key(webhook: &WebhookId, kind: &str) -> (String, String) {
    (format!("TOLD#{webhook}"), kind.to_owned())
}

impl Announcer {
    /// Announces events about the webhooks in this table.
    pub fn new(table: Table) -> Self {
        Self { outbox: Outbox::new(table.clone()), table }
    }

    /// The writes that announce an event about a webhook, for the transaction of the change; none, if an event of its
    /// type was announced within the hour. If the transaction is lost, the caller makes the change without them:
    /// another dispatcher may have announced it meanwhile.
    pub async fn writes(
        &self,
        webhook: &WebhookId,
        outbox_event: &OutboxEvent,
        now: Time,
    ) -> Result<Vec<Put>, TableError> {
        // The read only saves transactions that would be lost, so its error is no reason to stop.
        let earlier: Option<AnnouncedItem> =
            self.table.read(key(webhook, &outbox_event.kind), DOING).await.unwrap_or_else(|error| {
                tracing::warn!(error = %logging::chain(&error), webhookId = %webhook, "not known whether it was announced");
                None
            });
        if earlier.is_some_and(|earlier| earlier.holds(now)) {
            return Ok(Vec::new());
        }
        let mark = Put::item(&AnnouncedItem::new(webhook, &outbox_event.kind, now), DOING)?;
        let mark = mark.only_if(is_new().or(at_most("expiresAt", now.as_seconds())));
        Ok(vec![mark, self.outbox.put(outbox_event)?])
    }

    /// Makes a change and announces it, both or neither; or makes the change alone, if an event of its type was
    /// announced within the hour. Lost when the change's own condition does not hold.
    pub async fn change(
        &self,
        change: impl Fn(Announced) -> Transaction,
        webhook: &WebhookId,
        outbox_event: &OutboxEvent,
        now: Time,
    ) -> Result<Written<Announced>, TableError> {
        let writes = self.writes(webhook, outbox_event, now).await?;
        if !writes.is_empty() {
            let both = change(Announced::Now).with_all(writes);
            if self.table.write_all(both, DOING).await?.is_done() {
                return Ok(Written::Done(Announced::Now));
            }
        }
        let alone = self.table.write_all(change(Announced::Before), DOING).await?;
        Ok(alone.map(|()| Announced::Before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mark_of_an_announced_event_holds_for_an_hour_and_hardly_longer(millis in 0i64..4_000_000_000_000) {
            let now = Time::from_millis(millis);
            let mark = AnnouncedItem::new(&WebhookId::new(now, &CountingRandom::default()), "webhook.failing", now);
            prop_assert!(mark.holds(now) && mark.holds(now + PAUSE));
            prop_assert!(!mark.holds(now + PAUSE + Duration::from_secs(2)));
        }
    }
}
