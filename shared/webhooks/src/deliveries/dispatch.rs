//! Dispatching: from "this attempt is due" to an attempt in the history.
//!
//! The dispatcher claims the attempt (a first one often needs no claim, see `claim.rs`), sends it, records it, and
//! announces the next. A crash after any of these steps leaves a delivery that the sweep finds; a message that comes again
//! later finds the claim or the attempt and is dropped.
//! One invocation is a round, in `round.rs`.

use std::time::Duration;

use tracing::Instrument;

use super::{
    admission::{Admission, admit},
    claim::Claimed,
    counting::{self, Tried},
    delivery::WaitingFor,
    glance::{Glance, Parts, Sources},
    inbox::Inbox,
    item::HeadItem,
    lease_times::GRACE,
    meter::Meter,
    notice::Notice,
    queue::{Lane, Queue, QueueSettings},
    schedule::{RetrySchedule, ScheduleSettings},
    store::Deliveries,
    taken::Taken,
};
use crate::{
    events::store::Events,
    subscriptions::{
        Webhooks, announcing::Announcer, breaker::BreakerSettings, operational::is_operational, resume::Pauses,
        stats::Stats, watch::Watch,
    },
};
use auth::AuthorizedEntity;
use base::{SharedClock, SharedRandom, Time, logging, random};
use outbound::Outbound;
use storage::{KeyRings, SealError, Table, TableError, aws::Aws, idempotency};

/// The longest pause of a delivery that cannot be attempted at all.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// Makes the attempts that messages announce.
pub struct Dispatcher {
    pub(super) deliveries: Deliveries,
    pub(super) events: Events,
    pub(super) webhooks: Webhooks,
    pub(super) queue: Queue,
    /// Of the quick lane and the slow one.
    pub(super) inboxes: [Inbox; 2],
    pub(super) watch: Watch,
    pub(super) stats: Stats,
    pub(super) meter: Meter,
    pub(super) announcer: Announcer,
    pub(super) pauses: Pauses,
    taken: Taken,
    pub(super) outbound: Outbound,
    pub(super) rings: KeyRings,
    pub(super) schedule: RetrySchedule,
    pub(super) clock: SharedClock,
    pub(super) random: SharedRandom,
}

/// Why a message could not be handled and has to come again.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// The message is not one of ours.
    #[error("a message of the queue is malformed")]
    Message(#[source] serde_json::Error),
    /// The table failed.
    #[error("the table failed a dispatch")]
    Table(#[from] TableError),
    /// A sealed value of a webhook cannot be opened.
    #[error("a sealed value of a webhook cannot be opened")]
    Secret(#[from] SealError),
}

impl DispatchError {
    /// Whether only an operator can mend the cause, unlike an outage.
    fn is_lasting(&self) -> bool {
        match self {
            Self::Secret(error) => !matches!(error, SealError::Ring(_)),
            Self::Table(error) => !matches!(error, TableError::Unavailable { .. }),
            Self::Message(_) => false,
        }
    }
}

impl Dispatcher {
    /// A dispatcher of this table's deliveries, which receives from both lanes and announces on them. `environment` is
    /// the deployment's name, for the metrics.
    pub fn connect(
        aws: &Aws,
        table: Table,
        (queue, schedule, breaker): (QueueSettings, ScheduleSettings, BreakerSettings),
        outbound: Outbound,
        rings: KeyRings,
        environment: String,
        (clock, random): (SharedClock, SharedRandom),
    ) -> Self {
        Self {
            deliveries: Deliveries::new(table.clone()),
            events: Events::new(table.clone()),
            webhooks: Webhooks::new(table.clone()),
            queue: Queue::connect(aws, &queue),
            inboxes: Inbox::connect(aws, &queue),
            watch: Watch::new(table.clone(), breaker, random.clone()),
            stats: Stats::new(table.clone()),
            meter: Meter::new(environment),
            pauses: Pauses::new(&table),
            announcer: Announcer::new(table),
            taken: Taken::default(),
            outbound,
            rings,
            schedule: schedule.schedule,
            clock,
            random,
        }
    }

    /// Makes the attempt that a message announces, if it is due and no other worker has it. `carried` is the head that
    /// the message carries.
    pub(super) async fn one(
        &self,
        notice: &Notice,
        carried: Option<HeadItem>,
        seen: Glance,
    ) -> Result<Option<Tried>, DispatchError> {
        // Before the claim: a lease must not run out while a secret is waited for.
        self.rings.get().await?;
        let due = &notice.message;
        let Some(claimed) = self.held(notice, carried).await? else {
            tracing::debug!(deliveryId = %due.delivery, attempt = due.attempt, "nothing to do");
            return Ok(None);
        };
        match self.claimed(&claimed, seen).await {
            // Trying again at once would not help: it waits longer each time, until an operator mends the cause.
            Err(error) if error.is_lasting() => {
                tracing::error!(error = %logging::chain(&error), deliveryId = %due.delivery, "an attempt cannot be made");
                self.wait(&claimed, self.clock.now()).await?;
                Ok(None)
            }
            outcome => outcome,
        }
    }

    /// The attempt that a message announces, for this worker alone: by the message if it is fresh and carries the
    /// delivery, else by a claim. `None` when there is nothing to do.
    ///
    /// A fresh message that came before is dropped: another worker may have it. If that one died, the sweep comes.
    async fn held(&self, notice: &Notice, carried: Option<HeadItem>) -> Result<Option<Claimed>, TableError> {
        let due = &notice.message;
        let (now, lease) = (self.clock.now(), random::uuid(&*self.random));
        if let Some(held) = carried.and_then(|head| Claimed::by_message(head, lease.clone(), now)) {
            let is_first = !notice.came_before && self.taken.take(&due.delivery, now);
            return Ok(is_first.then_some(held));
        }
        self.deliveries.claim(&due.delivery, due.attempt, lease, now).await
    }

    /// Makes the attempt, or finds that it cannot be made, or not yet.
    async fn claimed(&self, claimed: &Claimed, seen: Glance) -> Result<Option<Tried>, DispatchError> {
        let delivery = claimed.delivery();
        let (entity, id) =
            (AuthorizedEntity::owning_delivery(delivery.owner_identifier.clone()), &delivery.webhook_identifier);
        let Parts { webhook, event, health } = self.sources().parts(claimed, seen).await?;
        let now = self.clock.now();
        let Some(webhook) = webhook.filter(|found| found.webhook.enabled) else {
            tracing::info!(deliveryId = %delivery.id, "cancelled: its webhook is gone or disabled");
            self.deliveries.cancel(claimed, now).await?;
            return Ok(None);
        };
        let Some(event) = event else {
            self.wait_for_body(claimed, now).await?;
            return Ok(None);
        };
        let healths = &self.watch.healths;
        let health = match admit((&entity, claimed), health, healths, &*self.random, now).await? {
            Admission::Go(health) => health,
            Admission::Wait(until) => {
                tracing::info!(deliveryId = %delivery.id, %until, "put off: the breaker of its webhook is open");
                self.deliveries.put_off(claimed, until, Some(WaitingFor::Breaker), now).await?;
                let lane = Lane::of(webhook.webhook.is_slow(until));
                self.queue.announce(lane, claimed.notice(claimed.attempt()), until, now).await;
                return Ok(None);
            }
        };
        // What the attempt needs took long to read.
        let now = self.clock.now();
        if claimed.is_overdue_for_claim(now) && !self.deliveries.claim_under_way(claimed, now).await?.is_done() {
            return Ok(None);
        }
        let trace = event.trace.next_span(&*self.random);
        let span = tracing::info_span!("attempt", trace_id = %trace.trace_id(), span_id = %trace.span_id());
        let outcome = self.attempt(&entity, claimed, &webhook, (&event.body, &trace)).instrument(span).await?;
        let operational = is_operational(&delivery.r#type);
        let pause_ends = health.as_ref().and_then(|health| health.open_until).filter(|_| !operational);
        let closes = outcome.completed();
        let tried = Tried { entity: entity.clone(), webhook: id.clone(), outcome, health_before: health, operational };
        let Some(pause_ends) = pause_ends else { return Ok(Some(tried)) };
        let now = self.clock.now();
        if closes && now < pause_ends
            // Counting closes the breaker as well, without the job that has what waits attempted. So an attempt that
            // did not end the pause is not counted, and the breaker stays as it is.
            && let Err(error) = self.pauses.close(&entity, id, now).await
        {
            tracing::warn!(error = %logging::chain(&error), webhookId = %id, "the pause could not be ended");
            return Ok(None);
        }
        // The probe is counted at once: many deliveries wait for it, and must not wait for the rest of this batch.
        self.count(vec![tried]).await;
        Ok(None)
    }

    /// Where what an attempt needs is looked up.
    pub(super) fn sources(&self) -> Sources<'_> {
        Sources { webhooks: &self.webhooks, events: &self.events, healths: &self.watch.healths }
    }

    /// Counts attempts for the health and the statistics of their webhooks.
    pub(super) async fn count(&self, tried: Vec<Tried>) {
        let opened = counting::count(tried, &self.watch, &self.stats, self.clock.now()).await;
        self.meter.breakers_opened(opened);
    }

    /// Handles a delivery whose event is not there. Its publication was never acknowledged; the client may repeat it
    /// for as long as its key is remembered, and after that the event never comes.
    async fn wait_for_body(&self, claimed: &Claimed, now: Time) -> Result<(), DispatchError> {
        let (delivery, age) = (claimed.delivery(), now.since(claimed.delivery().created_date));
        if age > idempotency::MEMORY {
            tracing::error!(deliveryId = %delivery.id, eventId = %claimed.event(), "cancelled: its event never came");
            return Ok(self.deliveries.cancel(claimed, now).await?);
        }
        tracing::warn!(deliveryId = %delivery.id, eventId = %claimed.event(), "its event is not there yet");
        self.wait(claimed, now).await
    }

    /// Gives a claim back for as long as the delivery is old, so that a delivery that waits for long is seldom read.
    async fn wait(&self, claimed: &Claimed, now: Time) -> Result<(), DispatchError> {
        let until = now + now.since(claimed.delivery().created_date).clamp(GRACE, LONGEST_WAIT);
        Ok(self.deliveries.put_off(claimed, until, None, now).await?)
    }
}
