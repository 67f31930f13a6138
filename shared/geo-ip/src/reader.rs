//! The reader of an edition's published release. Polling an unchanged pointer costs almost nothing. A new release is
//! fetched, checked and swapped in atomically. Until that succeeds, the old one remains in use.

use std::{
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use maxminddb::{MaxMindDbError, Reader};
use serde::de::DeserializeOwned;
use tokio::{sync::Mutex, task::spawn_blocking};

use super::{
    edition::EditionName,
    hash,
    pointer::Release,
    scratch::Scratch,
    store::{Reading, Store, StoreError, Tag},
};
use base::{SharedClock, SharedRandom, Time, logging};

/// The interval between two polls of the pointer.
const POLL_EVERY: Duration = Duration::from_secs(60);

/// A reader of one edition.
///
/// Not a `base::refreshed::Refreshed`, for three reasons: a poll depends on the last tag, fetching a release may take
/// longer than a request would wait there, and a failed poll is not repeated for a minute even if nothing was read yet.
pub struct DatabaseReader {
    /// The store with the releases.
    pub store: Store,
    /// The deployment's name.
    pub environment: String,
    /// The edition.
    pub edition: EditionName,
    /// A folder for temporary files.
    pub scratch: PathBuf,
    clock: SharedClock,
    random: SharedRandom,
    current: RwLock<Option<Arc<Database>>>,
    /// Locked while a call polls the pointer.
    polled: Mutex<Polled>,
}

#[derive(Default)]
struct Polled {
    at: Option<Time>,
    tag: Option<Tag>,
}

/// A release in memory.
#[derive(Debug)]
pub struct Database {
    /// The release.
    pub release: Release,
    reader: Reader<Vec<u8>>,
}

/// The entry of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The network of the entry.
    pub network: String,
    /// The entry.
    pub value: T,
}

/// Why no newer release could be read. A release that has been read remains in use.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// The store failed, or its pointer is malformed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing is published.
    #[error("no release of {0} is published")]
    NothingPublished(EditionName),
    /// The release that the pointer names is missing.
    #[error("the store does not have the release that {0}'s pointer names")]
    Gone(EditionName),
    /// The disk is full or failed.
    #[error("a release could not be written to the disk")]
    Disk(#[source] std::io::Error),
    /// The content does not match the SHA-256.
    #[error("the published release of {0} is damaged")]
    Damaged(EditionName),
    /// The release is not a readable database.
    #[error("the published release of {0} is not a readable database")]
    Unreadable(EditionName, #[source] MaxMindDbError),
}

impl DatabaseReader {
    /// A reader without a release yet.
    pub fn new(
        store: Store,
        environment: impl Into<String>,
        edition: EditionName,
        scratch: PathBuf,
        clock: SharedClock,
        random: SharedRandom,
    ) -> Self {
        let current = RwLock::default();
        let polled = Mutex::default();
        Self { store, environment: environment.into(), edition, scratch, clock, random, current, polled }
    }

    /// The last release that was read; never waits for the store.
    pub fn current(&self) -> Option<Arc<Database>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last release, after polling the pointer if the last poll was at least a minute ago. While one call polls,
    /// others return the old release. After a failure, which is logged, all calls do.
    pub async fn fresh(&self) -> Option<Arc<Database>> {
        let current = self.current();
        let polled = if current.is_some() { self.polled.try_lock().ok() } else { Some(self.polled.lock().await) };
        if let Some(mut polled) = polled
            && polled.at.is_none_or(|at| self.clock.now().since(at) >= POLL_EVERY)
            && let Err(error) = self.poll(&mut polled).await
        {
            let error = logging::chain(&error);
            tracing::warn!(edition = %self.edition, error, "a geo-IP database could not be refreshed");
        }
        self.current()
    }

    /// Polls the pointer now and reads its release if it is new.
    pub async fn refresh(&self) -> Result<Arc<Database>, ReaderError> {
        let mut polled = self.polled.lock().await;
        self.poll(&mut polled).await?;
        self.current().ok_or_else(|| ReaderError::NothingPublished(self.edition.clone()))
    }

    async fn poll(&self, polled: &mut Polled) -> Result<(), ReaderError> {
        polled.at = Some(self.clock.now());
        let (pointer, tag) = match self.store.pointer(&self.environment, &self.edition, polled.tag.as_ref()).await? {
            Reading::Same => return Ok(()),
            Reading::Absent => return Err(ReaderError::NothingPublished(self.edition.clone())),
            Reading::Found(found) => found,
        };
        let known = self.current().is_some_and(|database| database.release.sha256 == pointer.current.sha256);
        if !known {
            let database = Arc::new(self.load(pointer.current).await?);
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(database);
        }
        // The tag is stored last, so that an unreadable release is read again.
        polled.tag = Some(tag);
        Ok(())
    }

    async fn load(&self, release: Release) -> Result<Database, ReaderError> {
        let scratch = Scratch::make(&self.scratch, self.clock.now(), &*self.random).map_err(ReaderError::Disk)?;
        let file = scratch.file("database");
        let edition = self.edition.clone();
        if !self.store.fetch(&release.key(&self.environment, &edition), &file).await? {
            return Err(ReaderError::Gone(edition));
        }
        let opened = spawn_blocking(move || {
            let bytes = std::fs::read(scratch.file("database")).map_err(ReaderError::Disk)?;
            if hash::sha256(&bytes) != release.sha256 {
                return Err(ReaderError::Damaged(edition));
            }
            let reader = Reader::from_source(bytes).map_err(|source| ReaderError::Unreadable(edition, source))?;
            Ok(Database { release, reader })
        });
        opened.await.unwrap_or_else(|panic| Err(ReaderError::Disk(std::io::Error::other(panic))))
    }
}

impl Database {
    /// The entry of an address; `None` if the database has none.
    pub fn lookup<T: DeserializeOwned>(&self, address: IpAddr) -> Result<Option<Found<T>>, MaxMindDbError> {
        // The library fails for an IPv6 address in an IPv4 database.
        if address.is_ipv6() && self.reader.metadata().ip_version == 4 {
            return Ok(None);
        }
        let found = self.reader.lookup(address)?;
        let network = found.network()?.to_string();
        Ok(found.decode()?.map(|value| Found { network, value }))
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
