//! A function's copy of the list of revocations.

use std::{collections::HashMap, time::Duration};

use super::revocation::{Kind, Revocation, credential};
use crate::token::Claims;
use base::Time;

/// The age at which the list becomes unusable: a function that was frozen for hours must not accept a token that was
/// revoked in the meantime.
const TOO_OLD: Duration = Duration::from_secs(5 * 60);

/// The revocations that this process knows.
#[derive(Default)]
pub(super) struct Known {
    /// The entries, by revoked object. A map within a map, so that a lookup needs no copy of the identifier.
    entries: HashMap<Kind, HashMap<String, Times>>,
    /// When the last successful read began.
    read: Option<Time>,
    /// The time before which no read is attempted, after a failure.
    pause: Option<Time>,
}

struct Times {
    /// Tokens issued no later than this are revoked.
    issued_until: Time,
    /// The revocation's end.
    until: Time,
}

impl Known {
    /// Adds a revocation. If the same object was revoked before, the later times apply.
    pub(super) fn add(&mut self, Revocation { kind, id, issued_until, until, .. }: Revocation) {
        let times = self.entries.entry(kind).or_default().entry(id).or_insert(Times { issued_until, until });
        times.issued_until = times.issued_until.max(issued_until);
        times.until = times.until.max(until);
    }

    /// Adds a page from a read that began at `began`, omitting entries that have ended.
    pub(super) fn add_page(&mut self, page: Vec<Revocation>, began: Time) {
        page.into_iter().filter(|revocation| revocation.until > began).for_each(|revocation| self.add(revocation));
    }

    /// Records a successful read that began at `began` and drops entries that have ended.
    pub(super) fn completed(&mut self, began: Time) {
        self.entries.values_mut().for_each(|of_kind| of_kind.retain(|_, times| times.until > began));
        self.read = Some(began);
    }

    /// When the last successful read began.
    pub(super) fn last_read(&self) -> Option<Time> {
        self.read
    }

    /// Prevents reads before this time.
    pub(super) fn pause_until(&mut self, end: Time) {
        self.pause = Some(end);
    }

    pub(super) fn revokes(&self, claims: &Claims) -> bool {
        let revokes = |kind, id: &str| self.times(kind, id).is_some_and(|times| claims.issued <= times.issued_until);
        let by_credential = |id: &String| revokes(Kind::Credential, &credential(&claims.client_id, id));
        let by_session = |id: &String| revokes(Kind::Session, id);
        revokes(Kind::Token, &claims.token_id)
            || revokes(Kind::Key, &claims.key_id)
            || revokes(Kind::Client, &claims.client_id)
            || revokes(Kind::Issued, &claims.client_id)
            || claims.credential_id.as_ref().is_some_and(by_credential)
            || claims.session_id.as_ref().is_some_and(by_session)
    }

    pub(super) fn revokes_key(&self, kid: &str) -> bool {
        self.times(Kind::Key, kid).is_some()
    }

    fn times(&self, kind: Kind, id: &str) -> Option<&Times> {
        self.entries.get(&kind)?.get(id)
    }

    /// The list's age; zero while reads pause after a failure. `None` before the first read, and if the list is too
    /// old.
    pub(super) fn age(&self, now: Time) -> Option<Duration> {
        let is_paused = self.pause.is_some_and(|end| now < end);
        let age = self.read.map(|read| now.since(read)).filter(|age| *age < TOO_OLD)?;
        Some(if is_paused { Duration::ZERO } else { age })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.values().map(HashMap::len).sum()
    }
}
