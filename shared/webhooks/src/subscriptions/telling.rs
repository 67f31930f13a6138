//! Telling of webhooks: each operational event together with the change that it tells of, and once an hour at most.
//!
//! | item | pk / sk |
//! |---|---|
//! | operational event told of a webhook | `TOLD#{webhook}` / type of the event |
//!
//! The item is written in the transaction of the change and of the event in the outbox, on condition that there is none that
//! still holds. So two dispatchers that find the same at once tell it once. A change never depends on being told: where the
//! hour is not over the change is made alone, and where the condition is lost at the last moment it is made again alone.

use std::time::Duration;

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use serde::{Deserialize, Serialize};

use crate::events::outbox::{Announcement, Outbox};
use base::{clock::Time, ids::WebhookId, logging};
use storage::table::{Table, TableError, Transacted, number, write_item};

/// How long nothing of the same type is told of the same webhook again.
pub const PAUSE: Duration = Duration::from_secs(60 * 60);

const DOING: &str = "telling of a webhook";

/// Tells of webhooks.
#[derive(Debug, Clone)]
pub struct Telling {
    table: Table,
    outbox: Outbox,
}

/// That something was told, until when nothing of the kind is told again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldItem {
    pk: String,
    sk: String,
    /// In whole seconds. The table removes the item some time later, so every reader compares.
    expires_at: i64,
}

/// How a change ended that was to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It is made, and its event is in the outbox.
    AndTold,
    /// It is made; the like was told within the hour.
    Untold,
    /// Its condition did not hold, and nothing was written.
    No,
}

impl ToldItem {
    fn new(webhook: &WebhookId, kind: &str, now: Time) -> Self {
        let (pk, sk) = key(webhook, kind);
        // Rounded up: what holds for less than an hour would tell twice in one.
        Self { pk, sk, expires_at: (now + PAUSE).as_seconds() + 1 }
    }

    fn holds(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }
}

fn key(webhook: &WebhookId, kind: &str) -> (String, String) {
    (format!("TOLD#{webhook}"), kind.to_owned())
}

impl Telling {
    /// Tells of the webhooks in this table.
    pub fn new(table: Table) -> Self {
        Self { outbox: Outbox::new(table.clone()), table }
    }

    /// The writes that tell of a webhook, for the transaction of the change; none, if the like was told within the hour. When
    /// the transaction's condition is lost, the change is to be made without them: the like may have been told meanwhile.
    pub async fn writes(
        &self,
        webhook: &WebhookId,
        announcement: &Announcement,
        now: Time,
    ) -> Result<Vec<TransactWriteItem>, TableError> {
        // The read saves transactions that would be lost. The condition decides, so a read that fails decides nothing.
        let told: Option<ToldItem> =
            self.table.read(key(webhook, &announcement.kind), DOING).await.unwrap_or_else(|error| {
                tracing::warn!(error = %logging::chain(&error), webhookId = %webhook, "not known whether it was told");
                None
            });
        if told.is_some_and(|told| told.holds(now)) {
            return Ok(Vec::new());
        }
        let item = write_item(&ToldItem::new(webhook, &announcement.kind, now), DOING)?;
        let put = Put::builder()
            .table_name(&self.table.name)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(pk) OR expiresAt <= :now")
            .expression_attribute_values(":now", number(now.as_seconds()))
            .build()
            .map_err(TableError::unbuilt(DOING))?;
        Ok(vec![TransactWriteItem::builder().put(put).build(), self.outbox.put(announcement)?])
    }

    /// Makes a change and tells of it, both or neither; or makes the change alone, if the like was told within the hour. The
    /// change may depend on whether it is told.
    pub async fn change(
        &self,
        change: impl Fn(Changed) -> Result<TransactWriteItem, TableError>,
        webhook: &WebhookId,
        announcement: &Announcement,
        now: Time,
    ) -> Result<Changed, TableError> {
        let told = self.writes(webhook, announcement, now).await?;
        if !told.is_empty() {
            let writes = std::iter::once(change(Changed::AndTold)?).chain(told).collect();
            if self.table.transact(writes, DOING).await? == Transacted::Yes {
                return Ok(Changed::AndTold);
            }
        }
        Ok(match self.table.transact(vec![change(Changed::Untold)?], DOING).await? {
            Transacted::Yes => Changed::Untold,
            Transacted::ConditionLost => Changed::No,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_told_holds_for_an_hour_and_hardly_longer(millis in 0i64..4_000_000_000_000) {
            let now = Time::from_millis(millis);
            let told = ToldItem::new(&WebhookId::new(now, &CountingRandom::default()), "webhook.failing", now);
            prop_assert!(told.holds(now) && told.holds(now + PAUSE));
            prop_assert!(!told.holds(now + PAUSE + Duration::from_secs(2)));
        }
    }
}
