//! A session of the panel: what one browser got by opening a link.
//!
//! The browser has one key as a cookie. Each renewal replaces it by the next; the replaced one is good for a minute more, for
//! two tabs that renew at once and for an answer that was lost. Whoever brings a replaced key after that has copied it, or
//! has found the browser's own replaced by a thief's renewal: either way the session ends.

use std::{iter::successors, time::Duration};

use serde::{Deserialize, Serialize};

use super::key::{PanelKey, random_secret};
use base::{Random, Time};

/// How long a key that was replaced is still answered, with the very key that replaced it.
pub const GRACE: Duration = Duration::from_secs(60);

/// A session, in the form that the table keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelSession {
    /// When the link was opened.
    pub opened_date: Time,
    /// When the session ends, whatever its browser does.
    pub ends_date: Time,
    /// With this, each key makes the next.
    seed: String,
    /// The hash of the key that is good now.
    pub(super) key_hash: String,
    /// How many keys were replaced.
    replaced: usize,
    /// When the last of them was; at first, when the session began.
    replaced_date: Time,
}

/// What a key is to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It is the one that is good.
    Good,
    /// It was replaced within the last minute.
    JustReplaced,
    /// It was replaced longer ago.
    Replaced,
    /// It never was the session's.
    Foreign,
}

impl PanelSession {
    /// A session that begins now with this key.
    pub fn begin(key: &PanelKey, lifetime: Duration, now: Time, random: &dyn Random) -> Self {
        Self {
            opened_date: now,
            ends_date: now + lifetime,
            seed: random_secret(random),
            key_hash: key.hash(),
            replaced: 0,
            replaced_date: now,
        }
    }

    /// What this key is to the session. A replaced one proves itself: the keys that follow it lead to the good one. So nobody
    /// ends a session who never had a key of it.
    pub fn state_of(&self, key: &PanelKey, now: Time) -> KeyState {
        if key.has_hash(&self.key_hash) {
            return KeyState::Good;
        }
        let followers = successors(Some(self.next(key)), |key| Some(self.next(key))).take(self.replaced);
        match followers.map(|key| key.has_hash(&self.key_hash)).position(|is_good| is_good) {
            Some(0) if now < self.replaced_date + GRACE => KeyState::JustReplaced,
            Some(_) => KeyState::Replaced,
            None => KeyState::Foreign,
        }
    }

    /// The key that replaces this one.
    pub fn next(&self, key: &PanelKey) -> PanelKey {
        key.next(&self.seed)
    }

    /// The session with this key as the good one.
    pub fn replacing_key(&self, next: &PanelKey, now: Time) -> Self {
        Self { key_hash: next.hash(), replaced: self.replaced + 1, replaced_date: now, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::key::tests::key, *};
    use base::SystemRandom;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    #[test]
    fn a_replaced_key_is_answered_for_a_minute_and_then_told_from_one_that_never_was() {
        let first = key();
        let session = PanelSession::begin(&first, Duration::from_secs(3600), NOW, &SystemRandom);
        assert_eq!(session.state_of(&first, NOW), KeyState::Good);
        let second = session.next(&first);
        let renewed = session.replacing_key(&second, NOW);
        assert_eq!(renewed.state_of(&second, NOW + GRACE), KeyState::Good);
        assert_eq!(renewed.state_of(&first, NOW + (GRACE - Duration::from_millis(1))), KeyState::JustReplaced);
        assert_eq!(renewed.state_of(&first, NOW + GRACE), KeyState::Replaced);
        let third = renewed.next(&second);
        let renewed = renewed.replacing_key(&third, NOW);
        assert_eq!(renewed.state_of(&first, NOW), KeyState::Replaced, "only the last one has grace");
        assert_eq!(renewed.state_of(&second, NOW), KeyState::JustReplaced);
        for foreign in [key(), third.next("another seed"), renewed.next(&third)] {
            assert_eq!(renewed.state_of(&foreign, NOW), KeyState::Foreign);
        }
    }

    #[test]
    fn a_session_in_the_table_does_not_hold_a_key() {
        let first = key();
        let session = PanelSession::begin(&first, Duration::from_secs(60), NOW, &SystemRandom);
        let kept = serde_json::to_string(&session).expect("JSON");
        let secret = first.expose().rsplit('/').next().expect("a secret").to_owned();
        assert!(!kept.contains(&secret), "{kept}");
        assert_eq!(serde_json::from_str::<PanelSession>(&kept).expect("a session"), session);
    }
}
