//! What the table tells its operator. The functions see a table that does not answer, and nothing of the disk.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use dynoxide::DynoxideError;

use crate::disk;

/// One line in this time: every call fails on a full disk, and each is repeated.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Logs the faults of one table.
#[derive(Debug)]
pub struct Faults {
    /// The folder with the table's file, if it is on disk.
    folder: Option<PathBuf>,
    last: Mutex<Option<Instant>>,
}

impl Faults {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, last: Mutex::new(None) }
    }

    /// Logs an error that is the table's own fault, and no answer to a bad request.
    pub fn note(&self, error: &DynoxideError) {
        if error.status_code() >= 500 && self.is_time() {
            tracing::error!("{}", self.sentence(error));
        }
    }

    fn is_time(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL);
        if is_time {
            *last = Some(Instant::now());
        }
        is_time
    }

    fn sentence(&self, error: &DynoxideError) -> String {
        match &self.folder {
            Some(folder) if disk::has_no_room(folder) => {
                format!("the disk is full: the table in {} takes nothing new until there is room", folder.display())
            }
            _ => format!("the table failed: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_logged_once_in_a_while() {
        let faults = Faults::new(None);
        assert!(faults.is_time() && !faults.is_time());
        let said = faults.sentence(&DynoxideError::InternalServerError("torn".to_owned()));
        assert_eq!(said, "the table failed: torn");
    }
}
