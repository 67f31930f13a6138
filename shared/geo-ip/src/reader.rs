//! Reads the published release of an edition. A look at the pointer costs next to nothing while it stands. A new
//! release is fetched, checked and swapped in whole, and the old one answers until then, and for as long as the new one
//! is bad.

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

/// How often the pointer is looked at.
const POLL_EVERY: Duration = Duration::from_secs(60);

/// Reads one edition.
///
/// It is not a `base::refreshed::Refreshed`, because a look asks only for a change since the last tag, because a
/// release may take longer to fetch than a request waits there, and because a failed look is not repeated for a minute
/// even if nothing was read yet.
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
    /// Held while a call looks at the pointer.
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
    /// The network that the entry is about.
    pub network: String,
    /// The entry.
    pub value: T,
}

/// Why nothing newer was read. A release that was read before stays in use.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// The store failed, or holds no good pointer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing is published.
    #[error("nothing is published of {0}")]
    NothingPublished(EditionName),
    /// The release that the pointer names is not there.
    #[error("the release that the pointer of {0} names is not in the store")]
    Gone(EditionName),
    /// There was no room for it.
    #[error("a release could not be put on the disk")]
    Disk(#[source] std::io::Error),
    /// Its content does not fit its name.
    #[error("the published release of {0} is damaged")]
    Damaged(EditionName),
    /// It is no database.
    #[error("the published release of {0} is no database that can be read")]
    Unreadable(EditionName, #[source] MaxMindDbError),
}

impl DatabaseReader {
    /// A reader that has read nothing yet.
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

    /// The release that was read last; never waits for the store.
    pub fn current(&self) -> Option<Arc<Database>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same after a look at the pointer, if the last look was a minute ago. While one call looks, the others go on
    /// with the old release, and so do all after a failure, which is logged.
    pub async fn fresh(&self) -> Option<Arc<Database>> {
        let current = self.current();
        let polled = if current.is_some() { self.polled.try_lock().ok() } else { Some(self.polled.lock().await) };
        if let Some(mut polled) = polled
            && polled.at.is_none_or(|at| self.clock.now().since(at) >= POLL_EVERY)
            && let Err(error) = self.poll(&mut polled).await
        {
            tracing::warn!(edition = %self.edition, error = %logging::chain(&error), "a geo-IP database is not fresh");
        }
        self.current()
    }

    /// Looks at the pointer now, and reads the release that it names if that is new.
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
        // Noted only now, so that a release that could not be read is tried again.
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
    /// The entry of an address; `None` when the database has none.
    pub fn lookup<T: DeserializeOwned>(&self, address: IpAddr) -> Result<Option<Found<T>>, MaxMindDbError> {
        // A database of IPv4 answers a question about IPv6 with an error.
        if address.is_ipv6() && self.reader.metadata().ip_version == 4 {
            return Ok(None);
        }
        let found = self.reader.lookup(address)?;
        let network = found.network()?.to_string();
        Ok(found.decode()?.map(|value| Found { network, value }))
    }
}
