//! The dispatcher makes the attempts that messages announce. It claims an attempt while it reads the inputs, sends the
//! request, records the attempt, and announces the next. After a crash at any step, the sweep finds the delivery. A
//! repeated message finds the attempt claimed or made, and is dropped. One invocation is a dispatch run (`run.rs`).

use std::time::Duration;

use tokio::{join, time::timeout};
use tracing::Instrument;

use crate::{
    deliveries::{
        delivery::{CancelReason, WaitingFor},
        dispatch::{
            breaker_check::{AttemptDecision, admit},
            claim::{Claim, Claimed},
            counting::{self, RecordedAttempt},
            metrics::Meter,
            prefetch::{AttemptInputs, Prefetch, Sources},
            schedule::{RetrySchedule, ScheduleSettings},
        },
        lease_times::{CLAIM_LIMIT, GRACE},
        queue::{
            Lane, Queue, QueueSettings,
            inbox::Inbox,
            message::{AttemptMessage, MalformedMessage},
        },
        store::{Deliveries, held::Ended},
    },
    events::store::Events,
    subscriptions::{
        Webhooks, announcing::Announcer, breaker::BreakerSettings, health_tracker::HealthTracker, resume::Pauses,
        stats::Stats,
    },
};
use auth::AuthorizedEntity;
use base::{SharedClock, SharedRandom, Time, logging, random};
use outbound::Outbound;
use storage::{KeyRings, SealError, Table, TableError, aws::Aws, idempotency};

/// The longest pause of a delivery that cannot be attempted.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

/// Makes the attempts that messages announce.
pub struct Dispatcher {
    pub(crate) deliveries: Deliveries,
    pub(crate) events: Events,
    pub(crate) webhooks: Webhooks,
    pub(crate) queue: Queue,
    /// The quick lane's, then the slow lane's.
    pub(crate) inboxes: [Inbox; 2],
    pub(crate) health_tracker: HealthTracker,
    pub(crate) stats: Stats,
    pub(crate) meter: Meter,
    pub(crate) announcer: Announcer,
    pub(crate) pauses: Pauses,
    pub(crate) outbound: Outbound,
    pub(crate) rings: KeyRings,
    pub(crate) schedule: RetrySchedule,
    pub(crate) clock: SharedClock,
    pub(crate) random: SharedRandom,
}

/// Why a message could not be handled and is received again.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// The service did not send this message.
    #[error("a message of the queue is malformed")]
    Message(#[source] MalformedMessage),
    /// The table failed.
    #[error("a request of the dispatcher to the table failed")]
    Table(#[from] TableError),
    /// The request was sent, and its outcome was not recorded. The claim stays, so that the next worker records the
    /// attempt as interrupted.
    #[error("the outcome of an attempt was not recorded")]
    Unrecorded(#[source] TableError),
    /// A sealed value of a webhook cannot be opened.
    #[error("a sealed value of a webhook cannot be opened")]
    Secret(#[from] SealError),
}

impl DispatchError {
    /// Whether an operator has to repair the cause, unlike an outage.
    fn is_lasting(&self) -> bool {
        match self {
            Self::Secret(error) => !matches!(error, SealError::Ring(_)),
            Self::Table(error) => !matches!(error, TableError::Unavailable { .. }),
            Self::Message(_) | Self::Unrecorded(_) => false,
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
            health_tracker: HealthTracker::new(table.clone(), breaker, random.clone()),
            stats: Stats::new(table.clone()),
            meter: Meter::new(environment),
            pauses: Pauses::new(&table),
            announcer: Announcer::new(table),
            outbound,
            rings,
            schedule: schedule.schedule,
            clock,
            random,
        }
    }

    /// Makes the attempt that a message announces, if it is due and no other worker has claimed it. A delivery of the
    /// quick lane whose webhook has become slow is left to the slow lane.
    pub(crate) async fn one(
        &self,
        message: &AttemptMessage,
        lane: Lane,
    ) -> Result<Option<RecordedAttempt>, DispatchError> {
        // Before the claim: a lease must not expire while the dispatcher waits for a secret.
        self.rings.get().await?;
        let due = &message.due;
        let now = self.clock.now();
        let (claimed, prefetch) = self.claim(message, now).await?;
        let Some(claimed) = claimed else {
            tracing::debug!(
                deliveryId = %due.delivery,
                attempt = due.attempt,
                "dropped: the attempt was made already, is not due, or has another worker"
            );
            return Ok(None);
        };
        let is_slow = prefetch.webhook().is_some_and(|found| found.webhook.is_slow(now));
        if is_slow && lane == Lane::Quick && !claimed.has_unknown_outcome() {
            self.deliveries.release(&claimed).await?;
            self.queue.announce(Lane::Slow, message.clone(), now, now).await;
            return Ok(None);
        }
        match self.claimed(&claimed, prefetch).await {
            // An immediate retry would fail again: the delivery waits longer each time, until an operator repairs the
            // cause.
            Err(error) if error.is_lasting() => {
                tracing::error!(
                    error = %logging::chain(&error),
                    deliveryId = %due.delivery,
                    "an attempt cannot be made until an operator repairs the cause; the delivery waits"
                );
                if claimed.has_unknown_outcome() {
                    // A wait would end the claim without a record of the former attempt.
                    self.release_or_log(&claimed).await;
                } else if let Err(error) = self.wait(&claimed, self.clock.now()).await {
                    self.release_or_log(&claimed).await;
                    return Err(error);
                }
                Ok(None)
            }
            Err(error) => {
                // Otherwise the next worker would take the attempt for one that was made.
                if !matches!(error, DispatchError::Unrecorded(_)) {
                    self.release_or_log(&claimed).await;
                }
                Err(error)
            }
            recorded => recorded,
        }
    }

    async fn release_or_log(&self, claimed: &Claimed) {
        let released = timeout(CLAIM_LIMIT, self.deliveries.release(claimed)).await;
        let error = match &released {
            Ok(Ok(())) => return,
            Ok(Err(error)) => logging::chain(error),
            Err(late) => late.to_string(),
        };
        tracing::warn!(
            error,
            deliveryId = %claimed.delivery().id,
            "a claim was not released; the history will have an interrupted attempt that was not made"
        );
    }

    /// Claims the attempt that a message announces, and prefetches its inputs. A delivery's first claim inserts the
    /// head from the event, so the event is read before; any other claim is concurrent with the prefetch.
    async fn claim(&self, message: &AttemptMessage, now: Time) -> Result<(Option<Claimed>, Prefetch), DispatchError> {
        let due = &message.due;
        let lease = random::uuid(&*self.random);
        let is_new = due.attempt == 1 && !due.has_waited;
        let mut prefetch = if is_new {
            self.sources().prefetch(message).await
        } else {
            let claim = self.deliveries.claim(&due.delivery, due.attempt, lease.clone(), now);
            let (claim, prefetch) = join!(claim, self.sources().prefetch(message));
            match claim? {
                Claim::Done(claimed) => return Ok((Some(*claimed), prefetch)),
                Claim::NoHead if due.attempt == 1 => prefetch,
                Claim::NoHead | Claim::Refused => return Ok((None, prefetch)),
            }
        };
        if prefetch.event.is_none() {
            prefetch.event = self.events.find(&due.delivery.event()).await?;
        }
        if self.held_without_claim(&prefetch, &due.delivery).await? {
            return Ok((None, prefetch));
        }
        if self.added_to_feed(&prefetch, &due.delivery).await? {
            return Ok((None, prefetch));
        }
        let claimed = match &prefetch.event {
            // The reads may have taken long, and the lease begins with the claim.
            Some(event) => {
                let now = self.clock.now();
                self.deliveries.claim_first(&event.item, &due.delivery, lease, now).await?
            }
            None => None,
        };
        Ok((claimed, prefetch))
    }

    /// Makes the attempt, unless it cannot be made or has to wait.
    async fn claimed(&self, claimed: &Claimed, prefetch: Prefetch) -> Result<Option<RecordedAttempt>, DispatchError> {
        let delivery = claimed.delivery();
        let entity = AuthorizedEntity::owning_delivery(delivery.owner_identifier.clone());
        let id = &delivery.webhook_identifier;
        let AttemptInputs { webhook, event, health } = self.sources().inputs(claimed, prefetch).await?;
        let now = self.clock.now();
        if claimed.has_unknown_outcome() {
            let webhook = webhook.as_ref().map(|current| &current.webhook.webhook);
            return self.record_unknown_outcome(&entity, claimed, webhook, health, now).await;
        }
        // The prefetched event may be stale, and the head may be erased after its event.
        if claimed.is_erased() || event.as_ref().is_some_and(|event| event.item.erased_date.is_some()) {
            tracing::info!(deliveryId = %delivery.id, "cancelled: the content of its event is erased");
            self.deliveries.cancel(claimed, CancelReason::Erased, now).await?;
            if let Some(current) = &webhook {
                self.wake_next(Ended::cancelled(claimed.head()), &current.webhook.webhook, now).await;
            }
            return Ok(None);
        }
        let Some(webhook) = webhook else {
            self.cancel(claimed, CancelReason::WebhookRemoved).await?;
            return Ok(None);
        };
        if now >= claimed.expires() {
            // It waited for another delivery, a slot or a breaker, and the table removes it only some days later.
            tracing::info!(deliveryId = %delivery.id, "cancelled: its retention is over");
            self.deliveries.cancel(claimed, CancelReason::Expired, now).await?;
            self.wake_next(Ended::cancelled(claimed.head()), &webhook.webhook.webhook, now).await;
            return Ok(None);
        }
        if !webhook.webhook.webhook.enabled {
            self.cancel(claimed, CancelReason::WebhookDisabled).await?;
            self.wake_next(Ended::cancelled(claimed.head()), &webhook.webhook.webhook, now).await;
            return Ok(None);
        }
        let Some(event) = event else {
            self.wait_for_event(claimed, now).await?;
            return Ok(None);
        };
        if self.held(claimed, &webhook.webhook.webhook, &event.item, now).await? {
            return Ok(None);
        }
        if webhook.webhook.webhook.is_pulled() {
            self.put_into_feed(claimed, &webhook.webhook.webhook, now).await?;
            return Ok(None);
        }
        let healths = &self.health_tracker.healths;
        let health = match admit(&entity, claimed, health, healths, &*self.random, now).await? {
            AttemptDecision::Go(health) => health,
            AttemptDecision::Wait(until) => {
                tracing::info!(deliveryId = %delivery.id, %until, "put off: the breaker of its webhook is open");
                self.deliveries.release_until(claimed, until, Some(WaitingFor::Breaker), now).await?;
                let lane = Lane::of(webhook.webhook.webhook.is_slow(until));
                self.queue.announce(lane, claimed.message(claimed.attempt()), until, now).await;
                return Ok(None);
            }
        };
        // A probe needs no slot: it is the only attempt while the breaker is open. The line may be hours long, and most
        // deliveries in it have lost their slots to the breaker.
        let is_probe = !claimed.is_operational() && health.as_ref().is_some_and(|health| health.open_until.is_some());
        if !is_probe && !self.reaches_its_slot(claimed, &webhook.webhook.webhook).await? {
            return Ok(None);
        }
        let trace = event.item.trace().next_span(&*self.random);
        let span = tracing::info_span!("attempt", trace_id = %trace.trace_id(), span_id = %trace.span_id());
        let attempt = self.attempt(&entity, claimed, webhook, &event, &trace).instrument(span);
        let Some(outcome) = attempt.await? else { return Ok(None) };
        let operational = claimed.is_operational();
        let pause_ends = health.as_ref().and_then(|health| health.open_until).filter(|_| !operational);
        let closes = outcome.completed();
        let recorded = RecordedAttempt {
            entity: entity.clone(),
            webhook: id.clone(),
            outcome,
            health_before: health,
            operational,
        };
        let Some(pause_ends) = pause_ends else { return Ok(Some(recorded)) };
        let now = self.clock.now();
        if closes && now < pause_ends
            // Counting the attempt would close the breaker as well, but without the job that attempts the waiting
            // deliveries. So if the pause cannot be ended, the attempt is not counted, and the breaker stays open.
            && let Err(error) = self.pauses.close(&entity, id, now).await
        {
            tracing::warn!(
                error = %logging::chain(&error),
                webhookId = %id,
                "the breaker could not be closed; it stays open until the end of its pause"
            );
            return Ok(None);
        }
        // The probe is counted at once: many deliveries may wait for it, and must not wait for the rest of this batch.
        self.count(vec![recorded]).await;
        Ok(None)
    }

    /// Cancels a claimed delivery whose webhook is removed or disabled, as the reason says.
    pub(crate) async fn cancel(&self, claimed: &Claimed, reason: CancelReason) -> Result<(), TableError> {
        let id = &claimed.delivery().id;
        tracing::info!(deliveryId = %id, reason = reason.as_str(), "cancelled: its webhook is removed or disabled");
        self.deliveries.cancel(claimed, reason, self.clock.now()).await
    }

    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources { webhooks: &self.webhooks, events: &self.events, healths: &self.health_tracker.healths }
    }

    /// Counts attempts for the health and the statistics of their webhooks.
    pub(crate) async fn count(&self, recorded: Vec<RecordedAttempt>) {
        let opened = counting::count(recorded, &self.health_tracker, &self.stats, self.clock.now()).await;
        self.meter.breakers_opened(opened);
    }

    /// Handles a delivery whose event is missing. A late publication opens its deliveries before it writes the event.
    /// If it died in between, it was never acknowledged, and the client may repeat it while the idempotency key is
    /// kept.
    async fn wait_for_event(&self, claimed: &Claimed, now: Time) -> Result<(), DispatchError> {
        let delivery = claimed.delivery();
        let age = now.since(delivery.created_date);
        if age > idempotency::RETENTION {
            tracing::error!(deliveryId = %delivery.id, "cancelled: its event was never written");
            return Ok(self.deliveries.cancel(claimed, CancelReason::Expired, now).await?);
        }
        tracing::warn!(deliveryId = %delivery.id, "put off: its event is not written yet");
        self.wait(claimed, now).await
    }

    /// Puts the delivery off by about its age, so that a long wait costs few reads.
    async fn wait(&self, claimed: &Claimed, now: Time) -> Result<(), DispatchError> {
        let until = now + now.since(claimed.delivery().created_date).clamp(GRACE, MAX_WAIT);
        Ok(self.deliveries.release_until(claimed, until, None, now).await?)
    }
}
