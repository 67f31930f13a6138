//! Carries out the decision of `state::decide` on a claimed delivery.

use tracing::Instrument;

use crate::{
    deliveries::{
        dispatch::{
            counting::RecordedAttempt,
            dispatcher::{DispatchError, Dispatcher},
            prefetch::AttemptInputs,
            turn::{Ready, Turn},
        },
        queue::Lane,
        state::{
            Wait,
            decide::{Decision, Facts, decide},
            delivery::CancelReason,
            transition::Transition,
        },
        store::{claim::Claimed, held::Ended},
    },
    subscriptions::Webhook,
};
use base::{Time, random};
use storage::TableError;

impl Dispatcher {
    /// The decision on a delivery. Reads the preceding delivery if the decision depends on it.
    pub(super) async fn decide(&self, facts: &Facts<'_>) -> Result<Decision, TableError> {
        let open_before = match facts.before() {
            Some(before) => self.deliveries.open_before(before, facts.now).await?,
            None => None,
        };
        Ok(decide(facts, open_before))
    }

    /// Makes the attempt, or carries out another decision.
    pub(super) async fn act(
        &self,
        turn: Turn<'_>,
        inputs: AttemptInputs,
    ) -> Result<Option<RecordedAttempt>, DispatchError> {
        let AttemptInputs { webhook, event, health } = inputs;
        let claimed = turn.claimed;
        let now = self.clock.now();
        let decision = self.decide(&turn.facts(webhook.as_ref(), event.as_deref(), health.as_ref(), now)).await?;
        match (decision, webhook, event) {
            (Decision::RecordUnknownOutcome, webhook, _) => {
                let webhook = webhook.as_ref().map(|current| &current.webhook.webhook);
                return self.record_unknown_outcome(turn, webhook, health, now).await;
            }
            (Decision::Cancel(reason), webhook, event) => {
                if reason == CancelReason::Expired && event.is_none() {
                    tracing::error!(deliveryId = %claimed.delivery().id, "a delivery's event was never written");
                }
                self.cancel(claimed, reason, webhook.as_ref().map(|current| &current.webhook.webhook), now).await?;
            }
            (Decision::Wait(wait, until), webhook, _) => {
                // Random, so that the waiting deliveries do not all become due at once.
                let until = until + until.since(now).mul_f64(0.1 * random::unit(&*self.random));
                let webhook = webhook.as_ref().map(|current| &current.webhook.webhook);
                self.wait(claimed, wait, (until, webhook), now).await?;
            }
            (Decision::Hold(before), Some(current), _) => {
                self.hold(claimed, &before, &current.webhook.webhook, now).await?;
            }
            (Decision::PutIntoFeed, Some(current), _) => {
                self.put_into_feed(claimed, &current.webhook.webhook, now).await?;
            }
            (Decision::PassToSlowLane, _, _) => {
                self.deliveries.release(claimed).await?;
                self.queue.announce(Lane::Slow, turn.message.clone(), now, now).await;
            }
            (Decision::Probe, Some(webhook), Some(event)) => {
                return self.probe(turn, Ready { webhook, event, health }, now).await;
            }
            (sending @ (Decision::Send | Decision::SendInTurn), Some(webhook), Some(event)) => {
                if sending == Decision::Send || self.reaches_its_slot(claimed, &webhook.webhook.webhook).await? {
                    return self.send(turn, Ready { webhook, event, health }).await;
                }
            }
            // The delivery is final, or the decision was based on values that were not read.
            (_, _, _) => self.deliveries.release(claimed).await?,
        }
        Ok(None)
    }

    /// Sends the delivery. The attempt is a span of its event's trace.
    pub(super) async fn send(
        &self,
        turn: Turn<'_>,
        Ready { webhook, event, health }: Ready,
    ) -> Result<Option<RecordedAttempt>, DispatchError> {
        let trace = event.item.trace().next_span(&*self.random);
        let span = tracing::info_span!("attempt", trace_id = %trace.trace_id(), span_id = %trace.span_id());
        let outcome = self.attempt(turn, webhook, &event, &trace).instrument(span).await?;
        Ok(outcome.map(|outcome| turn.recorded(outcome, health)))
    }

    /// Cancels a claimed delivery. Wakes the next delivery about the same subject unless the webhook was removed.
    pub(super) async fn cancel(
        &self,
        claimed: &Claimed,
        reason: CancelReason,
        webhook: Option<&Webhook>,
        now: Time,
    ) -> Result<(), TableError> {
        self.deliveries.end_claim(claimed, Transition::Cancel(reason), now).await?;
        tracing::info!(deliveryId = %claimed.delivery().id, reason = reason.as_str(), "cancelled");
        if let Some(webhook) = webhook {
            self.wake_next(Ended::cancelled(claimed.head()), webhook, now).await;
        }
        Ok(())
    }

    /// Ends a claim and makes the delivery wait until this time. If the end of the wait is known, queues a message for
    /// that time.
    pub(super) async fn wait(
        &self,
        claimed: &Claimed,
        wait: Wait,
        (until, webhook): (Time, Option<&Webhook>),
        now: Time,
    ) -> Result<(), TableError> {
        let message = wait.is_announced().then(|| claimed.message(claimed.attempt()).waiting());
        let put_off = Transition::PutOff { wait: wait.clone(), until };
        self.deliveries.end_claim(claimed, put_off, now).await?;
        let id = &claimed.delivery().id;
        match wait {
            Wait::Content => tracing::warn!(
                deliveryId = %id,
                %until,
                "postponed: its content cannot be read. The dispatcher will read it again; if an error names the \
                 cause, fix it"
            ),
            // One log line for each delivery waiting for a rate limit would be too many.
            Wait::Slot(_) => tracing::debug!(deliveryId = %id, %until, "postponed: its webhook has a rate limit"),
            Wait::Pause => tracing::debug!(deliveryId = %id, %until, "postponed: the owner paused its webhook"),
            Wait::Breaker => tracing::info!(deliveryId = %id, %until, "postponed: its webhook's breaker is open"),
            Wait::Schedule | Wait::Before(_) | Wait::Reader => tracing::debug!(deliveryId = %id, %until, "postponed"),
        }
        if let Some(message) = message {
            let lane = Lane::of(webhook.is_some_and(|webhook| webhook.is_slow(until)));
            self.queue.announce(lane, message, until, now).await;
        }
        Ok(())
    }
}
