//! A function's copy of the list of revocations in little memory: for each entry a fingerprint and
//! two times.

use std::{collections::HashMap, time::Duration};

use super::{
    fingerprint::{Salt, Target},
    revocation::{Kind, Revocation, credential},
    snapshot::Snapshot,
};
use crate::token::Claims;
use base::{Random, Time};

/// From this age on the list is not enough: a function that slept for hours must not accept a token
/// that was revoked meanwhile.
const TOO_OLD: Duration = Duration::from_secs(5 * 60);

/// The revocations that this process knows. Entries are told apart by 64 bits under a salt: with
/// 50 000 of them, a good token is taken for a revoked one once in a hundred million million checks,
/// and an attacker cannot search for such a token.
pub(super) struct Known {
    salt: Salt,
    /// What a function began with; under the same salt.
    snapshot: Option<Snapshot>,
    /// What was read from the list.
    entries: HashMap<u64, Times>,
    /// How many entries came or ended.
    changes: usize,
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

fn seconds(time: Time) -> u32 {
    u32::try_from(time.as_seconds().max(0)).unwrap_or(u32::MAX)
}

impl Known {
    /// Nothing is known yet.
    pub(super) fn new(random: &dyn Random) -> Self {
        let salt = Salt::fresh(random);
        Self { salt, snapshot: None, entries: HashMap::new(), changes: 0, read: None, rest: None }
    }

    /// Begins with a snapshot. Entries of a reading that failed are dropped, because their salt is another one; the
    /// reading that follows finds them again.
    pub(super) fn begin_with(&mut self, snapshot: Snapshot) {
        self.salt = snapshot.salt.clone();
        self.entries.clear();
        self.snapshot = Some(snapshot);
    }

    pub(super) fn add(&mut self, revocation: &Revocation) {
        let Revocation { kind, id, .. } = revocation;
        self.note(&Target::One(*kind, id), revocation);
        if let (Kind::Credential, Some((client_id, _))) = (kind, id.split_once('#')) {
            self.note(&Target::AnyCredential(client_id), revocation);
        }
    }

    fn note(&mut self, target: &Target<'_>, revocation: &Revocation) {
        let (issued_until, until) = (seconds(revocation.issued_until), seconds(revocation.until).saturating_add(1));
        let times = Times { issued_until, until };
        self.entries
            .entry(self.salt.fingerprint(target))
            .and_modify(|known| {
                *known = Times { issued_until: issued_until.max(known.issued_until), until: until.max(known.until) };
            })
            .or_insert_with(|| {
                self.changes += 1;
                times
            });
    }

    /// Adds a page of a reading that began at `began`, without entries that have ended.
    pub(super) fn add_page(&mut self, page: &[Revocation], began: Time) {
        page.iter().filter(|revocation| revocation.until > began).for_each(|revocation| self.add(revocation));
    }

    /// A reading that began then has come to its end.
    pub(super) fn completed(&mut self, began: Time) {
        let (now, before) = (seconds(began), self.entries.len());
        self.entries.retain(|_, times| times.until > now);
        self.changes += before - self.entries.len();
        self.snapshot.take_if(|snapshot| snapshot.until <= began);
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
        let revokes = |target: Target<'_>| self.issued_until(&target).is_some_and(|until| issued <= until);
        let by_credential = match (&claims.credential_id, &claims.session_id) {
            (Some(id), _) => revokes(Target::One(Kind::Credential, &credential(&claims.client_id, id))),
            // The session of an operator's link, which no credential made.
            (None, Some(_)) => false,
            (None, None) => revokes(Target::AnyCredential(&claims.client_id)),
        };
        let by_session = |id: &String| revokes(Target::One(Kind::Session, id));
        by_credential
            || claims.session_id.as_ref().is_some_and(by_session)
            || revokes(Target::One(Kind::Token, &claims.token_id))
            || revokes(Target::One(Kind::Key, &claims.key_id))
            || revokes(Target::One(Kind::Client, &claims.client_id))
            || revokes(Target::One(Kind::Issued, &claims.client_id))
    }

    pub(super) fn revokes_key(&self, kid: &str) -> bool {
        self.issued_until(&Target::One(Kind::Key, kid)).is_some()
    }

    /// Up to which second tokens must have been issued to be revoked with this. An entry that changed since the
    /// snapshot stands in both.
    fn issued_until(&self, target: &Target<'_>) -> Option<u32> {
        if self.snapshot.is_none() && self.entries.is_empty() {
            return None;
        }
        let fingerprint = self.salt.fingerprint(target);
        let begun_with = self.snapshot.as_ref().and_then(|snapshot| snapshot.issued_until(fingerprint));
        begun_with.max(self.entries.get(&fingerprint).map(|times| times.issued_until))
    }

    /// How old this is; as good as new for as long as no reading is to be tried. Nothing before the
    /// first reading, and when that is too long ago.
    pub(super) fn age(&self, now: Time) -> Option<Duration> {
        let resting = self.rest.is_some_and(|rest| now < rest);
        let age = self.read.map(|read| now.since(read)).filter(|age| *age < TOO_OLD)?;
        Some(if resting { Duration::ZERO } else { age })
    }

    /// How many entries were read from the list and count.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many entries came or ended since the changes were last forgotten.
    pub(super) fn changes(&self) -> usize {
        self.changes
    }

    pub(super) fn forget_changes(&mut self) {
        self.changes = 0;
    }

    /// The entries that were read from the list up to a reading that began then, all of which count.
    pub(super) fn snapshot(&self, taken: Time) -> Snapshot {
        let last = self.entries.values().map(|times| times.until).max().unwrap_or_default();
        let until = Time::from_millis(i64::from(last) * 1000).max(taken);
        let entries = self.entries.iter().map(|(fingerprint, times)| (*fingerprint, times.issued_until));
        Snapshot::of(taken, until, self.salt.clone(), entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;

    #[test]
    fn fifty_thousand_revocations_fit_into_two_megabytes() {
        let (now, mut known) = (Time::from_millis(1_795_167_900_000), Known::new(&SystemRandom));
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
