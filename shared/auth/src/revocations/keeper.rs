//! Keeps a snapshot of the list, so that a function that starts reads that in place of each entry.

use std::time::Duration;

use tokio::sync::Mutex;

use super::{
    OVERLAP,
    horizon::Seen,
    known::Known,
    list::{RevocationList, RevocationSource},
    revocation::Revocation,
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
/// A new snapshot is made when this part of the list is new or has ended, so that a long list is not written again for
/// each of its entries.
const PART: usize = 16;

/// Keeps the snapshot. It reads the list itself and no snapshot, so that a fault of one is not handed on to the next.
pub struct SnapshotKeeper<S = RevocationList> {
    source: S,
    clock: SharedClock,
    kept: Mutex<Kept>,
}

/// What the keeper knows.
struct Kept {
    known: Known,
    /// When the last revocation was made that was read here.
    newest: Option<Time>,
    /// When the last snapshot was taken that was written here.
    written: Option<Time>,
}

impl Kept {
    /// Whether a snapshot of this time is worth writing: nothing was written here, much has changed, or a start that
    /// begins with the last one would read the list for what was revoked before it, and with this one would not.
    fn wants(&self, taken: Time, horizon: Option<Time>) -> bool {
        let Some(written) = self.written else { return true };
        let changes = self.known.changes();
        let is_read_after = |taken: Time| horizon.is_some_and(|horizon| horizon >= taken - OVERLAP);
        changes > 0 && changes >= self.known.len() / PART || is_read_after(written) && !is_read_after(taken)
    }

    fn note_written(&mut self, snapshot: &Snapshot) {
        self.known.forget_changes();
        self.written = Some(snapshot.taken);
    }
}

impl SnapshotKeeper {
    /// Reads what is new in the list, unless it was read a few minutes ago, and writes a snapshot if that is worth it.
    /// Two keepers do not disturb each other, because either's snapshot is right. A failure is logged, and a start reads
    /// more for it.
    pub async fn keep(&self) {
        if let Err(error) = self.write_if_wanted().await {
            tracing::error!(error = %logging::chain(&error), "no snapshot of the revocations could be made");
        }
    }

    async fn write_if_wanted(&self) -> Result<(), TableError> {
        let mut kept = self.kept.lock().await;
        if !self.is_due(&kept) {
            return Ok(());
        }
        let horizon = self.source.horizon(Seen::Now).await?;
        let wanted = self.wanted(&mut kept, horizon).await?;
        self.keep_horizon(horizon, kept.newest).await?;
        let Some(snapshot) = wanted else { return Ok(()) };
        snapshot_items::write(&self.source.table, &snapshot).await?;
        kept.note_written(&snapshot);
        tracing::info!(entries = snapshot.count(), "a snapshot of the revocations was written");
        Ok(())
    }

    /// Makes a horizon where there is none, and moves it to the newest revocation, where something did not that revokes:
    /// an operator's program of the release before, say. Beside that release it is moved all the time, so that it is right
    /// when that release is gone.
    async fn keep_horizon(&self, horizon: Option<Time>, newest: Option<Time>) -> Result<(), TableError> {
        let (moved, now) = (&self.source.horizon, self.clock.now());
        match horizon {
            // Beyond the next reading.
            _ if self.source.beside_former_release => moved.move_beyond(now + 2 * PAUSE).await,
            None => moved.begin(now).await,
            Some(horizon) => match newest.filter(|newest| *newest > horizon) {
                Some(newest) => moved.move_beyond(newest).await,
                None => Ok(()),
            },
        }
    }
}

impl<S: RevocationSource> SnapshotKeeper<S> {
    /// Keeps the snapshot of this list.
    pub fn new(source: S, clock: SharedClock, random: &dyn Random) -> Self {
        let kept = Kept { known: Known::new(random), newest: None, written: None };
        Self { source, clock, kept: Mutex::new(kept) }
    }

    /// Whether it is time to read the list.
    fn is_due(&self, kept: &Kept) -> bool {
        kept.known.last_read().is_none_or(|read| self.surely_past().since(read) >= PAUSE)
    }

    /// The list by now, if its snapshot is worth writing.
    async fn wanted(&self, kept: &mut Kept, horizon: Option<Time>) -> Result<Option<Snapshot>, TableError> {
        let now = self.surely_past();
        self.read(kept, now).await?;
        Ok(kept.wants(now, horizon).then(|| kept.known.snapshot(now)))
    }

    fn surely_past(&self) -> Time {
        self.clock.now() - CLOCK_AHEAD
    }

    async fn read(&self, Kept { known, newest, .. }: &mut Kept, now: Time) -> Result<(), TableError> {
        let from = known.last_read().map(|read| read - OVERLAP);
        let page = |page: Vec<Revocation>| {
            *newest = page.iter().map(|revocation| revocation.made).max().max(*newest);
            known.add_page(&page, now);
        };
        self.source.made_since(from, now, page).await?;
        known.completed(now);
        Ok(())
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
