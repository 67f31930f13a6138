//! The steps from a provider's file to a published release. Each failure has a separate sentence and leaves the pointer
//! unchanged.

use std::{fmt, io, path::PathBuf};

use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use crate::{
    archive::{self, ArchiveError, Expanded},
    configuration::ConfiguredEdition,
    download::{DownloadError, Downloaded, MAX_SERVED, Served, Web},
    edition::EditionName,
    hash,
    pointer::{Origin, Pointer, Release, build_date},
    scratch::Scratch,
    source::{Candidate, Checksum, DatabaseType, Offer, SourceAnswer, SourceError},
    store::{Store, StoreError, Swap, Tag},
    verify::{self, Facts, VerifyError},
};
use base::{SharedClock, SharedRandom, logging};

#[derive(Clone)]
pub struct Updater {
    pub store: Store,
    pub environment: String,
    pub web: Web,
    pub scratch: PathBuf,
    /// The largest database, in bytes. It is verified in memory.
    pub largest: u64,
    pub clock: SharedClock,
    pub random: SharedRandom,
}

/// The outcome of an edition's update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// The source has no newer release than this published one.
    UpToDate(Box<Release>),
    /// A live run would publish the first release in place of the second.
    WouldPublish(Box<Release>, Option<Box<Release>>),
    /// The first release was published in place of the second.
    Published(Box<Release>, Option<Box<Release>>),
    /// In the meantime, another update published this release, which is at least as new.
    Overtaken(Box<Release>),
}

/// Why an update failed. The edition is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the update cannot create a temporary folder for its files")]
    Scratch(#[source] io::Error),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("downloading")]
    Download(#[source] DownloadError),
    #[error("the downloaded file's checksum does not match the provider's")]
    Checksum,
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("the release with the SHA-256 {0} was rolled back and is blocked; `geo-ip unblock` allows it again")]
    Blocked(String),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error("the update ran out of time and published nothing; the daily run allows 14 minutes for all editions")]
    Late,
    #[error("another process changed the pointer at the same time; nothing was published")]
    PointerMoved,
}

impl UpdateError {
    /// Whether this deployment is at fault rather than the provider.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Scratch(_))
    }
}

/// A verified database on disk.
struct Prepared {
    release: Release,
    licence: Option<String>,
    scratch: Scratch,
}

impl Updater {
    /// Updates one edition; without `live`, changes nothing.
    ///
    /// Updates of one edition may run concurrently: the pointer moves only from the state that this update has read,
    /// and each update uploads under a unique name. The price is a second download, and a lock to avoid it would not be
    /// worth its cost.
    pub async fn update(
        &self,
        configured: &ConfiguredEdition,
        live: bool,
        until: Instant,
    ) -> Result<UpdateOutcome, UpdateError> {
        let edition = &configured.edition;
        let (pointer, tag) = self.pointer(edition).await?.unzip();
        let prepared = timeout_at(until, self.prepare(configured, pointer.as_ref()));
        let Some(prepared) = prepared.await.map_err(|_| UpdateError::Late)?? else {
            return match pointer {
                Some(pointer) => Ok(UpdateOutcome::UpToDate(Box::new(pointer.current))),
                // Without a published release, a source always offers one.
                None => Err(UpdateError::PointerMoved),
            };
        };
        if !live {
            let before = pointer.map(|pointer| Box::new(pointer.current));
            return Ok(UpdateOutcome::WouldPublish(Box::new(prepared.release), before));
        }
        timeout_at(until, self.upload(edition, &prepared)).await.map_err(|_| UpdateError::Late)??;
        // There is no time limit: an interrupted update would not know whether it had published.
        self.move_pointer(edition, pointer.as_ref(), tag.as_ref(), prepared.release).await
    }

    /// An edition's pointer, with its tag.
    pub async fn pointer(&self, edition: &EditionName) -> Result<Option<(Pointer, Tag)>, UpdateError> {
        Ok(self.store.pointer(&self.environment, edition, None).await?.found())
    }

    /// Downloads and verifies a database; `None` if there is nothing new.
    async fn prepare(
        &self,
        configured: &ConfiguredEdition,
        pointer: Option<&Pointer>,
    ) -> Result<Option<Prepared>, UpdateError> {
        let published = pointer.map(|pointer| &pointer.current);
        let now = self.clock.now();
        let SourceAnswer::Offer(offer) = configured.source.ask(&configured.edition, published, &self.web, now).await?
        else {
            return Ok(None);
        };
        let scratch = Scratch::make(&self.scratch, now, &*self.random).map_err(UpdateError::Scratch)?;
        let Some((candidate, served)) = self.download(&offer, &scratch).await? else { return Ok(None) };
        let expanded = self.expand(&scratch).await;
        // A web page also has the wrong checksum, but an error that names the kind of file says what to do.
        let is_foreign = matches!(expanded, Err(UpdateError::Archive(ArchiveError::Foreign(_))));
        if !is_foreign && matches!(&offer.checksum, Some(Checksum::ServedSha256(sha256)) if *sha256 != served.sha256) {
            return Err(UpdateError::Checksum);
        }
        let expanded = expanded?;
        if matches!(&offer.checksum, Some(Checksum::DatabaseMd5(md5)) if *md5 != expanded.md5) {
            return Err(UpdateError::Checksum);
        }
        if let Some(pointer) = pointer {
            if pointer.blocks(&expanded.sha256) {
                return Err(UpdateError::Blocked(expanded.sha256));
            }
            if pointer.current.sha256 == expanded.sha256 {
                return Ok(None);
            }
        }
        let database = scratch.file("database");
        let facts = self.blocking(move || Ok(verify::examine(&database)?)).await?;
        let named = configured.database_type.clone().map(DatabaseType::Is);
        verify::judge(&facts, named.as_ref().unwrap_or(&offer.database_type), published, now)?;
        let licence = expanded.licence.clone();
        let release = self.release(&offer, candidate, served, expanded, facts, published);
        Ok(Some(Prepared { release, licence, scratch }))
    }

    /// Downloads the first candidate that exists; `None` if it has not changed. A 403 may also mean that a file does
    /// not exist yet: S3 returns it if the caller may not list the bucket.
    async fn download<'o>(
        &self,
        offer: &'o Offer,
        scratch: &Scratch,
    ) -> Result<Option<(&'o Candidate, Served)>, UpdateError> {
        let mut candidates = offer.candidates.iter().peekable();
        while let Some(candidate) = candidates.next() {
            let Candidate { url, conditions, .. } = candidate;
            let authorization = offer.authorization.as_ref();
            let into = scratch.file("served");
            match self.web.download(url, conditions, authorization, &into, MAX_SERVED).await {
                Ok(Downloaded::File(served)) => return Ok(Some((candidate, served))),
                Ok(Downloaded::NotModified) => return Ok(None),
                Err(DownloadError::Status(status))
                    if matches!(status.as_u16(), 403 | 404 | 410) && candidates.peek().is_some() => {}
                Err(error) => return Err(UpdateError::Download(error)),
            }
        }
        Ok(None)
    }

    async fn expand(&self, scratch: &Scratch) -> Result<Expanded, UpdateError> {
        let served = scratch.file("served");
        let database = scratch.file("database");
        let largest = self.largest;
        self.blocking(move || {
            let expanded = archive::expand(&served, &database, largest)?;
            // A function's disk is small.
            let _ = std::fs::remove_file(&served);
            Ok(expanded)
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, UpdateError> + Send + 'static,
    ) -> Result<T, UpdateError> {
        spawn_blocking(work).await.unwrap_or_else(|panic| Err(UpdateError::Scratch(io::Error::other(panic))))
    }

    fn release(
        &self,
        offer: &Offer,
        candidate: &Candidate,
        served: Served,
        expanded: Expanded,
        facts: Facts,
        before: Option<&Release>,
    ) -> Release {
        let published_date = Release::published_after(before, self.clock.now());
        Release {
            name: Release::name(published_date, &expanded.sha256, &*self.random),
            sha256: expanded.sha256,
            build_epoch: facts.build_epoch,
            build_date: build_date(facts.build_epoch),
            size_bytes: facts.size_bytes,
            node_count: facts.node_count,
            database_type: facts.database_type,
            published_date,
            known_addresses: facts.known_addresses,
            source: Origin {
                address_sha256: Some(Candidate::fingerprint(&candidate.url)),
                etag: served.etag,
                last_modified: served.last_modified,
                date: candidate.date.clone(),
                served_sha256: Some(served.sha256),
                ..offer.origin.clone()
            },
            attribution: offer.attribution.map(str::to_owned),
        }
    }

    async fn upload(&self, edition: &EditionName, prepared: &Prepared) -> Result<(), UpdateError> {
        let Prepared { release, licence, scratch } = prepared;
        let database = release.key(&self.environment, edition);
        self.store.put(&database, &scratch.file("database"), &release.sha256).await?;
        if let Some(licence) = licence {
            let file = scratch.file("licence");
            std::fs::write(&file, licence).map_err(UpdateError::Scratch)?;
            let sha256 = hash::sha256(licence.as_bytes());
            self.store.put(&release.licence_key(&self.environment, edition), &file, &sha256).await?;
        }
        Ok(())
    }

    /// Moves the pointer to a release that is in the store, unless another update has moved it.
    async fn move_pointer(
        &self,
        edition: &EditionName,
        before: Option<&Pointer>,
        tag: Option<&Tag>,
        release: Release,
    ) -> Result<UpdateOutcome, UpdateError> {
        let pointer = Pointer::moved_to(before, edition, release.clone());
        if self.store.swap_pointer(&self.environment, &pointer, tag).await? == Swap::Lost {
            match self.pointer(edition).await? {
                // The response was lost and the request repeated: our swap succeeded.
                Some((now, _)) if now == pointer => {}
                Some((now, _)) if now.current.build_epoch >= release.build_epoch && !now.blocks(&release.sha256) => {
                    return Ok(UpdateOutcome::Overtaken(Box::new(now.current)));
                }
                // A rollback, or an update to an older build, came first. The next update starts from the new pointer.
                _ => return Err(UpdateError::PointerMoved),
            }
        }
        self.tidy(&pointer).await;
        Ok(UpdateOutcome::Published(Box::new(release), before.map(|pointer| Box::new(pointer.current.clone()))))
    }

    /// Removes obsolete files. A failure costs only space.
    async fn tidy(&self, pointer: &Pointer) {
        let edition = &pointer.edition;
        let folder = format!("{}/{edition}/", self.environment);
        let removed = async {
            for key in self.store.list(&folder).await? {
                if key.strip_prefix(&folder).is_some_and(|file| pointer.has_outlived(file)) {
                    self.store.remove(&key).await?;
                }
            }
            Ok::<_, StoreError>(())
        };
        if let Err(error) = removed.await {
            let error = logging::chain(&error);
            tracing::warn!(%edition, error, "old releases could not be removed; the next publication will try again");
        }
    }
}

impl fmt::Display for UpdateOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpToDate(release) => write!(f, "is up to date: build {}", release.label()),
            Self::WouldPublish(release, now) => {
                write!(f, "would publish {}, {}", build_of(release), compared("is", now.as_deref()))
            }
            Self::Published(release, before) => {
                write!(f, "published {}, {}", build_of(release), compared("was", before.as_deref()))
            }
            Self::Overtaken(release) => {
                write!(f, "another update has just published build {}, which stays current", release.label())
            }
        }
    }
}

fn build_of(release: &Release) -> String {
    format!("build {}, {}", release.label(), size(release.size_bytes))
}

fn compared(verb: &str, other: Option<&Release>) -> String {
    other.map_or_else(|| "the first".to_owned(), |other| format!("{verb} {}", other.label()))
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", (bytes + 500) / 1_000),
        _ => format!("{} MB", (bytes + 500_000) / 1_000_000),
    }
}

#[cfg(test)]
#[path = "update_faults_tests.rs"]
mod faults_tests;
#[cfg(test)]
#[path = "update_races_tests.rs"]
mod races_tests;
#[cfg(test)]
#[path = "update_sources_tests.rs"]
mod sources_tests;
#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
