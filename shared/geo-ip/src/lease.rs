//! One update of an edition at a time, by an item of the table. A lease lasts ten seconds and is renewed while its
//! owner lives, so that the lease of a killed update ends soon. The item also keeps the result of the last update, for
//! the calls that waited for it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use crate::edition::EditionName;
use base::{SharedClock, SharedRandom, Time, logging, pause, random};
use storage::table::{Change, Table, TableError, Value, Written, absent, at_most, is};

const LOOKING: &str = "looking at the lease of a geo-IP edition";
const TAKING: &str = "taking the lease of a geo-IP edition";
const RENEWING: &str = "renewing the lease of a geo-IP edition";
const RETURNING: &str = "giving back the lease of a geo-IP edition";

/// How long a lease lasts that is not renewed.
const LENGTH: Duration = Duration::from_secs(10);
/// How often it is renewed, so that one renewal may fail and the next is still in time.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// How long the item is kept after the last update, in seconds: for calls that wait, and for operators.
const KEPT: i64 = 86_400;

/// The leases of all editions.
#[derive(Clone)]
pub struct Leases {
    pub table: Table,
    pub clock: SharedClock,
    pub random: SharedRandom,
}

/// The right to update an edition, for as long as it is renewed.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    edition: EditionName,
    owner: String,
}

/// The result of an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    pub finished_at: Time,
    /// Whether the update was to publish.
    pub live: bool,
    pub success: bool,
    pub line: String,
}

/// How the lease of an edition stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    since: Option<Time>,
    until: Option<Time>,
    finished: Option<Finished>,
}

/// The situation that an update meets when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// No other update is under way.
    Free,
    /// Another update is under way since then.
    HeldSince(Time),
    /// Another update has done the same meanwhile.
    Done(Finished),
}

impl Standing {
    /// The situation of an update that began then and is to publish, or not.
    ///
    /// The result of another update counts as this one's own if it ended after this one began and was to do at least as
    /// much.
    pub fn meet(&self, began: Time, live: bool, now: Time) -> Meeting {
        if let Some(finished) = self.finished.as_ref().filter(|finished| finished.finished_at > began)
            && (finished.live || !live)
        {
            return Meeting::Done(finished.clone());
        }
        match (self.since, self.until) {
            (Some(since), Some(until)) if until > now => Meeting::HeldSince(since),
            _ => Meeting::Free,
        }
    }
}

impl Leases {
    /// How the lease of an edition stands.
    pub async fn look(&self, edition: &EditionName) -> Result<Standing, TableError> {
        Ok(self.table.get(key(edition), true, LOOKING).await?.unwrap_or_default())
    }

    /// Takes a lease that was free. Lost if anything has happened since the lease was looked at.
    pub async fn take(&self, edition: &EditionName, seen: &Standing) -> Result<Written<Lease>, TableError> {
        let (now, owner) = (self.clock.now(), random::uuid(&*self.random));
        let last_seen = match &seen.finished {
            None => absent("finished"),
            Some(finished) => is(("finished", "finishedAt"), finished.finished_at),
        };
        let lease = Lease { edition: edition.clone(), owner };
        let change = lengthened(edition, now)
            .set("owner", lease.owner.as_str())
            .set("since", now)
            .only_if(absent("until").or(at_most("until", now)))
            .only_if(last_seen);
        Ok(match self.table.write(change, TAKING).await? {
            Written::Done(()) => Written::Done(lease),
            Written::Lost(_) => Written::Lost(None),
        })
    }

    /// Renews a lease. Lost when another update has it by now.
    pub async fn renew(&self, lease: &Lease) -> Result<Written<()>, TableError> {
        let change = lengthened(&lease.edition, self.clock.now()).only_if(is("owner", lease.owner.as_str()));
        self.table.write(change, RENEWING).await
    }

    /// Renews a lease for as long as this future is polled; returns when the lease is lost.
    pub async fn keep(&self, lease: &Lease) {
        let mut renewed = Instant::now();
        loop {
            pause(RENEW_EVERY).await;
            match timeout(RENEW_EVERY, self.renew(lease)).await {
                Ok(Ok(Written::Done(()))) => renewed = Instant::now(),
                Ok(Ok(Written::Lost(_))) => return,
                Ok(Err(error)) => tracing::warn!(error = %logging::chain(&error), "a lease could not be renewed"),
                Err(_) => tracing::warn!("a lease could not be renewed in time"),
            }
            if renewed.elapsed() > LENGTH - RENEW_EVERY {
                return; // a later step might run beside another update
            }
        }
    }

    /// Gives a lease back, with the result for the calls that waited. Lost when another update has the lease by now,
    /// which keeps it.
    pub async fn give_back(&self, lease: &Lease, finished: Option<Finished>) -> Result<Written<()>, TableError> {
        let finished = finished.map(|finished| Value::of(&finished, RETURNING)).transpose()?;
        let change = Change::of(key(&lease.edition))
            .set_some("finished", finished)
            .set("expiresAt", expires_at(self.clock.now()))
            .remove("owner")
            .remove("since")
            .remove("until")
            .only_if(is("owner", lease.owner.as_str()));
        self.table.write(change, RETURNING).await
    }
}

/// A change after which the lease of an edition lasts its full length from now on.
fn lengthened(edition: &EditionName, now: Time) -> Change {
    Change::of(key(edition)).set("until", now + LENGTH).set("expiresAt", expires_at(now))
}

/// When the table removes the item, in seconds since 1970.
fn expires_at(now: Time) -> i64 {
    (now + LENGTH).as_seconds() + KEPT
}

fn key(edition: &EditionName) -> (String, String) {
    (format!("GEOIP#{edition}"), "LEASE".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    const BEGAN: Time = Time::from_millis(1_795_167_900_000);

    fn later(seconds: u64) -> Time {
        BEGAN + Duration::from_secs(seconds)
    }

    fn finished(at: Time, live: bool) -> Finished {
        Finished { finished_at: at, live, success: true, line: "published".to_owned() }
    }

    fn held(until: Time, finished: Option<Finished>) -> Standing {
        Standing { since: Some(BEGAN), until: Some(until), finished }
    }

    #[test]
    fn a_lease_is_free_when_it_is_not_taken_or_its_owner_has_died() {
        assert_eq!(Standing::default().meet(BEGAN, true, BEGAN), Meeting::Free);
        assert_eq!(held(later(10), None).meet(BEGAN, true, later(9)), Meeting::HeldSince(BEGAN));
        assert_eq!(held(later(10), None).meet(BEGAN, true, later(10)), Meeting::Free);
        let earlier = Standing { finished: Some(finished(BEGAN, true)), ..Standing::default() };
        assert_eq!(earlier.meet(BEGAN, true, later(1)), Meeting::Free, "it may be otherwise by now");
    }

    #[test]
    fn the_result_of_another_update_meanwhile_counts_if_it_did_at_least_as_much() {
        for (theirs, mine, done) in
            [(true, true, true), (true, false, true), (false, false, true), (false, true, false)]
        {
            let outcome = finished(later(1), theirs);
            let free = Standing { finished: Some(outcome.clone()), ..Standing::default() };
            let expected = if done { Meeting::Done(outcome.clone()) } else { Meeting::Free };
            assert_eq!(free.meet(BEGAN, mine, later(2)), expected, "{theirs} {mine}");
            let again = held(later(10), Some(outcome.clone())).meet(BEGAN, mine, later(2));
            let expected = if done { Meeting::Done(outcome) } else { Meeting::HeldSince(BEGAN) };
            assert_eq!(again, expected, "another one may have begun again: {theirs} {mine}");
        }
    }

    #[test]
    fn an_item_is_read_as_it_is_written() {
        let result = finished(BEGAN, true);
        let mut item = json!({ "pk": "GEOIP#a", "sk": "LEASE", "expiresAt": 5 });
        let read = |item: &serde_json::Value| from_value::<Standing>(item.clone()).expect("one");
        assert_eq!(read(&item), Standing::default());
        item["finished"] = json!(result);
        item["since"] = json!(BEGAN);
        item["until"] = json!(later(10));
        assert_eq!(read(&item), held(later(10), Some(result)));
    }
}
