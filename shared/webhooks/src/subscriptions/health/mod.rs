//! Webhooks' health in the table: one item for each unhealthy webhook.
//!
//! | item | pk / sk |
//! |---|---|
//! | health | `ENT#{entity}` / `HLT#{webhook}` |
//! The table adds up failures, so that concurrent dispatchers lose none. A success removes the item, so that a healthy
//! webhook costs no write. Without attempts, the item is kept for at least as long as the statistics shown with it, so
//! that no webhook appears healthy if all of its attempts shown have failed. Whether the webhook is disabled depends on
//! the *streak*; a long silence ends it.

pub mod announcing;
pub mod breaker;
pub(crate) mod disable;
pub mod failing;
pub(crate) mod operational;
#[cfg(test)]
mod operational_tests;
pub(crate) mod pace;
pub mod resume;
pub(crate) mod tally;
pub mod tracker;

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;

use crate::subscriptions::{
    health::{
        breaker::{FailureStreak, HealthItem},
        tally::{AttemptOutcome, Tally},
    },
    stats,
};
use auth::{AuthorizedEntity, EntityId};
use base::{Time, WebhookId};
use storage::table::{Change, Delete, Query, Table, TableError, Written, absent, at_least, at_most, is, more, present};

/// The prefix of the sort keys of health items.
pub(in crate::subscriptions) const PREFIX: &str = "HLT#";

const READING: &str = "reading a webhook's health";

/// Webhooks' health in the table.
#[derive(Debug, Clone)]
pub struct Healths(Table);

impl Healths {
    /// The health of the webhooks in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    fn key(entity: &EntityId, webhook: &WebhookId) -> (String, String) {
        (format!("ENT#{entity}"), format!("{PREFIX}{webhook}"))
    }

    /// The health of each of an entity's webhooks. A webhook that is missing here is healthy.
    pub(in crate::subscriptions) async fn of(
        &self,
        entity: &AuthorizedEntity,
    ) -> Result<HashMap<WebhookId, HealthItem>, TableError> {
        #[derive(Deserialize)]
        struct Row {
            sk: String,
            #[serde(flatten)]
            health: HealthItem,
        }
        const DOING: &str = "reading the health of an entity's webhooks";
        let query = Query::partition(format!("ENT#{}", entity.id())).beginning_with("sk", PREFIX);
        let rows: Vec<Row> = self.0.all(query, DOING).await?;
        let by_webhook =
            rows.into_iter().filter_map(|row| Some((WebhookId::parse(row.sk.strip_prefix(PREFIX)?)?, row.health)));
        Ok(by_webhook.collect())
    }

    /// A webhook's health; `None` if it is healthy.
    pub(crate) async fn find(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<HealthItem>, TableError> {
        self.0.read(Self::key(entity.id(), webhook), READING).await
    }

    /// A webhook's health from an eventually consistent read, at half the cost.
    pub(crate) async fn read_eventual(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<HealthItem>, TableError> {
        self.0.read_eventual(Self::key(entity.id(), webhook), READING).await
    }

    /// Makes the caller's attempt the probe for the pause that it read, with a lease until this time. Returns `Lost` if
    /// another attempt is the probe, or the breaker has changed. A probe that is never counted blocks others only until
    /// the end of its lease.
    pub(crate) async fn take_probe(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        seen: &HealthItem,
        lease: Time,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let Some(open_until) = seen.open_until else { return Ok(Written::Lost(None)) };
        let probe = change(entity, webhook)
            .set("probeUntil", lease)
            .only_if(is("openUntil", open_until))
            .only_if(absent("probeUntil").or(at_most("probeUntil", now)));
        self.0.write(probe, "taking a breaker's probe").await
    }

    /// Removes a webhook's failures after it has accepted an event.
    pub(in crate::subscriptions) async fn reset(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<(), TableError> {
        self.0.write(self.removal(entity, webhook), "removing a webhook's failures").await.map(drop)
    }

    /// The write that removes a webhook's failures, for a transaction.
    pub(in crate::subscriptions) fn removal(&self, entity: &AuthorizedEntity, webhook: &WebhookId) -> Delete {
        Delete::of(Self::key(entity.id(), webhook))
    }

    /// In one write, adds a tally that ends with failures, and returns the new health; `last` is the last failure. A
    /// tally more than `streak_timeout` after the previous one begins a new streak. An expired health item is removed
    /// first.
    pub(in crate::subscriptions) async fn add(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        tally: &Tally,
        last: Option<&AttemptOutcome>,
        streak_timeout: Duration,
        now: Time,
    ) -> Result<HealthItem, TableError> {
        const DOING: &str = "counting a webhook's failures";
        loop {
            let addition = addition(change(entity, webhook), tally, now)
                .set_or_remove("lastHttpStatus", last.and_then(|outcome| outcome.http_status))
                .set_or_remove("lastError", last.and_then(|outcome| outcome.error.as_deref()))
                .set("expiresAt", (now + streak_timeout.max(stats::RETENTION)).as_seconds() + 1)
                .set("streakEnds", now + streak_timeout)
                .only_if(absent("expiresAt").or(more("expiresAt", now.as_seconds())));
            let continued = continuing_streak(addition.clone(), tally, now);
            if let Written::Done(health) = self.0.write_and_read(continued, DOING).await? {
                return Ok(health);
            }
            if let Written::Done(health) = self.0.write_and_read(beginning_streak(addition, now), DOING).await? {
                return Ok(health);
            }
            let expired = self.removal(entity, webhook).only_if(at_most("expiresAt", now.as_seconds()));
            self.0.write(expired, "removing a webhook's failures").await?;
        }
    }

    /// Opens the breaker. Returns `Lost` if another dispatcher opened it, or an exchange completed in between.
    pub(in crate::subscriptions) async fn open(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        threshold: u32,
        until: Time,
    ) -> Result<Written<()>, TableError> {
        let opening = change(entity, webhook)
            .set("openUntil", until)
            .set("opens", 1_u32)
            .only_if(absent("openUntil"))
            .only_if(at_least("incompleteInRow", threshold));
        self.0.write(opening, "opening a webhook's breaker").await
    }

    /// Opens the breaker again after a failed probe. Returns `Lost` if the breaker has changed.
    pub(in crate::subscriptions) async fn reopen(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        seen: Time,
        opens: u32,
        until: Time,
    ) -> Result<Written<()>, TableError> {
        let opening = change(entity, webhook)
            .set("openUntil", until)
            .set("opens", opens)
            .remove("probeUntil")
            .only_if(is("openUntil", seen));
        self.0.write(opening, "opening a webhook's breaker again").await
    }

    /// Ends a probe that failed before the end of the pause, which continues. Returns `Lost` if its lease has expired
    /// and another attempt is the probe.
    pub(in crate::subscriptions) async fn end_probe(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        lease: Time,
    ) -> Result<Written<()>, TableError> {
        let end = change(entity, webhook).remove("probeUntil").only_if(is("probeUntil", lease));
        self.0.write(end, "ending a probe of a webhook's breaker").await
    }
}

/// The write that closes a breaker before the end of its pause. The failures are kept, so that a webhook that fails for
/// a long time is still disabled; only the count of incomplete attempts starts again. The write is lost if the
/// breaker is closed.
pub(in crate::subscriptions) fn closing(entity: &AuthorizedEntity, webhook: &WebhookId) -> Change {
    let closed = change(entity, webhook).set("incompleteInRow", 0_u32);
    ["openUntil", "opens", "probeUntil"].into_iter().fold(closed, Change::remove).only_if(present("openUntil"))
}

pub(in crate::subscriptions) fn change(entity: &AuthorizedEntity, webhook: &WebhookId) -> Change {
    Change::of(Healths::key(entity.id(), webhook))
}

/// Adds a tally that ends with failures to a health item.
fn addition(health: Change, tally: &Tally, now: Time) -> Change {
    let &Tally { failures, incomplete, .. } = tally;
    match (tally.succeeded, tally.completed) {
        (true, _) => {
            let health =
                health.set("failuresInRow", failures).set("incompleteInRow", incomplete).set("failingSince", now);
            ["failing", "tellAfter", "openUntil", "opens", "probeUntil"].into_iter().fold(health, Change::remove)
        }
        (false, true) => {
            let health = health.add("failuresInRow", failures).set("incompleteInRow", incomplete);
            let health = health.set_if_absent("failingSince", now);
            ["openUntil", "opens", "probeUntil"].into_iter().fold(health, Change::remove)
        }
        (false, false) => {
            let health = health.add("failuresInRow", failures).add("incompleteInRow", incomplete);
            health.set_if_absent("failingSince", now)
        }
    }
}

/// Adds to the streak of failures if it has not ended. A tally with a success begins a new one.
fn continuing_streak(addition: Change, tally: &Tally, now: Time) -> Change {
    let addition = addition.only_if(absent("streakEnds").or(more("streakEnds", now)));
    if tally.succeeded { addition.set("streakSince", now) } else { addition.set_if_absent("streakSince", now) }
}

/// Begins a new streak if the previous one has ended. The failures before it are kept.
fn beginning_streak(addition: Change, now: Time) -> Change {
    addition.set("streakSince", now).only_if(at_most("streakEnds", now))
}

/// A condition for a transaction, which is lost if a success, a new address or a long silence has ended this streak of
/// failures.
pub(in crate::subscriptions) fn still_failing(health: Change, since: Time) -> Change {
    health.set("failing", true).only_if(is("streakSince", since))
}

/// Marks a webhook as failing, with the time at which that may be announced if it is not announced now. The write is
/// lost if another dispatcher did so, or a success came in between.
pub(in crate::subscriptions) fn failing(health: Change, streak: FailureStreak, announce_after: Option<Time>) -> Change {
    let health = health.set("failing", true).set_or_remove("tellAfter", announce_after);
    let health = health.only_if(match streak.announce_after {
        None => absent("failing"),
        Some(seen) => is("tellAfter", seen),
    });
    health.only_if(is("failingSince", streak.since))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_123);
    const LATER: Time = Time::from_millis(1_795_171_500_123);

    fn health() -> Change {
        Change::of((String::from("ENT#demo-hotel"), String::from("HLT#1")))
    }

    fn added(succeeded: bool, completed: bool) -> Change {
        addition(health(), &Tally { succeeded, completed, failures: 2, incomplete: 1 }, NOW)
    }

    #[test]
    fn failures_after_a_success_replace_the_previous_streak() {
        let expected = health().set("failuresInRow", 2_u32).set("incompleteInRow", 1_u32).set("failingSince", NOW);
        let expected = expected.remove("failing").remove("tellAfter");
        assert_eq!(added(true, true), expected.remove("openUntil").remove("opens").remove("probeUntil"));
    }

    #[test]
    fn failures_are_added_to_a_streak_and_an_answer_closes_the_breaker() {
        let expected = health().add("failuresInRow", 2_u32).set("incompleteInRow", 1_u32);
        let expected = expected.set_if_absent("failingSince", NOW);
        assert_eq!(added(false, true), expected.remove("openUntil").remove("opens").remove("probeUntil"));
        let expected = health().add("failuresInRow", 2_u32).add("incompleteInRow", 1_u32);
        assert_eq!(added(false, false), expected.set_if_absent("failingSince", NOW));
    }

    #[test]
    fn a_long_silence_ends_the_streak_and_keeps_the_failures() {
        let failed = Tally { succeeded: false, completed: true, failures: 1, incomplete: 0 };
        let continued = health().set_if_absent("streakSince", NOW);
        let expected = continued.only_if(absent("streakEnds").or(more("streakEnds", NOW)));
        assert_eq!(continuing_streak(health(), &failed, NOW), expected);
        let expected = health().set("streakSince", NOW).only_if(at_most("streakEnds", NOW));
        assert_eq!(beginning_streak(health(), NOW), expected);
        let after_success = Tally { succeeded: true, ..failed };
        let expected = health().set("streakSince", NOW).only_if(absent("streakEnds").or(more("streakEnds", NOW)));
        assert_eq!(continuing_streak(health(), &after_success, NOW), expected);
    }

    #[test]
    fn closing_a_breaker_by_hand_keeps_the_failures() {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let webhook = WebhookId::new(NOW, &base::testing::CountingRandom::default());
        let entity = AuthorizedEntity::owning_delivery(entity);
        let expected = change(&entity, &webhook).set("incompleteInRow", 0_u32).remove("openUntil").remove("opens");
        assert_eq!(closing(&entity, &webhook), expected.remove("probeUntil").only_if(present("openUntil")));
    }

    #[test]
    fn a_streak_is_marked_again_only_for_a_delayed_announcement() {
        let streak = |announce_after| FailureStreak { since: NOW, announce_after };
        let expected = health().set("failing", true).remove("tellAfter");
        let expected = expected.only_if(absent("failing")).only_if(is("failingSince", NOW));
        assert_eq!(failing(health(), streak(None), None), expected);
        let expected = health().set("failing", true).set("tellAfter", LATER);
        let expected = expected.only_if(is("tellAfter", NOW)).only_if(is("failingSince", NOW));
        assert_eq!(failing(health(), streak(Some(NOW)), Some(LATER)), expected);
    }
}
