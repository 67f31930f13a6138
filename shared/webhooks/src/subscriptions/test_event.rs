//! Tests a webhook with an event marked as a test, either of a separate type, or of another type with its sample or the
//! caller's data. It is sent only to this webhook, and signed, retried and stored like any other event.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    events::{
        Event, EventType, catalogue, event::TooLarge, new_event::take_test_data, publish::Publisher, type_details,
        validation::DataValidator,
    },
    subscriptions::{Webhooks, error::WebhookError, request_limits::RequestLimits},
};
use auth::{AuthorizedEntity, EntityId};
use base::{DeliveryId, EventId, SharedClock, SharedRandom, Time, WebhookId, trace::Trace};
use problem::{JsonBody, Problem, Rule, Violation};
use storage::{Allowance, Answered, IdempotencyStore, IdempotentRequest};

/// The type of test events.
pub(super) const TEST: &EventType = catalogue::own("webhook.test");

/// Tests webhooks.
pub struct Testing {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// Limits on entities' requests.
    pub limits: RequestLimits,
    /// Publishes the event.
    pub publisher: Publisher,
    /// Validates the caller's data.
    pub validator: DataValidator,
    /// The clock for the event.
    pub clock: SharedClock,
    /// The random source for the event's identifier.
    pub random: SharedRandom,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestData<'a> {
    webhook_identifier: &'a WebhookId,
    message: &'static str,
}

/// The delivery of a test event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestSent {
    delivery_identifier: DeliveryId,
    event_identifier: EventId,
    /// The values in the caller's data that do not conform to the type's schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Violation>,
}

/// A request for a test event.
#[derive(Debug, Default)]
pub struct TestRequest<'a> {
    /// The event's type; `None` means `webhook.test`.
    kind: Option<&'static EventType>,
    /// The caller's data. Without it, the type's sample is sent.
    data: Option<&'a RawValue>,
}

impl<'a> TestRequest<'a> {
    /// Reads the body of a request for this entity; it may be empty.
    pub fn read(body: &'a [u8], entity: &EntityId) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let mut body = JsonBody::read(body)?;
        let has_type = body.has("type");
        let kind = body.optional::<String>("type", &catalogue::key_expected());
        let kind = kind.and_then(|kind| {
            body.violations.note("type", Rule::UnknownValue, type_details::named(&kind, entity.as_str()))
        });
        if kind.map_or(!has_type, |kind| kind == TEST) {
            body.refuse("data", "cannot be sent with `webhook.test`, whose data the service sets; name another `type`");
        }
        let data = take_test_data(&mut body);
        body.finish()?;
        Ok(Self { kind: kind.filter(|kind| *kind != TEST), data })
    }

    /// The warnings about the caller's data.
    fn warnings(&self, validator: &DataValidator) -> Result<Vec<Violation>, WebhookError> {
        let (Some(kind), Some(data)) = (self.kind, self.data) else { return Ok(Vec::new()) };
        validator.check_test(kind, data).map_err(WebhookError::InvalidTestData)
    }

    fn event(&self, id: EventId, now: Time, entity: &EntityId, webhook: &WebhookId) -> Result<Event, TooLarge> {
        let Some(kind) = self.kind else {
            let message = "This is a test of the webhook. Nothing has happened.";
            let data = TestData { webhook_identifier: webhook, message };
            let data = to_raw_value(&data).expect("texts can always be written");
            return Event::new(id, TEST, now, entity.clone(), &data);
        };
        let sample = || type_details::samples(kind).next().expect("the build refuses a type without samples");
        Event::test(id, kind, now, entity.clone(), self.data.unwrap_or_else(sample))
    }
}

impl Testing {
    /// Sends a test event to a webhook, within this span, once per idempotency key.
    pub async fn send(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        request: &TestRequest<'_>,
        once: Option<&IdempotentRequest>,
        trace: &Trace,
    ) -> Result<Answered<TestSent>, WebhookError> {
        self.answers.once(once, self.clock.now(), self.publish(entity, id, request, once, trace)).await
    }

    async fn publish(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        request: &TestRequest<'_>,
        once: Option<&IdempotentRequest>,
        trace: &Trace,
    ) -> Result<TestSent, WebhookError> {
        let now = self.clock.now();
        let warnings = request.warnings(&self.validator)?;
        let event = request.event(EventId::new(now, &*self.random), now, entity.id(), id)?;
        let event = Event { trace: trace.if_named(), is_test: true, warnings: warnings.clone(), ..event };
        self.limits.count(Allowance::Tests, entity, now).await?;
        let webhook = self.webhooks.sendable(entity, id).await?;
        let delivery_identifier = DeliveryId::of(&event.id, 0);
        let sent = TestSent { delivery_identifier, event_identifier: event.id.clone(), warnings };
        let record = self.answers.record(once, &sent, &sent.delivery_identifier, now).await?;
        self.publisher.publish_to(entity, &event, &webhook, record).await?;
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use serde_json::Value;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn entity() -> EntityId {
        EntityId::parse("demo-hotel").expect("an entity")
    }

    fn event(body: &str) -> Event {
        let random = CountingRandom::default();
        let request = TestRequest::read(body.as_bytes(), &entity()).expect("valid");
        let event = request.event(EventId::new(NOW, &random), NOW, &entity(), &WebhookId::new(NOW, &random));
        event.expect("samples and short data are small")
    }

    #[test]
    fn a_test_without_a_type_is_an_event_of_the_type_of_tests() {
        for body in ["", " ", "{}", r#"{"type":"webhook.test"}"#] {
            let event = event(body);
            assert_eq!(event.kind, "webhook.test", "{body}");
            assert!(!event.body.contains(r#""test":true"#), "{}", event.body);
            let body: Value = serde_json::from_str(&event.body).expect("JSON");
            crate::testing::assert_conforms(event.kind, &body["data"].to_string());
        }
    }

    #[test]
    fn the_sample_of_every_type_can_be_sent_and_is_marked_as_a_test() {
        for kind in catalogue::all().iter().filter(|kind| *kind != TEST) {
            let event = event(&format!(r#"{{"type":"{}"}}"#, kind.value));
            let body: Value = serde_json::from_str(&event.body).expect("JSON");
            assert_eq!((&body["type"], &body["test"]), (&kind.value.into(), &true.into()));
            assert!(body["data"].is_object() && event.subject.is_none(), "{}", kind.value);
        }
    }

    #[test]
    fn data_of_the_caller_replace_the_sample_byte_for_byte() {
        let event = event(r#"{"data":{ "bookingNumber" : 1.50 },"type":"booking.created"}"#);
        assert!(event.body.ends_with(r#""data":{ "bookingNumber" : 1.50 }}"#), "{}", event.body);
        assert!(event.body.contains(r#""test":true"#) && event.subject.is_none(), "{}", event.body);
    }

    #[test]
    fn data_with_the_type_of_tests_are_refused_with_the_reason() {
        for body in [r#"{"data":{}}"#, r#"{"type":"webhook.test","data":{}}"#] {
            let problem = TestRequest::read(body.as_bytes(), &entity()).expect_err("refused");
            let violations = problem.violations();
            assert_eq!((violations.len(), violations[0].name().as_str()), (1, "data"), "{body}");
            assert_eq!(violations[0].rule, Rule::NotAllowed);
            assert!(violations[0].detail.ends_with("name another `type`"), "{body}");
        }
    }

    #[test]
    fn an_unknown_type_or_member_is_a_violation() {
        for (body, field) in [
            (r#"{"type":"booking.create","data":{}}"#, "type"),
            (r#"{"type":1,"data":{}}"#, "type"),
            (r#"{"type":"booking.created","data":[]}"#, "data"),
            (r#"{"type":"booking.created","data":null}"#, "data"),
            (r#"{"type":"booking.created","data":{"a":"\ud800"}}"#, "data.a"),
            (r#"{"type":"booking.created","subject":"B-1"}"#, "subject"),
        ] {
            let problem = TestRequest::read(body.as_bytes(), &entity()).expect_err("refused");
            assert_eq!(crate::testing::refused(&problem), [field], "{body}");
        }
    }
}
