//! Testing a webhook: an event of a separate type, sent only to this webhook, and signed, retried and kept like any
//! other.

use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::{
    events::{Event, EventType, catalogue, publish::Publisher},
    subscriptions::{Webhooks, error::WebhookError, request_limits::RequestLimits},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, EventId, SharedClock, SharedRandom, WebhookId, trace::Trace};
use storage::{Allowance, Answered, IdempotencyStore, IdempotentRequest};

/// The type of test events.
pub(super) const TEST: &EventType = catalogue::own("webhook.test");

/// Tests webhooks.
pub struct Testing {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// Limits on the requests of entities.
    pub limits: RequestLimits,
    /// Publishes the event.
    pub publisher: Publisher,
    /// The clock for the event.
    pub clock: SharedClock,
    /// Random source of the event's identifier.
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
}

impl Testing {
    /// Sends a test event to a webhook, within this span, once for an idempotency key.
    pub async fn send(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        once: Option<&IdempotentRequest>,
        trace: &Trace,
    ) -> Result<Answered<TestSent>, WebhookError> {
        self.answers.once(once, self.clock.now(), self.publish(entity, id, once, trace)).await
    }

    async fn publish(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        once: Option<&IdempotentRequest>,
        trace: &Trace,
    ) -> Result<TestSent, WebhookError> {
        self.limits.count(Allowance::Tests, entity, self.clock.now()).await?;
        let webhook = self.webhooks.sendable(entity, id).await?;
        let message = "This is a test of the webhook. Nothing has happened.";
        let data = to_raw_value(&TestData { webhook_identifier: id, message }).expect("texts can always be written");
        let now = self.clock.now();
        let event = Event::new(EventId::new(now, &*self.random), TEST, now, entity.id().clone(), &data);
        let event = event.expect("identifiers and a sentence are small");
        let event = Event { trace: trace.if_named(), asked_for: true, ..event };
        let sent = TestSent { delivery_identifier: DeliveryId::of(&event.id, 0) };
        let record = self.answers.record(once, &sent, &sent.delivery_identifier, now).await?;
        self.publisher.publish_to(entity, &event, &webhook, record).await?;
        Ok(sent)
    }
}
