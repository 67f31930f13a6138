//! *Operational* events: the service's events about webhooks, delivered like any other to the webhooks that subscribe.
//! Operational events never cause one another: none is delivered to a webhook that it is about, and an attempt that
//! carries one changes no health and causes no event, regardless of the response. Their number per managing entity and
//! hour is limited ([`super::announcing`]). A test event is not operational, even with the sample of an operational
//! type: a person requests it to see whether the endpoint works, so its attempts count for the webhook's health. Its
//! permanent failure is not announced, since that person is watching the delivery. Attempts that carry events about
//! payment connections count like any other.

use std::iter;

use serde::Serialize;

use crate::{
    events::{EventType, catalogue, outbox::OutboxEvent},
    subscriptions::{test_event::TEST, webhook::status::LastError},
};
use auth::EntityId;
use base::{DeliveryId, EventId, Random, Time, WebhookId};

pub(in crate::subscriptions) const FAILING: &EventType = catalogue::own("webhook.failing");
const DISABLED: &EventType = catalogue::own("webhook.disabled");
const UNREAD: &EventType = catalogue::own("webhook.unread");
const EXHAUSTED: &EventType = catalogue::own("webhook.delivery.exhausted");

/// The maximum number of webhooks that one event lists: an entity may have this many, and they fit into an event.
const MAX_LISTED: usize = 200;

/// A webhook whose latest attempts have all failed.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailingEntry {
    pub webhook_identifier: WebhookId,
    pub name: String,
    pub failures_in_row: u32,
    /// When the first of these attempts failed.
    pub since: Time,
    /// Null if the last attempt never completed.
    pub last_http_status: Option<u16>,
    #[serde(flatten)]
    pub last_error: Option<FailingError>,
}

/// Why a failing webhook's last attempt never completed.
#[derive(Debug, Clone, Serialize)]
pub struct FailingError {
    /// The code, a colon, a space and the sentence.
    #[serde(rename = "lastError")]
    text: String,
    #[serde(flatten)]
    parts: Option<LastError>,
}

impl FailingError {
    /// Splits the text of an attempt's error into its parts.
    pub fn of(text: &str) -> Self {
        Self { text: text.to_owned(), parts: LastError::of(text) }
    }
}

/// The data of `webhook.failing`.
#[derive(Debug, Serialize)]
pub struct WebhookFailing<'a> {
    /// The webhook that caused the event.
    #[serde(flatten)]
    first: &'a FailingEntry,
    webhooks: Vec<&'a FailingEntry>,
}

/// The data of `webhook.disabled`: the service has disabled a webhook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDisabled<'a> {
    pub webhook_identifier: &'a WebhookId,
    pub name: &'a str,
    /// The reason as its owner reads it.
    pub reason: &'a str,
}

/// The data of `webhook.unread`: a delivery has been waiting for a long time in a webhook's feed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookUnread<'a> {
    pub webhook_identifier: &'a WebhookId,
    pub name: &'a str,
    /// The delivery that was found waiting.
    pub delivery_identifier: &'a DeliveryId,
    /// When its event was published.
    pub waiting_since: Time,
    /// When the feed was last read, to within a few minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_read_date: Option<Time>,
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

impl<'a> WebhookFailing<'a> {
    /// The data about the webhook that caused the event, and about its entity's other failing webhooks.
    pub fn new(first: &'a FailingEntry, others: &'a [FailingEntry]) -> Self {
        Self { first, webhooks: iter::once(first).chain(others).take(MAX_LISTED).collect() }
    }

    pub fn outbox_event(&self, entity: &EntityId, now: Time, random: &dyn Random) -> OutboxEvent {
        let about = self.webhooks.iter().map(|webhook| &webhook.webhook_identifier);
        OutboxEvent::new(FAILING, entity.clone(), self, now, random).about(about)
    }
}

impl WebhookDisabled<'_> {
    pub fn outbox_event(&self, entity: &EntityId, now: Time, random: &dyn Random) -> OutboxEvent {
        OutboxEvent::new(DISABLED, entity.clone(), self, now, random).about([self.webhook_identifier])
    }
}

impl WebhookUnread<'_> {
    pub fn outbox_event(&self, entity: &EntityId, now: Time, random: &dyn Random) -> OutboxEvent {
        OutboxEvent::new(UNREAD, entity.clone(), self, now, random).about([self.webhook_identifier])
    }
}

impl DeliveryExhausted<'_> {
    /// `None` for a delivery that carried an operational event or a test.
    pub fn outbox_event(&self, entity: &EntityId, now: Time, random: &dyn Random) -> Option<OutboxEvent> {
        if catalogue::is_operational(self.r#type) || self.r#type == TEST.value {
            return None;
        }
        Some(OutboxEvent::new(EXHAUSTED, entity.clone(), self, now, random).about([self.webhook_identifier]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_conforms;
    use base::testing::CountingRandom;
    use serde_json::{Value, json};
    use std::time::Duration;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn entity() -> EntityId {
        EntityId::parse("demo-hotel").expect("an entity")
    }

    fn exhausted(kind: &str) -> Option<OutboxEvent> {
        let random = CountingRandom::default();
        let event = EventId::new(NOW, &random);
        let webhook = WebhookId::new(NOW, &random);
        let data = DeliveryExhausted {
            delivery_identifier: &DeliveryId::of(&event, 0),
            webhook_identifier: &webhook,
            event_identifier: &event,
            r#type: kind,
            attempt_count: 10,
            last_http_status: None,
        };
        data.outbox_event(&entity(), NOW, &random)
    }

    #[test]
    fn a_permanent_failure_is_announced_unless_the_event_was_operational() {
        let announced = exhausted("booking.created").expect("an event");
        assert_eq!(announced.kind, "webhook.delivery.exhausted");
        assert_conforms(&announced.kind, &announced.data);
        let data: Value = serde_json::from_str(&announced.data).expect("JSON");
        assert_eq!(
            (&data["type"], &data["attemptCount"], &data["lastHttpStatus"]),
            (&json!("booking.created"), &json!(10), &Value::Null)
        );
        for kind in catalogue::all().iter().filter(|kind| kind.value.starts_with("webhook.")) {
            assert!(exhausted(kind.value).is_none(), "{}", kind.value);
        }
    }

    fn failing(webhook: &WebhookId, name: &str, last_error: Option<&str>) -> FailingEntry {
        FailingEntry {
            webhook_identifier: webhook.clone(),
            name: name.to_owned(),
            failures_in_row: u32::MAX,
            since: NOW,
            last_http_status: Some(500).filter(|_| last_error.is_none()),
            last_error: last_error.map(FailingError::of),
        }
    }

    #[test]
    fn an_event_about_failing_webhooks_lists_all_and_is_sent_to_none() {
        let random = CountingRandom::default();
        let ids: Vec<_> = (0..250).map(|number| WebhookId::new(NOW + Duration::from_millis(number), &random)).collect();
        // Values as long as they can be.
        let name = "\u{1f3e8}".repeat(200);
        let detail = "e".repeat(130);
        let error = format!("timeout: {detail}");
        let all: Vec<_> = ids.iter().map(|id| failing(id, &name, Some(&error))).collect();
        let (first, others) = all.split_first().expect("there are webhooks");
        let announced = WebhookFailing::new(first, others).outbox_event(&entity(), NOW, &random);
        assert_eq!(announced.about, ids[..200]);
        assert_conforms(&announced.kind, &announced.data);
        let data: Value = serde_json::from_str(&announced.data).expect("JSON");
        assert_eq!((&data["webhookIdentifier"], &data["lastError"]), (&json!(ids[0]), &json!(error)));
        assert_eq!((&data["lastErrorCode"], &data["lastErrorDetail"]), (&json!("timeout"), &json!(detail)));
        assert_eq!(
            (&data["webhooks"][0]["webhookIdentifier"], data["webhooks"].as_array().map(Vec::len)),
            (&json!(ids[0]), Some(200))
        );
        assert!(
            announced.event().is_some_and(|event| event.about == ids[..200]),
            "an event of this size can be published"
        );
    }

    #[test]
    fn an_event_about_a_webhook_names_it() {
        let random = CountingRandom::default();
        let webhook = WebhookId::new(NOW, &random);
        let failing = failing(&webhook, "Booking sync", None);
        let failing = WebhookFailing::new(&failing, &[]);
        let disabled = WebhookDisabled { webhook_identifier: &webhook, name: "Booking sync", reason: "Gone." };
        for announced in [failing.outbox_event(&entity(), NOW, &random), disabled.outbox_event(&entity(), NOW, &random)]
        {
            assert_eq!(announced.about, std::slice::from_ref(&webhook));
            assert_conforms(&announced.kind, &announced.data);
            assert!(
                announced.data.contains(webhook.as_str()) && !announced.data.contains("lastError"),
                "{}",
                announced.data
            );
        }
    }
}
