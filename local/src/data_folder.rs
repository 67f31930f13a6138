//! A local deployment's data folder, which contains the table, secrets, logs and `service.env`.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use base::private_file;

/// The folder, locked so that only one instance of the service can use it.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    _lock: File,
}

#[derive(Debug, thiserror::Error)]
pub enum DataFolderError {
    #[error("another instance is running with the data in {0}; stop it, or choose another folder with DATA=")]
    InUse(PathBuf),
    #[error("{path} cannot be used")]
    Io { path: PathBuf, source: io::Error },
}

/// The command that removes the data in this folder. The command always names the folder; otherwise, it would clean the
/// default folder.
pub fn clean_command(folder: &Path) -> String {
    format!("make clean-data DATA='{}'", folder.display().to_string().replace('\'', r"'\''"))
}

/// Adds the path to a file system error.
fn at(path: &Path) -> impl FnOnce(io::Error) -> DataFolderError {
    let path = path.to_owned();
    move |source| DataFolderError::Io { path, source }
}

impl DataFolder {
    /// Opens the folder, creating it if it is missing, and holds its lock until the process ends.
    ///
    /// The last run's `service.env` is removed, since this run is not serving requests yet. Its logs are renamed to
    /// `NAME.log.1`, overwriting any older ones.
    pub fn open(root: &Path) -> Result<Self, DataFolderError> {
        make_private_folder(root)?;
        let root = fs::canonicalize(root).map_err(at(root))?;
        let lock_path = root.join("lock");
        let lock = File::options().create(true).write(true).truncate(false).open(&lock_path).map_err(at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataFolderError::InUse(root)),
            Err(TryLockError::Error(source)) => {
                return Err(DataFolderError::Io { path: lock_path, source });
            }
        }
        let folder = Self { root, _lock: lock };
        for part in [folder.secrets(), folder.logs()] {
            make_private_folder(&part)?;
        }
        folder.withdraw_service_env()?;
        folder.set_logs_aside()?;
        Ok(folder)
    }

    /// The folder with one file per secret.
    pub fn secrets(&self) -> PathBuf {
        self.root.join("secrets")
    }

    /// The folder with one file per process.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub fn table(&self) -> PathBuf {
        self.root.join("table.db")
    }

    /// The store for published geo-IP databases.
    pub fn geo_ip(&self) -> PathBuf {
        self.root.join("geo-ip")
    }

    /// The file with addresses and credentials for clients.
    pub fn service_env(&self) -> PathBuf {
        self.root.join("service.env")
    }

    /// Each function's variables, for functions that SAM runs.
    pub fn function_variables(&self) -> PathBuf {
        self.root.join("functions.json")
    }

    /// Removes `service.env` and the functions' variables, which exist only while the service is serving requests.
    pub fn withdraw_service_env(&self) -> Result<(), DataFolderError> {
        for path in [self.service_env(), self.function_variables()] {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(DataFolderError::Io { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn set_logs_aside(&self) -> Result<(), DataFolderError> {
        let logs = self.logs();
        for entry in fs::read_dir(&logs).map_err(at(&logs))? {
            let path = entry.map_err(at(&logs))?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                fs::rename(&path, path.with_extension("log.1")).map_err(at(&path))?;
            }
        }
        Ok(())
    }
}

fn make_private_folder(path: &Path) -> Result<(), DataFolderError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// Atomically writes a file that only its owner can read: after a crash, it has either the old content or the new.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), DataFolderError> {
    private_file::write(path, content).map_err(at(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_has_one_user_at_a_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = DataFolder::open(folder.path()).expect("free");
        assert!(matches!(DataFolder::open(folder.path()), Err(DataFolderError::InUse(_))));
        drop(first);
        assert!(DataFolder::open(folder.path()).is_ok());
    }

    #[test]
    fn addresses_and_credentials_of_the_last_run_are_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["service.env", "functions.json"] {
            write_private(&folder.path().join(name), b"old").expect("written");
        }
        let data = DataFolder::open(folder.path()).expect("free");
        assert!(!data.service_env().exists() && !data.function_variables().exists());
    }

    #[test]
    fn private_files_are_private_and_replaced_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("secret.json");
        for content in ["a longer first content", "second"] {
            write_private(&path, content.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("readable"), content);
        }
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
