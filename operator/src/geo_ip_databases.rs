//! An operator's access to published geo-IP databases: looking up addresses, and rolling back and unblocking releases.

use std::{
    env::temp_dir,
    net::IpAddr,
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use aws_sdk_s3::{Client, config::Builder};
use serde_json::Value;

use crate::{
    DeploymentError,
    deployment::{Folder, Stack},
};
use base::{SystemClock, SystemRandom};
use geo_ip::{
    DatabaseReader, EditionName, Release, Store, StoreAddress, StoreError,
    reader::ReaderError,
    rollback::{RollbackError, RolledBack, UnblockError, roll_back, unblock},
    store::{FolderStore, S3Store},
};

/// A local deployment's name.
const LOCAL: &str = "local";

/// The databases that one deployment publishes.
pub struct GeoIpDatabases {
    store: Store,
    address: String,
    environment: String,
}

/// The result of looking up an address in one edition.
pub struct Lookup {
    /// The edition.
    pub edition: EditionName,
    /// The release that was read.
    pub release: Release,
    /// The address's network and its value, if the database contains the address.
    pub found: Option<(String, Value)>,
}

/// Why an operation on geo-IP databases failed.
#[derive(Debug, thiserror::Error)]
pub enum GeoIpError {
    /// The deployment cannot be used.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The store's path cannot be made absolute.
    #[error("{0} is not the address of a store; give a folder or s3://BUCKET")]
    Place(PathBuf),
    /// The store has no databases.
    #[error("no database is published in {0}; `waypost-admin geo-ip update` publishes the configured ones")]
    Nothing(String),
    /// Rolling back failed.
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    /// No release was unblocked.
    #[error(transparent)]
    Unblock(#[from] UnblockError),
    /// The store does not respond.
    #[error(transparent)]
    List(#[from] StoreError),
    /// A release cannot be read.
    #[error(transparent)]
    Read(#[from] ReaderError),
    /// The address cannot be looked up in a release.
    #[error("{0}: the address cannot be looked up: {1}")]
    Lookup(EditionName, String),
}

impl GeoIpError {
    /// Whether the named store, database or release does not exist, in which case nothing was changed and a retry would
    /// fail again.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Deployment(error) => error.is_refusal(),
            Self::Place(_) | Self::Nothing(_) | Self::Read(ReaderError::NothingPublished(_)) => true,
            Self::Rollback(error) => matches!(
                error,
                RollbackError::NothingPublished(_) | RollbackError::NothingBefore(_) | RollbackError::Gone(_)
            ),
            Self::Unblock(error) => {
                matches!(error, UnblockError::NothingPublished(_) | UnblockError::NotOne { .. })
            }
            Self::List(_) | Self::Read(_) | Self::Lookup(..) => false,
        }
    }
}

impl GeoIpDatabases {
    /// A stack's databases.
    pub fn of_stack(stack: &Stack) -> Result<Self, GeoIpError> {
        Self::open(stack.output("GeoIpStore")?, stack.output("EnvironmentName")?, || Client::new(&stack.aws))
    }

    /// The databases of a local data folder. No service needs to run there.
    pub async fn of_data(data: &Path) -> Result<Self, GeoIpError> {
        let folder = match Folder::open(data) {
            Err(DeploymentError::NoService(_)) => return Self::in_folder(&data.join("geo-ip"), LOCAL),
            opened => opened?,
        };
        let aws = folder.aws().await?;
        let endpoint = folder.value("S3_ENDPOINT")?;
        // The emulation does not have a host name for each bucket.
        let s3 = || Builder::from(&aws).endpoint_url(endpoint).force_path_style(true).build();
        Self::open(folder.value("GEO_IP_STORE")?, folder.value("ENVIRONMENT")?, || Client::from_conf(s3()))
    }

    /// The `environment` deployment's databases in a store: `s3://BUCKET`, `file:///FOLDER` or a folder's path.
    pub async fn at(store: &str, environment: Option<&str>) -> Result<Self, GeoIpError> {
        let aws = aws_config::load_from_env().await;
        Self::open(store, environment.unwrap_or(LOCAL), || Client::new(&aws))
    }

    fn open(store: &str, environment: &str, s3: impl FnOnce() -> Client) -> Result<Self, GeoIpError> {
        let opened = match store.parse() {
            Ok(StoreAddress::S3 { bucket, prefix }) => Store::S3(S3Store::new(s3(), bucket, prefix)),
            Ok(StoreAddress::Folder(folder)) => Store::Folder(FolderStore::new(folder)),
            Err(_) => return Self::in_folder(Path::new(store), environment),
        };
        Ok(Self { store: opened, address: store.to_owned(), environment: environment.to_owned() })
    }

    fn in_folder(folder: &Path, environment: &str) -> Result<Self, GeoIpError> {
        let path = absolute(folder).map_err(|_| GeoIpError::Place(folder.to_owned()))?;
        let address = path.display().to_string();
        let environment = environment.to_owned();
        Ok(Self { store: Store::Folder(FolderStore::new(path)), address, environment })
    }

    /// Rolls back to the previous release, and blocks the current one.
    pub async fn roll_back(&self, edition: &EditionName) -> Result<RolledBack, GeoIpError> {
        Ok(roll_back(&self.store, &self.environment, edition).await?)
    }

    /// Unblocks a release that was rolled back, so that it can be published again. Returns its SHA-256.
    pub async fn unblock(&self, edition: &EditionName, beginning: &str) -> Result<String, GeoIpError> {
        Ok(unblock(&self.store, &self.environment, edition, beginning).await?)
    }

    /// Looks up an address as readers do, in one edition or in all published ones.
    pub async fn look_up(&self, address: IpAddr, edition: Option<&EditionName>) -> Result<Vec<Lookup>, GeoIpError> {
        let editions = match edition {
            Some(edition) => vec![edition.clone()],
            None => self.published().await?,
        };
        if editions.is_empty() {
            return Err(GeoIpError::Nothing(format!("{}/{}", self.address.trim_end_matches('/'), self.environment)));
        }
        let mut answers = Vec::new();
        for edition in editions {
            answers.push(self.look_up_in(edition, address).await?);
        }
        Ok(answers)
    }

    async fn published(&self) -> Result<Vec<EditionName>, StoreError> {
        let folders = self.store.folders(&format!("{}/", self.environment)).await?;
        Ok(folders.iter().filter_map(|folder| EditionName::parse(folder)).collect())
    }

    async fn look_up_in(&self, edition: EditionName, address: IpAddr) -> Result<Lookup, GeoIpError> {
        let store = self.store.clone();
        let clock = Arc::new(SystemClock);
        let random = Arc::new(SystemRandom);
        let reader = DatabaseReader::new(store, &self.environment, edition.clone(), temp_dir(), clock, random);
        let database = reader.refresh().await?;
        let found = database.lookup::<Value>(address);
        let found = found.map_err(|error| GeoIpError::Lookup(edition.clone(), error.to_string()))?;
        let release = database.release.clone();
        Ok(Lookup { edition, release, found: found.map(|found| (found.network, found.value)) })
    }
}
