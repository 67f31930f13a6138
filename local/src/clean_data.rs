//! Removes the data of local runs: `make clean-data`.

use std::{
    fmt::Write as _,
    fs::{self, File, TryLockError},
    io::{self, IsTerminal, Write as _},
    path::{Path, PathBuf},
};

use crate::data_folder::clean_command;

/// The files that belong to a run's data. Other files in the folder are not removed.
const TABLE: [&str; 4] = ["table.db", "table.db-wal", "table.db-shm", "table.db-journal"];
const SECRETS: &str = "secrets";
const GEO_IP: &str = "geo-ip";
const FOLDERS: [&str; 3] = [SECRETS, GEO_IP, "logs"];
const FILES: [&str; 3] = ["service.env", "functions.json", "rotation.lock"];
/// Temporary files that atomic writes may leave behind after a crash.
const UNFINISHED: [&str; 3] = ["service.unfinished", "functions.unfinished", "room.unfinished"];
/// The lock that the running service holds. The lock is removed last, so that no service starts in the meantime.
const LOCK: &str = "lock";

/// Why data was not removed, or only partly removed.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    #[error("{0} has no data from a local run, so nothing was removed.")]
    NoData(PathBuf),
    #[error("A service is running with the data in {0}, so nothing was removed. Stop it first.")]
    InUse(PathBuf),
    #[error("Nothing was removed. To confirm, run: {} CONFIRM=yes", clean_command(.0))]
    Unasked(PathBuf),
    #[error("Nothing was removed.")]
    Declined,
    #[error("{path} cannot be removed")]
    Io { path: PathBuf, source: io::Error },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CleanError {
    let path = path.to_owned();
    move |source| CleanError::Io { path, source }
}

/// Removes the data in this folder, if no service uses it and a person confirms. Asks no question if `confirmed` is
/// `yes`.
pub fn clean(folder: &Path, confirmed: &str) -> Result<(), CleanError> {
    if !folder.exists() {
        eprintln!("{} does not exist: there is nothing to remove.", folder.display());
        return Ok(());
    }
    let _lock = lock(folder)?;
    if confirmed != "yes" {
        confirm(folder)?;
    }
    remove(folder)
}

/// Takes the folder's lock, which a running service would hold.
fn lock(folder: &Path) -> Result<File, CleanError> {
    let path = folder.join(LOCK);
    let lock = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CleanError::NoData(folder.to_owned())),
        opened => opened.map_err(at(&path))?,
    };
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(CleanError::InUse(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(CleanError::Io { path, source }),
    }
}

/// Asks for confirmation, and fails if it is refused.
fn confirm(folder: &Path) -> Result<(), CleanError> {
    eprintln!("This permanently removes from {}:\n{}", folder.display(), kept(folder));
    if !io::stdin().is_terminal() {
        return Err(CleanError::Unasked(folder.to_owned()));
    }
    eprint!("Type yes to remove it: ");
    let mut answer = String::new();
    let read = io::stderr().flush().and_then(|()| io::stdin().read_line(&mut answer));
    if read.is_ok() && answer.trim() == "yes" { Ok(()) } else { Err(CleanError::Declined) }
}

/// Lists the data that would be lost.
fn kept(folder: &Path) -> String {
    let size: u64 = TABLE.iter().filter_map(|name| Some(fs::metadata(folder.join(name)).ok()?.len())).sum();
    let size = match size {
        ..1_000_000 => format!("{} kB", size / 1000),
        _ => format!("{}.{} MB", size / 1_000_000, size / 100_000 % 10),
    };
    let mut lines = format!("  the table, {size}");
    let names = fs::read_dir(folder.join(SECRETS)).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned));
    let mut names: Vec<_> = names.collect();
    names.sort();
    // Writing to a `String` cannot fail.
    if !names.is_empty() {
        let _ = write!(lines, "\n  the secrets, including any that you added: {}", names.join(", "));
    }
    if folder.join(GEO_IP).exists() {
        lines.push_str("\n  the geo-IP databases");
    }
    lines + "\n  the logs"
}

/// Removes a run's data, and the folder itself if nothing else is in it.
fn remove(folder: &Path) -> Result<(), CleanError> {
    let gone = |path: PathBuf, outcome: io::Result<()>| match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&path)(error)),
        _ => Ok(()),
    };
    for path in FOLDERS.map(|name| folder.join(name)) {
        let removed = fs::remove_dir_all(&path);
        gone(path, removed)?;
    }
    for name in TABLE.into_iter().chain(FILES).chain(UNFINISHED).chain([LOCK]) {
        let path = folder.join(name);
        let removed = fs::remove_file(&path);
        gone(path, removed)?;
    }
    let left = fs::read_dir(folder).map_err(at(folder))?.flatten();
    let mut left: Vec<_> = left.map(|entry| entry.file_name().display().to_string()).collect();
    left.sort();
    if !left.is_empty() {
        eprintln!("{} was kept, because it has other files: {}", folder.display(), left.join(", "));
        return Ok(());
    }
    // If the folder is a symbolic link, keep it: a person made it.
    if folder.is_symlink() { Ok(()) } else { fs::remove_dir(folder).map_err(at(folder)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_folder::DataFolder;

    #[test]
    fn all_data_of_a_run_and_nothing_else_is_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("data");
        assert!(clean(&folder, "yes").is_ok(), "nothing is there to be removed");
        let data = DataFolder::open(&folder).expect("a new folder");
        assert!(matches!(clean(&folder, "yes"), Err(CleanError::InUse(_))));
        fs::write(data.table(), "table").expect("written");
        fs::write(data.secrets().join("task-key.json"), "{}").expect("written");
        fs::write(data.service_env(), "A=b").expect("written");
        drop(data);
        assert!(kept(&folder).contains("that you added: task-key"), "{}", kept(&folder));
        fs::write(folder.join("mine"), "").expect("written");
        clean(&folder, "yes").expect("removed");
        let left: Vec<_> = fs::read_dir(&folder).expect("it stays").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["mine"]);
        assert!(matches!(clean(&folder, "yes"), Err(CleanError::NoData(_))));
        drop(DataFolder::open(&folder).expect("a new start"));
        fs::remove_file(folder.join("mine")).expect("there");
        clean(&folder, "yes").expect("removed");
        assert!(!folder.exists());
    }
}
