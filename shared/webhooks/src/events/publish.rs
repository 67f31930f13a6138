//! Publishing: an event becomes one delivery for each webhook that subscribes to it. The order of the writes makes
//! publishing reliable: first an idempotency key's plan, then the event with its targets. From then on the request can
//! be acknowledged, since the sweep finds every new event and opens the deliveries that no dispatcher has claimed
//! (`deliveries::store::open`). The queue comes last and may fail, since its messages are only hints. A request
//! repeated after a crash in between uses the same identifiers and creates nothing new.

use std::{collections::HashMap, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, join_all, ready},
};
use serde::Serialize;

use super::{
    data_warning::{self, MAX_WARNINGS},
    event::{Event, TooLarge},
    line::Ordered,
    new_event::{Content, NewEvent},
    share::AdmittedPublication,
    store::{EventItem, Events, PublicationPlan, Target},
    subject::SubjectMembers,
};
use crate::{
    deliveries::{
        Deliveries,
        queue::message::{AttemptMessage, DeliveryOwner},
        queue::{Lane, Queue},
        state::schedule::ScheduleSettings,
    },
    subscriptions::{
        Webhook, Webhooks,
        filter::{matching::FilterOutcome, outcomes::FilterOutcomes},
    },
};
use auth::AuthorizedEntity;
use base::{
    DeliveryId, Environment, EventId, FromEnvironment, SharedClock, SharedRandom, Time, WebhookId, environment::Switch,
    random, stage::timed, trace::Trace,
};
use problem::{Pointer, Problem, Rule, Violation};
use storage::table::Transaction;
use storage::{IdempotencyError, IdempotentRequest, Record, Table, TableError};

/// A publication that takes longer opens its deliveries itself, since the sweep may already be past its timestamp.
const LATE: Duration = Duration::from_secs(10);
/// The maximum length of a target's address, in bytes: an event is read with the addresses of up to 200 targets.
const MAX_URL_LENGTH: usize = 256;

/// Whether events that match no webhook are stored: `KEEP_UNMATCHED_EVENTS`. They can be replayed to a webhook that is
/// created, enabled or changed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnmatchedEvents {
    /// Whether they are stored.
    pub keep: bool,
}

impl FromEnvironment for UnmatchedEvents {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let keep = environment.parsed("KEEP_UNMATCHED_EVENTS", Switch(true))?.0;
        Some(Self { keep })
    }
}

/// Publishes events.
pub struct Publisher {
    table: Table,
    events: Events,
    webhooks: Webhooks,
    deliveries: Deliveries,
    queue: Queue,
    schedule: ScheduleSettings,
    subjects: SubjectMembers,
    unmatched: UnmatchedEvents,
    limits_waits: bool,
    pub(super) clock: SharedClock,
    pub(super) random: SharedRandom,
}

/// One delivery of a published event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlannedDelivery {
    delivery_identifier: DeliveryId,
    webhook_identifier: WebhookId,
}

/// A published event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    event_identifier: EventId,
    /// Whether the event is stored. An event that matches no webhook may not be.
    kept: bool,
    deliveries: Vec<PlannedDelivery>,
    /// The values of its data that do not conform to its type's schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Violation>,
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
    #[error("a DynamoDB request for a publication failed")]
    Table(#[from] TableError),
}

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::TooLarge(error) => error.into(),
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
        (schedule, subjects): (ScheduleSettings, SubjectMembers),
        (clock, random): (SharedClock, SharedRandom),
    ) -> Self {
        Self {
            table: table.clone(),
            events: Events::new(table.clone()),
            webhooks: Webhooks::new(table.clone()),
            deliveries: Deliveries::new(table.clone()),
            queue,
            schedule,
            subjects,
            unmatched: UnmatchedEvents { keep: false },
            limits_waits: false,
            clock,
            random,
        }
    }

    /// A publisher for clients' events. It limits how many of an entity's events may be waiting to join a line.
    #[must_use]
    pub fn limiting_waits(self) -> Self {
        Self { limits_waits: true, ..self }
    }

    /// Applies this setting to events that match no webhook.
    #[must_use]
    pub fn with_unmatched(self, unmatched: UnmatchedEvents) -> Self {
        Self { unmatched, ..self }
    }

    /// Opens the connection to the queue before it is needed.
    pub fn open_connection(&self) -> BoxFuture<'static, ()> {
        self.queue.open_connection()
    }

    /// Publishes a client's event to every webhook that subscribes to it, within this span. The publication is counted
    /// if a share admitted it.
    pub async fn publish(
        &self,
        entity: &AuthorizedEntity,
        NewEvent { content, once }: NewEvent<'_>,
        trace: &Trace,
        admitted: Option<&AdmittedPublication<'_>>,
    ) -> Result<Published, PublishError> {
        match once {
            Some(once) => self.publish_once(entity, &content, &once, trace, admitted).await,
            None => {
                let mut event = Event { trace: trace.if_named(), ..self.event_now(entity, &content)? };
                let webhooks = timed("webhooks read", self.webhooks.of(entity).boxed()).await?;
                let targets = targets(&mut event, &webhooks);
                let count = targets.len();
                let kept = !targets.is_empty() || self.keeps_unmatched(&event, &webhooks);
                let delivering = self.deliver(&event, targets, &webhooks, kept).boxed();
                Ok(counted(admitted, count, &webhooks, delivering).await?)
            }
        }
    }

    /// Whether a request with this event's key was accepted before. A repeated request gets the first response, even if
    /// its data would be refused now, because of a stricter deployment or a changed schema.
    pub async fn has_accepted(&self, event: &NewEvent<'_>) -> Result<bool, TableError> {
        match &event.once {
            Some(once) => self.has_plan(once).await,
            None => Ok(false),
        }
    }

    /// Whether a publication with this key is planned.
    pub(super) async fn has_plan(&self, once: &IdempotentRequest) -> Result<bool, TableError> {
        once.is_claimed(&self.table, self.clock.now()).await
    }

    /// Publishes an event once per idempotency key.
    pub(super) async fn publish_once(
        &self,
        entity: &AuthorizedEntity,
        content: &Content<'_>,
        once: &IdempotentRequest,
        trace: &Trace,
        admitted: Option<&AdmittedPublication<'_>>,
    ) -> Result<Published, PublishError> {
        // An event that is too large is refused before its key is claimed.
        let mut event = self.event_now(entity, content)?;
        let now = event.timestamp;
        // Boxed, like the futures below, since their nested types would exceed the compiler's limits.
        let webhooks = timed("webhooks read", self.webhooks.of(entity).boxed()).await?;
        let targets = targets(&mut event, &webhooks);
        let plan = PublicationPlan {
            event: event.id.clone(),
            timestamp: now,
            is_kept_unmatched: targets.is_empty() && self.keeps_unmatched(&event, &webhooks),
            targets,
            warnings: event.warnings.clone(),
        };
        let first = self.events.claim_key(once, plan, now).boxed().await?;
        let Some(first) = first else {
            // Comparing the filters still counts.
            return counted(admitted, 0, &webhooks, ready(Err(PublishError::KeyConflict))).await;
        };
        let is_repeated = first.event != event.id;
        let event = content.event(first.event, first.timestamp, entity.id().clone(), &self.subjects)?;
        let event = Event { trace: trace.if_named(), warnings: first.warnings, ..event };
        let count = first.targets.len();
        let kept = first.is_kept_unmatched || !first.targets.is_empty();
        let delivering = self.deliver(&event, first.targets, &webhooks, kept).boxed();
        let published = counted(admitted, count, &webhooks, delivering).await?;
        Ok(Published { is_repeated, ..published })
    }

    /// Publishes an internal event of the service. Repeating it creates nothing new.
    pub(super) async fn publish_event(&self, entity: &AuthorizedEntity, event: &Event) -> Result<(), TableError> {
        debug_assert_eq!(entity.id(), &event.entity);
        let webhooks = timed("webhooks read", self.webhooks.of(entity).boxed()).await?;
        let mut event = event.clone();
        let targets = targets(&mut event, &webhooks);
        let kept = !targets.is_empty();
        self.deliver(&event, targets, &webhooks, kept).boxed().await.map(drop)
    }

    /// Publishes an event to one webhook, regardless of its types and its filter, in one transaction with the request's
    /// record, if there is one.
    pub(crate) async fn publish_to(
        &self,
        entity: &AuthorizedEntity,
        event: &Event,
        webhook: &Webhook,
        record: Option<Record>,
    ) -> Result<(), IdempotencyError> {
        debug_assert_eq!(entity.id(), &event.entity);
        let targets = vec![target(webhook)];
        let webhooks = std::slice::from_ref(webhook);
        let first_attempt = self.first_attempt(event);
        let (event_item, put) =
            self.events.keeping(event, targets.clone(), first_attempt, self.schedule.retention).await?;
        // The delivery is opened in the same transaction: a repeated request with the key publishes nothing, and so
        // could not open it.
        let heads = self.deliveries.opened_heads(&event_item, self.clock.now())?;
        let writes = Transaction::new().with(put).with_all(heads);
        self.table.write_recorded(writes, record, "publishing an event to one webhook").boxed().await?;
        self.announce(event, &targets, webhooks, first_attempt).await;
        tracing::info!(eventId = %event.id, r#type = event.kind, deliveries = 1, "published");
        Ok(())
    }

    /// How long this deployment stores an event whose publisher sets no retention.
    pub fn retention(&self) -> Duration {
        self.schedule.retention
    }

    fn first_attempt(&self, event: &Event) -> Time {
        event.timestamp + self.schedule.schedule.first_wait(random::unit(&*self.random))
    }

    fn event_now(&self, entity: &AuthorizedEntity, content: &Content<'_>) -> Result<Event, TooLarge> {
        let now = self.clock.now();
        content.event(EventId::new(now, &*self.random), now, entity.id().clone(), &self.subjects)
    }

    async fn deliver(
        &self,
        event: &Event,
        targets: Vec<Target>,
        webhooks: &[Webhook],
        kept: bool,
    ) -> Result<Published, TableError> {
        if kept {
            let first_attempt = self.first_attempt(event);
            let retention = self.schedule.retention;
            let keeping = self.events.keeping(event, targets.clone(), first_attempt, retention);
            let (mut item, put) = timed("event packed", keeping).await?;
            // The sweep may be past the timestamp of a late event. Its deliveries are opened before the event is
            // written, so that they are not lost if this process dies.
            let was_late = self.is_late(event);
            if was_late {
                self.open(&item).await?;
            }
            match Ordered::of(event, &targets, webhooks) {
                // Boxed, as above.
                Some(ordered) => {
                    let counted_at = self.limits_waits.then(|| self.clock.now());
                    let joining = self.events.keep_in_line(item, &put, &ordered, &*self.random, counted_at);
                    item = timed("event written", joining.boxed()).await?;
                }
                None if !timed("event written", self.table.write_together(put, "storing an event"))
                    .await?
                    .is_done() =>
                {
                    // The first stored version of an event is kept, with its targets.
                    item = self.events.item(&event.id).await?.unwrap_or(item);
                }
                None => {}
            }
            if !was_late && self.is_late(event) {
                self.open(&item).await?;
            }
            timed("announcement", self.announce(event, &item.targets, webhooks, first_attempt)).await;
        }
        tracing::info!(eventId = %event.id, r#type = event.kind, deliveries = targets.len(), "published");
        let deliveries = targets.into_iter().enumerate().map(|(ordinal, target)| PlannedDelivery {
            delivery_identifier: DeliveryId::of(&event.id, ordinal),
            webhook_identifier: target.webhook,
        });
        Ok(Published {
            event_identifier: event.id.clone(),
            kept,
            deliveries: deliveries.collect(),
            warnings: event.warnings.clone(),
            is_repeated: false,
        })
    }

    /// Whether an event that matches none of these webhooks is stored. Internal events are never replayed, and an
    /// entity without webhooks has no use for its events.
    fn keeps_unmatched(&self, event: &Event, webhooks: &[Webhook]) -> bool {
        self.unmatched.keep && !webhooks.is_empty() && !event.is_internal()
    }

    fn is_late(&self, event: &Event) -> bool {
        self.clock.now().since(event.timestamp) >= LATE
    }

    async fn open(&self, item: &EventItem) -> Result<(), TableError> {
        self.deliveries.open_missing(item, self.clock.now()).await.map(drop)
    }

    /// Announces the first attempts of an event's deliveries. Deliveries of an earlier publication are announced again;
    /// the claim shows whether their attempts have yet to be made.
    async fn announce(&self, event: &Event, targets: &[Target], webhooks: &[Webhook], first_attempt: Time) {
        let now = self.clock.now();
        let known: HashMap<_, _> = webhooks.iter().map(|webhook| (&webhook.id, webhook)).collect();
        let mut lanes = [(Lane::Quick, Vec::new()), (Lane::Slow, Vec::new())];
        for (ordinal, Target { webhook, .. }) in targets.iter().enumerate() {
            let owner = DeliveryOwner { entity: event.entity.clone(), webhook: webhook.clone() };
            let message = AttemptMessage::new(DeliveryId::of(&event.id, ordinal), 1, owner);
            // A repeated request may announce a delivery to a webhook that has since been removed.
            let (lane, message) = match known.get(webhook) {
                Some(known) => (Lane::of(known.is_slow(now)), message.since(known.last_update)),
                None => (Lane::Quick, message),
            };
            lanes[usize::from(lane == Lane::Slow)].1.push(message);
        }
        join_all(
            lanes
                .map(|(lane, messages)| self.queue.announce_in_time(lane, &event.entity, messages, first_attempt, now)),
        )
        .await;
    }
}

/// Runs the rest of a publication. If a share admitted it, its targets are counted.
async fn counted<T>(
    admitted: Option<&AdmittedPublication<'_>>,
    targets: usize,
    webhooks: &[Webhook],
    rest: impl Future<Output = T>,
) -> T {
    match admitted {
        Some(admitted) => admitted.counted_for(targets, webhooks.len(), rest).await,
        None => rest.await,
    }
}

/// An event's targets: each webhook that subscribes to it and whose filter matches its data, except for the webhooks
/// that it is about. The event gets a warning if it is delivered regardless of filters.
pub(crate) fn targets(event: &mut Event, webhooks: &[Webhook]) -> Vec<Target> {
    let others = webhooks.iter().filter(|webhook| !event.about.contains(&webhook.id));
    let subscribed: Vec<_> = others.filter(|webhook| webhook.subscribes_to(event.kind)).collect();
    let filters = || subscribed.iter().filter_map(|webhook| webhook.event_filter.as_ref());
    let outcomes = FilterOutcomes::of(filters(), &event.body);
    let unfiltered = filters().filter(|filter| outcomes.get(filter) == FilterOutcome::TooManySteps).count();
    if unfiltered > 0 {
        tracing::warn!(
            eventId = %event.id,
            webhooks = unfiltered,
            "filters took too many steps; the event is delivered unfiltered"
        );
        let detail =
            format!("has too many values for the filters of {unfiltered} webhook(s); these get the event regardless");
        event.warnings.insert(0, data_warning::warning(Pointer::default(), Rule::TooLong, &detail));
        event.warnings.truncate(MAX_WARNINGS);
    }
    let passes =
        |webhook: &&&Webhook| webhook.event_filter.as_ref().is_none_or(|filter| outcomes.get(filter).delivers());
    subscribed.iter().filter(passes).copied().map(target).collect()
}

/// The webhook as a target of an event.
pub(crate) fn target(webhook: &Webhook) -> Target {
    Target::of(webhook.id.clone(), problem::cut(&webhook.endpoint.shown_url(), MAX_URL_LENGTH))
}
