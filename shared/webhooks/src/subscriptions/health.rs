//! How webhooks are doing, in the table: one item for each that is not simply well.
//!
//! | item | pk / sk |
//! |---|---|
//! | health | `ENT#{entity}` / `HLT#{webhook}` |
//!
//! It is written only when something failed or recovered: failures are added up by the table itself, so that dispatchers
//! which count at once lose nothing, and a success removes the item. It goes when nothing was tried for long.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    operation::update_item::{UpdateItemError, builders::UpdateItemFluentBuilder},
    types::{AttributeValue, Delete, ReturnValue, TransactWriteItem, Update},
};

use super::{
    breaker::{BreakerSettings, Consequence, Outcome, PROBE_LEASE, Spell, Tally},
    disable::{Disabler, Named, Reason},
    operational::WebhookFailing,
    telling::{Changed, PAUSE, Telling},
};
use auth::entity::{AuthorizedEntity, EntityId};
use base::{clock::Time, ids::WebhookId, random::SharedRandom};
use storage::table::{Table, TableError, number, text};

pub use super::breaker::{Health, HealthItem, Passage};

/// What the sort keys of health items begin with.
const PREFIX: &str = "HLT#";
/// An exchange that took longer than this has perhaps begun before others failed.
const SLOW: Duration = Duration::from_secs(1);

/// How webhooks are doing, as it stands in the table.
#[derive(Debug, Clone)]
pub struct Healths {
    table: Table,
}

impl Healths {
    /// The healths in this table.
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// The key of a webhook's health.
    pub fn key(entity: &EntityId, webhook: &WebhookId) -> (String, String) {
        (format!("ENT#{entity}"), format!("{PREFIX}{webhook}"))
    }

    /// The healths of all webhooks of an entity; those that are missing are healthy.
    pub async fn of(&self, entity: &AuthorizedEntity) -> Result<HashMap<WebhookId, HealthItem>, TableError> {
        const DOING: &str = "reading the health of an entity's webhooks";
        let items = self.table.partition(format!("ENT#{}", entity.id()), Some(PREFIX), DOING).await?;
        let by_webhook = items.into_iter().filter_map(|item| {
            let sk = item.get("sk")?.as_s().ok()?;
            let webhook = WebhookId::parse(sk.strip_prefix(PREFIX)?)?;
            Some(HealthItem::read(item).map(|health| (webhook, health)))
        });
        by_webhook.collect()
    }

    /// A webhook's health; `None` when it is healthy.
    pub async fn find(&self, entity: &AuthorizedEntity, webhook: &WebhookId) -> Result<Option<HealthItem>, TableError> {
        self.table.read(Self::key(entity.id(), webhook), "reading a webhook's health").await
    }

    /// Makes the caller's attempt the probe of the opening that it saw; false when another's is, or the breaker has moved
    /// on. A probe that nobody hears of again blocks for no longer than its lease.
    pub async fn take_probe(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        seen: &HealthItem,
        now: Time,
    ) -> Result<bool, TableError> {
        let Some(open_until) = seen.open_until else { return Ok(false) };
        let update = self
            .update(entity, webhook)
            .update_expression("SET probeUntil = :end")
            .condition_expression("openUntil = :seen AND (attribute_not_exists(probeUntil) OR probeUntil <= :now)")
            .expression_attribute_values(":end", text(now + PROBE_LEASE))
            .expression_attribute_values(":seen", text(open_until))
            .expression_attribute_values(":now", text(now));
        unless_lost(update, "taking a breaker's probe").await
    }

    /// Forgets what was held against a webhook: its owner has enabled it again, or it has taken what it was sent.
    pub async fn reset(&self, entity: &AuthorizedEntity, webhook: &WebhookId) -> Result<(), TableError> {
        let (pk, sk) = Self::key(entity.id(), webhook);
        let request = self.table.client.delete_item().table_name(&self.table.name);
        let request = request.key("pk", text(pk)).key("sk", text(sk));
        request.send().await.map_err(TableError::sdk("forgetting a webhook's failures"))?;
        Ok(())
    }

    /// The same as a part of a transaction: the webhook is removed, or enabled again.
    pub fn removal(&self, entity: &AuthorizedEntity, webhook: &WebhookId) -> Result<TransactWriteItem, TableError> {
        let (pk, sk) = Self::key(entity.id(), webhook);
        let delete = Delete::builder().table_name(&self.table.name).key("pk", text(pk)).key("sk", text(sk)).build();
        let delete = delete.map_err(TableError::unbuilt("forgetting a webhook's failures"))?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// Adds what failed, in one step, and gives what has become of it. What was not added to for as long as `memory` is
    /// forgotten first: it is another spell.
    async fn add(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        tally: &Tally,
        memory: Duration,
        now: Time,
    ) -> Result<HealthItem, TableError> {
        const DOING: &str = "counting a webhook's failures";
        loop {
            let update = self
                .update(entity, webhook)
                .update_expression(addition(tally))
                .condition_expression("attribute_not_exists(expiresAt) OR expiresAt > :second")
                .expression_attribute_values(":failures", number(tally.failures))
                .expression_attribute_values(":incomplete", number(tally.incomplete))
                .expression_attribute_values(":now", text(now))
                .expression_attribute_values(":second", number(now.as_seconds()))
                .expression_attribute_values(":end", number((now + memory).as_seconds() + 1))
                .return_values(ReturnValue::AllNew);
            match update.send().await {
                Ok(answer) => return HealthItem::read(answer.attributes.unwrap_or_default()),
                Err(error)
                    if matches!(
                        error.as_service_error(),
                        Some(UpdateItemError::ConditionalCheckFailedException(_))
                    ) =>
                {
                    self.reset(entity, webhook).await?;
                }
                Err(error) => return Err(TableError::sdk(DOING)(error)),
            }
        }
    }

    /// Opens the breaker; false when another did, or a completed exchange has come in between.
    async fn open(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        threshold: u32,
        until: Time,
    ) -> Result<bool, TableError> {
        let update = self
            .update(entity, webhook)
            .update_expression("SET openUntil = :until, opens = :one")
            .condition_expression("attribute_not_exists(openUntil) AND incompleteInRow >= :threshold")
            .expression_attribute_values(":until", text(until))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":threshold", number(threshold));
        unless_lost(update, "opening a webhook's breaker").await
    }

    /// Opens the breaker again after its probe failed; false when it has moved on.
    async fn reopen(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        seen: Time,
        opens: u32,
        until: Time,
    ) -> Result<bool, TableError> {
        let update = self
            .update(entity, webhook)
            .update_expression("SET openUntil = :until, opens = :opens REMOVE probeUntil")
            .condition_expression("openUntil = :seen")
            .expression_attribute_values(":until", text(until))
            .expression_attribute_values(":opens", number(opens))
            .expression_attribute_values(":seen", text(seen));
        unless_lost(update, "opening a webhook's breaker again").await
    }

    /// The write that notes that a webhook is failing, and when that may be told if it is not told with it. The condition is lost
    /// when another did, or a success came in between.
    fn failing(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        spell: Spell,
        tell_after: Option<Time>,
    ) -> Result<TransactWriteItem, TableError> {
        let (pk, sk) = Self::key(entity.id(), webhook);
        let update = Update::builder().table_name(&self.table.name).key("pk", text(pk)).key("sk", text(sk));
        let update = match tell_after {
            None => update.update_expression("SET failing = :yes REMOVE tellAfter"),
            Some(time) => update
                .update_expression("SET failing = :yes, tellAfter = :time")
                .expression_attribute_values(":time", text(time)),
        };
        let update = match spell.tell_after {
            None => update.condition_expression("attribute_not_exists(failing) AND failingSince = :since"),
            Some(seen) => update
                .condition_expression("tellAfter = :seen AND failingSince = :since")
                .expression_attribute_values(":seen", text(seen)),
        };
        let update = update.expression_attribute_values(":yes", AttributeValue::Bool(true));
        let update = update.expression_attribute_values(":since", text(spell.since));
        Ok(TransactWriteItem::builder().update(update.build().map_err(TableError::unbuilt(TELLING))?).build())
    }

    fn update(&self, entity: &AuthorizedEntity, webhook: &WebhookId) -> UpdateItemFluentBuilder {
        let (pk, sk) = Self::key(entity.id(), webhook);
        self.table.client.update_item().table_name(&self.table.name).key("pk", text(pk)).key("sk", text(sk))
    }
}

const TELLING: &str = "telling that a webhook is failing";

/// The update that adds a tally with failures at its end.
fn addition(tally: &Tally) -> &'static str {
    match (tally.succeeded, tally.completed) {
        (true, _) => {
            "SET failuresInRow = :failures, incompleteInRow = :incomplete, failingSince = :now, expiresAt = :end \
             REMOVE failing, tellAfter, openUntil, opens, probeUntil"
        }
        (false, true) => {
            "ADD failuresInRow :failures \
             SET incompleteInRow = :incomplete, failingSince = if_not_exists(failingSince, :now), expiresAt = :end \
             REMOVE openUntil, opens, probeUntil"
        }
        (false, false) => {
            "ADD failuresInRow :failures, incompleteInRow :incomplete \
             SET failingSince = if_not_exists(failingSince, :now), expiresAt = :end"
        }
    }
}

/// Sends a conditional update; false when its condition did not hold.
async fn unless_lost(update: UpdateItemFluentBuilder, doing: &'static str) -> Result<bool, TableError> {
    match update.send().await {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.as_service_error(), Some(UpdateItemError::ConditionalCheckFailedException(_))) => {
            Ok(false)
        }
        Err(error) => Err(TableError::sdk(doing)(error)),
    }
}

/// What watches over webhooks while they are sent to: counts their failures, and does what follows from them.
#[derive(Clone)]
pub struct Watch {
    /// How they are doing.
    pub healths: Healths,
    /// What disables them.
    pub disabler: Disabler,
    telling: Telling,
    settings: BreakerSettings,
    random: SharedRandom,
}

impl Watch {
    /// Watches over the webhooks in this table.
    pub fn new(table: Table, settings: BreakerSettings, random: SharedRandom) -> Self {
        Self {
            healths: Healths::new(table.clone()),
            disabler: Disabler::new(table.clone(), random.clone()),
            telling: Telling::new(table),
            settings,
            random,
        }
    }

    /// Counts attempts that were made one after the other on a webhook whose health `was` this; once per webhook and batch.
    ///
    /// A success on a webhook that was healthy costs no write. A success on any other removes its item, failures are one
    /// update, and more is written only when they have consequences.
    pub async fn count(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        outcomes: &[Outcome],
        was: Option<&HealthItem>,
        now: Time,
    ) -> Result<(), TableError> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let tally = Tally::of(outcomes);
        if tally.completed && was.is_some_and(|was| was.open_until.is_some()) {
            tracing::info!(webhookId = %webhook, entity = %entity.id(), "the breaker is closed");
        }
        if tally.is_clean() {
            // What others have counted in the course of a slow exchange is over as well.
            let slow = outcomes.iter().any(|outcome| outcome.completed() && outcome.duration > SLOW);
            let well = was.is_none() && !(slow && self.healths.find(entity, webhook).await?.is_some());
            return if well { Ok(()) } else { self.healths.reset(entity, webhook).await };
        }
        let memory = self.settings.disable_after;
        let left = self.healths.add(entity, webhook, &tally, memory, now).await?;
        for consequence in left.consequences(was, &tally, &self.settings, now) {
            self.follow(entity, webhook, consequence, &left, outcomes.last(), now).await?;
        }
        Ok(())
    }

    async fn follow(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        consequence: Consequence,
        left: &HealthItem,
        last: Option<&Outcome>,
        now: Time,
    ) -> Result<(), TableError> {
        match consequence {
            Consequence::Open { until } => {
                if self.healths.open(entity, webhook, self.settings.threshold, until).await? {
                    tracing::warn!(webhookId = %webhook, entity = %entity.id(), until = %until, "the breaker is open");
                }
            }
            Consequence::Reopen { seen, opens, until } => {
                if self.healths.reopen(entity, webhook, seen, opens, until).await? {
                    tracing::warn!(webhookId = %webhook, entity = %entity.id(), until = %until, opens, "the probe failed");
                }
            }
            Consequence::TellFailing(spell) => self.tell(entity, webhook, spell, left, last, now).await?,
            Consequence::Disable { since } => {
                self.disabler.disable(entity, webhook, Reason::Failing { since }, now).await?;
            }
        }
        Ok(())
    }

    async fn tell(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        spell: Spell,
        left: &HealthItem,
        last: Option<&Outcome>,
        now: Time,
    ) -> Result<(), TableError> {
        // Of a webhook that was removed meanwhile there is nothing to tell.
        let Some(named) = Named::find(&self.healths.table, entity, webhook).await? else { return Ok(()) };
        let data = WebhookFailing {
            webhook_identifier: webhook,
            name: &named.name,
            failures_in_row: left.failures_in_row,
            since: spell.since,
            last_http_status: last.and_then(|outcome| outcome.http_status),
            last_error: last.and_then(|outcome| outcome.error.as_deref()),
        };
        let announcement = data.announcement(entity.id(), now, &*self.random);
        let failing = |changed| {
            let tell_after = (changed == Changed::Untold).then(|| now + PAUSE);
            self.healths.failing(entity, webhook, spell, tell_after)
        };
        if self.telling.change(failing, webhook, &announcement, now).await? == Changed::AndTold {
            tracing::warn!(webhookId = %webhook, entity = %entity.id(), since = %spell.since, "the webhook is failing");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_uses_every_value_that_it_is_given() {
        for (succeeded, completed) in [(true, true), (false, true), (false, false)] {
            let update = addition(&Tally { succeeded, completed, failures: 1, incomplete: 0 });
            for value in [":failures", ":incomplete", ":now", ":end"] {
                assert!(update.contains(value), "{update} leaves out {value}");
            }
            assert_eq!(update.contains("REMOVE"), completed);
            assert_eq!(update.contains("ADD"), !succeeded);
        }
    }
}
