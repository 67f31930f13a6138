//! All secrets in a folder, used by one operation at a time.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, MutexGuard},
};

use base::{SharedClock, SharedRandom, Time};
use serde::de::IgnoredAny;

use crate::{
    files::{Files, Stamp},
    refusal::{FileError, Refusal},
    secret::Secret,
};

/// The suffix of a secret's ARN, a hyphen and six characters; every secret here has the same suffix.
const ARN_SUFFIX: &str = "-local0";

/// The secrets' folder, and the parts of their names and ARNs.
#[derive(Debug, Clone)]
pub struct Location {
    /// The folder, which only its owner can read.
    pub folder: PathBuf,
    /// The common prefix of the secrets' names, which file names omit.
    pub prefix: String,
    /// The region in ARNs.
    pub region: String,
    /// The account in ARNs.
    pub account: String,
}

/// The secrets in a folder.
pub struct SecretStore {
    location: Location,
    files: Files,
    clock: SharedClock,
    random: SharedRandom,
    kept: Mutex<BTreeMap<String, Kept>>,
}

/// A secret as it was last read or written.
struct Kept {
    secret: Secret,
    stamp: Option<Stamp>,
}

/// Exclusive access to the secrets during one operation.
pub(crate) struct Secrets<'a> {
    store: &'a SecretStore,
    kept: MutexGuard<'a, BTreeMap<String, Kept>>,
    /// The time of the operation.
    pub now: Time,
}

impl SecretStore {
    /// Reads every secret in the folder.
    pub fn open(location: Location, clock: SharedClock, random: SharedRandom) -> Result<Self, FileError> {
        let files = Files::new(location.folder.clone());
        let names = files.names()?;
        let store = Self { location, files, clock, random, kept: Mutex::default() };
        let mut secrets = store.secrets();
        names.iter().try_for_each(|name| secrets.refresh(name))?;
        drop(secrets);
        Ok(store)
    }

    /// Locks the secrets during one operation.
    pub(crate) fn secrets(&self) -> Secrets<'_> {
        // An operation that panicked has changed nothing here: a secret is replaced as a whole, after its files were
        // written.
        let kept = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Secrets { store: self, kept, now: self.clock.now() }
    }

    pub(crate) fn random(&self) -> &SharedRandom {
        &self.random
    }

    /// A secret's full name.
    pub(crate) fn full_name(&self, name: &str) -> String {
        format!("{}{name}", self.location.prefix)
    }

    pub(crate) fn arn(&self, name: &str) -> String {
        format!("{}{}{ARN_SUFFIX}", self.arn_prefix(), self.full_name(name))
    }

    fn arn_prefix(&self) -> String {
        format!("arn:aws:secretsmanager:{}:{}:secret:", self.location.region, self.location.account)
    }

    /// A secret's name in the folder, given its full name or ARN; `None` if this store cannot contain it.
    pub(crate) fn name_of<'i>(&self, id: &'i str) -> Option<&'i str> {
        let full = match id.strip_prefix("arn:") {
            None => id,
            Some(_) => {
                let in_arn = id.strip_prefix(&self.arn_prefix())?;
                in_arn.strip_suffix(ARN_SUFFIX).unwrap_or(in_arn)
            }
        };
        let name = full.strip_prefix(&self.location.prefix)?;
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=.@-".contains(&byte);
        // The name becomes a file name: it must not lead to another folder, and must leave room for the extension.
        let fits = (1..=200).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_good);
        fits.then_some(name)
    }
}

impl Secrets<'_> {
    /// The current names of all secrets, including those marked for deletion.
    pub fn names(&mut self) -> Result<Vec<String>, FileError> {
        let mut names = self.store.files.names()?;
        names.extend(self.kept.keys().cloned());
        names.iter().try_for_each(|name| self.refresh(name))?;
        Ok(names.into_iter().filter(|name| self.kept.contains_key(name)).collect())
    }

    /// A secret, even if it is marked for deletion.
    pub fn present(&mut self, name: &str) -> Result<Option<&Secret>, FileError> {
        self.refresh(name)?;
        if self.kept.get(name).is_some_and(|kept| kept.secret.is_over(self.now)) {
            self.remove(name)?;
        }
        Ok(self.kept.get(name).map(|kept| &kept.secret))
    }

    /// A secret that may be used.
    pub fn usable(&mut self, name: &str) -> Result<&Secret, Refusal> {
        match self.present(name)? {
            None => Err(Refusal::NoSecret),
            Some(secret) if secret.deletion.is_some() => Err(Refusal::MarkedForDeletion),
            Some(secret) => Ok(secret),
        }
    }

    /// Stores a secret under this name, replacing an existing one. The secret is on disk when this function returns.
    pub fn keep(&mut self, name: &str, secret: Secret) -> Result<(), FileError> {
        let files = &self.store.files;
        let former = self.kept.get(name);
        if former.is_some_and(|former| former.secret == secret) {
            return Ok(());
        }
        if let Some(current) = secret.current() {
            let written = former.filter(|former| former.stamp.is_some()).and_then(|former| former.secret.current());
            if written.is_none_or(|written| written.text != current.text) {
                files.write_value(name, &current.text)?;
            }
        }
        files.write_versions(name, &secret)?;
        let stamp = files.stamp(name)?;
        self.kept.insert(name.to_owned(), Kept { secret, stamp });
        Ok(())
    }

    pub fn remove(&mut self, name: &str) -> Result<(), FileError> {
        self.store.files.remove(name)?;
        self.kept.remove(name);
        Ok(())
    }

    /// Reads the value again if a person, an operator's program or an interrupted operation changed its file. Removing
    /// a file takes effect at the next start; a half-written file is ignored until it is complete.
    fn refresh(&mut self, name: &str) -> Result<(), FileError> {
        let files = &self.store.files;
        let stamp = files.stamp(name)?;
        let known = self.kept.get_mut(name);
        if known.as_ref().is_some_and(|known| known.stamp == stamp) {
            return Ok(());
        }
        let versions = match &known {
            Some(known) => Some(known.secret.clone()),
            None => files.versions(name)?,
        };
        let value = match stamp {
            Some(_) => files.value(name)?,
            None => None,
        };
        // A value that is not JSON is valid only if an operation stored it.
        let is_good = |text: &String| {
            let current = versions.as_ref().and_then(Secret::current);
            current.is_some_and(|current| current.text == *text) || serde_json::from_str::<IgnoredAny>(text).is_ok()
        };
        let path = files.value_file(name);
        match (known, stamp.zip(value.filter(is_good))) {
            (_, Some((stamp, value))) => {
                let mut secret = versions.unwrap_or_else(|| Secret::new(stamp.time()));
                secret.adopt(name, value, stamp.time());
                self.kept.insert(name.to_owned(), Kept { secret, stamp: Some(stamp) });
            }
            (Some(known), None) => {
                known.stamp = stamp;
                let fault = if stamp.is_some() { "is not JSON" } else { "is gone" };
                tracing::warn!("{} {fault}; the previous value stays in use", path.display());
            }
            (None, None) if stamp.is_some() => tracing::warn!("{} is not JSON and is ignored", path.display()),
            // A secret that never had a value has no such file. If the secret had a value, a person has removed the
            // file.
            (None, None) => {
                if let Some(secret) = versions.filter(|secret| secret.versions.is_empty()) {
                    self.kept.insert(name.to_owned(), Kept { secret, stamp: None });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use base::{SystemClock, SystemRandom, testing::FixedClock};
    use serde_json::{Value, json};

    use super::*;
    use crate::operations::carry_out;

    fn location(folder: &Path) -> Location {
        let [prefix, region, account] = ["waypost/local/", "us-east-1", "000000000000"].map(str::to_owned);
        Location { folder: folder.to_owned(), prefix, region, account }
    }

    fn open(folder: &Path) -> SecretStore {
        SecretStore::open(location(folder), Arc::new(SystemClock), Arc::new(SystemRandom)).expect("readable")
    }

    fn ask(store: &SecretStore, operation: &str, request: Value) -> Result<Value, &'static str> {
        carry_out(store, operation, request.to_string().as_bytes()).map_err(|refusal| refusal.code())
    }

    fn text(store: &SecretStore, label: &str) -> Result<Value, &'static str> {
        let got = ask(store, "GetSecretValue", json!({ "SecretId": "waypost/local/one", "VersionStage": label }));
        got.map(|got| got["SecretString"].clone())
    }

    fn put(store: &SecretStore, id: char, text: &str, label: &str) -> Result<Value, &'static str> {
        let id = id.to_string().repeat(32);
        let request = json!({
            "SecretId": "waypost/local/one", "ClientRequestToken": id, "SecretString": text, "VersionStages": [label],
        });
        ask(store, "PutSecretValue", request)
    }

    #[test]
    fn acknowledged_changes_survive_any_end() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("one.json"), "{\"a\": 1}\n").expect("written");
        let store = open(folder.path());
        assert_eq!(text(&store, "AWSCURRENT"), Ok(json!("{\"a\": 1}")));
        assert!(!folder.path().join("one.versions").exists(), "a secret that was only read has no versions yet");
        put(&store, 'a', "{\"a\":2}", "AWSPENDING").expect("made");
        // Nothing is written on exit, so a crash loses nothing.
        let store = open(folder.path());
        assert_eq!(text(&store, "AWSPENDING"), Ok(json!("{\"a\":2}")));
        put(&store, 'b', "{\"a\":3}", "AWSCURRENT").expect("made");
        let store = open(folder.path());
        assert_eq!(text(&store, "AWSCURRENT"), Ok(json!("{\"a\":3}")));
        assert_eq!(text(&store, "AWSPREVIOUS"), Ok(json!("{\"a\": 1}")));
        let file = fs::read_to_string(folder.path().join("one.json")).expect("there");
        assert_eq!(file, "{\"a\":3}\n", "a person reads it");
        for file in ["one.json", "one.versions"] {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path().join(file)).expect("there").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{file} is private");
        }
    }

    #[test]
    fn an_operation_stopped_between_the_two_files_has_taken_effect() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("one.json"), "1\n").expect("written");
        let store = open(folder.path());
        put(&store, 'a', "2", "AWSPENDING").expect("made");
        let before = fs::read(folder.path().join("one.versions")).expect("there");
        let current = ask(&store, "GetSecretValue", json!({ "SecretId": "waypost/local/one" })).expect("there");
        let finish = json!({
            "SecretId": "waypost/local/one", "VersionStage": "AWSCURRENT", "MoveToVersionId": "a".repeat(32),
            "RemoveFromVersionId": current["VersionId"],
        });
        ask(&store, "UpdateSecretVersionStage", finish).expect("moved");
        let after = open(folder.path());
        let described =
            |store| ask(store, "DescribeSecret", json!({ "SecretId": "waypost/local/one" })).expect("there");
        let labels = described(&after)["VersionIdsToStages"].clone();
        fs::write(folder.path().join("one.versions"), before).expect("as the crash left it");
        assert_eq!(described(&open(folder.path()))["VersionIdsToStages"], labels);
    }

    #[test]
    fn a_changed_file_counts_at_once_unless_it_is_half_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("one.json");
        fs::write(&file, "1\n").expect("written");
        let store = open(folder.path());
        fs::write(&file, "[2]").expect("written");
        assert_eq!(text(&store, "AWSCURRENT"), Ok(json!("[2]")));
        assert_eq!(text(&store, "AWSPREVIOUS"), Ok(json!("1")));
        fs::write(&file, "{\"half").expect("written");
        assert_eq!(text(&store, "AWSCURRENT"), Ok(json!("[2]")));
        fs::remove_file(&file).expect("there");
        assert_eq!(text(&store, "AWSCURRENT"), Ok(json!("[2]")));
        put(&store, 'a', "3", "AWSPENDING").expect("made");
        assert_eq!(text(&open(folder.path()), "AWSCURRENT"), Ok(json!("[2]")), "a write brings the file back");
        fs::write(folder.path().join("two.json"), "2").expect("written");
        let two = ask(&store, "GetSecretValue", json!({ "SecretId": "waypost/local/two" }));
        assert_eq!(two.expect("a new secret")["SecretString"], "2");
    }

    #[test]
    fn a_secret_whose_file_was_removed_is_gone_after_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("one.json"), "1\n").expect("written");
        put(&open(folder.path()), 'a', "2", "AWSPENDING").expect("made");
        fs::remove_file(folder.path().join("one.json")).expect("there");
        assert_eq!(text(&open(folder.path()), "AWSCURRENT"), Err("ResourceNotFoundException"));
    }

    #[test]
    fn a_deleted_secret_keeps_its_value_until_its_recovery_window_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("one.json"), "1\n").expect("written");
        let at = |days: i64| {
            let clock = FixedClock::at(Time::from_millis(1_795_167_900_000 + days * 24 * 60 * 60 * 1000));
            SecretStore::open(location(folder.path()), Arc::new(clock), Arc::new(SystemRandom)).expect("readable")
        };
        let delete = json!({ "SecretId": "waypost/local/one", "RecoveryWindowInDays": 7 });
        ask(&at(0), "DeleteSecret", delete).expect("there");
        assert_eq!(text(&at(6), "AWSCURRENT"), Err("InvalidRequestException"));
        let create = json!({ "Name": "waypost/local/one", "SecretString": "2" });
        assert_eq!(ask(&at(6), "CreateSecret", create), Err("InvalidRequestException"));
        assert_eq!(fs::read_to_string(folder.path().join("one.json")).expect("there"), "1\n");
        assert_eq!(text(&at(8), "AWSCURRENT"), Err("ResourceNotFoundException"));
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    }

    #[test]
    fn a_name_leads_to_no_other_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(&folder.path().join("."));
        for name in
            ["waypost/local/../one", "waypost/local/a/b", "waypost/local/.one", "waypost/other/one", "waypost/local/"]
        {
            let create = json!({ "Name": name, "SecretString": "1" });
            assert_eq!(ask(&store, "CreateSecret", create), Err("InvalidParameterException"), "{name}");
            assert_eq!(ask(&store, "GetSecretValue", json!({ "SecretId": name })), Err("ResourceNotFoundException"));
        }
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    }

    #[test]
    fn damaged_versions_stop_the_start_and_say_that_nothing_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("one.json"), "1").expect("written");
        fs::write(folder.path().join("one.versions"), "{\"hush").expect("written");
        let opened = SecretStore::open(location(folder.path()), Arc::new(SystemClock), Arc::new(SystemRandom));
        let said = opened.err().expect("damaged").to_string();
        assert!(said.contains("one.versions") && said.contains(".json") && !said.contains("hush"), "{said}");
    }
}
