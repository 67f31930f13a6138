//! Sessions of the panel. A browser begins one by opening a link.
//!
//! The browser holds a key as a cookie, and each renewal replaces the key. The replaced key is accepted for one more
//! minute, for tabs that renew at the same time and for lost responses. A replaced key that arrives later was copied:
//! either its sender copied it, or a thief's renewal replaced the browser's key. In both cases, the session ends.

use std::{iter::successors, time::Duration};

use serde::{Deserialize, Serialize};

use super::key::{PanelKey, random_secret};
use base::{Random, Time};

/// How long a replaced key is still accepted; the response contains the current key.
pub const GRACE: Duration = Duration::from_secs(60);

/// The maximum number of renewals of a session. A page renews it about 150 times a day, and whenever it is loaded. With
/// every renewal, distinguishing the session's former keys from foreign ones becomes more expensive.
pub const MOST_RENEWALS: usize = 1_000;
/// How many replacement times are kept.
const REMEMBERED: usize = 8;

/// A session, as stored in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelSession {
    /// When the link was opened.
    pub opened_date: Time,
    /// When the session ends, unless its application extends it. Renewals by the page do not change this time.
    pub ends_date: Time,
    /// The seed from which, together with each key, the next one is derived.
    seed: String,
    /// The current key's hash.
    pub(super) key_hash: String,
    /// How many keys were replaced.
    replaced: usize,
    /// The times of the last replacements, newest first.
    replaced_dates: Vec<Time>,
}

/// How a key relates to a session.
#[derive(Debug)]
pub enum KeyState {
    /// The current key.
    Good,
    /// A key that was replaced within the last minute, with the current key.
    JustReplaced(PanelKey),
    /// A key that was replaced earlier.
    Replaced,
    /// A key that the session never had.
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
            replaced_dates: Vec::new(),
        }
    }

    /// How this key relates to the session. A replaced key is recognized because the keys derived from it lead to the
    /// current one. So only a holder of one of the session's keys can end it.
    pub fn state_of(&self, key: &PanelKey, now: Time) -> KeyState {
        if key.has_hash(&self.key_hash) {
            return KeyState::Good;
        }
        let mut followers =
            successors(Some(self.next(key)), |key| Some(self.next(key))).take(self.replaced).enumerate();
        match followers.find(|(_, key)| key.has_hash(&self.key_hash)) {
            Some((later, good)) if self.replaced_dates.get(later).is_some_and(|date| now < *date + GRACE) => {
                KeyState::JustReplaced(good)
            }
            Some(_) => KeyState::Replaced,
            None => KeyState::Foreign,
        }
    }

    /// Whether the session may be renewed again.
    pub fn is_renewable(&self) -> bool {
        self.replaced < MOST_RENEWALS
    }

    /// The key that replaces this one.
    pub fn next(&self, key: &PanelKey) -> PanelKey {
        key.next(&self.seed)
    }

    /// The session with `next` as its current key.
    pub fn replacing_key(&self, next: &PanelKey, now: Time) -> Self {
        let replaced_dates = [now].into_iter().chain(self.replaced_dates.iter().copied()).take(REMEMBERED).collect();
        Self { key_hash: next.hash(), replaced: self.replaced + 1, replaced_dates, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::key::tests::key, *};
    use base::SystemRandom;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    #[test]
    fn a_replaced_key_is_accepted_for_a_minute_and_then_recognised() {
        let first = key();
        let later = NOW + Duration::from_secs(30);
        let session = PanelSession::begin(&first, Duration::from_secs(3600), NOW, &SystemRandom);
        assert!(matches!(session.state_of(&first, NOW), KeyState::Good));
        let second = session.next(&first);
        let renewed = session.replacing_key(&second, NOW);
        assert!(matches!(renewed.state_of(&second, NOW + GRACE), KeyState::Good));
        let third = renewed.next(&second);
        let renewed = renewed.replacing_key(&third, later);
        let just_before = |time: Time| time - Duration::from_millis(1);
        for (replaced, end) in [(&first, NOW + GRACE), (&second, later + GRACE)] {
            let state = renewed.state_of(replaced, just_before(end));
            assert!(matches!(&state, KeyState::JustReplaced(good) if good.expose() == third.expose()), "{state:?}");
            assert!(matches!(renewed.state_of(replaced, end), KeyState::Replaced));
        }
        for foreign in [key(), third.next("another seed"), renewed.next(&third)] {
            assert!(matches!(renewed.state_of(&foreign, NOW), KeyState::Foreign));
        }
    }

    #[test]
    fn renewals_of_a_session_are_limited_and_only_the_last_are_recorded() {
        let mut good = key();
        let mut renewals = 0;
        let mut session = PanelSession::begin(&good, Duration::from_secs(3600), NOW, &SystemRandom);
        while session.is_renewable() {
            good = session.next(&good);
            session = session.replacing_key(&good, NOW);
            renewals += 1;
        }
        assert_eq!((renewals, session.replaced_dates.len()), (MOST_RENEWALS, REMEMBERED));
        assert!(matches!(session.state_of(&good, NOW), KeyState::Good));
    }

    #[test]
    fn a_stored_session_does_not_contain_a_key() {
        let first = key();
        let session = PanelSession::begin(&first, Duration::from_secs(60), NOW, &SystemRandom);
        let kept = serde_json::to_string(&session).expect("JSON");
        let secret = first.expose().rsplit('/').next().expect("a secret").to_owned();
        assert!(!kept.contains(&secret), "{kept}");
        assert_eq!(serde_json::from_str::<PanelSession>(&kept).expect("a session"), session);
    }
}
