//! Events of the service about webhooks: *operational* events, delivered like any other to the webhooks that subscribe.
//!
//! Operational events never set off each other. No event is delivered to the webhook that it is about. An attempt that
//! carries one changes no health and sets off no event, with any answer. And each type is announced once an hour at
//! most of one webhook ([`super::announcing`]).
//!
//! A `webhook.test` is no operational event: a person asks for it to see whether the endpoint works, so its attempts
//! count for the webhook's health. Only its end is not announced, since that person looks at the delivery. Attempts
//! that carry events of payment connections count like any other.

use serde::Serialize;

use crate::{
    events::{EventType, catalogue, outbox::OutboxEvent},
    subscriptions::test_event::TEST,
};
use auth::EntityId;
use base::{DeliveryId, EventId, Random, Time, WebhookId};

const FAILING: &EventType = catalogue::own("webhook.failing");
const DISABLED: &EventType = catalogue::own("webhook.disabled");
const EXHAUSTED: &EventType = catalogue::own("webhook.delivery.exhausted");

/// Whether events of this type are operational.
pub fn is_operational(kind: &str) -> bool {
    [FAILING, DISABLED, EXHAUSTED].iter().any(|operational| operational.value == kind)
}

/// The data of `webhook.failing`: the last attempts have all failed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookFailing<'a> {
    pub webhook_identifier: &'a WebhookId,
    pub name: &'a str,
    pub failures_in_row: u32,
    /// When the first of these attempts failed.
    pub since: Time,
    /// Null if the last attempt never completed.
    pub last_http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<&'a str>,
}

/// The data of `webhook.disabled`: the service has disabled a webhook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDisabled<'a> {
    pub webhook_identifier: &'a WebhookId,
    pub name: &'a str,
    /// In the words that its owner reads.
    pub reason: &'a str,
}

/// The data of `webhook.delivery.exhausted`: no attempt of a delivery has succeeded, and none is due.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryExhausted<'a> {
    pub delivery_identifier: &'a DeliveryId,
    pub webhook_identifier: &'a WebhookId,
    pub event_identifier: &'a EventId,
    pub r#type: &'a str,
    pub attempt_count: u32,
    /// Null if the last attempt never completed.
    pub last_http_status: Option<u16>,
}

impl WebhookFailing<'_> {
    pub fn outbox_event(&self, entity: &EntityId, now: Time, random: &dyn Random) -> OutboxEvent {
        OutboxEvent::new(FAILING, entity.clone(), self, now, random).about(self.webhook_identifier)
    }
}

impl WebhookDisabled<'_> {
    pub fn outbox_event(&self, entity: &EntityId, now: Time, random: &dyn Random) -> OutboxEvent {
        OutboxEvent::new(DISABLED, entity.clone(), self, now, random).about(self.webhook_identifier)
    }
}

impl DeliveryExhausted<'_> {
    /// `None` for a delivery that carried an operational event or a test.
    pub fn outbox_event(&self, entity: &EntityId, now: Time, random: &dyn Random) -> Option<OutboxEvent> {
        if is_operational(self.r#type) || self.r#type == TEST.value {
            return None;
        }
        Some(OutboxEvent::new(EXHAUSTED, entity.clone(), self, now, random).about(self.webhook_identifier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use serde_json::{Value, json};

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn entity() -> EntityId {
        EntityId::parse("demo-hotel").expect("an entity")
    }

    fn exhausted(kind: &str) -> Option<OutboxEvent> {
        let random = CountingRandom::default();
        let (event, webhook) = (EventId::new(NOW, &random), WebhookId::new(NOW, &random));
        let data = DeliveryExhausted {
            delivery_identifier: &DeliveryId::of(&event, &webhook),
            webhook_identifier: &webhook,
            event_identifier: &event,
            r#type: kind,
            attempt_count: 10,
            last_http_status: None,
        };
        data.outbox_event(&entity(), NOW, &random)
    }

    #[test]
    fn the_end_of_a_delivery_is_announced_unless_it_carried_an_operational_event() {
        let announced = exhausted("booking.created").expect("an event");
        assert_eq!(announced.kind, "webhook.delivery.exhausted");
        let data: Value = serde_json::from_str(&announced.data).expect("JSON");
        assert_eq!(
            (&data["type"], &data["attemptCount"], &data["lastHttpStatus"]),
            (&json!("booking.created"), &json!(10), &Value::Null)
        );
        for kind in catalogue::all().iter().filter(|kind| kind.value.starts_with("webhook.")) {
            assert!(exhausted(kind.value).is_none(), "{}", kind.value);
        }
    }

    #[test]
    fn an_event_about_a_webhook_names_it() {
        let random = CountingRandom::default();
        let webhook = WebhookId::new(NOW, &random);
        let failing = WebhookFailing {
            webhook_identifier: &webhook,
            name: "Booking sync",
            failures_in_row: 5,
            since: NOW,
            last_http_status: Some(500),
            last_error: None,
        };
        let disabled = WebhookDisabled { webhook_identifier: &webhook, name: "Booking sync", reason: "Gone." };
        for announced in [failing.outbox_event(&entity(), NOW, &random), disabled.outbox_event(&entity(), NOW, &random)]
        {
            assert_eq!(announced.about, Some(webhook.clone()));
            assert!(
                announced.data.contains(webhook.as_str()) && !announced.data.contains("lastError"),
                "{}",
                announced.data
            );
        }
    }
}
