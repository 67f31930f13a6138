//! A folder as a store, for one machine. Writes are atomic and durable.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::task::spawn_blocking;

use super::object::{Object, Reading, StoreError, Swap, Tag};
use crate::hash;

/// The suffix of a file that is still being written.
const UNFINISHED: &str = ".unfinished";

/// A store in a folder.
#[derive(Debug, Clone)]
pub struct FolderStore {
    root: PathBuf,
}

impl FolderStore {
    /// Creates a store in this folder, which is created with the first object.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Runs blocking work with an object's file on a separate thread.
    async fn with<T: Send + 'static>(
        &self,
        doing: &'static str,
        key: &str,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.root.join(key);
        let done = spawn_blocking(move || work(&path)).await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        done.map_err(|source| StoreError::Folder { doing, key: key.to_owned(), source })
    }

    pub(super) async fn read(&self, key: &str, known: Option<&Tag>) -> Result<Reading<Object>, StoreError> {
        let content = self.with("reading", key, |path| if_there(fs::read(path))).await?;
        Ok(match content.map(|content| Object { tag: tag(&content), content }) {
            None => Reading::Absent,
            Some(object) if known == Some(&object.tag) => Reading::Same,
            Some(object) => Reading::Found(object),
        })
    }

    pub(super) async fn fetch(&self, key: &str, into: &Path) -> Result<bool, StoreError> {
        let into = into.to_owned();
        self.with("fetching", key, move |path| Ok(if_there(fs::copy(path, into))?.is_some())).await
    }

    pub(super) async fn put(&self, key: &str, file: &Path) -> Result<(), StoreError> {
        let file = file.to_owned();
        self.with("keeping", key, move |path| {
            let beside = Beside::of(path)?;
            // Only the owner may read an object.
            let mut copy = File::options().create(true).write(true).truncate(true).mode(0o600).open(&beside.0)?;
            io::copy(&mut File::open(file)?, &mut copy)?;
            copy.sync_all()?;
            // The file may be missing: a later publication removes the unfinished files of older updates, which will
            // fail to swap the pointer.
            if_there(fs::rename(&beside.0, path))?;
            sync_folder(path)
        })
        .await
    }

    pub(super) async fn swap(&self, key: &str, content: &[u8], expected: Option<&Tag>) -> Result<Swap, StoreError> {
        let content = content.to_owned();
        let expected = expected.cloned();
        self.with("changing", key, move |path| {
            make_folder(path)?;
            // Released when the file is dropped.
            let lock = File::options().create(true).write(true).truncate(false).open(with_suffix(path, "lock"))?;
            lock.lock()?;
            if if_there(fs::read(path))?.map(|content| tag(&content)) != expected {
                return Ok(Swap::Lost);
            }
            let beside = Beside::of(path)?;
            let mut file = File::create(&beside.0)?;
            file.write_all(&content)?;
            file.sync_all()?;
            fs::rename(&beside.0, path)?;
            sync_folder(path)?;
            Ok(Swap::Swapped)
        })
        .await
    }

    pub(super) async fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.with("removing", key, |path| if_there(fs::remove_file(path)).map(drop)).await
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let names = self.names(prefix, |kind| kind.is_file()).await?;
        Ok(names.into_iter().map(|name| format!("{prefix}{name}")).collect())
    }

    pub(super) async fn folders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.names(prefix, |kind| kind.is_dir()).await
    }

    async fn names(&self, folder: &str, wanted: fn(fs::FileType) -> bool) -> Result<Vec<String>, StoreError> {
        self.with("listing", folder, move |folder| {
            let Some(entries) = if_there(fs::read_dir(folder))? else { return Ok(Vec::new()) };
            let mut names = Vec::new();
            for entry in entries {
                let entry = entry?;
                if wanted(entry.file_type()?) {
                    names.extend(entry.file_name().to_str().map(str::to_owned));
                }
            }
            names.sort();
            Ok(names)
        })
        .await
    }
}

/// A temporary file next to its target, removed when it is dropped.
struct Beside(PathBuf);

impl Beside {
    fn of(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        make_folder(path)?;
        let own = format!("{}-{}{UNFINISHED}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Ok(Self(with_suffix(path, &own)))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // fails if it was renamed
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn make_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Makes a file's name durable by syncing its folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn tag(content: &[u8]) -> Tag {
    Tag(hash::sha256(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, FolderStore) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FolderStore::new(folder.path().join("store"));
        (folder, store)
    }

    #[tokio::test]
    async fn a_missing_object_is_absent_and_no_error() {
        let (_folder, store) = store();
        for known in [None, Some(&tag(b""))] {
            assert_eq!(store.read("a/b/current.json", known).await.expect("readable"), Reading::Absent);
        }
        assert!(!store.fetch("a", Path::new("/nonexistent/file")).await.expect("readable"));
        assert_eq!(store.list("a/b/").await.expect("readable"), Vec::<String>::new());
        store.remove("a").await.expect("nothing to do");
    }

    #[tokio::test]
    async fn a_file_is_kept_whole_and_for_its_owner_only() {
        let (folder, store) = store();
        let file = folder.path().join("file");
        let copy = folder.path().join("copy");
        let key = "local/A/1-a.mmdb".to_owned();
        for content in ["content", "more content"] {
            fs::write(&file, content).expect("written");
            store.put(&key, &file).await.expect("kept");
            assert!(store.fetch(&key, &copy).await.expect("fetched"));
            assert_eq!(fs::read_to_string(&copy).expect("a copy"), content);
        }
        let mode = fs::metadata(folder.path().join("store").join(&key)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(store.list("local/A/").await.expect("listed"), std::slice::from_ref(&key));
        assert_eq!(store.folders("local/").await.expect("listed"), ["A"]);
        store.remove(&key).await.expect("removed");
        assert_eq!(store.list("local/A/").await.expect("listed"), Vec::<String>::new());
    }

    #[tokio::test]
    async fn of_many_swaps_from_one_state_only_one_succeeds() {
        let (_folder, store) = store();
        let mut expected = None;
        for round in 0..5 {
            let swaps =
                (0..20).map(|number| {
                    let store = store.clone();
                    let expected = expected.clone();
                    async move {
                        store.swap("a/current.json", format!("{round} {number}").as_bytes(), expected.as_ref()).await
                    }
                });
            let outcomes: Vec<_> = join_all(swaps).await.into_iter().map(|swap| swap.expect("answered")).collect();
            assert_eq!(outcomes.iter().filter(|swap| **swap == Swap::Swapped).count(), 1);
            let object = store.read("a/current.json", None).await.expect("readable").found().expect("there");
            assert!(object.content.starts_with(round.to_string().as_bytes()));
            let again = store.read("a/current.json", Some(&object.tag)).await.expect("readable");
            assert_eq!(again, Reading::Same);
            expected = Some(object.tag);
        }
        assert_eq!(store.swap("a/current.json", b"x", None).await.expect("answered"), Swap::Lost);
        let left = store.list("a/").await.expect("listed");
        assert_eq!(left, ["a/current.json", "a/current.json.lock"]);
    }
}
