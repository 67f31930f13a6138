//! What the indexes need of deliveries that a former release made or changed: each that belongs to a group of its webhook gets
//! the key that puts it into `byWebhook`, and each that has not arrived the state that `byOwner` tells.
//!
//! Until then nothing is lost: a delivery that waits for a removed webhook ends at its next attempt, and a failed one can be
//! resent by itself. A list without a filter of states is complete, and one with such a filter may lack deliveries that a former
//! release left. Each head is written on condition that it is as it was read, so that a concurrent change is never undone.

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use base::{Time, logging};
use storage::table::{Change, Key, Scan, Scanned, Table, TableError, Written, absent, differs, is, present};
use webhooks::deliveries::{
    Status,
    store::{
        index_group::IndexGroup,
        item::{HEAD, HeadItem, partition},
        listed_status::{LISTED, NEW},
    },
};

/// The key of the note that the indexes are filled, by the youngest of them.
const NOTE: [&str; 2] = ["INDEX", "byOwner"];
const FILLING: &str = "giving deliveries what the indexes need";
/// How many heads are written at once. They share calls of the table.
const AT_ONCE: usize = 100;
/// Progress is logged each time that so many more items of the table were looked at.
const LOGGED_EVERY: u64 = 100_000;

/// The note in the table that its indexes are filled.
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
    /// Deliveries that lack something.
    pub seen: u64,
    /// How many of them have it now.
    pub filled: u64,
}

/// Fills the indexes, unless a note in the table says that they are filled.
pub async fn ensure_filled(table: &Table, now: Time) -> Result<(), TableError> {
    let noted: Option<Filled> = table.get(Key::new(NOTE[0], NOTE[1]), true, FILLING).await?;
    if noted.is_none() {
        fill(table, now).await?;
    }
    Ok(())
}

/// Fills the indexes, also where they were filled before, and notes that in the table.
pub async fn fill(table: &Table, now: Time) -> Result<Counts, TableError> {
    let counts = pass(table, now).await?;
    if counts.filled > 0 {
        tracing::info!("gave {} deliveries what the indexes need", counts.filled);
    }
    let [pk, sk] = NOTE.map(str::to_owned);
    table.put(&Filled { pk, sk, filled_date: now }, FILLING).await?;
    Ok(counts)
}

/// Goes through the whole table once.
async fn pass(table: &Table, now: Time) -> Result<Counts, TableError> {
    let arrived = Status::Delivered.as_str();
    // What arrived at its first attempt lacks nothing.
    let is_listed_otherwise = present(LISTED).and(differs(LISTED, NEW)).and(differs(LISTED, arrived));
    let left = Scan::default().only(is("sk", HEAD)).only(differs("status", arrived).or(is_listed_otherwise));
    let (mut counts, mut looked_at, mut next) = (Counts::default(), 0, None);
    loop {
        let page: Scanned<HeadItem> = table.scan(left.clone().after(next), FILLING).await?;
        let heads = stream::iter(page.items).map(|(_, head)| fill_one(table, head, now));
        let filled: Vec<_> = heads.buffer_unordered(AT_ONCE).collect().await;
        for filled in filled {
            if let Some(is_filled) = filled? {
                counts.seen += 1;
                counts.filled += u64::from(is_filled);
            }
        }
        if (looked_at + page.looked_at) / LOGGED_EVERY > looked_at / LOGGED_EVERY {
            tracing::info!("{} items looked at, {} changed", looked_at + page.looked_at, counts.filled);
        }
        looked_at += page.looked_at;
        next = page.next;
        if next.is_none() {
            return Ok(counts);
        }
    }
}

/// Gives a head what it lacks. Returns whether it was as it was read; `None` when it lacks nothing.
async fn fill_one(table: &Table, head: Result<HeadItem, TableError>, now: Time) -> Result<Option<bool>, TableError> {
    let head = match head {
        Ok(head) => head,
        // An unreadable delivery does not hold up the others.
        Err(error) => {
            tracing::error!(error = %logging::chain(&error), "a delivery is left out of the indexes");
            return Ok(None);
        }
    };
    let delivery = head.delivery();
    let group = IndexGroup::of(delivery.status, delivery.attempt_count, delivery.next_attempt_date, now);
    let group = group.filter(|_| !head.is_in_group());
    let listed = head.unlisted_status();
    if group.is_none() && listed.is_none() {
        return Ok(None);
    }
    let change = Change::of((partition(&delivery.id), HEAD.to_owned()))
        .set_some("webhookKey", group.map(|group| group.key(&delivery.webhook_identifier)))
        .set_some(LISTED, listed.map(Status::as_str))
        .only_if(is("status", delivery.status.as_str()))
        .only_if(is("attemptCount", delivery.attempt_count))
        .only_if(is("lastUpdate", delivery.last_update))
        .only_if(absent("lease"));
    let change = if group.is_some() { change.only_if(absent("webhookKey")) } else { change };
    Ok(Some(matches!(table.write_together(change, FILLING).await?, Written::Done(()))))
}
