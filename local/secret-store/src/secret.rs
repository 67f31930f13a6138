//! A secret: its versions and their staging labels.
//! <https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html#term_version>

use std::{collections::BTreeSet, fmt, time::Duration};

use aws_lc_rs::digest;
use base::Time;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// The label of the current version. Every secret with a value has a current version.
pub const CURRENT: &str = "AWSCURRENT";
/// The label of the previously current version.
const PREVIOUS: &str = "AWSPREVIOUS";

/// The maximum number of versions of a secret. Beyond this number, the oldest version without a label is dropped.
const MOST_VERSIONS: usize = 100;
/// The maximum number of labels per version.
const MOST_LABELS: usize = 20;

/// One version of a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub id: String,
    pub labels: BTreeSet<String>,
    pub created: Time,
    pub text: String,
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Version").field("id", &self.id).field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// A secret without its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    pub created: Time,
    pub changed: Time,
    /// When the secret is scheduled for deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Time>,
    /// The versions in order of creation.
    pub versions: Vec<Version>,
}

impl Secret {
    /// A secret with no value.
    pub fn new(now: Time) -> Self {
        Self { created: now, changed: now, deletion: None, versions: Vec::new() }
    }

    pub fn current(&self) -> Option<&Version> {
        self.labelled(CURRENT)
    }

    pub fn labelled(&self, label: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.labels.contains(label))
    }

    pub fn version(&self, id: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.id == id)
    }

    /// The version with this id, this label, or both; by default, the current version.
    pub fn asked(&self, id: Option<&str>, label: Option<&str>) -> Result<&Version, Refusal> {
        let Some(id) = id else {
            let label = label.unwrap_or(CURRENT);
            return self.labelled(label).ok_or_else(|| Refusal::NoLabel(label.to_owned()));
        };
        let version = self.version(id).ok_or_else(|| Refusal::NoVersion(id.to_owned()))?;
        let is_labelled = label.is_none_or(|label| version.labels.contains(label));
        if is_labelled { Ok(version) } else { Err(Refusal::OtherVersion) }
    }

    /// Adds a version, and moves its labels from the other versions. If a version already has this id and the same
    /// value, it does not change.
    pub fn put(&mut self, id: &str, text: String, labels: BTreeSet<String>, now: Time) -> Result<(), Refusal> {
        if let Some(present) = self.version(id) {
            return if present.text == text { Ok(()) } else { Err(Refusal::VersionExists(id.to_owned())) };
        }
        self.versions.push(Version { id: id.to_owned(), labels: BTreeSet::new(), created: now, text });
        // The first version becomes the current one, regardless of its labels.
        let first = self.current().is_none().then(|| CURRENT.to_owned());
        for label in labels.into_iter().chain(first) {
            self.give_label(&label, id);
        }
        self.drop_oldest();
        self.changed = now;
        Ok(())
    }

    /// Moves a label between versions, or removes it.
    pub fn move_label(&mut self, label: &str, to: Option<&str>, from: Option<&str>, now: Time) -> Result<(), Refusal> {
        for id in [to, from].into_iter().flatten() {
            self.version(id).ok_or_else(|| Refusal::NoVersion(id.to_owned()))?;
        }
        let holder = self.labelled(label).map(|version| version.id.clone());
        if let Some(from) = from.filter(|from| holder.as_deref() != Some(*from)) {
            let said = format!("The staging label {label} is not attached to version {from}.");
            return Err(Refusal::Parameter(said));
        }
        match (to, holder) {
            (Some(to), Some(holder)) if to != holder && from.is_none() => Err(Refusal::Parameter(format!(
                "The parameter RemoveFromVersionId can't be empty. Staging label {label} is currently attached to version \
                 {holder}, so you must explicitly reference that version in RemoveFromVersionId."
            ))),
            (Some(to), _) if self.has_most_labels(to, label) => {
                Err(Refusal::Parameter(format!("A version can have at most {MOST_LABELS} staging labels.")))
            }
            (Some(to), _) => {
                self.give_label(label, to);
                self.changed = now;
                Ok(())
            }
            (None, _) if label == CURRENT => Err(Refusal::Parameter(format!(
                "You can only move staging label {CURRENT} to a different secret version. It can't be completely removed."
            ))),
            (None, _) => {
                self.take_label(label);
                self.changed = now;
                Ok(())
            }
        }
    }

    /// Makes the file's text the current value: either a person wrote it, or an operation was interrupted between
    /// writing the two files. If a version has this text, it becomes the current version; otherwise, a new version is
    /// added, with an id that is the same at every start.
    pub fn adopt(&mut self, name: &str, text: String, at: Time) {
        if self.current().is_some_and(|current| current.text == text) {
            return;
        }
        let present = self.versions.iter().rev().find(|version| version.text == text).map(|version| version.id.clone());
        let id = present.unwrap_or_else(|| {
            let id = id_of(name, &text);
            self.versions.push(Version { id: id.clone(), labels: BTreeSet::new(), created: at, text });
            id
        });
        self.give_label(CURRENT, &id);
        self.drop_oldest();
        self.changed = at;
    }

    /// Whether the secret's recovery window is over.
    pub fn is_over(&self, now: Time) -> bool {
        self.deletion.is_some_and(|deletion| deletion <= now)
    }

    pub fn schedule_deletion(&mut self, days: u64, now: Time) -> Time {
        *self.deletion.insert(now + Duration::from_secs(days * 24 * 60 * 60))
    }

    fn has_most_labels(&self, id: &str, label: &str) -> bool {
        self.version(id).is_some_and(|version| version.labels.len() >= MOST_LABELS && !version.labels.contains(label))
    }

    fn give_label(&mut self, label: &str, id: &str) {
        let former = self.labelled(label).map(|version| version.id.clone());
        self.take_label(label);
        if let Some(version) = self.versions.iter_mut().find(|version| version.id == id) {
            version.labels.insert(label.to_owned());
        }
        if let Some(former) = former.filter(|former| label == CURRENT && former != id) {
            self.give_label(PREVIOUS, &former);
        }
    }

    fn take_label(&mut self, label: &str) {
        for version in &mut self.versions {
            version.labels.remove(label);
        }
    }

    fn drop_oldest(&mut self) {
        while self.versions.len() > MOST_VERSIONS {
            let Some(oldest) = self.versions.iter().position(|version| version.labels.is_empty()) else { return };
            self.versions.remove(oldest);
        }
    }
}

/// The id of a version that comes from a file: a UUID derived from a hash (RFC 9562 §5.8).
fn id_of(name: &str, text: &str) -> String {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(name.as_bytes());
    hash.update(b"\n");
    hash.update(text.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finish().as_ref()[..16]);
    let number = u128::from_be_bytes(bytes) & !(0xf << 76 | 0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let hex = format!("{number:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    fn labels(labels: &[&str]) -> BTreeSet<String> {
        labels.iter().map(|label| (*label).to_owned()).collect()
    }

    /// A secret whose versions have these names, values and labels.
    fn secret(versions: &[(&str, &str, &[&str])]) -> Secret {
        let mut secret = Secret::new(NOW);
        for (id, text, own) in versions {
            secret.put(id, (*text).to_owned(), labels(own), NOW).expect("a new version");
        }
        secret
    }

    fn id<'s>(secret: &'s Secret, label: &str) -> Option<&'s str> {
        secret.labelled(label).map(|version| version.id.as_str())
    }

    #[test]
    fn a_new_current_version_makes_the_old_one_previous() {
        let secret = secret(&[("1", "a", &[CURRENT]), ("2", "b", &[CURRENT]), ("3", "c", &[CURRENT, "MINE"])]);
        assert_eq!(
            (id(&secret, CURRENT), id(&secret, PREVIOUS), id(&secret, "MINE")),
            (Some("3"), Some("2"), Some("3"))
        );
        assert_eq!(secret.asked(Some("1"), None).expect("kept without a label").text, "a");
    }

    #[test]
    fn the_first_version_is_the_current_one_with_any_label() {
        let secret = secret(&[("1", "a", &["AWSPENDING"]), ("2", "b", &["AWSPENDING"])]);
        assert_eq!((id(&secret, CURRENT), id(&secret, "AWSPENDING")), (Some("1"), Some("2")));
    }

    #[test]
    fn a_version_is_made_once_and_never_changed() {
        let mut secret = secret(&[("1", "a", &[CURRENT]), ("2", "b", &[CURRENT])]);
        let before = secret.clone();
        secret.put("1", "a".to_owned(), labels(&[CURRENT]), NOW).expect("it is as it was");
        assert_eq!(secret, before, "and no label moves");
        let other = secret.put("1", "z".to_owned(), labels(&["X"]), NOW).expect_err("another value");
        assert_eq!(other.code(), "ResourceExistsException");
        assert_eq!(secret, before);
    }

    #[test]
    fn a_label_moves_only_away_from_the_version_that_the_caller_knows() {
        let mut secret = secret(&[("1", "a", &[CURRENT]), ("2", "b", &["AWSPENDING"]), ("3", "c", &["X"])]);
        for (to, from, code) in [
            (Some("2"), None, "InvalidParameterException"),
            (Some("2"), Some("3"), "InvalidParameterException"),
            (Some("9"), Some("1"), "ResourceNotFoundException"),
            (None, Some("1"), "InvalidParameterException"),
        ] {
            let before = secret.clone();
            let refused = secret.move_label(CURRENT, to, from, NOW).expect_err("refused");
            assert_eq!((refused.code(), &secret), (code, &before), "{to:?} {from:?}");
        }
        secret.move_label(CURRENT, Some("2"), Some("1"), NOW).expect("moved");
        assert_eq!((id(&secret, CURRENT), id(&secret, PREVIOUS)), (Some("2"), Some("1")));
        secret.move_label("AWSPENDING", None, Some("2"), NOW).expect("taken away");
        assert_eq!(id(&secret, "AWSPENDING"), None);
    }

    #[test]
    fn a_value_in_the_file_becomes_the_current_version_under_one_name() {
        let mut first = secret(&[("1", "a", &[CURRENT]), ("2", "b", &["AWSPENDING"])]);
        let mut second = first.clone();
        first.adopt("name", "new".to_owned(), NOW);
        second.adopt("name", "new".to_owned(), NOW);
        assert_eq!(first, second, "each start gives it the same name");
        assert_eq!((first.current().expect("one").text.as_str(), id(&first, PREVIOUS)), ("new", Some("1")));
        // This is an existing version's value: an operation was interrupted after writing it.
        first.adopt("name", "b".to_owned(), NOW);
        assert_eq!((id(&first, CURRENT), id(&first, "AWSPENDING"), first.versions.len()), (Some("2"), Some("2"), 3));
    }

    #[test]
    fn the_oldest_versions_without_labels_go() {
        let mut many = secret(&[("first", "x", &["KEPT"])]);
        for number in 0..2 * MOST_VERSIONS {
            many.put(&number.to_string(), number.to_string(), labels(&[CURRENT]), NOW).expect("a new version");
        }
        assert_eq!(many.versions.len(), MOST_VERSIONS);
        assert!(many.version("first").is_some() && many.version("0").is_none());
    }

    proptest! {
        #[test]
        fn a_label_is_never_at_two_versions_and_a_value_is_always_current(
            steps in prop::collection::vec((0..4_u8, 0..5_usize, 0..5_usize, 0..4_usize), 1..40)
        ) {
            let names = [CURRENT, PREVIOUS, "AWSPENDING", "X"];
            let mut secret = Secret::new(NOW);
            for (step, one, other, label) in steps {
                let one = one.to_string();
                let other = other.to_string();
                match step {
                    0 => drop(secret.put(&one, one.clone(), labels(&[names[label]]), NOW)),
                    1 => drop(secret.move_label(names[label], Some(&one), Some(&other), NOW)),
                    2 => drop(secret.move_label(names[label], None, Some(&other), NOW)),
                    _ => secret.adopt("name", one, NOW),
                }
                prop_assert_eq!(secret.versions.is_empty(), secret.current().is_none());
                for label in names {
                    prop_assert!(secret.versions.iter().filter(|version| version.labels.contains(label)).count() <= 1);
                }
            }
        }
    }
}
