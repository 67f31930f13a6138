//! The list of revocations in memory, so that no request pays for a read.
//!
//! A function reads the list when it starts. The first request that finds the list 30 s old reads the new entries.
//! While the table is reachable, a revoked token stops working everywhere within a minute. Once the list is five
//! minutes old, the function verifies no tokens.

mod known;
mod list;
mod revocation;

use std::{
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};

use super::token::Claims;
use base::{SharedClock, logging};
use known::Known;
pub use list::{
    Consistency, RevocationList, RevocationSource, of_application, of_credential, of_issued_tokens, of_remaining_key,
    of_session,
};
use revocation::LONGEST_LIFE;
pub use revocation::{Kind, Revocation, TOKENS_REVOKED};
use storage::TableError;

/// A list younger than this is not read again.
const REFRESH_AFTER: Duration = Duration::from_secs(30);
/// From this age on, all calls wait for a new list. A younger list remains in use while one call reads.
const WAIT_AFTER: Duration = Duration::from_secs(45);
/// How long a request waits for a read while the list in memory is still recent enough to use.
const READING_LIMIT: Duration = Duration::from_secs(2);
/// How long the list is not read again after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// How far each read overlaps the previous one. A revocation's time comes from its writer's clock, possibly on an
/// operator's workstation (AWS accepts requests from clocks that are five minutes off). The revocation appears in the
/// table a little later. A shared entry may change for five minutes.
const OVERLAP: Duration = Duration::from_secs(10 * 60);

/// The list in memory. It is not a `base::refreshed::Refreshed`, since each page of a read takes effect at once, even
/// if a later one fails, and calls wait or fail rather than use a list that is too old.
pub struct Revocations<S = RevocationList> {
    source: S,
    clock: SharedClock,
    known: RwLock<Known>,
    /// Held while a call reads.
    reading: Mutex<()>,
    /// The number of strongly consistent reads that have begun.
    begun: AtomicU64,
    /// The number of the latest of these reads to succeed.
    succeeded: AtomicU64,
}

impl Revocations {
    /// Revokes a token for an application whose actions count towards this account. In this process, it takes effect
    /// immediately.
    pub async fn revoke(&self, claims: &Claims, account: &str) -> Result<(), TableError> {
        let revocation = self.source.token(claims, account, self.clock.now()).await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).add(revocation);
        Ok(())
    }
}

impl<S: RevocationSource> Revocations<S> {
    /// Creates an empty list, which the first token fills unless [`Self::warm_up`] did.
    pub fn new(source: S, clock: SharedClock) -> Self {
        Self {
            source,
            clock,
            known: RwLock::default(),
            reading: Mutex::new(()),
            begun: AtomicU64::new(0),
            succeeded: AtomicU64::new(0),
        }
    }

    /// Reads the list before the first request. A failure is logged, and the first request tries again.
    ///
    /// Only this read is eventually consistent, at half the price; the next one covers any entries that it missed.
    pub async fn warm_up(&self) {
        if let Err(error) = self.refresh(Consistency::Eventual).await {
            tracing::warn!(
                error = %logging::chain(&error),
                "the revocations could not be read at startup; the first request reads them"
            );
        }
    }

    /// Whether a token is revoked, either by itself or along with its application, credential, session or key. Fails
    /// only if the list could not be read for minutes.
    pub async fn revoked(&self, claims: &Claims) -> Result<bool, TableError> {
        self.refresh(Consistency::Strong).await?;
        Ok(self.with_known(|known| known.revokes(claims)))
    }

    /// Whether a key, and with it every token that it signed, is revoked.
    pub async fn key_revoked(&self, kid: &str) -> Result<bool, TableError> {
        self.refresh(Consistency::Strong).await?;
        Ok(self.with_known(|known| known.revokes_key(kid)))
    }

    /// Whether a token is revoked according to the table's current content.
    pub async fn revoked_by_fresh_list(&self, claims: &Claims) -> Result<bool, TableError> {
        // Reads are compared by number, since a clock that is set back would make an earlier read look later.
        let before = self.begun.load(Relaxed);
        let _one_at_a_time = self.reading.lock().await;
        // A read that began after this call is sufficient. A call that waited for an earlier read must make its own.
        if self.succeeded.load(Relaxed) <= before {
            self.read(Consistency::Strong).await?;
        }
        Ok(self.with_known(|known| known.revokes(claims)))
    }

    fn age(&self) -> Option<Duration> {
        let now = self.clock.now();
        self.with_known(|known| known.age(now))
    }

    fn with_known<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads new items if the list is due for a refresh. If that fails, calls use the list in memory while it is recent
    /// enough. Without a recent list, calls wait for the read, however long it takes, and fail if it fails.
    async fn refresh(&self, consistency: Consistency) -> Result<(), TableError> {
        let _one_at_a_time = match self.age() {
            Some(age) if age < REFRESH_AFTER => return Ok(()),
            Some(age) if age < WAIT_AFTER => match self.reading.try_lock() {
                Ok(alone) => alone,
                Err(_) => return Ok(()),
            },
            _ => self.reading.lock().await,
        };
        match self.age() {
            Some(age) if age < REFRESH_AFTER => return Ok(()), // another call just read it
            None => return self.read(consistency).await,
            Some(_) => {}
        }
        let error = match timeout(READING_LIMIT, self.read(consistency)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => logging::chain(&error),
            Err(late) => late.to_string(),
        };
        tracing::error!(error, "the revocations could not be read; tokens are checked against the last list read");
        self.known.write().unwrap_or_else(PoisonError::into_inner).pause_until(self.clock.now() + FAILURE_PAUSE);
        Ok(())
    }

    /// Reads the revocations made since the last read, or all that can still apply.
    async fn read(&self, consistency: Consistency) -> Result<(), TableError> {
        let number = match consistency {
            Consistency::Strong => self.begun.fetch_add(1, Relaxed) + 1,
            Consistency::Eventual => 0,
        };
        let began = self.clock.now();
        let known = || self.known.write().unwrap_or_else(PoisonError::into_inner);
        let oldest = began - LONGEST_LIFE;
        let from = self.with_known(Known::last_read).map_or(oldest, |read| oldest.max(read - OVERLAP));
        self.source.made_since(from, consistency, |page| known().add_page(page, began)).await?;
        known().completed(began);
        self.succeeded.fetch_max(number, Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
