//! Requests to publish an event, and the members that describe an event both in requests and in bus events.

use std::time::Duration;

use serde_json::value::RawValue;

use super::{
    catalogue::{self, EventType, Source},
    event::{Event, TooLarge},
    retention,
    subject::{self, SubjectMembers},
    unknown,
};
use auth::EntityId;
use base::{EventId, Time};
use problem::{JsonBody, Problem, Rule, Violation};
use storage::{IdempotencyKey, IdempotentRequest, Sender};

/// A client's request to publish an event.
#[derive(Debug)]
pub struct NewEvent<'a> {
    pub(super) content: Content<'a>,
    /// The idempotency key, if any: a repeated request with the same key publishes nothing new.
    pub(super) once: Option<IdempotentRequest>,
}

impl<'a> NewEvent<'a> {
    /// Reads a request to publish: its body, and the `Idempotency-Key` of this sender. `longest` is the deployment's
    /// retention.
    pub fn read(
        body: &'a [u8],
        key: Result<Option<IdempotencyKey<'_>>, String>,
        sender: Sender<'_>,
        longest: Duration,
    ) -> Result<Self, Problem> {
        let mut members = JsonBody::read(body)?;
        let kind = take_type(&mut members, sender.entity);
        let data = take_data(&mut members);
        let subject = subject::take(&mut members);
        let retention_days = retention::take(&mut members, longest);
        for name in ["id", "timestamp", "managingEntityIdentifier"] {
            members.refuse(name, "is set by the service when it publishes the event; omit it");
        }
        let key = key.map_err(|fault| {
            members.violations.push(Violation::header("Idempotency-Key", Rule::InvalidFormat, fault));
        });
        let ((kind, data), key) = members.finish_with(kind.zip(data).zip(key.ok()))?;
        let once = key.map(|key| IdempotentRequest::of_request(sender, key, body));
        Ok(Self { content: Content { kind, subject, data, retention_days, warnings: Vec::new() }, once })
    }

    /// The event with this identifier, published at this time.
    pub fn event(
        &self,
        id: EventId,
        timestamp: Time,
        entity: EntityId,
        subjects: &SubjectMembers,
    ) -> Result<Event, TooLarge> {
        self.content.event(id, timestamp, entity, subjects)
    }
}

/// An event's type, subject and data.
#[derive(Debug, Clone)]
pub(super) struct Content<'a> {
    pub(super) kind: &'static EventType,
    /// The subject that the publisher provided.
    pub(super) subject: Option<String>,
    pub(super) data: &'a RawValue,
    /// How many days the event is stored, if the publisher set that.
    pub(super) retention_days: Option<u32>,
    /// The values that do not conform to the type's schema; none before the data is validated.
    pub(super) warnings: Vec<Violation>,
}

impl Content<'_> {
    /// The event with this content. If the publisher provided no subject, it is taken from the data: from the members
    /// that the deployment lists, or else from the value at the type's JSON Pointer.
    pub(super) fn event(
        &self,
        id: EventId,
        timestamp: Time,
        entity: EntityId,
        subjects: &SubjectMembers,
    ) -> Result<Event, TooLarge> {
        let subject = self.subject.clone().or_else(|| subjects.subject_of(self.data, self.kind.subject));
        let event = Event::with_subject(id, self.kind, subject.as_deref(), timestamp, entity, self.data)?;
        Ok(Event { warnings: self.warnings.clone(), retention_days: self.retention_days, ..event })
    }
}

/// Takes the type, which must be in the catalogue and must not be internal: subscribers to `webhook.disabled` must be
/// able to trust that the service disabled a webhook. A violation contains the address of the catalogue for `entity`.
pub(super) fn take_type(body: &mut JsonBody<'_>, entity: &str) -> Option<&'static EventType> {
    let kind = body.required::<String>("type", &catalogue::key_expected())?;
    match catalogue::find(&kind) {
        None => body.violations.add("type", Rule::UnknownValue, unknown::no_type(&kind, entity)),
        Some(EventType { source: Source::Service, .. }) => {
            let why = "can be published only by the service; use another type";
            body.violations.add("type", Rule::NotAllowed, why);
        }
        Some(found) => return Some(found),
    }
    None
}

/// Takes the data, which must be an object.
pub(super) fn take_data<'a>(body: &mut JsonBody<'a>) -> Option<&'a RawValue> {
    let expected = "is required, and must be an object";
    if !body.has("data") {
        body.violations.add("data", Rule::Required, expected);
    }
    take_object(body, expected)
}

/// Takes a test event's data, if present, by the rules for published data.
pub(crate) fn take_test_data<'a>(body: &mut JsonBody<'a>) -> Option<&'a RawValue> {
    take_object(body, "must be an object")
}

/// Takes data, if present, which must be an object. Receivers get the exact text. An unpaired surrogate is refused:
/// filters and many receivers could not read the member, or even the whole event.
fn take_object<'a>(body: &mut JsonBody<'a>, expected: &str) -> Option<&'a RawValue> {
    let given = body.take_raw("data")?;
    let data = Some(given).filter(|data| data.starts_with('{'));
    let Some(data) = data.and_then(|data| serde_json::from_str::<&RawValue>(data).ok()) else {
        body.violations.add("data", Rule::InvalidType, expected);
        return None;
    };
    (!body.violations.note_surrogates("data", data.get())).then_some(data)
}

#[cfg(test)]
mod tests {
    use problem::surrogates;

    use super::*;

    const SENDER: Sender<'_> = Sender { entity: "hotel", client: "app1", path: "/webhook/event" };
    const LONGEST: Duration = Duration::from_secs(90 * 24 * 60 * 60);

    fn fields(key: Option<&str>, body: &str) -> Vec<String> {
        let key = IdempotencyKey::read(key.map(str::as_bytes));
        crate::testing::refused(&NewEvent::read(body.as_bytes(), key, SENDER, LONGEST).expect_err("refused"))
    }

    #[test]
    fn every_violation_of_a_publish_request_is_listed() {
        let long = "k".repeat(256);
        assert_eq!(
            fields(Some(&long), r#"{"type":"nothing.happened","data":[],"more":1}"#),
            ["type", "data", "Idempotency-Key", "more"]
        );
        assert_eq!(fields(None, "{}"), ["type", "data"]);
        assert_eq!(fields(None, r#"{"type":"booking.created","data":null}"#), ["data"]);
    }

    #[test]
    fn data_with_an_unpaired_surrogate_are_refused_with_its_path() {
        let body =
            r#"{"type":"booking.created","subject":"\udfff","data":{"a/b":["\ud800","\ud83d\ude00",{"\udc00":1}]}}"#;
        assert_eq!(fields(None, body), ["data.a/b[0]", "data.a/b[2].\\udc00", "subject"]);
        let problem = NewEvent::read(body.as_bytes(), Ok(None), SENDER, LONGEST).expect_err("refused");
        let violations = problem.violations();
        assert!(violations.iter().all(|violation| violation.detail == surrogates::MESSAGE), "{violations:?}");
        assert_eq!(violations[0].pointer.as_str(), "/data/a~1b/0");
        let pairs = r#"{"type":"booking.created","data":{"a":"\ud83d\ude00","\\ud800":"\\ud800","b":"\uffff"}}"#;
        assert!(NewEvent::read(pairs.as_bytes(), Ok(None), SENDER, LONGEST).is_ok());
    }

    #[test]
    fn members_that_the_service_sets_are_refused_with_that_reason() {
        let body = br#"{"type":"booking.created","data":{},"timestamp":"2026-11-20T09:45:00Z"}"#;
        let problem = NewEvent::read(body, Ok(None), SENDER, LONGEST).expect_err("refused");
        let violation = &problem.violations()[0];
        assert_eq!((violation.name().as_str(), violation.rule), ("timestamp", Rule::NotAllowed));
        assert!(violation.detail.starts_with("is set by the service"));
    }

    #[test]
    fn the_body_has_the_subject_given_or_derived() {
        let now = Time::from_millis(1_795_167_900_123);
        let entity = || EntityId::parse("hotel").expect("an entity");
        for (given, data, subject) in [
            (r#""subject":"B-1","#, r#"{"bookingNumber":"B-2"}"#, Some("B-1")),
            ("", r#"{ "bookingNumber" : 20417.0 }"#, Some("20417")),
            ("", "{}", None),
        ] {
            let body = format!(r#"{{"type":"booking.created",{given}"data":{data}}}"#);
            let new = NewEvent::read(body.as_bytes(), Ok(None), SENDER, LONGEST).expect("read");
            let id = EventId::new(now, &base::testing::CountingRandom::default());
            let event = new.event(id, now, entity(), &SubjectMembers::default()).expect("small");
            assert_eq!(event.subject.as_deref(), subject);
            let sent: serde_json::Value = serde_json::from_str(&event.body).expect("JSON");
            assert_eq!(sent["subject"].as_str(), subject, "{}", event.body);
            assert!(event.body.ends_with(&format!(r#""data":{data}}}"#)), "{}", event.body);
        }
    }

    #[test]
    fn the_data_is_taken_as_it_was_sent() {
        let body = br#"{"type":"booking.created","data":{ "a" : 1.50 }}"#;
        let event = NewEvent::read(body, Ok(None), SENDER, LONGEST).expect("read");
        assert_eq!(event.content.data.get(), r#"{ "a" : 1.50 }"#);
        assert!(event.once.is_none());
    }
}
