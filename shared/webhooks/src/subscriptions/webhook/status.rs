//! The status of a webhook's deliveries, as its owner sees it.

use serde::Serialize;

use crate::{
    deliveries::{queries::advice::Cause, state::attempt::ErrorCode},
    subscriptions::{
        health::breaker::{Health, HealthItem},
        webhook::pause::Pause,
    },
};
use base::Time;

/// The state of deliveries to a webhook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// The endpoint accepts its events.
    #[default]
    Active,
    /// The latest attempts failed, and more are being made.
    Failing,
    /// Deliveries are on hold: the owner paused the webhook, or the latest attempts never completed.
    Paused,
    /// The webhook is disabled, so nothing is sent to it.
    Disabled,
}

/// Who paused a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum PausedBy {
    /// Its owner.
    Owner,
    /// The service, since its endpoint did not respond.
    Service,
}

/// A webhook's status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    delivery_state: DeliveryState,
    /// When the first attempt after the last success failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<Time>,
    /// The number of failed attempts since the last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures_in_row: Option<u32>,
    /// The older form of `delivery_state`, whose value `open` is misleading. Version 3.0 of the contract removes it.
    health: Health,
    /// Why the last of these attempts never completed.
    #[serde(flatten)]
    last_error: Option<LastError>,
    /// The status of the last of these attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_http_status: Option<u16>,
    /// Present while the webhook is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_by: Option<PausedBy>,
    /// When its owner paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_since: Option<Time>,
    /// When an enabled webhook's pause ends, unless only its owner can end it. A time in the past means that a probe is
    /// due or under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<Time>,
}

/// Why the last failed attempt of a webhook never completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastError {
    #[serde(rename = "lastErrorCode")]
    code: ErrorCode,
    /// The explanation in a sentence.
    #[serde(rename = "lastErrorDetail")]
    detail: String,
}

impl LastError {
    /// Splits the text of an attempt's error.
    pub fn of(error: &str) -> Option<Self> {
        let (code, detail) = ErrorCode::split(error)?;
        Some(Self { code, detail: detail.to_owned() })
    }
}

impl WebhookStatus {
    /// The status of a webhook with this pause by its owner. A healthy webhook has no health item.
    pub fn of(enabled: bool, pause: Option<Pause>, item: Option<&HealthItem>) -> Self {
        let health = item.map(HealthItem::health).unwrap_or_default();
        let delivery_state = match health {
            _ if !enabled => DeliveryState::Disabled,
            _ if pause.is_some() => DeliveryState::Paused,
            Health::Healthy => DeliveryState::Active,
            Health::Failing => DeliveryState::Failing,
            Health::Open => DeliveryState::Paused,
        };
        let failing = item.filter(|item| item.failures_in_row > 0);
        let pause = pause.filter(|_| enabled);
        let paused_by = if pause.is_some() { PausedBy::Owner } else { PausedBy::Service };
        let open_until = item.and_then(|item| item.open_until).filter(|_| enabled);
        Self {
            delivery_state,
            failing_since: failing.and_then(|item| item.failing_since),
            failures_in_row: failing.map(|item| item.failures_in_row),
            health,
            last_error: failing.and_then(|item| LastError::of(item.last_error.as_deref()?)),
            last_http_status: failing.and_then(|item| item.last_http_status),
            paused_by: Some(paused_by).filter(|_| delivery_state == DeliveryState::Paused),
            paused_since: pause.map(|pause| pause.since),
            paused_until: pause.map_or(open_until, |pause| pause.until),
        }
    }

    /// The cause that blocks the whole webhook, if any.
    pub fn held_up_by(&self) -> Option<Cause> {
        match self.delivery_state {
            DeliveryState::Disabled => Some(Cause::Disabled),
            DeliveryState::Paused if self.paused_by == Some(PausedBy::Owner) => Some(Cause::PausedByOwner),
            DeliveryState::Paused => Some(Cause::Paused),
            DeliveryState::Active | DeliveryState::Failing => None,
        }
    }

    /// Why the last attempt failed; `None` if it succeeded, or there was none.
    pub fn last_failure(&self) -> Option<Cause> {
        Cause::of_failure(self.last_http_status, self.last_error.as_ref().map(|error| error.code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_paused_webhook_says_until_when_in_both_words() {
        let shown =
            |health: Option<&HealthItem>| serde_json::to_value(WebhookStatus::of(true, None, health)).expect("JSON");
        assert_eq!(shown(None), json!({ "deliveryState": "active", "health": "healthy" }));
        let failing = HealthItem { failing: true, ..HealthItem::default() };
        assert_eq!(shown(Some(&failing)), json!({ "deliveryState": "failing", "health": "failing" }));
        let open = HealthItem { open_until: Some(Time::from_millis(1_795_167_900_123)), ..failing };
        let until = "2026-11-20T09:45:00.123Z";
        assert_eq!(
            shown(Some(&open)),
            json!({ "deliveryState": "paused", "health": "open", "pausedBy": "service", "pausedUntil": until })
        );
    }

    #[test]
    fn a_webhook_that_its_owner_paused_says_so_before_its_failures() {
        let since = Time::from_millis(1_795_167_900_123);
        let item = HealthItem { failing: true, open_until: Some(since), ..HealthItem::default() };
        let shown = |enabled, until| {
            serde_json::to_value(WebhookStatus::of(enabled, Some(Pause { since, until }), Some(&item))).expect("JSON")
        };
        let expected =
            json!({ "deliveryState": "paused", "health": "open", "pausedBy": "owner", "pausedSince": since });
        assert_eq!(shown(true, None), expected, "not the end of the breaker's pause");
        assert_eq!(shown(true, Some(since))["pausedUntil"], json!(since));
        assert_eq!(shown(false, None), json!({ "deliveryState": "disabled", "health": "open" }));
    }

    #[test]
    fn a_disabled_webhook_is_neither_active_nor_paused_but_keeps_failures() {
        let shown =
            |health: Option<&HealthItem>| serde_json::to_value(WebhookStatus::of(false, None, health)).expect("JSON");
        assert_eq!(shown(None), json!({ "deliveryState": "disabled", "health": "healthy" }));
        let since = Time::from_millis(1_795_167_900_123);
        let last_error = Some("timeout: no answer in 15 seconds".to_owned());
        let item = HealthItem { failures_in_row: 7, failing_since: Some(since), last_error, ..HealthItem::default() };
        let open = HealthItem { open_until: Some(since), ..item };
        let expected = json!({
            "deliveryState": "disabled", "health": "open", "failuresInRow": 7, "failingSince": since,
            "lastErrorCode": "timeout", "lastErrorDetail": "no answer in 15 seconds",
        });
        assert_eq!(shown(Some(&open)), expected);
    }

    #[test]
    fn a_status_has_the_causes_of_its_state() {
        let refused = Some("connect: the endpoint refused the connection".to_owned());
        let failing = HealthItem { failing: true, failures_in_row: 7, last_error: refused, ..HealthItem::default() };
        let open = HealthItem { open_until: Some(Time::from_millis(1_795_167_900_123)), ..failing.clone() };
        let causes = |enabled, health: Option<&HealthItem>| {
            let status = WebhookStatus::of(enabled, None, health);
            (status.held_up_by(), status.last_failure())
        };
        assert_eq!(causes(true, None), (None, None));
        assert_eq!(causes(true, Some(&failing)), (None, Some(Cause::Connect)));
        assert_eq!(causes(true, Some(&open)), (Some(Cause::Paused), Some(Cause::Connect)));
        assert_eq!(causes(false, Some(&open)), (Some(Cause::Disabled), Some(Cause::Connect)));
        let pause = Pause { since: Time::from_millis(0), until: None };
        let paused = WebhookStatus::of(true, Some(pause), Some(&open));
        assert_eq!(paused.held_up_by(), Some(Cause::PausedByOwner));
    }
}
