//! Tracks webhooks' health by the outcomes of their attempts.

use std::time::Duration;

use crate::subscriptions::{
    health::{
        self, Healths,
        announcing::{ANNOUNCEMENT_INTERVAL, Announcer},
        breaker::{BreakerSettings, Consequence, FailureStreak, Health, HealthItem},
        disable::{Disabler, Reason},
        operational::{FAILING, FailingEntry, FailingError, WebhookFailing},
        tally::{AttemptOutcome, Tally},
    },
    webhook::store::Webhooks,
};
use auth::AuthorizedEntity;
use base::{SharedRandom, Time, WebhookId};
use storage::{Table, TableError, table::Transaction};

/// An exchange that took longer than this may have begun before others failed.
const LONG_EXCHANGE: Duration = Duration::from_secs(1);

/// A webhook that began to fail less than this long before an announced event may be missing from the event.
const UNCERTAIN: Duration = Duration::from_secs(60);

const DOING: &str = "recording that a webhook is failing";

/// Counts webhooks' failures and carries out the consequences.
#[derive(Clone)]
pub struct HealthTracker {
    table: Table,
    pub(crate) healths: Healths,
    pub(crate) disabler: Disabler,
    announcer: Announcer,
    webhooks: Webhooks,
    settings: BreakerSettings,
    random: SharedRandom,
}

impl HealthTracker {
    /// A tracker of the webhooks in this table.
    pub fn new(table: Table, settings: BreakerSettings, random: SharedRandom) -> Self {
        Self {
            healths: Healths::new(table.clone()),
            disabler: Disabler::new(table.clone(), random.clone()),
            announcer: Announcer::new(table.clone()),
            webhooks: Webhooks::new(table.clone()),
            table,
            settings,
            random,
        }
    }

    /// Counts consecutive attempts of a webhook whose health was `was`, once per webhook and batch. A success costs no
    /// write if the webhook is healthy, and otherwise removes the item. Failures cost one update, and further writes
    /// only for their consequences. Returns whether a closed breaker opened.
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
            // A success also clears failures that other dispatchers counted during a slow exchange.
            let slow = outcomes.iter().any(|outcome| outcome.completed() && outcome.duration > LONG_EXCHANGE);
            let was_healthy = was.is_none() && !(slow && self.healths.find(entity, webhook).await?.is_some());
            if !was_healthy {
                self.healths.reset(entity, webhook).await?;
            }
            return Ok(false);
        }
        let streak_timeout = self.settings.disable_after;
        let left = self.healths.add(entity, webhook, &tally, outcomes.last(), streak_timeout, now).await?;
        let mut opened = false;
        for consequence in left.consequences(was, &tally, &self.settings, now) {
            opened |= self.follow(entity, webhook, consequence, &left, outcomes.last(), now).await?;
        }
        Ok(opened)
    }

    /// Carries out a consequence and returns whether it opened the breaker.
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
                    tracing::warn!(
                        webhookId = %webhook,
                        entity = %entity.id(),
                        until = %until,
                        opens,
                        "the probe failed"
                    );
                }
            }
            Consequence::EndProbe { lease } => {
                if self.healths.end_probe(entity, webhook, lease).await?.is_done() {
                    tracing::info!(webhookId = %webhook, entity = %entity.id(), "a requested probe failed; the pause stays");
                }
            }
            Consequence::AnnounceFailing(streak) => self.announce(entity, webhook, streak, left, last, now).await?,
            Consequence::Disable { since } => {
                self.disabler
                    .disable(entity, webhook, Reason::Failing { since, after: self.settings.disable_after }, now)
                    .await?;
            }
        }
        Ok(false)
    }

    async fn announce(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        streak: FailureStreak,
        left: &HealthItem,
        last: Option<&AttemptOutcome>,
        now: Time,
    ) -> Result<(), TableError> {
        let failing = |announce_after| health::failing(health::change(entity, webhook), streak, announce_after);
        if let Some(announced) = self.announcer.last_to_entity(entity.id(), FAILING.value, now).await? {
            let announce_after = (!is_listed(streak, announced)).then(|| now + ANNOUNCEMENT_INTERVAL);
            return self.table.write(failing(announce_after), DOING).await.map(drop);
        }
        // No event is published about a webhook that was removed in the meantime.
        let Some((name, others)) = self.others_failing(entity, webhook).await? else { return Ok(()) };
        let first = FailingEntry {
            webhook_identifier: webhook.clone(),
            name,
            failures_in_row: left.failures_in_row,
            since: streak.since,
            last_http_status: last.and_then(|outcome| outcome.http_status),
            last_error: last.and_then(|outcome| outcome.error.as_deref().map(FailingError::of)),
        };
        let outbox_event = WebhookFailing::new(&first, &others).outbox_event(entity.id(), now, &*self.random);
        let writes = self.announcer.writes_to_entity(&outbox_event, now)?;
        let announced = Transaction::new().with(failing(None)).with_all(writes);
        if self.table.write_all(announced, DOING).await?.is_done() {
            tracing::warn!(
                webhookId = %webhook,
                entity = %entity.id(),
                since = %streak.since,
                "the webhook is failing"
            );
            return Ok(());
        }
        // Another dispatcher announced an event in the meantime, or the streak is over.
        self.table.write(failing(Some(now + ANNOUNCEMENT_INTERVAL)), DOING).await.map(drop)
    }

    /// The webhook's name, and its entity's other failing webhooks; `None` if there is no such webhook.
    async fn others_failing(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<(String, Vec<FailingEntry>)>, TableError> {
        let (webhooks, healths) = tokio::try_join!(self.webhooks.of(entity), self.healths.of(entity))?;
        let Some(named) = webhooks.iter().find(|found| found.id == *webhook) else { return Ok(None) };
        let others = webhooks.iter().filter(|other| other.enabled && other.id != *webhook);
        let failing = others.filter_map(|other| {
            let health = healths.get(&other.id).filter(|health| health.health() != Health::Healthy)?;
            Some(FailingEntry {
                webhook_identifier: other.id.clone(),
                name: other.name.clone(),
                failures_in_row: health.failures_in_row,
                since: health.failing_since?,
                last_http_status: health.last_http_status,
                last_error: health.last_error.as_deref().map(FailingError::of),
            })
        });
        Ok(Some((named.name.clone(), failing.collect())))
    }
}

/// Whether an event announced at this time certainly lists the webhook, which was found failing an hour before
/// `announce_after`. The first minute after that does not count, since clocks differ.
fn is_listed(streak: FailureStreak, announced: Time) -> bool {
    streak.announce_after.is_some_and(|time| time + UNCERTAIN <= announced + ANNOUNCEMENT_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streak_is_not_announced_if_a_later_event_listed_its_webhook() {
        let found = Time::from_millis(1_795_167_900_123);
        let streak = FailureStreak { since: found, announce_after: Some(found + ANNOUNCEMENT_INTERVAL) };
        assert!(is_listed(streak, found + UNCERTAIN));
        assert!(!is_listed(streak, found + UNCERTAIN - Duration::from_millis(1)));
        assert!(
            !is_listed(FailureStreak { announce_after: None, ..streak }, found + UNCERTAIN),
            "no event can have listed it yet"
        );
    }
}
