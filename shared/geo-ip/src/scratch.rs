//! The temporary folder of one update. A later update removes the folder of a killed one, since a function's small disk
//! outlives its invocations.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use base::{Random, Time, random};

const PREFIX: &str = "waypost-geo-ip-";
/// The age after which a folder counts as abandoned. No update takes this long.
const LEFT_BEHIND: Duration = Duration::from_secs(20 * 60);

/// A temporary folder, removed when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder in `parent` and removes abandoned ones there.
    pub fn make(parent: &Path, now: Time, random: &dyn Random) -> io::Result<Self> {
        remove_left_behind(parent, now);
        let folder = parent.join(format!("{PREFIX}{}", random::alphanumeric(random, 16)));
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // on failure, a later update removes it
    }
}

fn remove_left_behind(parent: &Path, now: Time) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let changed = changed.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let changed = changed.and_then(|since| i64::try_from(since.as_millis()).ok()).map(Time::from_millis);
        if ours && changed.is_some_and(|changed| now.since(changed) > LEFT_BEHIND) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Clock, SystemClock, SystemRandom};

    #[test]
    fn nothing_is_left_for_ever() {
        let parent = tempfile::tempdir().expect("a folder");
        let now = SystemClock.now();
        let scratch = Scratch::make(parent.path(), now, &SystemRandom).expect("made");
        fs::write(scratch.file("a"), "a").expect("written");
        fs::create_dir(parent.path().join("another")).expect("made");
        let later = now + LEFT_BEHIND + Duration::from_secs(60);
        let second = Scratch::make(parent.path(), now, &SystemRandom).expect("made");
        assert!(scratch.file("a").exists(), "another update may be under way");
        drop(second);
        std::mem::forget(scratch);
        drop(Scratch::make(parent.path(), later, &SystemRandom).expect("made"));
        let left: Vec<_> =
            fs::read_dir(parent.path()).expect("there").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["another"]);
    }
}
