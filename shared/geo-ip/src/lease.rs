//! One update of an edition at a time, by an item of the table. A lease lasts ten seconds and is renewed while its owner
//! lives, so that what a killed update held is free soon. The item also keeps what became of the last update, for those
//! that waited for it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};

use super::edition::EditionName;
use base::{
    clock::{SharedClock, Time},
    logging,
    random::{self, SharedRandom},
};
use storage::table::{Item, Table, TableError, number, read_item, text, write_item};

const LOOKING: &str = "looking at the lease of a geo-IP edition";
const TAKING: &str = "taking the lease of a geo-IP edition";
const RENEWING: &str = "renewing the lease of a geo-IP edition";
const RETURNING: &str = "giving back the lease of a geo-IP edition";

/// How long a lease lasts that is not renewed.
const LENGTH: Duration = Duration::from_secs(10);
/// How often it is renewed, so that one renewal may fail and the next is still in time.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// How long the item is kept after the last update, in seconds: for whoever waits, and for whoever wants to know.
const KEPT: i64 = 86_400;

/// The leases of all editions.
#[derive(Clone)]
pub struct Leases {
    /// Where they are.
    pub table: Table,
    /// When they end.
    pub clock: SharedClock,
    /// Whose they are.
    pub random: SharedRandom,
}

/// The right to update an edition, for as long as it is renewed.
#[derive(Debug)]
pub struct Lease {
    key: String,
    owner: String,
}

/// What became of an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// When.
    pub finished_at: Time,
    /// Whether it was to publish.
    pub live: bool,
    /// Whether it went well.
    pub success: bool,
    /// What it said.
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

/// What an update finds when it wants to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// Nobody is at work.
    Free,
    /// Somebody is, since then.
    HeldSince(Time),
    /// Somebody was, and has done what this one would do.
    Done(Finished),
}

impl Standing {
    /// What an update finds that began then and is to publish, or not.
    ///
    /// What became of another one is this one's own outcome when it ended after this one began, and when that one was to do at
    /// least as much.
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
        let get = self.table.client.get_item().table_name(&self.table.name).consistent_read(true);
        let got = get.key("pk", text(key(edition))).key("sk", text("LEASE")).send().await;
        match got.map_err(TableError::sdk(LOOKING))?.item {
            Some(item) => read_item(item, LOOKING),
            None => Ok(Standing::default()),
        }
    }

    /// Takes a lease that was free, unless anything has happened since it was looked at.
    pub async fn take(&self, edition: &EditionName, seen: &Standing) -> Result<Option<Lease>, TableError> {
        let (now, lease) = (self.clock.now(), Lease { key: key(edition), owner: random::uuid(&*self.random) });
        let (unfinished, last) = match &seen.finished {
            None => ("attribute_not_exists(finished)", None),
            Some(finished) => ("finished.finishedAt = :last", Some(text(finished.finished_at))),
        };
        let change = Change {
            update: "SET #owner = :owner, since = :now, #until = :until, expiresAt = :expires",
            condition: &format!("(attribute_not_exists(#until) OR #until <= :now) AND {unfinished}"),
            values: vec![(":now", Some(text(now))), (":last", last)],
        };
        Ok(self.change(&lease, now, change, TAKING).await?.then_some(lease))
    }

    /// Renews a lease; false when it is another's by now.
    pub async fn renew(&self, lease: &Lease) -> Result<bool, TableError> {
        let change = Change {
            update: "SET #until = :until, expiresAt = :expires",
            condition: "#owner = :owner",
            values: Vec::new(),
        };
        self.change(lease, self.clock.now(), change, RENEWING).await
    }

    /// Renews a lease for as long as this is waited for; comes back when it is lost.
    pub async fn keep(&self, lease: &Lease) {
        let mut renewed = Instant::now();
        loop {
            sleep(RENEW_EVERY).await;
            match timeout(RENEW_EVERY, self.renew(lease)).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(error = %logging::chain(&error), "a lease could not be renewed"),
                Err(_) => tracing::warn!("a lease could not be renewed in time"),
            }
            if renewed.elapsed() > LENGTH - RENEW_EVERY {
                return; // what is done later might be done beside another update
            }
        }
    }

    /// Gives a lease back, with what those who waited are to know. One that is another's by now stays theirs.
    pub async fn give_back(&self, lease: &Lease, finished: Option<Finished>) -> Result<(), TableError> {
        let finished = finished.map(|finished| write_item(&finished, RETURNING)).transpose()?.map(AttributeValue::M);
        let change = Change {
            update: match finished {
                Some(_) => "SET finished = :finished, expiresAt = :expires REMOVE #owner, since, #until",
                None => "SET expiresAt = :expires REMOVE #owner, since, #until",
            },
            condition: "#owner = :owner",
            values: vec![(":finished", finished)],
        };
        self.change(lease, self.clock.now(), change, RETURNING).await.map(drop)
    }

    /// Whether the condition was true, and the change made.
    async fn change(
        &self,
        lease: &Lease,
        now: Time,
        change: Change<'_>,
        doing: &'static str,
    ) -> Result<bool, TableError> {
        let Change { update, condition, values } = change;
        let until = now + LENGTH;
        let mut values: Item = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        values.insert(":owner".to_owned(), text(&lease.owner));
        values.insert(":expires".to_owned(), number(until.as_seconds() + KEPT));
        if update.contains(":until") {
            values.insert(":until".to_owned(), text(until));
        }
        let request = self.table.client.update_item().table_name(&self.table.name);
        let mut request = request
            .key("pk", text(&lease.key))
            .key("sk", text("LEASE"))
            .update_expression(update)
            .condition_expression(condition)
            .expression_attribute_names("#owner", "owner")
            .set_expression_attribute_values(Some(values));
        if update.contains("#until") {
            request = request.expression_attribute_names("#until", "until");
        }
        match request.send().await {
            Ok(_) => Ok(true),
            Err(error)
                if error.as_service_error().is_some_and(|error| error.is_conditional_check_failed_exception()) =>
            {
                Ok(false)
            }
            Err(error) => Err(TableError::sdk(doing)(error)),
        }
    }
}

/// A change of an item that its owner alone may make.
struct Change<'a> {
    update: &'a str,
    condition: &'a str,
    values: Vec<(&'static str, Option<AttributeValue>)>,
}

fn key(edition: &EditionName) -> String {
    format!("GEOIP#{edition}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_lease_is_free_when_nobody_has_it_or_its_owner_has_died() {
        assert_eq!(Standing::default().meet(BEGAN, true, BEGAN), Meeting::Free);
        assert_eq!(held(later(10), None).meet(BEGAN, true, later(9)), Meeting::HeldSince(BEGAN));
        assert_eq!(held(later(10), None).meet(BEGAN, true, later(10)), Meeting::Free);
        let earlier = Standing { finished: Some(finished(BEGAN, true)), ..Standing::default() };
        assert_eq!(earlier.meet(BEGAN, true, later(1)), Meeting::Free, "it may be otherwise by now");
    }

    #[test]
    fn what_another_update_did_meanwhile_is_not_done_again_when_it_was_at_least_as_much() {
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
        let outcome = finished(BEGAN, true);
        let mut item =
            write_item(&serde_json::json!({"pk": "GEOIP#a", "sk": "LEASE", "expiresAt": 5}), "").expect("one");
        assert_eq!(read_item::<Standing>(item.clone(), "").expect("one"), Standing::default());
        item.insert("finished".to_owned(), AttributeValue::M(write_item(&outcome, "").expect("one")));
        item.insert("since".to_owned(), text(BEGAN));
        item.insert("until".to_owned(), text(later(10)));
        assert_eq!(read_item::<Standing>(item, "").expect("one"), held(later(10), Some(outcome)));
    }
}
