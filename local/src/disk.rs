//! Detection of a full disk, which SQLite sometimes reports as an I/O error.

use std::{
    error::Error,
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// The disk space that the table may need for one write, in bytes.
const ROOM: usize = 1024 * 1024;

/// Whether a write failed because the disk or the user's quota is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether a full disk is a direct or indirect cause of this error.
pub fn is_cause_of(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.any(|error| error.downcast_ref().is_some_and(is_full))
}

/// Whether this folder lacks room for a one-megabyte file. Writes such a file and removes it.
pub fn has_no_room(folder: &Path) -> bool {
    let path = folder.join("room.unfinished");
    let written = File::create(&path).and_then(|mut file| file.write_all(&[0; ROOM]).and_then(|()| file.sync_all()));
    // If the file cannot be removed, the next check overwrites it.
    let _ = fs::remove_file(&path);
    written.is_err_and(|error| is_full(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_that_finds_no_room_says_that_the_disk_is_full() {
        // Use the system's own error for a full disk.
        #[cfg(target_os = "linux")]
        {
            let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
            let refused = (&full).write_all(b"x").expect_err("it takes nothing");
            assert!(is_full(&refused), "{refused}");
        }
        #[derive(Debug, thiserror::Error)]
        #[error("a stage")]
        struct Stage(#[source] Box<dyn Error + Send + Sync>);
        let stages = |kind: io::ErrorKind| Stage(Box::new(Stage(Box::new(io::Error::from(kind)))));
        assert!(is_cause_of(&stages(io::ErrorKind::StorageFull)));
        assert!(!is_cause_of(&stages(io::ErrorKind::PermissionDenied)));
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!has_no_room(folder.path()), "these tests need some megabytes");
        assert!(!has_no_room(&folder.path().join("missing")), "another fault is not a full disk");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing stays");
    }
}
