//! Publishing: an event becomes one delivery for each webhook that wants it.
//!
//! The order is the promise: what was decided for the idempotency key, then the body, then the deliveries, each with a
//! due time that the sweep will find. Only then is it acknowledged. The queue comes last and may fail, since it only
//! says "look now". Whatever is repeated after a crash in between finds the same identifiers and makes nothing new.

use std::time::Duration;

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{
    Event, EventType, catalogue,
    event::MAX_BYTES,
    store::{Events, PlannedDelivery, Publication},
};
use crate::{
    auth::entity::AuthorizedEntity,
    clock::SharedClock,
    deliveries::{
        Deliveries,
        queue::{DueMessage, Queue, QueueError},
        schedule::RetrySchedule,
    },
    http::{Call, JsonBody, Problem, Reply},
    ids::{DeliveryId, EventId},
    logging,
    random::{self, SharedRandom},
    table::TableError,
    webhooks::{Webhook, Webhooks},
};

/// The longest Idempotency-Key.
const MAX_KEY_LENGTH: usize = 255;

/// How long a publisher waits for the queue, which may fail.
const ANNOUNCEMENT_LIMIT: Duration = Duration::from_secs(2);

/// Everything that publishing needs.
pub struct Publisher {
    /// The events' bodies and the idempotency keys.
    pub events: Events,
    /// Who wants to be told.
    pub webhooks: Webhooks,
    /// What is to be told.
    pub deliveries: Deliveries,
    /// Where the dispatcher listens.
    pub queue: Queue,
    /// When first attempts are made.
    pub schedule: RetrySchedule,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

/// A request to publish.
#[derive(Debug)]
struct PublishRequest<'a> {
    kind: &'static EventType,
    data: &'a RawValue,
    key: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    event_identifier: EventId,
    deliveries: Vec<PlannedDelivery>,
}

impl Publisher {
    /// Answers a request to publish.
    pub async fn publish(&self, call: &Call) -> Result<Reply, Problem> {
        let request = PublishRequest::read(call.headers(), &call.body)?;
        let entity = call.entity();
        let now = self.clock.now();
        let id = EventId::new(now, &*self.random);
        // Refused before anything is decided, so that a key is never spent on an event that cannot be.
        let event = |id, timestamp| {
            Event::new(id, request.kind, timestamp, entity.id().clone(), request.data)
                .map_err(|_| Problem::too_large("The event", MAX_BYTES))
        };
        let mut event_now = event(id.clone(), now)?;
        let webhooks = self.webhooks.of(entity).await?;
        let mut planned = plan(&event_now, &webhooks);
        if let Some(key) = &request.key {
            let request_hash = sha256(&call.body);
            let publication =
                Publication { event: id, timestamp: now, request_hash: request_hash.clone(), deliveries: planned };
            let first = self.events.claim_key(entity, &sha256(key.as_bytes()), publication, now).await?;
            if first.request_hash != request_hash {
                return Err(Problem::idempotency_conflict());
            }
            event_now = event(first.event, first.timestamp)?;
            planned = first.deliveries;
        }
        self.deliver(entity, &event_now, &planned, &webhooks).await?;
        tracing::info!(eventId = %event_now.id, r#type = event_now.kind, deliveries = planned.len(), "published");
        Reply::json(StatusCode::ACCEPTED, &Published { event_identifier: event_now.id, deliveries: planned })
    }

    /// Publishes an event of the platform's own. Done again, it makes nothing new for the webhooks that it found before.
    pub async fn tell(&self, entity: &AuthorizedEntity, event: &Event) -> Result<(), TableError> {
        let webhooks = self.webhooks.of(entity).await?;
        let planned = plan(event, &webhooks);
        self.deliver(entity, event, &planned, &webhooks).await?;
        tracing::info!(eventId = %event.id, r#type = event.kind, deliveries = planned.len(), "published");
        Ok(())
    }

    async fn deliver(
        &self,
        entity: &AuthorizedEntity,
        event: &Event,
        planned: &[PlannedDelivery],
        webhooks: &[Webhook],
    ) -> Result<(), TableError> {
        if planned.is_empty() {
            return Ok(());
        }
        let first_attempt = event.timestamp + self.schedule.first_wait(random::unit(&*self.random));
        self.events.keep(event).await?;
        // A repetition may plan for a webhook that is removed by now: the first time has told it, or nobody can.
        let targets = webhooks.iter().filter(|webhook| planned.iter().any(|plan| plan.webhook == webhook.id));
        self.deliveries.open_for_event(entity, event, targets, first_attempt).await?;
        let messages = planned.iter().map(|plan| DueMessage { delivery: plan.delivery.clone(), attempt: 1 });
        let announced = self.queue.announce(entity.id(), messages, first_attempt, self.clock.now());
        let announced = timeout(ANNOUNCEMENT_LIMIT, announced).await.unwrap_or(Err(QueueError::Late));
        if let Err(error) = announced {
            tracing::warn!(error = %logging::chain(&error), eventId = %event.id, "not announced; the sweep will find it");
        }
        Ok(())
    }
}

/// The deliveries of an event: one for each webhook that wants it.
fn plan(event: &Event, webhooks: &[Webhook]) -> Vec<PlannedDelivery> {
    let wanting = webhooks.iter().filter(|webhook| webhook.wants(event.kind));
    wanting
        .map(|webhook| PlannedDelivery {
            delivery: DeliveryId::of(&event.id, &webhook.id),
            webhook: webhook.id.clone(),
        })
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(digest::digest(&digest::SHA256, bytes))
}

impl<'a> PublishRequest<'a> {
    fn read(headers: &HeaderMap, body: &'a [u8]) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let kind = body.required::<String>("type", "the key of an event type, such as booking.created");
        let kind = kind.and_then(|kind| {
            let unknown = "must be the key of an event type of the catalogue; it is listed at …/webhook/event/list";
            body.violations.note("type", catalogue::find(&kind).ok_or(unknown))
        });
        let data = body.take_raw("data");
        let data =
            data.filter(|data| data.starts_with('{')).and_then(|data| serde_json::from_str::<&RawValue>(data).ok());
        if data.is_none() {
            body.violations.add("data", "must be there and be an object");
        }
        let key = idempotency_key(headers);
        let key = body.violations.note("Idempotency-Key", key);
        body.finish()?;
        match (kind, data, key) {
            (Some(kind), Some(data), Some(key)) => Ok(Self { kind, data, key }),
            _ => Err(Problem::internal("a value is missing without a violation")),
        }
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, String> {
    let fault = || format!("must come once, with 1 to {MAX_KEY_LENGTH} printable ASCII characters");
    let mut values = headers.get_all(HeaderName::from_static("idempotency-key")).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| fault())?.trim();
            if (1..=MAX_KEY_LENGTH).contains(&text.len()) { Ok(Some(text.to_owned())) } else { Err(fault()) }
        }
        _ => Err(fault()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(headers: &HeaderMap, body: &str) -> Vec<String> {
        let problem = PublishRequest::read(headers, body.as_bytes()).expect_err("refused");
        let violations = problem.properties["violations"].as_array().expect("violations").clone();
        violations.iter().map(|violation| violation["field"].as_str().expect("a field").to_owned()).collect()
    }

    #[test]
    fn every_violation_of_a_publish_request_is_told() {
        let mut headers = HeaderMap::new();
        headers.insert("idempotency-key", "k".repeat(256).parse().expect("a value"));
        assert_eq!(
            fields(&headers, r#"{"type":"nothing.happened","data":[],"more":1}"#),
            ["type", "data", "Idempotency-Key", "more"]
        );
        assert_eq!(fields(&HeaderMap::new(), "{}"), ["type", "data"]);
        assert_eq!(fields(&HeaderMap::new(), r#"{"type":"booking.created","data":null}"#), ["data"]);
    }

    #[test]
    fn the_data_is_taken_as_it_was_sent() {
        let request = PublishRequest::read(&HeaderMap::new(), br#"{"type":"booking.created","data":{ "a" : 1.50 }}"#)
            .expect("read");
        assert_eq!(request.data.get(), r#"{ "a" : 1.50 }"#);
        assert!(request.key.is_none());
    }
}
