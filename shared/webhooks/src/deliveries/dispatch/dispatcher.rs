//! The dispatcher makes the attempts that messages announce. It reads the inputs, claims the attempt, sends the
//! request, records the attempt, and announces the next. After a crash at any step, the sweep finds the delivery. A
//! repeated message finds the attempt claimed or already made, and does nothing. One invocation is a dispatch run
//! (`run.rs`).

use std::sync::Arc;

use tokio::{join, time::timeout};

use crate::{
    deliveries::{
        dispatch::{
            counting::{self, RecordedAttempt},
            metrics::Meter,
            prefetch::{Prefetch, Sources},
            turn::Turn,
        },
        queue::{
            Lane, Queue, QueueSettings,
            inbox::Inbox,
            message::{AttemptMessage, DeliveryOwner, MalformedMessage},
        },
        state::{
            Wait,
            decide::{Decision, Facts, after_pause},
            head::Head,
            schedule::{RetrySchedule, ScheduleSettings},
            times::CLAIM_LIMIT,
            transition::Transition,
        },
        store::{
            Deliveries,
            claim::{ClaimOutcome, Claimed},
            held::Ended,
        },
    },
    events::store::Events,
    subscriptions::{
        Webhooks,
        health::{announcing::Announcer, breaker::BreakerSettings, resume::Pauses, tracker::HealthTracker},
        stats::Stats,
    },
};
use auth::AuthorizedEntity;
use base::{SharedClock, SharedRandom, logging, random, stage::timed};
use outbound::Outbound;
use storage::{KeyRings, SealError, Table, TableError, aws::Aws};

/// Makes the attempts that messages announce.
pub struct Dispatcher {
    pub(crate) deliveries: Deliveries,
    pub(crate) events: Events,
    pub(crate) webhooks: Webhooks,
    pub(crate) queue: Queue,
    /// The limiters for the quick lane and the slow lane.
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

/// Why a message could not be handled. The queue delivers it again.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// The service did not send this message.
    #[error("a queue message is malformed")]
    Message(#[source] MalformedMessage),
    /// The table failed.
    #[error("one of the dispatcher's DynamoDB requests failed")]
    Table(#[from] TableError),
    /// The request was sent, but its outcome was not recorded. The claim is kept, so that the next worker records the
    /// attempt as interrupted.
    #[error("an attempt's outcome was not recorded")]
    Unrecorded(#[source] TableError),
    /// A sealed value of a webhook cannot be opened.
    #[error("a webhook's sealed value cannot be opened")]
    Secret(#[from] SealError),
}

impl DispatchError {
    /// Whether an operator has to fix the cause; false for an outage.
    fn is_lasting(&self) -> bool {
        match self {
            Self::Secret(error) => !matches!(error, SealError::Ring(_)),
            Self::Table(error) => !matches!(error, TableError::Unavailable { .. }),
            Self::Message(_) | Self::Unrecorded(_) => false,
        }
    }
}

impl Dispatcher {
    /// A dispatcher for the deliveries in this table. It receives from both lanes and announces on both. `environment`
    /// is the deployment's name, for the metrics.
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

    /// Makes the attempt that a message announces, if it is due and no other worker has claimed it.
    pub(crate) async fn one(
        &self,
        message: &AttemptMessage,
        lane: Lane,
    ) -> Result<Option<RecordedAttempt>, DispatchError> {
        // Before the claim: a lease must not expire while the dispatcher is waiting for a secret.
        self.rings.get().await?;
        let due = &message.due;
        let (claimed, prefetch) = self.claim(message, lane).await?;
        let Some(claimed) = claimed else {
            tracing::debug!(
                deliveryId = %due.delivery,
                attempt = due.attempt,
                "dropped: the attempt was already made, is not due, or belongs to another worker"
            );
            return Ok(None);
        };
        let entity = AuthorizedEntity::owning_delivery(claimed.delivery().owner_identifier.clone());
        let turn = Turn { entity: &entity, claimed: &claimed, message, lane };
        let acted = async { self.act(turn, self.sources().inputs(&claimed, prefetch).await?).await };
        match acted.await {
            Err(error) => self.after_error(&claimed, error).await.map(|()| None),
            recorded => recorded,
        }
    }

    /// Ends a claim after an error. If an operator has to fix the cause, the queue does not see the error, since an
    /// immediate retry would fail again. The delivery waits instead, longer each time.
    async fn after_error(&self, claimed: &Claimed, error: DispatchError) -> Result<(), DispatchError> {
        if !error.is_lasting() {
            // Otherwise the next worker would assume that the request was sent.
            if !matches!(error, DispatchError::Unrecorded(_)) {
                self.release_or_log(claimed).await;
            }
            return Err(error);
        }
        tracing::error!(
            error = %logging::chain(&error),
            deliveryId = %claimed.delivery().id,
            "an attempt cannot be made until an operator fixes the cause; the delivery is on hold"
        );
        let now = self.clock.now();
        let until = after_pause(claimed.delivery().created_date, now);
        // Waiting would end the claim without recording the earlier attempt.
        let waits = if claimed.unknown().is_some() {
            self.release_or_log(claimed).await;
            return Ok(());
        } else {
            self.wait(claimed, Wait::Content, (until, None), now).await
        };
        if let Err(error) = waits {
            self.release_or_log(claimed).await;
            return Err(error.into());
        }
        Ok(())
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
            "a claim was not released; the history will show an interrupted attempt although none was made"
        );
    }

    /// Claims the attempt that a message announces and prefetches its inputs. If the delivery is final, its last worker
    /// may have died before it woke the next delivery in the line, so this worker does.
    async fn claim(&self, message: &AttemptMessage, lane: Lane) -> Result<(Option<Claimed>, Prefetch), DispatchError> {
        let (outcome, prefetch) = self.claim_announced(message, lane).await?;
        if let (ClaimOutcome::Ended(last), Some(webhook)) = (&outcome, prefetch.webhook())
            // A message is only a hint.
            && DeliveryOwner::of(last.delivery()) == message.owner()
        {
            self.wake_next(Ended::before(last), &webhook.webhook, self.clock.now()).await;
        }
        Ok((outcome.done(), prefetch))
    }

    /// The first claim of a delivery inserts its head, which is derived from the event, so the event must be read
    /// first. Any other claim runs concurrently with the prefetch.
    async fn claim_announced(
        &self,
        message: &AttemptMessage,
        lane: Lane,
    ) -> Result<(ClaimOutcome, Prefetch), DispatchError> {
        let due = &message.due;
        let lease = random::uuid(&*self.random);
        let is_new = due.attempt == 1 && !due.has_waited;
        let mut prefetch = if is_new {
            timed("inputs read", self.sources().prefetch(message)).await
        } else {
            let claim = self.deliveries.claim(&due.delivery, due.attempt, lease.clone(), self.clock.now());
            let prefetch = timed("inputs read", self.sources().prefetch(message));
            let (claim, prefetch) = join!(timed("claim", claim), prefetch);
            match claim? {
                ClaimOutcome::NoHead if due.attempt == 1 => prefetch,
                outcome => return Ok((outcome, prefetch)),
            }
        };
        if prefetch.event.is_none() {
            prefetch.event = self.events.find(&due.delivery.event()).await?.map(Arc::new);
        }
        let outcome = self.claim_first(message, lane, lease, &prefetch).await?;
        Ok((outcome, prefetch))
    }

    /// Claims a delivery that probably has no head yet. If it is already known that the delivery must wait for another
    /// delivery or for a reader, one write records the wait instead of a claim.
    async fn claim_first(
        &self,
        message: &AttemptMessage,
        lane: Lane,
        lease: String,
        prefetch: &Prefetch,
    ) -> Result<ClaimOutcome, TableError> {
        let Some(event) = prefetch.event.as_ref().map(|event| &event.item) else { return Ok(ClaimOutcome::Refused) };
        let id = &message.due.delivery;
        if let (Some(webhook), Some(head)) = (prefetch.webhook(), Head::new(event, id)) {
            let webhook = &webhook.webhook;
            let now = self.clock.now();
            let (event, webhook) = (Some(event), Some(webhook));
            let facts = Facts { head: &head, webhook, lane, event, health: None, now };
            if self.waits_without_claim(&facts).await? {
                return Ok(ClaimOutcome::Refused);
            }
        }
        // The reads may have been slow, and the lease begins with the claim.
        timed("claim", self.deliveries.claim_first(event, id, lease, self.clock.now())).await
    }

    /// Makes a new delivery wait, with one write and without a claim, if it must wait for another delivery or a reader.
    /// Returns false if it need not wait, or if it already has a head.
    async fn waits_without_claim(&self, facts: &Facts<'_>) -> Result<bool, TableError> {
        let (Some(event), Some(webhook)) = (facts.event, facts.webhook) else { return Ok(false) };
        let id = &facts.head.delivery.id;
        match self.decide(facts).await? {
            Decision::Hold(before) => {
                let hold = Transition::Hold { before: &before };
                if !self.deliveries.put_off_first(event, id, hold, self.clock.now()).await? {
                    return Ok(false);
                }
                self.after_holding(id, &before, webhook).await?;
                Ok(true)
            }
            Decision::PutIntoFeed => {
                self.deliveries.put_off_first(event, id, Transition::PutIntoFeed, self.clock.now()).await
            }
            _ => Ok(false),
        }
    }

    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources { webhooks: &self.webhooks, events: &self.events, healths: &self.health_tracker.healths }
    }

    /// Counts attempts for their webhooks' health and statistics.
    pub(crate) async fn count(&self, recorded: Vec<RecordedAttempt>) {
        let counting = counting::count(recorded, &self.health_tracker, &self.stats, self.clock.now());
        let opened = timed("count", counting).await;
        self.meter.breakers_opened(opened);
    }
}
