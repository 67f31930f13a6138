//! The secrets' files, two for each secret. `NAME.json` has the current value, which a person may also write.
//! `NAME.versions` has the versions with their labels, if the secret was ever changed through the store.
//!
//! Each file is written atomically, the file with the value first. A crash between the two writes leaves a value that
//! is not the current version; the store treats it as if a person had written it ([`crate::secret::Secret::adopt`]).

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use base::{Time, private_file};

use crate::{refusal::FileError, secret::Secret};

/// The extensions of the two files.
const VALUE: &str = ".json";
const VERSIONS: &str = ".versions";

/// Metadata that identifies a file's content: different content has a different stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { inode: metadata.ino(), length: metadata.size(), modified: (metadata.mtime(), metadata.mtime_nsec()) }
    }

    /// When the file was last written.
    pub fn time(&self) -> Time {
        let (seconds, nanos) = self.modified;
        Time::from_millis(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
    }
}

/// The folder that contains the files.
pub struct Files {
    folder: PathBuf,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError::Io { path, source }
}

/// The result of reading a file; `None` if it does not exist.
fn found<T>(path: &Path, outcome: io::Result<T>) -> Result<Option<T>, FileError> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some).map_err(at(path)),
    }
}

impl Files {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The names of all secrets with a file of either kind.
    pub fn names(&self) -> Result<BTreeSet<String>, FileError> {
        let entries = fs::read_dir(&self.folder).map_err(at(&self.folder))?;
        let names = entries.map(|entry| {
            let file = entry.map_err(at(&self.folder))?.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(VALUE).or(file.strip_suffix(VERSIONS)));
            Ok(name.filter(|name| !name.is_empty()).map(str::to_owned))
        });
        names.filter_map(Result::transpose).collect()
    }

    /// The file with a secret's value.
    pub fn value_file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{VALUE}"))
    }

    fn versions_file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{VERSIONS}"))
    }

    /// The current stamp of the file with the value, if the file exists.
    pub fn stamp(&self, name: &str) -> Result<Option<Stamp>, FileError> {
        let path = self.value_file(name);
        Ok(found(&path, fs::metadata(&path))?.as_ref().map(Stamp::of))
    }

    /// The value, without a trailing newline.
    pub fn value(&self, name: &str) -> Result<Option<String>, FileError> {
        let path = self.value_file(name);
        let text = found(&path, fs::read_to_string(&path))?;
        Ok(text.map(|text| text.strip_suffix('\n').map_or(text.clone(), str::to_owned)))
    }

    pub fn versions(&self, name: &str) -> Result<Option<Secret>, FileError> {
        let path = self.versions_file(name);
        let Some(text) = found(&path, fs::read_to_string(&path))? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|_| FileError::Versions(path))
    }

    pub fn write_value(&self, name: &str, text: &str) -> Result<(), FileError> {
        let path = self.value_file(name);
        private_file::write(&path, format!("{text}\n").as_bytes()).map_err(at(&path))
    }

    pub fn write_versions(&self, name: &str, secret: &Secret) -> Result<(), FileError> {
        let path = self.versions_file(name);
        let text = serde_json::to_vec(secret).map_err(io::Error::other);
        text.and_then(|text| private_file::write(&path, &text)).map_err(at(&path))
    }

    /// Removes both files, the one with the value first: versions without a value belong to a removed secret.
    pub fn remove(&self, name: &str) -> Result<(), FileError> {
        for path in [self.value_file(name), self.versions_file(name)] {
            found(&path, fs::remove_file(&path))?;
        }
        // A removal is durable only once the folder has been synced.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(at(&self.folder))
    }
}
