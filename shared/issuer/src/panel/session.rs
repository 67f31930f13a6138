//! A session of the panel: what one browser got by opening a link.
//!
//! The browser has one key as a cookie. Each renewal replaces it by the next; the replaced one is good for a minute more, for
//! tabs that renew at once and for an answer that was lost. A browser that brings a replaced key after that has copied it, or
//! has found the browser's own replaced by a thief's renewal: either way the session ends.

use std::{iter::successors, time::Duration};

use serde::{Deserialize, Serialize};

use super::key::{PanelKey, random_secret};
use base::{Random, Time};

/// How long a key that was replaced is still answered, with the key that is good now.
pub const GRACE: Duration = Duration::from_secs(60);

/// The most renewals of a session. A page makes some sixty in eight hours, and one whenever it is loaded; a session that is
/// renewed without end would make it dear to tell its former keys from foreign ones.
pub const MOST_RENEWALS: usize = 1_000;
/// The most replacements whose times are remembered.
const REMEMBERED: usize = 8;

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
    /// When the last of them were, the newest first.
    replaced_dates: Vec<Time>,
}

/// What a key is to a session.
#[derive(Debug)]
pub enum KeyState {
    /// It is the one that is good.
    Good,
    /// It was replaced within the last minute; this one is good now.
    JustReplaced(PanelKey),
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
            replaced_dates: Vec::new(),
        }
    }

    /// What this key is to the session. A replaced one proves itself: the keys that follow it lead to the good one. So nobody
    /// ends a session who never had a key of it.
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

    /// Whether it may be renewed once more.
    pub fn is_renewable(&self) -> bool {
        self.replaced < MOST_RENEWALS
    }

    /// The key that replaces this one.
    pub fn next(&self, key: &PanelKey) -> PanelKey {
        key.next(&self.seed)
    }

    /// The session with this key as the good one.
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
    fn every_replaced_key_is_answered_for_a_minute_and_then_told_from_one_that_never_was() {
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
    fn a_session_is_not_renewed_without_end_and_remembers_the_last_times_only() {
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
    fn a_session_in_the_table_does_not_hold_a_key() {
        let first = key();
        let session = PanelSession::begin(&first, Duration::from_secs(60), NOW, &SystemRandom);
        let kept = serde_json::to_string(&session).expect("JSON");
        let secret = first.expose().rsplit('/').next().expect("a secret").to_owned();
        assert!(!kept.contains(&secret), "{kept}");
        assert_eq!(serde_json::from_str::<PanelSession>(&kept).expect("a session"), session);
    }
}
