//! The store of releases and pointers: a folder or an S3 bucket. Releases are immutable; pointers change only by
//! compare-and-swap.

mod folder;
mod object;
mod s3;

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

pub use folder::FolderStore;
pub use object::{Object, Reading, StoreError, Swap, Tag};
pub use s3::S3Store;
use url::Url;

use crate::{edition::EditionName, pointer::Pointer};
use storage::aws::Aws;

/// A store of releases and pointers.
#[derive(Debug, Clone)]
pub enum Store {
    /// A folder on this machine.
    Folder(FolderStore),
    /// A bucket.
    S3(S3Store),
}

/// A store's address: `file:///folder` or `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// The folder's absolute path.
    Folder(PathBuf),
    /// The bucket, and the prefix of all keys.
    S3 {
        /// The bucket's name.
        bucket: String,
        /// Empty, or ends with a slash.
        prefix: String,
    },
}

/// Calls a method on either kind of store.
macro_rules! of_either {
    ($self:ident, $store:ident => $call:expr) => {
        match $self {
            Self::Folder($store) => $call.await,
            Self::S3($store) => $call.await,
        }
    };
}

impl Store {
    /// The store at an address.
    pub fn open(address: StoreAddress, aws: &Aws) -> Self {
        match address {
            StoreAddress::Folder(root) => Self::Folder(FolderStore::new(root)),
            StoreAddress::S3 { bucket, prefix } => Self::S3(S3Store::new(aws.s3(), bucket, prefix)),
        }
    }

    /// Reads an edition's pointer, unless it has the known tag.
    pub async fn pointer(
        &self,
        environment: &str,
        edition: &EditionName,
        known: Option<&Tag>,
    ) -> Result<Reading<(Pointer, Tag)>, StoreError> {
        let key = Pointer::key(environment, edition);
        Ok(match of_either!(self, store => store.read(&key, known))? {
            Reading::Same => Reading::Same,
            Reading::Absent => Reading::Absent,
            Reading::Found(Object { content, tag }) => match serde_json::from_slice(&content) {
                Ok(pointer) => Reading::Found((pointer, tag)),
                Err(error) => return Err(StoreError::Pointer(key, error)),
            },
        })
    }

    /// Replaces an edition's pointer if it has this tag; `None` writes the first pointer.
    pub async fn swap_pointer(
        &self,
        environment: &str,
        pointer: &Pointer,
        expected: Option<&Tag>,
    ) -> Result<Swap, StoreError> {
        let key = Pointer::key(environment, &pointer.edition);
        let content = serde_json::to_vec_pretty(pointer).map_err(|error| StoreError::Pointer(key.clone(), error))?;
        of_either!(self, store => store.swap(&key, &content, expected))
    }

    /// Copies an object to a file and returns whether it exists.
    pub async fn fetch(&self, key: &str, into: &Path) -> Result<bool, StoreError> {
        of_either!(self, store => store.fetch(key, into))
    }

    /// Stores a file as an object, atomically.
    pub async fn put(&self, key: &str, file: &Path, sha256: &str) -> Result<(), StoreError> {
        match self {
            Self::Folder(store) => store.put(key, file).await,
            Self::S3(store) => store.put(key, file, sha256).await,
        }
    }

    /// Removes an object, if it exists.
    pub async fn remove(&self, key: &str) -> Result<(), StoreError> {
        of_either!(self, store => store.remove(key))
    }

    /// The keys of all objects directly below a prefix that ends with a slash.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        of_either!(self, store => store.list(prefix))
    }

    /// The names of all folders below a prefix that ends with a slash.
    pub async fn folders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        of_either!(self, store => store.folders(prefix))
    }
}

/// A string that is not a store's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither file:///absolute/folder nor s3://bucket/prefix")]
pub struct StoreAddressError;

impl FromStr for StoreAddress {
    type Err = StoreAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| StoreAddressError)?;
        let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        match url.scheme() {
            "file" if plain => url.to_file_path().map(Self::Folder).map_err(|()| StoreAddressError),
            "s3" if plain && url.port().is_none() => {
                let bucket = url.host_str().filter(|bucket| !bucket.is_empty()).ok_or(StoreAddressError)?;
                let prefix = url.path().trim_matches('/');
                let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
                Ok(Self::S3 { bucket: bucket.to_owned(), prefix })
            }
            _ => Err(StoreAddressError),
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Only absolute paths have an address, and parsing returns no others.
            Self::Folder(root) => f.write_str(Url::from_file_path(root).map(String::from).unwrap_or_default().as_str()),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_folder_or_a_bucket() {
        let s3 = |bucket: &str, prefix: &str| Ok(StoreAddress::S3 { bucket: bucket.into(), prefix: prefix.into() });
        assert_eq!("file:///var/geo%20ip".parse(), Ok(StoreAddress::Folder("/var/geo ip".into())));
        assert_eq!("s3://bucket".parse(), s3("bucket", ""));
        assert_eq!("s3://my.bucket/".parse(), s3("my.bucket", ""));
        assert_eq!("s3://bucket/a/b/".parse(), s3("bucket", "a/b/"));
        for address in ["file:///var/geo%20ip", "s3://bucket/a/b/", "s3://bucket/"] {
            assert_eq!(address.parse::<StoreAddress>().expect("an address").to_string(), address);
        }
        for bad in ["", "geo-ip", "/var/geo-ip", "file:", "s3://", "s3:///a", "https://bucket", "s3://b?a", "s3://u@b"]
        {
            let read = bad.parse::<StoreAddress>();
            assert!(read.is_err() || read == Ok(StoreAddress::Folder("/".into())), "{bad}: {read:?}");
        }
    }
}
