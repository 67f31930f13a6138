//! An open breaker's probe: one attempt that shows whether the endpoint is responding again.

use crate::{
    deliveries::{
        dispatch::{
            counting::RecordedAttempt,
            dispatcher::{DispatchError, Dispatcher},
            turn::{Ready, Turn},
        },
        state::Wait,
    },
    subscriptions::health::breaker::{HealthItem, PROBE_LEASE},
};
use base::{Time, logging};

impl Dispatcher {
    /// Makes the attempt as the probe, unless another delivery is already the probe.
    pub(super) async fn probe(
        &self,
        turn: Turn<'_>,
        ready: Ready,
        now: Time,
    ) -> Result<Option<RecordedAttempt>, DispatchError> {
        let Some(health) = &ready.health else { return self.send(turn, ready).await };
        let webhook = &ready.webhook.webhook.webhook;
        let until = now + PROBE_LEASE;
        let taken = self.health_tracker.healths.take_probe(turn.entity, &webhook.id, health, until, now).await?;
        if !taken.is_done() {
            self.wait(turn.claimed, Wait::Breaker, (health.after_probe(now), Some(webhook)), now).await?;
            return Ok(None);
        }
        let health = HealthItem { probe_until: Some(until), ..health.clone() };
        let pause_ends = health.open_until;
        let Some(recorded) = self.send(turn, Ready { health: Some(health), ..ready }).await? else { return Ok(None) };
        self.end_pause(recorded, pause_ends).await;
        Ok(None)
    }

    /// Closes the breaker if the probe succeeded. The probe is counted immediately, since many deliveries may be
    /// waiting for it and should not wait for the rest of this batch.
    async fn end_pause(&self, probe: RecordedAttempt, pause_ends: Option<Time>) {
        let now = self.clock.now();
        let is_early = pause_ends.is_some_and(|end| now < end);
        if probe.outcome.completed() && is_early {
            // Counting the attempt would also close the breaker, but without the job that makes the waiting deliveries
            // due. So if the pause cannot be ended, the attempt is not counted, and the breaker stays open.
            if let Err(error) = self.pauses.close(&probe.entity, &probe.webhook, now).await {
                tracing::warn!(
                    error = %logging::chain(&error),
                    webhookId = %probe.webhook,
                    "the breaker could not be closed; it stays open until its pause ends"
                );
                return;
            }
        }
        self.count(vec![probe]).await;
    }
}
