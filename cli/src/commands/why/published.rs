//! A published event, as the service shows it.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::shown::title;

/// The event members that an explanation needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    subject: Option<String>,
    pub timestamp: Timestamp,
    #[serde(default)]
    test: bool,
    erased_date: Option<String>,
    /// The data as it was published.
    data: Box<RawValue>,
    pub deliveries: Vec<EventDelivery>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDelivery {
    pub id: String,
    pub status: String,
    webhook_identifier: String,
}

impl Event {
    pub fn has_delivery_to(&self, webhook: &str) -> bool {
        self.deliveries.iter().any(|delivery| delivery.webhook_identifier == webhook)
    }

    /// Whether the event reports a webhook's state.
    pub fn is_about(&self, webhook: &str) -> bool {
        self.kind.starts_with("webhook.") && self.data.get().contains(webhook)
    }

    pub fn is_erased(&self) -> bool {
        self.erased_date.is_some()
    }

    /// The end of a range that begins with the event and contains no later one.
    pub fn next_millisecond(&self) -> Timestamp {
        self.timestamp.checked_add(Duration::from_millis(1)).unwrap_or(self.timestamp)
    }

    /// Whether the event was sent to one webhook, regardless of types and filters.
    pub fn is_test(&self) -> bool {
        self.test || self.kind == "webhook.test"
    }

    pub fn title(&self) -> String {
        title(&self.id, &self.kind, self.subject.as_deref(), self.is_test())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_knows_its_webhooks_and_whether_it_is_a_test() {
        let sent = r#"{"id":"evt_1","type":"booking.created","timestamp":"2026-11-20T09:45:00.120Z","data":{},
            "deliveries":[],"test":true}"#;
        let sent: Event = serde_json::from_str(sent).expect("an event");
        assert!(sent.is_test() && !sent.has_delivery_to("whk_1") && !sent.is_about("whk_1"));
        let delivered = r#"{"id":"evt_1","type":"webhook.test","timestamp":"2026-11-20T09:45:00Z",
            "data":{"webhookIdentifier":"whk_1"},
            "deliveries":[{"id":"dlv_1","status":"failed","webhookIdentifier":"whk_1"}]}"#;
        let delivered: Event = serde_json::from_str(delivered).expect("an event");
        assert!(delivered.is_test() && delivered.has_delivery_to("whk_1") && delivered.is_about("whk_1"));
    }
}
