//! Failing webhooks of all managing entities, for a deployment's operator. They are found by a scan, since an index
//! would add a cost to every change to a healthy webhook. A webhook is failing if its health says so, or if the service
//! has disabled it.

use std::fmt;

use serde::Serialize;

use crate::subscriptions::{
    health::{
        self,
        breaker::{Health, HealthItem},
    },
    webhook::{self, Webhook, show::Showing},
};
use auth::{AuthorizedEntity, EntityId};
use base::{Time, WebhookId};
use storage::TableError;
use storage::table::{Key, Scan, begins_with, is, present};

/// A failing webhook's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailingState {
    /// Its latest attempts failed, and more are being made.
    Failing,
    /// Its latest attempts never completed, and its deliveries are waiting for the breaker or for the end of its
    /// owner's pause.
    Paused,
    /// The service has disabled it.
    Disabled,
}

impl fmt::Display for FailingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failing => "failing",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        })
    }
}

/// A failing webhook, as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailingWebhook {
    /// The managing entity.
    pub owner_identifier: EntityId,
    /// The webhook.
    pub id: WebhookId,
    /// Its name.
    pub name: String,
    /// Its endpoint, without the query values.
    pub event_url: String,
    /// The state.
    pub state: FailingState,
    /// The number of failed attempts since the last success.
    pub failures_in_row: u32,
    /// When the first of them failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
    /// Whether its owner has paused it as well, so that no probe is made.
    pub paused_by_owner: bool,
    /// While it is paused: the end of the owner's pause, if it has one, or else the time of the next probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Time>,
    /// Why the service disabled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
}

/// A scan for the items of webhooks that may be failing.
pub fn trace() -> Scan {
    let failing = is("failing", true).or(present("openUntil"));
    let health = begins_with("sk", health::PREFIX).and(failing);
    let disabled = begins_with("sk", webhook::PREFIX).and(present("disabledReason"));
    Scan::default().only(health.or(disabled))
}

/// The managing entity and an item's webhook; `None` for an item of another kind.
pub fn webhook_of(key: &Key) -> Option<(EntityId, WebhookId)> {
    let entity = EntityId::parse(key.partition.strip_prefix("ENT#")?).ok()?;
    let webhook = [health::PREFIX, webhook::PREFIX].iter().find_map(|prefix| key.sort.strip_prefix(prefix))?;
    Some((entity, WebhookId::parse(webhook)?))
}

impl Showing {
    /// The webhook, if it is currently failing.
    pub async fn failing(
        &self,
        entity: AuthorizedEntity,
        id: WebhookId,
        now: Time,
    ) -> Result<Option<FailingWebhook>, TableError> {
        let (found, health) = tokio::try_join!(self.webhooks.find(&entity, &id), self.healths.find(&entity, &id))?;
        Ok(found.and_then(|found| failing(&found.webhook, health.unwrap_or_default(), now)))
    }
}

fn failing(webhook: &Webhook, health: HealthItem, now: Time) -> Option<FailingWebhook> {
    let state = match (webhook.enabled, &webhook.disabled_reason, health.health()) {
        (false, Some(_), _) => FailingState::Disabled,
        (true, _, Health::Open) => FailingState::Paused,
        (true, _, Health::Failing) => FailingState::Failing,
        // Its owner disabled it, or it has recovered in the meantime.
        (false, None, _) | (true, _, Health::Healthy) => return None,
    };
    let owners_pause = webhook.pause(now).filter(|_| state == FailingState::Paused);
    let breaker = health.open_until.filter(|_| state == FailingState::Paused);
    Some(FailingWebhook {
        owner_identifier: webhook.owner_identifier.clone(),
        id: webhook.id.clone(),
        name: webhook.name.clone(),
        event_url: webhook.endpoint.shown_url(),
        state,
        failures_in_row: health.failures_in_row,
        failing_since: health.failing_since,
        paused_by_owner: owners_pause.is_some(),
        paused_until: owners_pause.map_or(breaker, |pause| pause.until),
        disabled_reason: webhook.disabled_reason.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::subscriptions::webhook::{pause::Pause, tests::webhook};

    const NOW: Time = Time::from_millis(1_795_167_900_123);
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_webhook_fails_by_its_health_or_a_reason_of_the_service() {
        let open_until = Some(Time::from_millis(1_795_167_960_000));
        let open = HealthItem { failing: true, failures_in_row: 25, open_until, ..HealthItem::default() };
        let failing_only = HealthItem { open_until: None, ..open.clone() };
        let state = |enabled: bool, reason: Option<&str>, health: &HealthItem| {
            let webhook = Webhook { enabled, disabled_reason: reason.map(str::to_owned), ..webhook() };
            let shown = failing(&webhook, health.clone(), NOW)?;
            Some((shown.state, shown.paused_until, shown.failures_in_row))
        };
        let healthy = HealthItem::default();
        assert_eq!(state(true, None, &healthy), None);
        assert_eq!(state(true, None, &failing_only), Some((FailingState::Failing, None, 25)));
        assert_eq!(state(true, None, &open), Some((FailingState::Paused, open_until, 25)));
        assert_eq!(state(false, Some("gone"), &open), Some((FailingState::Disabled, None, 25)));
        assert_eq!(state(false, Some("gone"), &healthy), Some((FailingState::Disabled, None, 0)));
        assert_eq!(state(false, None, &open), None, "its owner has disabled it");
    }

    #[test]
    fn the_end_of_an_owners_pause_is_shown_in_place_of_the_next_probe() {
        let open = HealthItem { failing: true, open_until: Some(NOW + MINUTE), ..HealthItem::default() };
        let shown = |pause| {
            let shown =
                failing(&Webhook { enabled: true, pause, ..webhook() }, open.clone(), NOW).expect("it is failing");
            (shown.paused_by_owner, shown.paused_until)
        };
        assert_eq!(shown(Some(Pause { since: NOW - MINUTE, until: None })), (true, None));
        assert_eq!(
            shown(Some(Pause { since: NOW - MINUTE, until: Some(NOW + MINUTE * 9) })),
            (true, Some(NOW + MINUTE * 9))
        );
        assert_eq!(shown(Some(Pause { since: NOW - MINUTE, until: Some(NOW) })), (false, Some(NOW + MINUTE)));
    }

    #[test]
    fn an_item_says_which_webhook_it_is_about() {
        let id = webhook().id;
        for prefix in ["HLT#", "WHK#"] {
            let found = webhook_of(&Key::new("ENT#hotel", format!("{prefix}{id}")));
            assert_eq!(found, Some((EntityId::parse("hotel").expect("an entity"), id.clone())));
        }
        for (partition, sort) in [("ENT#hotel", "PAY#stripe"), ("DLV#1", "HEAD"), ("ENT#a b", "WHK#whk_1")] {
            assert_eq!(webhook_of(&Key::new(partition, sort)), None);
        }
    }
}
