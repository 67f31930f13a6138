//! Logs the table's faults for the operator. The functions only see that the table fails to respond.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use dynoxide::DynoxideError;

use crate::disk;

/// The minimum time between two log lines: on a full disk, every call fails and is retried.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A log of one table's faults.
#[derive(Debug)]
pub struct Faults {
    /// The folder that contains the table's file, if the table is on disk.
    folder: Option<PathBuf>,
    last: Mutex<Option<Instant>>,
}

impl Faults {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, last: Mutex::new(None) }
    }

    /// Logs an error in the table itself, but not the refusal of an invalid request.
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
                format!(
                    "the disk is full: the table in {} accepts no writes until you free some \
                         space",
                    folder.display()
                )
            }
            _ => format!("the table failed: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_logged_with_a_minimum_interval() {
        let faults = Faults::new(None);
        assert!(faults.is_time() && !faults.is_time());
        let said = faults.sentence(&DynoxideError::InternalServerError("torn".to_owned()));
        assert_eq!(said, "the table failed: torn");
    }
}
