//! Keeps a snapshot of the list, so that a function that starts reads that in place of each entry.

use std::time::Duration;

use tokio::sync::Mutex;

use super::{
    OVERLAP,
    known::Known,
    list::{RevocationList, RevocationSource},
    snapshot::Snapshot,
    snapshot_items,
};
use base::{Random, SharedClock, Time, logging};
use storage::TableError;

/// How far ahead the keeper's clock may be. A snapshot counts as made so long before its reading, so that it neither hides
/// what was revoked afterwards nor leaves out what has not ended yet.
const CLOCK_AHEAD: Duration = Duration::from_secs(5 * 60);
/// The list is not read again within this time.
const PAUSE: Duration = Duration::from_secs(4 * 60 + 30);
/// Of fewer new entries no snapshot is made: a start reads them in little time.
const FEW: usize = 100;
/// A new snapshot is made when this part of the list is new or has ended, so that a long list is not written again for
/// each of its entries.
const PART: usize = 16;

/// Keeps the snapshot. It reads the list itself and no snapshot, so that a fault of one is not handed on to the next.
pub struct SnapshotKeeper<S = RevocationList> {
    source: S,
    clock: SharedClock,
    known: Mutex<Known>,
}

impl SnapshotKeeper {
    /// Reads what is new in the list, unless it was read a few minutes ago, and writes a snapshot if much has changed.
    /// Two keepers do not disturb each other, because either's snapshot is right. A failure is logged, and a start reads
    /// more for it.
    pub async fn keep(&self) {
        if let Err(error) = self.write_if_changed().await {
            tracing::error!(error = %logging::chain(&error), "no snapshot of the revocations could be made");
        }
    }

    async fn write_if_changed(&self) -> Result<(), TableError> {
        let mut known = self.known.lock().await;
        let Some(snapshot) = self.changed(&mut known).await? else { return Ok(()) };
        snapshot_items::write(&self.source.table, &snapshot).await?;
        known.forget_changes();
        tracing::info!(entries = snapshot.count(), "a snapshot of the revocations was written");
        Ok(())
    }
}

impl<S: RevocationSource> SnapshotKeeper<S> {
    /// Keeps the snapshot of this list.
    pub fn new(source: S, clock: SharedClock, random: &dyn Random) -> Self {
        Self { source, clock, known: Mutex::new(Known::new(random)) }
    }

    /// The list by now, if it is time to read it and much has changed.
    async fn changed(&self, known: &mut Known) -> Result<Option<Snapshot>, TableError> {
        let now = self.surely_past();
        if known.last_read().is_some_and(|read| now.since(read) < PAUSE) {
            return Ok(None);
        }
        self.read(known, now).await?;
        let much = known.changes() >= FEW.max(known.len() / PART);
        Ok(much.then(|| known.snapshot(now)))
    }

    fn surely_past(&self) -> Time {
        self.clock.now() - CLOCK_AHEAD
    }

    async fn read(&self, known: &mut Known, now: Time) -> Result<(), TableError> {
        let from = known.last_read().map(|read| read - OVERLAP);
        self.source.made_since(from, now, |page| known.add_page(&page, now)).await?;
        known.completed(now);
        Ok(())
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
