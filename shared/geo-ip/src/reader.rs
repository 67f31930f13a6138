//! Reading what is published: the pointer is looked at now and then, which costs next to nothing while it stands; a new
//! release is fetched, checked and swapped in whole, and the old one goes on answering until then, and for as long as the
//! new one is bad.

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
    pointer::{Pointer, Release},
    scratch::Scratch,
    store::{Reread, Store, StoreError, Tag},
};
use base::{
    clock::{SharedClock, Time},
    logging,
    random::SharedRandom,
};

/// How often the pointer is looked at.
const POLL_EVERY: Duration = Duration::from_secs(60);

/// Reads one edition.
pub struct DatabaseReader {
    /// Where it is published.
    pub store: Store,
    /// For which deployment.
    pub environment: String,
    /// Which one.
    pub edition: EditionName,
    /// Where files may be put for a moment.
    pub scratch: PathBuf,
    clock: SharedClock,
    random: SharedRandom,
    current: RwLock<Option<Arc<Database>>>,
    /// Held by the call that looks at the pointer.
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
    /// Which one.
    pub release: Release,
    reader: Reader<Vec<u8>>,
}

/// What is known of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The network for which it is true.
    pub network: String,
    /// What is known.
    pub value: T,
}

/// Why there is nothing newer; what was read before is still there.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the store holds is no pointer.
    #[error("the pointer of {0} is malformed")]
    Malformed(EditionName, #[source] serde_json::Error),
    /// Nothing is published.
    #[error("nothing is published of {0}")]
    NothingPublished(EditionName),
    /// The release that the pointer names is not there.
    #[error("the release that the pointer of {0} names is not in the store")]
    Gone(EditionName),
    /// There was no room for it.
    #[error("a release could not be put on the disk")]
    Disk(#[source] std::io::Error),
    /// It is not what its name says.
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
        let (current, polled) = (RwLock::default(), Mutex::default());
        Self { store, environment: environment.into(), edition, scratch, clock, random, current, polled }
    }

    /// What was read last; never waits for the store.
    pub fn current(&self) -> Option<Arc<Database>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same after a look at the pointer, when the last look is a minute ago. While one looks, the others go on with
    /// what there is; a failure is logged, and what there is remains.
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

    /// Looks at the pointer now, and reads what it names if that is new.
    pub async fn refresh(&self) -> Result<Arc<Database>, ReaderError> {
        let mut polled = self.polled.lock().await;
        self.poll(&mut polled).await?;
        self.current().ok_or_else(|| ReaderError::NothingPublished(self.edition.clone()))
    }

    async fn poll(&self, polled: &mut Polled) -> Result<(), ReaderError> {
        polled.at = Some(self.clock.now());
        let key = Pointer::key(&self.environment, &self.edition);
        let object = match &polled.tag {
            Some(tag) => match self.store.read_if_changed(&key, tag).await? {
                Reread::Same => return Ok(()),
                Reread::Absent => None,
                Reread::Changed(object) => Some(object),
            },
            None => self.store.read(&key).await?,
        };
        let object = object.ok_or_else(|| ReaderError::NothingPublished(self.edition.clone()))?;
        let pointer: Pointer = serde_json::from_slice(&object.content)
            .map_err(|source| ReaderError::Malformed(self.edition.clone(), source))?;
        let known = self.current().is_some_and(|database| database.release.sha256 == pointer.current.sha256);
        if !known {
            let database = Arc::new(self.load(pointer.current).await?);
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(database);
        }
        // Noted only now, so that a release that could not be read is tried again.
        polled.tag = Some(object.tag);
        Ok(())
    }

    async fn load(&self, release: Release) -> Result<Database, ReaderError> {
        let scratch = Scratch::make(&self.scratch, self.clock.now(), &*self.random).map_err(ReaderError::Disk)?;
        let (file, edition) = (scratch.file("database"), self.edition.clone());
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
    /// What is known of an address; `None` when nothing is.
    pub fn lookup<T: DeserializeOwned>(&self, address: IpAddr) -> Result<Option<Found<T>>, MaxMindDbError> {
        // A database of IPv4 has nothing about IPv6, and says so by an error.
        if address.is_ipv6() && self.reader.metadata().ip_version == 4 {
            return Ok(None);
        }
        let found = self.reader.lookup(address)?;
        let network = found.network()?.to_string();
        Ok(found.decode()?.map(|value| Found { network, value }))
    }
}
