//! A function's copy of the list of revocations in little memory: for each entry a fingerprint and
//! two times.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use super::revocation::{Kind, Revocation, credential};
use crate::token::Claims;
use base::Time;

/// From this age on the list is not enough: a function that slept for hours must not accept a token
/// that was revoked meanwhile.
const TOO_OLD: Duration = Duration::from_secs(5 * 60);

/// The revocations that this process knows. Entries are told apart by 64 bits under a key that is
/// drawn at each start: with 50 000 of them, a good token is taken for a revoked one once in a
/// hundred million million checks, and an attacker cannot search for such a token.
#[derive(Default)]
pub(super) struct Known {
    entries: HashMap<u64, Times>,
    fingerprints: RandomState,
    /// When the last reading began that succeeded.
    read: Option<Time>,
    /// No reading is tried again before this time, after one has failed.
    rest: Option<Time>,
}

/// Tokens that were issued no later than this are revoked, and until when that counts: seconds
/// since the epoch.
struct Times {
    issued_until: u32,
    until: u32,
}

/// The thing that an entry revokes. A token that does not name its credential may have been got with
/// any credential of its application.
#[derive(Hash)]
enum Target<'a> {
    One(Kind, &'a str),
    AnyCredential(&'a str),
}

fn seconds(time: Time) -> u32 {
    u32::try_from(time.as_seconds().max(0)).unwrap_or(u32::MAX)
}

impl Known {
    pub(super) fn add(&mut self, revocation: &Revocation) {
        let Revocation { kind, id, .. } = revocation;
        self.note(&Target::One(*kind, id), revocation);
        if let (Kind::Credential, Some((client_id, _))) = (kind, id.split_once('#')) {
            self.note(&Target::AnyCredential(client_id), revocation);
        }
    }

    fn note(&mut self, target: &Target<'_>, revocation: &Revocation) {
        let (issued_until, until) = (seconds(revocation.issued_until), seconds(revocation.until).saturating_add(1));
        let known = self.entries.entry(self.fingerprints.hash_one(target)).or_insert(Times { issued_until, until });
        *known = Times { issued_until: issued_until.max(known.issued_until), until: until.max(known.until) };
    }

    /// Adds a page of a reading that began at `began`, without entries that have ended.
    pub(super) fn add_page(&mut self, page: &[Revocation], began: Time) {
        page.iter().filter(|revocation| revocation.until > began).for_each(|revocation| self.add(revocation));
    }

    /// A reading that began then has come to its end.
    pub(super) fn completed(&mut self, began: Time) {
        let now = seconds(began);
        self.entries.retain(|_, times| times.until > now);
        self.read = Some(began);
    }

    /// When the last reading began that came to its end.
    pub(super) fn last_read(&self) -> Option<Time> {
        self.read
    }

    /// No reading is tried again before this time.
    pub(super) fn rest_until(&mut self, end: Time) {
        self.rest = Some(end);
    }

    pub(super) fn revokes(&self, claims: &Claims) -> bool {
        let issued = seconds(claims.issued);
        let revokes = |target: Target<'_>| {
            self.entries.get(&self.fingerprints.hash_one(&target)).is_some_and(|times| issued <= times.issued_until)
        };
        let by_credential = match &claims.credential_id {
            Some(id) => revokes(Target::One(Kind::Credential, &credential(&claims.client_id, id))),
            None => revokes(Target::AnyCredential(&claims.client_id)),
        };
        by_credential
            || revokes(Target::One(Kind::Token, &claims.token_id))
            || revokes(Target::One(Kind::Key, &claims.key_id))
            || revokes(Target::One(Kind::Client, &claims.client_id))
            || revokes(Target::One(Kind::Issued, &claims.client_id))
    }

    pub(super) fn revokes_key(&self, kid: &str) -> bool {
        self.entries.contains_key(&self.fingerprints.hash_one(Target::One(Kind::Key, kid)))
    }

    /// How old this is; as good as new for as long as no reading is to be tried. Nothing before the
    /// first reading, and when that is too long ago.
    pub(super) fn age(&self, now: Time) -> Option<Duration> {
        let resting = self.rest.is_some_and(|rest| now < rest);
        let age = self.read.map(|read| now.since(read)).filter(|age| *age < TOO_OLD)?;
        Some(if resting { Duration::ZERO } else { age })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_thousand_revocations_fit_into_two_megabytes() {
        let (now, mut known) = (Time::from_millis(1_795_167_900_000), Known::default());
        let until = now + Duration::from_secs(60);
        for number in 0..50_000 {
            known.add(&Revocation::new(Kind::Token, &number.to_string(), now, until));
        }
        assert_eq!(known.len(), 50_000, "each is told apart");
        // A byte beside each place of the map, of which no more than seven eighths are taken.
        let bytes = known.entries.capacity() * 8 / 7 * (size_of::<(u64, Times)>() + 1);
        assert!(bytes <= 2 << 20, "{bytes}");
    }
}
