//! An attempt: one exchange with the endpoint, its record, and the announcement of the next attempt.

use std::{pin::pin, time::Duration};

use tokio::{join, time::timeout};

use super::{
    attempt::Attempt,
    claim::Claimed,
    dispatch::{DispatchError, Dispatcher},
    meter::Made,
    queue::Lane,
    request::Prepared,
    schedule::Next,
};
use crate::{
    events::outbox::OutboxEvent,
    subscriptions::{
        disable::Reason,
        operational::{DeliveryExhausted, is_operational},
        pace::SLOW,
        store::SigningWebhook,
        tally::AttemptOutcome,
    },
};
use auth::AuthorizedEntity;
use base::{Time, logging, random, trace::Trace};
use outbound::{AttemptError, HttpResponse};
use storage::Written;

/// The longest time for noting that a webhook is slow: a lease has much more left after the longest exchange.
const NOTING_LIMIT: Duration = Duration::from_secs(2);

impl Dispatcher {
    /// Makes the claimed attempt, as this span of a trace, and records it.
    pub(super) async fn attempt(
        &self,
        entity: &AuthorizedEntity,
        claimed: &Claimed,
        webhook: &SigningWebhook,
        (body, trace): (&str, &Trace),
    ) -> Result<AttemptOutcome, DispatchError> {
        let began = self.clock.now();
        let prepared = Prepared::new(claimed, webhook, (body, trace), (&self.rings, &self.outbound), began).await?;
        // The end is read inside, since noting that a webhook is slow may take longer than its exchange.
        let mut exchange = pin!(async { (prepared.send(&self.outbound, entity.id()).await, self.clock.now()) });
        let ((outcome, ended), was_slow) = match timeout(SLOW, exchange.as_mut()).await {
            Ok(exchanged) => (exchanged, false),
            // Noted while the exchange is still under way, so that later deliveries of the webhook go by the slow lane, and
            // the sweep leaves this one alone.
            Err(_) => (join!(exchange, self.note_slow(entity, webhook), self.claim_late(claimed)).0, true),
        };
        let next = self.next(claimed, &outcome, ended);
        let attempt = Attempt::of(claimed.attempt(), began, ended, &outcome);
        log(claimed, &attempt, next);
        if next == Next::Gone {
            // Before the attempt is recorded: after a crash behind the record, no message would come back to it.
            let operational = is_operational(&claimed.delivery().r#type);
            let reason = Reason::Gone { endpoint: &webhook.webhook.endpoint, operational };
            self.watch.disabler.disable(entity, &webhook.webhook.id, reason, ended).await?;
        }
        let outbox_event = match next {
            Next::Exhausted => self.exhausted(claimed, &attempt, ended),
            _ => None,
        };
        let along = match outbox_event {
            Some(outbox_event) => self.announcer.writes(&webhook.webhook.id, &outbox_event, ended).await?,
            None => Vec::new(),
        };
        let outcome = attempt.outcome();
        let recorded = self.deliveries.record(claimed, attempt, next, ended, along).await?;
        if recorded.is_done() {
            self.meter.attempted(Made::of(claimed, (began, ended), next));
        }
        if recorded == Written::Lost(None) {
            let (delivery, attempt) = (&claimed.delivery().id, claimed.attempt());
            tracing::warn!(deliveryId = %delivery, attempt, "the claim was lost before the attempt was recorded");
        } else if let Next::RetryAt(time) = next {
            let lane = Lane::of(was_slow || webhook.webhook.is_slow(time));
            let notice = claimed.notice(claimed.attempt().saturating_add(1)).since(webhook.webhook.last_update);
            self.queue.announce(lane, notice, time, ended).await;
        }
        Ok(outcome)
    }

    /// Marks the webhook as slow. No delivery depends on it, so an error is logged, and a long wait is given up: the
    /// attempt is still to be recorded.
    async fn note_slow(&self, entity: &AuthorizedEntity, webhook: &SigningWebhook) {
        let id = &webhook.webhook.id;
        match timeout(NOTING_LIMIT, self.webhooks.note_slow(entity, id, self.clock.now())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %logging::chain(&error), webhookId = %id, "not noted that it is slow");
            }
            Err(_) => tracing::warn!(webhookId = %id, "not noted in time that it is slow"),
        }
    }

    /// Claims an attempt that was begun without a claim. Unclaimed it is recorded all the same, unless another worker makes
    /// it as well; so an error is logged, and a long wait is given up.
    async fn claim_late(&self, claimed: &Claimed) {
        if !claimed.is_by_message() {
            return;
        }
        let delivery = &claimed.delivery().id;
        match timeout(NOTING_LIMIT, self.deliveries.claim_under_way(claimed, self.clock.now())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %logging::chain(&error), deliveryId = %delivery, "its attempt lasts unclaimed");
            }
            Err(_) => tracing::warn!(deliveryId = %delivery, "its attempt lasts, and was not claimed in time"),
        }
    }

    /// The event of a delivery that failed for good; `None` when none is published.
    fn exhausted(&self, claimed: &Claimed, attempt: &Attempt, now: Time) -> Option<OutboxEvent> {
        let delivery = claimed.delivery();
        let exhausted = DeliveryExhausted {
            delivery_identifier: &delivery.id,
            webhook_identifier: &delivery.webhook_identifier,
            event_identifier: claimed.event(),
            r#type: &delivery.r#type,
            attempt_count: attempt.attempt_number,
            last_http_status: attempt.http_status,
        };
        exhausted.outbox_event(&delivery.owner_identifier, now, &*self.random)
    }

    /// Decides what follows from the outcome. An attempt that was asked for by hand neither takes one away from the
    /// schedule nor moves it; a pause that the endpoint asks for is kept.
    fn next(&self, claimed: &Claimed, outcome: &Result<HttpResponse, AttemptError>, now: Time) -> Next {
        let dice = random::unit(&*self.random);
        let next = self.schedule.next(claimed.attempt_in_schedule(), outcome, now, dice);
        match (claimed.resumes_at(), next) {
            (Some(resume), Next::RetryAt(_) | Next::Exhausted) => {
                let asked = outcome.as_ref().ok().and_then(|answer| answer.pause_asked_for(now)).unwrap_or_default();
                Next::RetryAt(resume.max(now + asked))
            }
            _ => next,
        }
    }
}

fn log(claimed: &Claimed, attempt: &Attempt, next: Next) {
    tracing::info!(
        deliveryId = %claimed.delivery().id,
        webhookId = %claimed.delivery().webhook_identifier,
        eventId = %claimed.event(),
        eventType = claimed.delivery().r#type,
        attempt = attempt.attempt_number,
        httpStatus = attempt.http_status,
        error = attempt.error,
        durationMs = attempt.duration_ms,
        next = next.as_str(),
        nextAttemptDate = next.retry_at().map(tracing::field::display),
        "attempted"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::lease_times::{CARRIED, CLOCK_SKEW, GRACE, SETTLED};

    #[test]
    fn an_attempt_that_lasts_is_claimed_before_the_sweep_or_another_message_comes() {
        assert!(CARRIED + SLOW + NOTING_LIMIT + CLOCK_SKEW <= SETTLED && SETTLED + CLOCK_SKEW < GRACE);
    }
}
