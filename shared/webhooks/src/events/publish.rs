//! Publishing: an event becomes one delivery for each webhook that wants it.
//!
//! The order is the promise: what was decided for the idempotency key, then the body and the
//! deliveries, each with a due time that the sweep will find. Only then is it acknowledged. The
//! queue comes last and may fail, since it only says "look now". Whatever is repeated after a crash
//! in between finds the same identifiers and makes nothing new.

use std::{collections::HashSet, time::Duration};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{FutureExt, future::join_all};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{
    catalogue::EventType,
    event::{Event, MAX_BYTES, TooLarge},
    members,
    store::{Events, PlannedDelivery, Publication},
};
use crate::{
    deliveries::{
        queue::{DueMessage, Lane, Notice, Queue, QueueError},
        schedule::ScheduleSettings,
        store::Deliveries,
    },
    subscriptions::{store::Webhooks, webhook::Webhook},
};
use auth::entity::AuthorizedEntity;
use base::{
    clock::{SharedClock, Time},
    ids::{DeliveryId, EventId},
    logging,
    random::{self, SharedRandom},
};
use problem::{JsonBody, Problem, ProblemKind};
use storage::table::{Table, TableError};

/// The longest Idempotency-Key.
const MAX_KEY_LENGTH: usize = 255;

/// How long a publisher waits for the queue, which may fail.
const ANNOUNCEMENT_LIMIT: Duration = Duration::from_secs(2);

/// Publishes events.
pub struct Publisher {
    events: Events,
    webhooks: Webhooks,
    deliveries: Deliveries,
    queue: Queue,
    schedule: ScheduleSettings,
    /// Dates events.
    pub clock: SharedClock,
    /// Makes identifiers, and spreads first attempts.
    pub random: SharedRandom,
}

/// An event that a client asks to be published.
#[derive(Debug)]
pub struct NewEvent<'a> {
    kind: &'static EventType,
    data: &'a RawValue,
    once: Option<Once>,
}

/// Makes a publication happen once: done again with the same key, it gives the first result and
/// makes nothing new.
#[derive(Debug)]
pub struct Once {
    /// The key, with the name space of its sender before it.
    pub key: String,
    /// Stands for the content, which must be the same every time.
    pub request_hash: String,
}

/// A published event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The event.
    pub event_identifier: EventId,
    /// Its deliveries.
    pub deliveries: Vec<PlannedDelivery>,
}

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The event is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The key stands for another event.
    #[error("the idempotency key was used for another event")]
    KeyConflict,
    /// The table failed.
    #[error("the table failed a publication")]
    Table(#[from] TableError),
}

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::TooLarge(TooLarge) => Self::too_large("The event", MAX_BYTES),
            PublishError::KeyConflict => {
                let detail = "This Idempotency-Key was sent before with another body; use a new key for a new event.";
                Self::new(ProblemKind::IdempotencyConflict, detail)
            }
            PublishError::Table(error) => error.into(),
        }
    }
}

impl Publisher {
    /// A publisher that keeps events in this table and announces their deliveries on this queue.
    pub fn new(
        table: &Table,
        queue: Queue,
        schedule: ScheduleSettings,
        (clock, random): (SharedClock, SharedRandom),
    ) -> Self {
        Self {
            events: Events::new(table.clone()),
            webhooks: Webhooks::new(table.clone()),
            deliveries: Deliveries::new(table.clone()),
            queue,
            schedule,
            clock,
            random,
        }
    }

    /// Publishes an event of a client's to every webhook that wants it.
    pub async fn publish(
        &self,
        entity: &AuthorizedEntity,
        NewEvent { kind, data, once }: NewEvent<'_>,
    ) -> Result<Published, PublishError> {
        match once {
            Some(once) => self.publish_once(entity, kind, data, once).await,
            None => self.publish_new(entity, kind, data).await,
        }
    }

    async fn publish_new(
        &self,
        entity: &AuthorizedEntity,
        kind: &EventType,
        data: &RawValue,
    ) -> Result<Published, PublishError> {
        let event = self.event_now(entity, kind, data)?;
        let webhooks = self.webhooks.of(entity).boxed().await?;
        let planned = plan(&event, &webhooks);
        Ok(self.deliver(&event, planned, &webhooks).boxed().await?)
    }

    /// Publishes an event for a key.
    pub async fn publish_once(
        &self,
        entity: &AuthorizedEntity,
        kind: &EventType,
        data: &RawValue,
        Once { key, request_hash }: Once,
    ) -> Result<Published, PublishError> {
        // Refused before anything is decided, so that a key is never spent on an event that cannot
        // be.
        let event = self.event_now(entity, kind, data)?;
        let webhooks = self.webhooks.of(entity).boxed().await?;
        let deliveries = plan(&event, &webhooks);
        let (now, request_hash_now) = (event.timestamp, request_hash.clone());
        let publication = Publication { event: event.id, timestamp: now, request_hash, deliveries };
        // Boxed, as what follows: the compiler does not look through all of it from a function's
        // point of view.
        let first = self.events.claim_key(entity, &sha256(key.as_bytes()), publication, now).boxed().await?;
        if first.request_hash != request_hash_now {
            return Err(PublishError::KeyConflict);
        }
        let event = Event::new(first.event, kind, first.timestamp, entity.id().clone(), data)?;
        Ok(self.deliver(&event, first.deliveries, &webhooks).boxed().await?)
    }

    /// Publishes an event of the service's own. Done again, it makes nothing new for the webhooks
    /// that it found before.
    pub async fn publish_event(&self, entity: &AuthorizedEntity, event: &Event) -> Result<(), TableError> {
        debug_assert_eq!(entity.id(), &event.entity);
        let webhooks = self.webhooks.of(entity).boxed().await?;
        self.deliver(event, plan(event, &webhooks), &webhooks).boxed().await.map(drop)
    }

    /// Sends an event to one webhook, whether or not it subscribes to events of this type.
    pub async fn tell_one(
        &self,
        entity: &AuthorizedEntity,
        event: &Event,
        webhook: &Webhook,
    ) -> Result<DeliveryId, TableError> {
        debug_assert_eq!(entity.id(), &event.entity);
        let delivery = DeliveryId::of(&event.id, &webhook.id);
        let planned = PlannedDelivery { delivery: delivery.clone(), webhook: webhook.id.clone() };
        self.deliver(event, vec![planned], std::slice::from_ref(webhook)).boxed().await?;
        Ok(delivery)
    }

    fn event_now(&self, entity: &AuthorizedEntity, kind: &EventType, data: &RawValue) -> Result<Event, TooLarge> {
        let now = self.clock.now();
        Event::new(EventId::new(now, &*self.random), kind, now, entity.id().clone(), data)
    }

    async fn deliver(
        &self,
        event: &Event,
        planned: Vec<PlannedDelivery>,
        webhooks: &[Webhook],
    ) -> Result<Published, TableError> {
        if !planned.is_empty() {
            let (wait, retention) =
                (self.schedule.schedule.first_wait(random::unit(&*self.random)), self.schedule.retention);
            let first_attempt = event.timestamp + wait;
            // A repetition may plan for a webhook that is removed by now: its delivery was opened
            // the first time, or cannot be.
            let targets = webhooks.iter().filter(|webhook| planned.iter().any(|plan| plan.webhook == webhook.id));
            // Both in one call, in no order: a head without its body is of an event that is not
            // acknowledged yet.
            let kept = self.events.keep(event, retention);
            let opened = self.deliveries.open_for_event(event, targets, first_attempt, retention);
            tokio::try_join!(kept, opened)?;
            self.announce(event, &planned, webhooks, first_attempt).await;
        }
        tracing::info!(eventId = %event.id, r#type = event.kind, deliveries = planned.len(), "published");
        Ok(Published { event_identifier: event.id.clone(), deliveries: planned })
    }

    async fn announce(&self, event: &Event, planned: &[PlannedDelivery], webhooks: &[Webhook], first_attempt: Time) {
        let now = self.clock.now();
        let slow: HashSet<_> =
            webhooks.iter().filter(|webhook| webhook.is_slow(now)).map(|webhook| &webhook.id).collect();
        let announced = join_all(planned.iter().map(|plan| {
            let message = DueMessage { delivery: plan.delivery.clone(), attempt: 1 };
            let notice = Notice::new(message, event.entity.clone(), plan.webhook.clone());
            self.queue.announce(Lane::of(slow.contains(&plan.webhook)), notice, first_attempt, now)
        }));
        let announced = timeout(ANNOUNCEMENT_LIMIT, announced).await;
        let announced: Result<(), _> =
            announced.map_or(Err(QueueError::Late), |outcomes| outcomes.into_iter().collect());
        if let Err(error) = announced {
            tracing::warn!(error = %logging::chain(&error), eventId = %event.id, "not announced; the sweep will find it");
        }
    }
}

/// The deliveries of an event: one for each webhook that wants it, and is not itself what it is
/// about.
pub fn plan(event: &Event, webhooks: &[Webhook]) -> Vec<PlannedDelivery> {
    let others = webhooks.iter().filter(|webhook| event.about.as_ref() != Some(&webhook.id));
    let wanting = others.filter(|webhook| webhook.wants(event.kind));
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

impl<'a> NewEvent<'a> {
    /// Reads a request to publish: its body, and every value of `Idempotency-Key` that came with
    /// it.
    pub fn read<'k>(body: &'a [u8], keys: impl IntoIterator<Item = &'k [u8]>) -> Result<Self, Problem> {
        let mut members = JsonBody::read(body)?;
        let (kind, data) = (members::kind(&mut members), members::data(&mut members));
        let key = members.violations.note("Idempotency-Key", idempotency_key(keys));
        members.finish()?;
        match (kind, data, key) {
            (Some(kind), Some(data), Some(key)) => {
                let once = key.map(|key| Once { key: format!("client:{key}"), request_hash: sha256(body) });
                Ok(Self { kind, data, once })
            }
            _ => Err(Problem::internal("a value is missing without a violation")),
        }
    }
}

fn idempotency_key<'k>(values: impl IntoIterator<Item = &'k [u8]>) -> Result<Option<&'k str>, String> {
    let fault = || format!("must come once, with 1 to {MAX_KEY_LENGTH} printable ASCII characters");
    let mut values = values.into_iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let is_text = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
            let text = std::str::from_utf8(value).ok().filter(|_| is_text).map(str::trim);
            text.filter(|text| (1..=MAX_KEY_LENGTH).contains(&text.len())).map(Some).ok_or_else(fault)
        }
        _ => Err(fault()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(keys: &[&[u8]], body: &str) -> Vec<String> {
        let problem = NewEvent::read(body.as_bytes(), keys.iter().copied()).expect_err("refused");
        let violations = problem.properties["violations"].as_array().expect("violations").clone();
        violations.iter().map(|violation| violation["field"].as_str().expect("a field").to_owned()).collect()
    }

    #[test]
    fn every_violation_of_a_publish_request_is_listed() {
        let long = "k".repeat(256);
        assert_eq!(
            fields(&[long.as_bytes()], r#"{"type":"nothing.happened","data":[],"more":1}"#),
            ["type", "data", "Idempotency-Key", "more"]
        );
        assert_eq!(fields(&[], "{}"), ["type", "data"]);
        assert_eq!(fields(&[], r#"{"type":"booking.created","data":null}"#), ["data"]);
    }

    #[test]
    fn an_idempotency_key_comes_once_and_in_printable_ascii() {
        let longest = "k".repeat(255);
        for (value, key) in [("a", "a"), (" a b\t", "a b"), (&longest, &longest)] {
            assert_eq!(idempotency_key([value.as_bytes()]), Ok(Some(key)));
        }
        assert_eq!(idempotency_key([]), Ok(None));
        for values in [&["".as_bytes()][..], &[b" "], &["é".as_bytes()], &[b"a\x7f"], &[b"\xff"], &[b"a", b"a"]] {
            assert!(idempotency_key(values.iter().copied()).is_err(), "{values:?}");
        }
    }

    #[test]
    fn the_data_is_taken_as_it_was_sent() {
        let event = NewEvent::read(br#"{"type":"booking.created","data":{ "a" : 1.50 }}"#, []).expect("read");
        assert_eq!(event.data.get(), r#"{ "a" : 1.50 }"#);
        assert!(event.once.is_none());
    }
}
