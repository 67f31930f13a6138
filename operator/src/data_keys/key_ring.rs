//! The secret with the key ring, and an operator's changes to it: adding a new current key, and forgetting old keys.
//!
//! A key's name begins with its creation time in seconds, and every sealed value begins with its key's name. So an
//! operator can see in the table how old a value's key is.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use base::{Random, Time, random};
use storage::{KeyRing, SealError};

/// How long a key may still be needed after another becomes current. For five minutes, warm functions may still seal
/// with it. The PKCE verifiers and idempotent responses that they seal live for ten more minutes, and are never
/// resealed.
const NEEDED_AFTER: Duration = Duration::from_secs(15 * 60);

/// The secret's value. It has no `Debug`, so that keys are never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRingSecret {
    current: String,
    keys: BTreeMap<String, String>,
}

impl KeyRingSecret {
    /// A ring with one new key.
    pub fn new(now: Time, random: &dyn Random) -> Self {
        Self { current: String::new(), keys: BTreeMap::new() }.with_new_key(now, random)
    }

    /// Reads the secret's value.
    pub fn read(value: &Value) -> Result<Self, SealError> {
        KeyRing::from_secret(value)?; // checks every key
        Self::deserialize(value).map_err(SealError::malformed_ring)
    }

    /// The value for the secret.
    pub fn value(&self) -> Value {
        serde_json::json!(self)
    }

    /// The key ring, for sealing and opening.
    pub fn ring(&self) -> Result<KeyRing, SealError> {
        KeyRing::from_secret(&self.value())
    }

    /// The name of the key that seals.
    pub fn current(&self) -> &str {
        &self.current
    }

    /// The ring with one more key, which is now the current one.
    pub fn with_new_key(mut self, now: Time, random: &dyn Random) -> Self {
        let name = format!("{}-{}", now.as_seconds(), random::alphanumeric(random, 8));
        self.keys.insert(name.clone(), BASE64_STANDARD.encode(random::bytes::<32>(random)));
        self.current = name;
        self
    }

    /// The names of the keys that no longer seal.
    pub fn old_keys(&self) -> Vec<String> {
        self.keys.keys().filter(|name| **name != self.current).cloned().collect()
    }

    /// The time from which no value needs an old key, provided that the whole table has been resealed. `None` if no
    /// key's name contains a time.
    pub fn settled_at(&self) -> Option<Time> {
        let newest = self.keys.keys().map(|name| made(name)).max()?;
        (newest > Time::from_millis(0)).then(|| newest + NEEDED_AFTER)
    }

    /// Removes the keys that no value needs, provided that the whole table has been resealed. Returns the ring and the
    /// names of the removed keys.
    pub fn without_old_keys(mut self, now: Time) -> (Self, Vec<String>) {
        let settled = self.keys.keys().map(|name| made(name)).filter(|made| now.since(*made) >= NEEDED_AFTER).max();
        let Some(settled) = settled else { return (self, Vec::new()) };
        let (kept, forgotten): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.keys.into_iter().partition(|(name, _)| *name == self.current || made(name) >= settled);
        self.keys = kept;
        (self, forgotten.into_keys().collect())
    }
}

/// A key's creation time; 1970 if its name contains no time.
fn made(name: &str) -> Time {
    let seconds = name.split_once('-').and_then(|(seconds, _)| seconds.parse::<u32>().ok()).unwrap_or(0);
    Time::from_millis(i64::from(seconds) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;

    const START: i64 = 1_795_167_900_000;

    fn at(minutes: i64) -> Time {
        Time::from_millis(START + minutes * 60_000)
    }

    #[test]
    fn a_new_key_is_current_and_the_old_ones_stay() {
        let first = KeyRingSecret::new(at(0), &SystemRandom);
        let second = first.clone().with_new_key(at(1), &SystemRandom);
        assert!(first.current().starts_with("1795167900-"));
        assert!(second.keys.contains_key(first.current()) && second.current() != first.current());
        assert!(KeyRingSecret::read(&second.value()).expect("a ring") == second);
        assert!(second.ring().is_ok());
    }

    #[test]
    fn a_key_is_forgotten_fifteen_minutes_after_its_successor_became_current() {
        let first = KeyRingSecret::new(at(0), &SystemRandom);
        let second = first.clone().with_new_key(at(60), &SystemRandom);
        let third = second.clone().with_new_key(at(70), &SystemRandom);
        let forgotten = |minutes| third.clone().without_old_keys(at(minutes)).1;
        assert_eq!((third.old_keys().len(), third.settled_at()), (2, Some(at(85))));
        assert!(forgotten(74).is_empty());
        assert_eq!(forgotten(75), [first.current()]);
        assert_eq!(forgotten(84), [first.current()]);
        assert_eq!(forgotten(85), [first.current(), second.current()]);
    }

    #[test]
    fn the_current_key_is_never_forgotten_and_a_name_without_time_is_old() {
        let old: Value = serde_json::json!({ "current": "Ab3dE6gH", "keys": {
            "Ab3dE6gH": BASE64_STANDARD.encode([1; 32]), "Xy3dE6gH": BASE64_STANDARD.encode([2; 32]),
        }});
        let old = KeyRingSecret::read(&old).expect("a ring");
        assert!(old.clone().without_old_keys(at(0)).1.is_empty());
        assert_eq!((old.old_keys(), old.settled_at()), (vec!["Xy3dE6gH".to_owned()], None));
        let new = old.with_new_key(at(0), &SystemRandom);
        assert_eq!(new.clone().without_old_keys(at(15)).1, ["Ab3dE6gH", "Xy3dE6gH"]);
        assert!(new.without_old_keys(at(15)).0.ring().is_ok());
    }
}
