//! Events, with the exact bytes that every subscriber receives.

use serde::Serialize;

use crate::events::catalogue::{self, EventType, Source};
use auth::EntityId;
use base::{EventId, Time, WebhookId, trace::Trace};
use problem::{Problem, Violation};

/// The largest event body, including the members that the service adds: 256 KiB.
pub const MAX_BYTES: usize = 256 * 1024;

/// An event and its body.
#[derive(Debug, Clone)]
pub struct Event {
    /// The identifier, by which receivers detect duplicates.
    pub id: EventId,
    /// The key of the event's type.
    pub kind: &'static str,
    /// When it was published.
    pub timestamp: Time,
    /// The managing entity that it is published to.
    pub entity: EntityId,
    /// The body, byte for byte as every attempt sends it.
    pub body: String,
    /// Its subject, such as a booking's number; `None` if neither the publisher nor the data provides one.
    pub subject: Option<String>,
    /// The webhooks that the event is about. It is not delivered to them, since each failure would cause another event.
    pub about: Vec<WebhookId>,
    /// Its publication's span, if its publisher sent a trace. Its deliveries continue that trace.
    pub trace: Option<Trace>,
    /// The values of its data that do not conform to its type's schema.
    pub warnings: Vec<Violation>,
    /// Whether it was sent as a test of one webhook. Its first attempts do not wait for a breaker.
    pub is_test: bool,
    /// How many days it is stored, if its publisher wants less than the deployment's retention.
    pub retention_days: Option<u32>,
}

/// The event's body is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event is larger than 256 KiB")]
pub struct TooLarge;

impl From<TooLarge> for Problem {
    fn from(TooLarge: TooLarge) -> Self {
        Self::too_large("The event", MAX_BYTES)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    id: EventId,
    r#type: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    test: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    timestamp: Time,
    managing_entity_identifier: EntityId,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a serde_json::value::RawValue>,
}

impl Event {
    /// Whether only the service publishes events of this type.
    pub(crate) fn is_internal(&self) -> bool {
        catalogue::find(self.kind).is_some_and(|kind| kind.source == Source::Service)
    }

    /// A new event without a subject. The body contains the data byte for byte.
    pub fn new(
        id: EventId,
        kind: &EventType,
        timestamp: Time,
        entity: EntityId,
        data: &serde_json::value::RawValue,
    ) -> Result<Self, TooLarge> {
        Self::with_subject(id, kind, None, timestamp, entity, data)
    }

    /// A new event with this subject, if any. Its body contains the subject even if it was derived from the data.
    pub fn with_subject(
        id: EventId,
        kind: &EventType,
        subject: Option<&str>,
        timestamp: Time,
        entity: EntityId,
        data: &serde_json::value::RawValue,
    ) -> Result<Self, TooLarge> {
        let managing_entity_identifier = entity;
        Body { id, r#type: kind.value, test: false, subject, timestamp, managing_entity_identifier, data: Some(data) }
            .event(kind.value)
    }

    /// A test event without a subject. Its body says that it is a test.
    pub fn test(
        id: EventId,
        kind: &EventType,
        timestamp: Time,
        entity: EntityId,
        data: &serde_json::value::RawValue,
    ) -> Result<Self, TooLarge> {
        let managing_entity_identifier = entity;
        Body {
            id,
            r#type: kind.value,
            test: true,
            subject: None,
            timestamp,
            managing_entity_identifier,
            data: Some(data),
        }
        .event(kind.value)
    }

    /// The body of an event with this data and without a subject. Its size is not checked, since the data does not come
    /// from a publisher.
    pub(super) fn envelope(
        id: &EventId,
        kind: &str,
        test: bool,
        timestamp: Time,
        entity: &EntityId,
        data: &serde_json::value::RawValue,
    ) -> String {
        let (id, managing_entity_identifier) = (id.clone(), entity.clone());
        Body { id, r#type: kind, test, subject: None, timestamp, managing_entity_identifier, data: Some(data) }.text()
    }

    /// The body of an event without its data. It contains the subject even if it was derived from the data.
    pub(super) fn thin(
        id: &EventId,
        kind: &str,
        test: bool,
        subject: Option<&str>,
        timestamp: Time,
        entity: &EntityId,
    ) -> String {
        let (id, managing_entity_identifier) = (id.clone(), entity.clone());
        Body { id, r#type: kind, test, subject, timestamp, managing_entity_identifier, data: None }.text()
    }
}

impl Body<'_> {
    fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and raw JSON can always be written")
    }

    fn event(self, kind: &'static str) -> Result<Event, TooLarge> {
        let body = self.text();
        if body.len() > MAX_BYTES {
            return Err(TooLarge);
        }
        Ok(Event {
            id: self.id,
            kind,
            timestamp: self.timestamp,
            entity: self.managing_entity_identifier,
            body,
            subject: self.subject.map(str::to_owned),
            about: Vec::new(),
            trace: None,
            warnings: Vec::new(),
            is_test: self.test,
            retention_days: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;
    use serde_json::value::RawValue;

    fn event(data: String) -> Result<Event, TooLarge> {
        let now = Time::from_millis(1_795_167_900_123);
        let kind = catalogue::find("booking.created").expect("it exists");
        let data = RawValue::from_string(data).expect("JSON");
        Event::new(
            EventId::new(now, &SystemRandom),
            kind,
            now,
            EntityId::parse("demo-hotel").expect("an entity"),
            &data,
        )
    }

    #[test]
    fn the_body_contains_the_data_byte_for_byte() {
        let data = r#"{ "z":1, "a" : 12345678901234567890.5e0,"u":"\u00e9é\/" }"#;
        let event = event(data.to_owned()).expect("an event");
        let start = format!(
            r#"{{"id":"{}","type":"booking.created","timestamp":"2026-11-20T09:45:00.123Z","managingEntityIdentifier":"demo-hotel","data":"#,
            event.id
        );
        assert_eq!(event.body, format!("{start}{data}}}"));
    }

    #[test]
    fn a_thin_body_has_every_member_but_the_data() {
        let event = event(r#"{"a":1}"#.to_owned()).expect("an event");
        let thin = |subject| Event::thin(&event.id, event.kind, false, subject, event.timestamp, &event.entity);
        assert_eq!(event.body, thin(None).replace("\"}", "\",\"data\":{\"a\":1}}"));
        assert!(thin(Some("B-1001")).contains(r#""subject":"B-1001""#));
    }

    #[test]
    fn the_limit_counts_the_whole_event() {
        let around = event(r#""""#.into()).expect("an event").body.len() - 2;
        let filling = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - around - 2));
        assert_eq!(event(filling(MAX_BYTES)).expect("fits").body.len(), MAX_BYTES);
        assert_eq!(event(filling(MAX_BYTES + 1)).expect_err("too large"), TooLarge);
    }
}
