//! Attempts whose outcome the dispatcher does not know: a reader did not confirm the delivery in time, or the worker that
//! sent the request died. The next claim records them.

use crate::{
    deliveries::{
        dispatch::{
            counting::RecordedAttempt,
            dispatcher::{DispatchError, Dispatcher},
            turn::Turn,
        },
        outcome::{Outcome, OutcomeRecorder},
        queue::Lane,
        state::schedule::Next,
        store::held::Ended,
    },
    subscriptions::{Webhook, health::breaker::HealthItem},
};
use base::Time;

impl Dispatcher {
    /// Records the attempt by a reader that did not confirm the delivery in time, or of a worker that died, and
    /// announces the next attempt.
    pub(super) async fn record_unknown_outcome(
        &self,
        turn: Turn<'_>,
        webhook: Option<&Webhook>,
        health: Option<HealthItem>,
        now: Time,
    ) -> Result<Option<RecordedAttempt>, DispatchError> {
        let claimed = turn.claimed;
        let recorder = OutcomeRecorder {
            deliveries: &self.deliveries,
            announcer: &self.announcer,
            schedule: self.schedule.of_webhook(webhook.map(|webhook| webhook.retries).unwrap_or_default()),
            random: &*self.random,
        };
        let webhook_ended = webhook.is_none_or(|webhook| !webhook.enabled);
        let unknown = Outcome::Unknown { in_feed: false, webhook_ended };
        let Some((outcome, next)) = recorder.record(claimed, &unknown, now).await? else { return Ok(None) };
        if let Next::RetryAt(time) = next {
            let message = claimed.message(claimed.attempt().saturating_add(1));
            self.queue.announce(Lane::Quick, message, time, now).await;
        } else if let Some(webhook) = webhook {
            // Its worker may have died before it checked the deliveries before this one, so the next one checks for
            // itself.
            self.wake_next(Ended::cancelled(claimed.head()), webhook, now).await;
        }
        Ok(Some(turn.recorded(outcome, health)))
    }
}
