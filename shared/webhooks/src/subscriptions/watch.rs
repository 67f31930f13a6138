//! Watching over webhooks while they are sent events.

use std::time::Duration;

use super::{
    announcing::{Announced, Announcer, PAUSE},
    breaker::{BreakerSettings, Consequence, HealthItem, Spell},
    disable::{Disabler, Reason},
    health::{self, Healths},
    operational::WebhookFailing,
    tally::{AttemptOutcome, Tally},
};
use auth::AuthorizedEntity;
use base::{SharedRandom, Time, WebhookId};
use storage::{Table, TableError, Written, table::Transaction};

/// An exchange that took longer than this may have begun before others failed.
const SLOW: Duration = Duration::from_secs(1);

/// Counts the failures of webhooks, and carries out the consequences.
#[derive(Clone)]
pub struct Watch {
    pub(crate) healths: Healths,
    pub(crate) disabler: Disabler,
    announcer: Announcer,
    settings: BreakerSettings,
    random: SharedRandom,
}

impl Watch {
    /// Watches over the webhooks in this table.
    pub fn new(table: Table, settings: BreakerSettings, random: SharedRandom) -> Self {
        Self {
            healths: Healths::new(table.clone()),
            disabler: Disabler::new(table.clone(), random.clone()),
            announcer: Announcer::new(table),
            settings,
            random,
        }
    }

    /// Counts attempts that were made one after the other on a webhook whose health `was` this; once per webhook and
    /// batch.
    ///
    /// A success on a webhook that was healthy costs no write. A success on any other removes its item, failures are
    /// one update, and more is written only when they have consequences. Returns whether the breaker opened, which was
    /// closed.
    pub(crate) async fn count(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        outcomes: &[AttemptOutcome],
        was: Option<&HealthItem>,
        now: Time,
    ) -> Result<bool, TableError> {
        if outcomes.is_empty() {
            return Ok(false);
        }
        let tally = Tally::of(outcomes);
        if tally.completed && was.is_some_and(|was| was.open_until.is_some()) {
            tracing::info!(webhookId = %webhook, entity = %entity.id(), "the breaker is closed");
        }
        if tally.is_clean() {
            // Failures that other dispatchers counted during a slow exchange are over as well.
            let slow = outcomes.iter().any(|outcome| outcome.completed() && outcome.duration > SLOW);
            let well = was.is_none() && !(slow && self.healths.find(entity, webhook).await?.is_some());
            if !well {
                self.healths.reset(entity, webhook).await?;
            }
            return Ok(false);
        }
        let memory = self.settings.disable_after;
        let left = self.healths.add(entity, webhook, (&tally, outcomes.last()), memory, now).await?;
        let mut opened = false;
        for consequence in left.consequences(was, &tally, &self.settings, now) {
            opened |= self.follow(entity, webhook, consequence, &left, outcomes.last(), now).await?;
        }
        Ok(opened)
    }

    /// Carries a consequence out, and returns whether it opened the breaker.
    async fn follow(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        consequence: Consequence,
        left: &HealthItem,
        last: Option<&AttemptOutcome>,
        now: Time,
    ) -> Result<bool, TableError> {
        match consequence {
            Consequence::Open { until } => {
                if self.healths.open(entity, webhook, self.settings.threshold, until).await?.is_done() {
                    tracing::warn!(webhookId = %webhook, entity = %entity.id(), until = %until, "the breaker is open");
                    return Ok(true);
                }
            }
            Consequence::Reopen { seen, opens, until } => {
                if self.healths.reopen(entity, webhook, seen, opens, until).await?.is_done() {
                    tracing::warn!(webhookId = %webhook, entity = %entity.id(), until = %until, opens, "the probe failed");
                }
            }
            Consequence::EndProbe { lease } => {
                if self.healths.end_probe(entity, webhook, lease).await?.is_done() {
                    tracing::info!(webhookId = %webhook, entity = %entity.id(), "a probe that was asked for failed");
                }
            }
            Consequence::AnnounceFailing(spell) => self.announce(entity, webhook, spell, left, last, now).await?,
            Consequence::Disable { since } => {
                self.disabler.disable(entity, webhook, Reason::Failing { since }, now).await?;
            }
        }
        Ok(false)
    }

    async fn announce(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        spell: Spell,
        left: &HealthItem,
        last: Option<&AttemptOutcome>,
        now: Time,
    ) -> Result<(), TableError> {
        // A webhook that was removed meanwhile has no events.
        let Some(named) = self.disabler.find(entity, webhook).await? else { return Ok(()) };
        let data = WebhookFailing {
            webhook_identifier: webhook,
            name: &named.name,
            failures_in_row: left.failures_in_row,
            since: spell.since,
            last_http_status: last.and_then(|outcome| outcome.http_status),
            last_error: last.and_then(|outcome| outcome.error.as_deref()),
        };
        let outbox_event = data.outbox_event(entity.id(), now, &*self.random);
        let failing = |announced| {
            let announce_after = (announced == Announced::Before).then(|| now + PAUSE);
            Transaction::new().with(health::failing(health::change(entity, webhook), spell, announce_after))
        };
        if self.announcer.change(failing, webhook, &outbox_event, now).await? == Written::Done(Announced::Now) {
            tracing::warn!(webhookId = %webhook, entity = %entity.id(), since = %spell.since, "the webhook is failing");
        }
        Ok(())
    }
}
