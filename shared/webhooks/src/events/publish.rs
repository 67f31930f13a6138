//! Publishing: an event becomes one delivery for each webhook that subscribes to it. The order of the writes makes
//! publishing reliable. First the plan of an idempotency key is stored, then the body and the deliveries, each with a
//! due time that the sweep finds. Only then is the request acknowledged. The queue comes last and may fail, since its
//! messages are only hints. A repetition after a crash in between finds the same identifiers and creates nothing new.

use std::collections::HashMap;

use futures::{
    FutureExt,
    future::{BoxFuture, join_all, try_join_all},
};
use serde::Serialize;

use super::{
    event::{Event, MAX_BYTES, TooLarge},
    new_event::{Content, NewEvent},
    store::{Events, PlannedDelivery, PublicationPlan},
};
use crate::{
    deliveries::{
        Deliveries,
        dispatch::schedule::ScheduleSettings,
        queue::message::{AttemptMessage, DeliveryOwner, DueMessage},
        queue::{Lane, Queue},
        store::item::HeadItem,
    },
    subscriptions::{Webhook, Webhooks},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, EventId, SharedClock, SharedRandom, Time, random, trace::Trace};
use problem::Problem;
use storage::table::Transaction;
use storage::{IdempotencyError, IdempotentRequest, Record, Table, TableError};

/// Publishes events.
pub struct Publisher {
    table: Table,
    events: Events,
    webhooks: Webhooks,
    deliveries: Deliveries,
    queue: Queue,
    schedule: ScheduleSettings,
    pub(super) clock: SharedClock,
    pub(super) random: SharedRandom,
}

/// A published event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    event_identifier: EventId,
    deliveries: Vec<PlannedDelivery>,
    /// Whether the request repeats an idempotency key.
    #[serde(skip)]
    pub is_repeated: bool,
}

/// Why an event was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The event is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The idempotency key was used for another event.
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
            PublishError::KeyConflict => IdempotencyError::Conflict.into(),
            PublishError::Table(error) => error.into(),
        }
    }
}

impl Publisher {
    /// A publisher that stores events in this table and announces their deliveries on this queue.
    pub fn new(
        table: &Table,
        queue: Queue,
        schedule: ScheduleSettings,
        clock: SharedClock,
        random: SharedRandom,
    ) -> Self {
        Self {
            table: table.clone(),
            events: Events::new(table.clone()),
            webhooks: Webhooks::new(table.clone()),
            deliveries: Deliveries::new(table.clone()),
            queue,
            schedule,
            clock,
            random,
        }
    }

    /// Opens the connection to the queue before it is needed.
    pub fn open_connection(&self) -> BoxFuture<'static, ()> {
        self.queue.open_connection()
    }

    /// Publishes an event of a client to every webhook that subscribes to it, within this span.
    pub async fn publish(
        &self,
        entity: &AuthorizedEntity,
        NewEvent { content, once }: NewEvent<'_>,
        trace: &Trace,
    ) -> Result<Published, PublishError> {
        match once {
            Some(once) => self.publish_once(entity, &content, &once, trace).await,
            None => {
                let event = Event { trace: trace.if_named(), ..self.event_now(entity, &content)? };
                let webhooks = self.webhooks.of(entity).boxed().await?;
                Ok(self.deliver(&event, plan(&event, &webhooks), &webhooks).boxed().await?)
            }
        }
    }

    /// Publishes an event once for its key.
    pub(super) async fn publish_once(
        &self,
        entity: &AuthorizedEntity,
        content: &Content<'_>,
        once: &IdempotentRequest,
        trace: &Trace,
    ) -> Result<Published, PublishError> {
        // An event that is too large is refused before its key is claimed.
        let event = self.event_now(entity, content)?;
        let now = event.timestamp;
        // Boxed, like the futures below: unboxed, their nested types exceed the compiler's limits.
        let webhooks = self.webhooks.of(entity).boxed().await?;
        let plan = PublicationPlan { event: event.id.clone(), timestamp: now, deliveries: plan(&event, &webhooks) };
        let first = self.events.claim_key(once, plan, now).boxed().await?;
        let first = first.ok_or(PublishError::KeyConflict)?;
        let is_repeated = first.event != event.id;
        let event = content.event(first.event, first.timestamp, entity.id().clone())?;
        let event = Event { trace: trace.if_named(), ..event };
        let published = self.deliver(&event, first.deliveries, &webhooks).boxed().await?;
        Ok(Published { is_repeated, ..published })
    }

    /// Publishes an internal event of the service. A repetition creates nothing new for webhooks that were found
    /// before.
    pub(super) async fn publish_event(&self, entity: &AuthorizedEntity, event: &Event) -> Result<(), TableError> {
        debug_assert_eq!(entity.id(), &event.entity);
        let webhooks = self.webhooks.of(entity).boxed().await?;
        self.deliver(event, plan(event, &webhooks), &webhooks).boxed().await.map(drop)
    }

    /// Publishes an event to one webhook, regardless of the types that it subscribes to. With a record of the request,
    /// all writes are one transaction.
    pub(crate) async fn publish_to(
        &self,
        entity: &AuthorizedEntity,
        event: &Event,
        webhook: &Webhook,
        record: Option<Record>,
    ) -> Result<(), IdempotencyError> {
        debug_assert_eq!(entity.id(), &event.entity);
        let planned = vec![planned(event, webhook)];
        let webhooks = std::slice::from_ref(webhook);
        if record.is_none() {
            self.deliver(event, planned, webhooks).boxed().await?;
            return Ok(());
        }
        let first_attempt = self.first_attempt(event);
        let retention = self.schedule.retention;
        let head = HeadItem::new(event, webhook, first_attempt, retention);
        let writes = Transaction::new().with(self.events.body(event, retention)?).with(Deliveries::opening(&head)?);
        self.table.write_recorded(writes, record, "publishing an event to one webhook").boxed().await?;
        self.announce(event, &planned, webhooks, first_attempt).await;
        tracing::info!(eventId = %event.id, r#type = event.kind, deliveries = 1, "published");
        Ok(())
    }

    fn first_attempt(&self, event: &Event) -> Time {
        event.timestamp + self.schedule.schedule.first_wait(random::unit(&*self.random))
    }

    fn event_now(&self, entity: &AuthorizedEntity, content: &Content<'_>) -> Result<Event, TooLarge> {
        let now = self.clock.now();
        content.event(EventId::new(now, &*self.random), now, entity.id().clone())
    }

    async fn deliver(
        &self,
        event: &Event,
        planned: Vec<PlannedDelivery>,
        webhooks: &[Webhook],
    ) -> Result<Published, TableError> {
        let planned = self.without_missing(planned, webhooks).await?;
        if !planned.is_empty() {
            let first_attempt = self.first_attempt(event);
            let retention = self.schedule.retention;
            let targets = webhooks.iter().filter(|webhook| planned.iter().any(|plan| plan.webhook == webhook.id));
            let heads: Vec<_> =
                targets.map(|webhook| HeadItem::new(event, webhook, first_attempt, retention)).collect();
            // All in the same batches, without an order: a head without its body belongs to an event that is not
            // acknowledged yet.
            tokio::try_join!(self.events.keep(event, retention), self.deliveries.open(&heads))?;
            self.announce(event, &planned, webhooks, first_attempt).await;
        }
        tracing::info!(eventId = %event.id, r#type = event.kind, deliveries = planned.len(), "published");
        Ok(Published { event_identifier: event.id.clone(), deliveries: planned, is_repeated: false })
    }

    /// The planned deliveries without those that will never exist. A repetition may plan for a webhook that was removed
    /// since: its delivery was opened the first time, or is not opened at all.
    async fn without_missing(
        &self,
        planned: Vec<PlannedDelivery>,
        webhooks: &[Webhook],
    ) -> Result<Vec<PlannedDelivery>, TableError> {
        let kept = planned.into_iter().map(async |plan| {
            let is_known = webhooks.iter().any(|webhook| webhook.id == plan.webhook);
            let exists = is_known || self.deliveries.head(&plan.delivery).await?.is_some();
            Ok(exists.then_some(plan))
        });
        Ok(try_join_all(kept).await?.into_iter().flatten().collect())
    }

    /// Announces the first attempts of an event's deliveries. Deliveries of an earlier publication are announced again:
    /// the claim decides whether their attempts are still to be made.
    async fn announce(&self, event: &Event, planned: &[PlannedDelivery], webhooks: &[Webhook], first_attempt: Time) {
        let now = self.clock.now();
        let known: HashMap<_, _> = webhooks.iter().map(|webhook| (&webhook.id, webhook)).collect();
        join_all(planned.iter().map(|PlannedDelivery { delivery, webhook }| {
            let owner = DeliveryOwner { entity: event.entity.clone(), webhook: webhook.clone() };
            let due = DueMessage { delivery: delivery.clone(), attempt: 1 };
            let message = AttemptMessage::new(due, owner, event.id.clone());
            // A repetition may announce to a webhook that was removed since.
            let (lane, message) = match known.get(webhook) {
                Some(known) => (Lane::of(known.is_slow(now)), message.since(known.last_update)),
                None => (Lane::Quick, message),
            };
            self.queue.announce_in_time(lane, message, first_attempt, now)
        }))
        .await;
    }
}

/// Plans the deliveries of an event: one for each webhook that subscribes to it, except for the webhooks that it is
/// about.
pub(crate) fn plan(event: &Event, webhooks: &[Webhook]) -> Vec<PlannedDelivery> {
    let others = webhooks.iter().filter(|webhook| !event.about.contains(&webhook.id));
    others.filter(|webhook| webhook.subscribes_to(event.kind)).map(|webhook| planned(event, webhook)).collect()
}

fn planned(event: &Event, webhook: &Webhook) -> PlannedDelivery {
    PlannedDelivery { delivery: DeliveryId::of(&event.id, &webhook.id), webhook: webhook.id.clone() }
}
