//! The list of revocations in memory, so that no request pays a read.
//!
//! A warm function reads the new items of the list every half minute. A revoked token stops working
//! everywhere within a minute.

mod fingerprint;
mod horizon;
mod keeper;
mod known;
mod list;
mod revocation;
mod snapshot;
mod snapshot_items;

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};

use super::token::Claims;
use base::{Random, SharedClock, Time, logging};
pub use horizon::{Horizon, Reached, Seen};
pub use keeper::SnapshotKeeper;
use known::Known;
pub use list::{RevocationList, RevocationSource, of_application, of_credential, of_issued_tokens, of_session};
use revocation::LONGEST_LIFE;
pub use revocation::{Kind, Revocation, TOKENS_REVOKED};
pub use snapshot::Snapshot;
pub use snapshot_items::SnapshotError;
use storage::TableError;

/// Until this age the list is not read again.
const YOUNG: Duration = Duration::from_secs(30);
/// From this age on all calls wait for the one that reads; before, they go on with the list in
/// memory.
const OLD: Duration = Duration::from_secs(45);
/// How long a request waits for a reading while the list in memory is young enough to use.
const READING_LIMIT: Duration = Duration::from_secs(2);
/// How long the list is not read again after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// How far back a reading goes before the last: a revocation stands at the time of its writer's
/// clock, which is a workstation's when an operator makes it (AWS takes requests of clocks that are
/// five minutes off), and a little after that in the table; and an entry that several share changes
/// for five minutes.
const OVERLAP: Duration = Duration::from_secs(10 * 60);

/// The list in memory. It is not a `base::refreshed::Refreshed`, because a reading adds pages to the
/// list, each of which counts at once even if a later one fails, and because calls beyond an age
/// wait or fail instead of going on with an old list.
pub struct Revocations<S = RevocationList> {
    source: S,
    clock: SharedClock,
    known: RwLock<Known>,
    /// Held while a call reads.
    reading: Mutex<()>,
}

impl Revocations {
    /// Revokes a token, by an application that is counted on this account: here at once.
    pub async fn revoke(&self, claims: &Claims, account: &str) -> Result<(), TableError> {
        let revocation = self.source.token(claims, account, self.clock.now()).await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).add(&revocation);
        Ok(())
    }
}

impl<S: RevocationSource> Revocations<S> {
    /// Nothing was read yet; the first token reads.
    pub fn new(source: S, clock: SharedClock, random: &dyn Random) -> Self {
        Self { source, clock, known: RwLock::new(Known::new(random)), reading: Mutex::new(()) }
    }

    /// Reads the list before the first request. A failure is logged, and tried again by the first
    /// request.
    pub async fn warm_up(&self) {
        if let Err(error) = self.refresh(Seen::MomentsAgo).await {
            tracing::warn!(error = %logging::chain(&error), "the revocations could not be read at the start");
        }
    }

    /// Whether a token is revoked by itself, with its application, with the credential that it was
    /// got with, or with its key. Fails only when the list could not be read for minutes.
    pub async fn revoked(&self, claims: &Claims) -> Result<bool, TableError> {
        self.refresh(Seen::Now).await?;
        Ok(self.known_as_revoked(claims))
    }

    /// Whether a key is revoked, with every token that it signed.
    pub async fn key_revoked(&self, kid: &str) -> Result<bool, TableError> {
        self.refresh(Seen::Now).await?;
        Ok(self.with_known(|known| known.revokes_key(kid)))
    }

    /// Whether a token is revoked, by the table at this moment.
    pub async fn revoked_by_now(&self, claims: &Claims) -> Result<bool, TableError> {
        let asked = self.clock.now();
        let _one_at_a_time = self.reading.lock().await;
        // A reading that began after this call counts for it. A call that waited for one reading
        // only has to read.
        if self.with_known(|known| known.last_read().is_none_or(|read| read <= asked)) {
            self.read(Seen::Now).await?;
        }
        Ok(self.known_as_revoked(claims))
    }

    fn known_as_revoked(&self, claims: &Claims) -> bool {
        self.with_known(|known| known.revokes(claims))
    }

    fn age(&self) -> Option<Duration> {
        let now = self.clock.now();
        self.with_known(|known| known.age(now))
    }

    fn with_known<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the new items, if it is time. When that fails, calls go on with the list in memory
    /// while it is not too old; otherwise they wait for as long as a reading takes, and fail with
    /// it.
    async fn refresh(&self, seen: Seen) -> Result<(), TableError> {
        let _one_at_a_time = match self.age() {
            Some(age) if age < YOUNG => return Ok(()),
            Some(age) if age < OLD => match self.reading.try_lock() {
                Ok(alone) => alone,
                Err(_) => return Ok(()),
            },
            _ => self.reading.lock().await,
        };
        match self.age() {
            Some(age) if age < YOUNG => return Ok(()), // another call just read it
            None => return self.read(seen).await,
            Some(_) => {}
        }
        let error = match timeout(READING_LIMIT, self.read(seen)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => logging::chain(&error),
            Err(late) => late.to_string(),
        };
        tracing::error!(error, "the revocations could not be refreshed; those that are known go on");
        self.known.write().unwrap_or_else(PoisonError::into_inner).rest_until(self.clock.now() + FAILURE_PAUSE);
        Ok(())
    }

    async fn read(&self, seen: Seen) -> Result<(), TableError> {
        let began = self.clock.now();
        let (from, horizon) = match self.with_known(Known::last_read) {
            Some(read) => (Some(read - OVERLAP), self.source.horizon(seen).await),
            // Where both may be of moments ago, they share a call.
            None => tokio::join!(self.begin_with_snapshot(began), self.source.horizon(seen)),
        };
        let known = || self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !is_before(horizon, from.unwrap_or(began - LONGEST_LIFE)) {
            self.source.made_since(from, began, |page| known().add_page(&page, began)).await?;
        }
        known().completed(began);
        Ok(())
    }

    /// From when the list is to be read beside the last snapshot. Without one the whole list is: none was made, or it
    /// cannot be read.
    async fn begin_with_snapshot(&self, now: Time) -> Option<Time> {
        let snapshot = self.source.last_snapshot(now).await.unwrap_or_else(|error| {
            tracing::warn!(error = %logging::chain(&error), "the whole list of revocations is read, without its snapshot");
            None
        })?;
        let from = snapshot.taken - OVERLAP;
        self.known.write().unwrap_or_else(PoisonError::into_inner).begin_with(snapshot);
        Some(from)
    }
}

/// Whether nothing was made from then on. A horizon that could not be read says nothing, and the list is read.
fn is_before(horizon: Result<Option<Time>, TableError>, from: Time) -> bool {
    let horizon = horizon.unwrap_or_else(|error| {
        tracing::warn!(error = %logging::chain(&error), "the list of revocations is read, without its horizon");
        None
    });
    horizon.is_some_and(|horizon| horizon < from)
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
