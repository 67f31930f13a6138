//! The index `byWebhook` for deliveries that are older than the index: each delivery that belongs to a group of its webhook
//! gets the key that puts it into the index.
//!
//! Until then nothing is lost: a delivery that waits for a removed webhook ends at its next attempt, and a failed one can be
//! resent by itself. Each head is written on condition that it is as it was read, so that a concurrent change is never undone.

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use base::{Time, logging};
use storage::table::{Change, Key, Scan, Scanned, Table, TableError, Written, absent, differs, is};
use webhooks::deliveries::{
    Status,
    index_group::IndexGroup,
    item::{HEAD, HeadItem, partition},
};

/// The key of the note that the index is filled.
const NOTE: [&str; 2] = ["INDEX", "byWebhook"];
const FILLING: &str = "filling the index of webhooks' deliveries";
/// How many heads are written at once. They share calls of the table.
const AT_ONCE: usize = 100;
/// Progress is logged each time that so many more items of the table were looked at.
const LOGGED_EVERY: u64 = 100_000;

/// The note in the table that its index is filled.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filled {
    pk: String,
    sk: String,
    filled_date: Time,
}

/// The counts of a pass over the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deliveries that are not delivered and have no key.
    pub seen: u64,
    /// How many of them have the key now.
    pub filled: u64,
}

/// Fills the index, unless a note in the table says that it is filled.
pub async fn ensure_filled(table: &Table, now: Time) -> Result<(), TableError> {
    let noted: Option<Filled> = table.get(Key::new(NOTE[0], NOTE[1]), true, FILLING).await?;
    if noted.is_none() {
        fill(table, now).await?;
    }
    Ok(())
}

/// Fills the index, also where it was filled before, and notes that in the table.
pub async fn fill(table: &Table, now: Time) -> Result<Counts, TableError> {
    let counts = pass(table, now).await?;
    if counts.filled > 0 {
        tracing::info!("put {} deliveries into the index of their webhooks", counts.filled);
    }
    let [pk, sk] = NOTE.map(str::to_owned);
    table.put(&Filled { pk, sk, filled_date: now }, FILLING).await?;
    Ok(counts)
}

/// Goes through the whole table once.
async fn pass(table: &Table, now: Time) -> Result<Counts, TableError> {
    let left = Scan::default().only(is("sk", HEAD)).only(differs("status", Status::Delivered.as_str()));
    let left = left.only(absent("webhookKey"));
    let (mut counts, mut looked_at, mut next) = (Counts::default(), 0, None);
    loop {
        let page: Scanned<HeadItem> = table.scan(left.clone().after(next), FILLING).await?;
        let heads = stream::iter(page.items).map(|(_, head)| fill_one(table, head, now));
        let filled: Vec<_> = heads.buffer_unordered(AT_ONCE).collect().await;
        for filled in filled {
            counts.seen += 1;
            counts.filled += u64::from(filled?);
        }
        if (looked_at + page.looked_at) / LOGGED_EVERY > looked_at / LOGGED_EVERY {
            tracing::info!("{} items looked at, {} put into the index", looked_at + page.looked_at, counts.filled);
        }
        looked_at += page.looked_at;
        next = page.next;
        if next.is_none() {
            return Ok(counts);
        }
    }
}

/// Gives a head its key. Returns false when it needs none, or has changed meanwhile: the change gave it the key.
async fn fill_one(table: &Table, head: Result<HeadItem, TableError>, now: Time) -> Result<bool, TableError> {
    let head = match head {
        Ok(head) => head,
        // An unreadable delivery does not hold up the others.
        Err(error) => {
            tracing::error!(error = %logging::chain(&error), "a delivery is left out of the index");
            return Ok(false);
        }
    };
    let delivery = head.delivery();
    let group = IndexGroup::of(delivery.status, delivery.attempt_count, delivery.next_attempt_date, now);
    let Some(group) = group else { return Ok(false) };
    let change = Change::of((partition(&delivery.id), HEAD.to_owned()))
        .set("webhookKey", group.key(&delivery.webhook_identifier))
        .only_if(is("status", delivery.status.as_str()))
        .only_if(is("attemptCount", delivery.attempt_count))
        .only_if(is("lastUpdate", delivery.last_update))
        .only_if(absent("lease"))
        .only_if(absent("webhookKey"));
    Ok(matches!(table.write_together(change, FILLING).await?, Written::Done(())))
}
