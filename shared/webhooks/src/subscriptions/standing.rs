//! How deliveries to a webhook go, as its owner sees it.

use serde::Serialize;

use super::breaker::{Health, HealthItem};
use base::Time;

/// How deliveries to a webhook go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// The endpoint takes its events.
    #[default]
    Active,
    /// The last attempts failed, and further ones are made.
    Failing,
    /// The last attempts never completed, and deliveries wait for a probe.
    Paused,
}

/// How a webhook stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    delivery_state: DeliveryState,
    /// The same in the words of earlier releases, of which `open` reads as if all were well. It goes with version 3.0
    /// of the contract.
    health: Health,
    /// The end of the pause. A time that is over means that a probe is due or under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<Time>,
}

impl Standing {
    /// The standing of a webhook with this health. The table keeps no health of a webhook that is healthy.
    pub fn of(health: Option<&HealthItem>) -> Self {
        let Some(item) = health else { return Self::default() };
        let health = item.health();
        let delivery_state = match health {
            Health::Healthy => DeliveryState::Active,
            Health::Failing => DeliveryState::Failing,
            Health::Open => DeliveryState::Paused,
        };
        Self { delivery_state, health, paused_until: item.open_until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_paused_webhook_says_until_when_in_words_of_today_and_of_before() {
        let shown = |health: Option<&HealthItem>| serde_json::to_value(Standing::of(health)).expect("JSON");
        assert_eq!(shown(None), json!({ "deliveryState": "active", "health": "healthy" }));
        let failing = HealthItem { failing: true, ..HealthItem::default() };
        assert_eq!(shown(Some(&failing)), json!({ "deliveryState": "failing", "health": "failing" }));
        let open = HealthItem { open_until: Some(Time::from_millis(1_795_167_900_123)), ..failing };
        let until = "2026-11-20T09:45:00.123Z";
        assert_eq!(shown(Some(&open)), json!({ "deliveryState": "paused", "health": "open", "pausedUntil": until }));
    }
}
