//! The index `byWebhook` for deliveries that were made before it was there: each that is in a group of its webhook's gets the
//! key that puts it there.
//!
//! Until then nothing is lost: a delivery that waits for a removed webhook ends at its next attempt, and a failed one can be
//! resent by itself. Each head is written on condition that it still is as it was read, so that a change made
//! meanwhile is never undone.

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use base::{clock::Time, logging};
use storage::table::{Executed, Item, Statement, Table, TableError, number, read_item, text};
use webhooks::deliveries::{
    Status,
    group::Group,
    item::{HEAD, HeadItem, partition},
};

const FILLING: &str = "filling the index of webhooks' deliveries";
/// How many heads are written at once. They share their calls.
const AT_ONCE: usize = 100;

/// What says that a table was filled.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filled {
    pk: String,
    sk: String,
    filled_date: Time,
}

/// What a pass over the table found and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deliveries that are not delivered and have no key.
    pub seen: u64,
    /// Those that have it now.
    pub filled: u64,
}

/// Fills the index unless it was filled before.
pub async fn ensure_filled(table: &Table, now: Time) -> Result<(), TableError> {
    let (pk, sk) = ("INDEX".to_owned(), "byWebhook".to_owned());
    if table.get::<Filled>((pk.clone(), sk.clone()), true, FILLING).await?.is_some() {
        return Ok(());
    }
    let counts = fill(table, now).await?;
    if counts.filled > 0 {
        tracing::info!("put {} deliveries into the index of their webhooks", counts.filled);
    }
    table.put(&Filled { pk, sk, filled_date: now }, FILLING).await
}

/// Goes through the whole table once.
pub async fn fill(table: &Table, now: Time) -> Result<Counts, TableError> {
    let scan = table.client.scan().table_name(&table.name).consistent_read(true);
    let mut pages = scan
        .filter_expression("sk = :head AND #status <> :delivered AND attribute_not_exists(webhookKey)")
        .expression_attribute_names("#status", "status")
        .expression_attribute_values(":head", text(HEAD))
        .expression_attribute_values(":delivered", text(Status::Delivered.as_str()))
        .into_paginator()
        .send();
    let mut counts = Counts::default();
    while let Some(page) = pages.next().await {
        let heads = page.map_err(TableError::sdk(FILLING))?.items.unwrap_or_default();
        let filled: Vec<_> =
            stream::iter(heads).map(|head| fill_one(table, head, now)).buffer_unordered(AT_ONCE).collect().await;
        for filled in filled {
            counts.seen += 1;
            counts.filled += u64::from(filled?);
        }
    }
    Ok(counts)
}

/// Gives a head its key; false when it needs none, or has changed meanwhile: what changed it has given it one.
async fn fill_one(table: &Table, item: Item, now: Time) -> Result<bool, TableError> {
    let head: HeadItem = match read_item(item, FILLING) {
        Ok(head) => head,
        // One that cannot be read holds up no other.
        Err(error) => {
            tracing::error!(error = %logging::chain(&error), "skipped");
            return Ok(false);
        }
    };
    let delivery = head.delivery();
    let group = Group::of(delivery.status, delivery.attempt_count, delivery.next_attempt_date, now);
    let Some(group) = group else { return Ok(false) };
    let statement = Statement::update(partition(&delivery.id), HEAD)
        .set("webhookKey", text(group.key(&delivery.webhook_identifier)))
        .only_if("status", "=", text(delivery.status.as_str()))
        .only_if("attemptCount", "=", number(delivery.attempt_count))
        .only_if("lastUpdate", "=", text(delivery.last_update))
        .only_without("lease")
        .only_without("webhookKey");
    Ok(matches!(table.execute(statement).await?, Executed::Done(_)))
}
