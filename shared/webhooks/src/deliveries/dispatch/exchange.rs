//! An attempt: one exchange with the endpoint, its record, and the announcement of the next attempt.

use std::{pin::pin, time::Duration};

use tokio::{join, time::timeout};

use crate::{
    deliveries::{
        attempt::Attempt,
        dispatch::{
            claim::Claimed,
            dispatcher::{DispatchError, Dispatcher},
            metrics::AttemptMetric,
            prefetch::CurrentWebhook,
            request::Prepared,
            schedule::Next,
        },
        queue::{Lane, message::DeliveryOwner},
    },
    events::outbox::OutboxEvent,
    subscriptions::{
        disable::Reason,
        operational::{DeliveryExhausted, is_operational},
        pace::SLOW_EXCHANGE,
        store::SigningWebhook,
        tally::AttemptOutcome,
    },
};
use auth::AuthorizedEntity;
use base::{Time, logging, random, trace::Trace};
use outbound::{AttemptError, HttpResponse};

/// The longest time for each step between exchange and record that the record does not depend on.
const STEP_LIMIT: Duration = Duration::from_secs(2);
/// The oldest reading of a webhook that a request is sent by. Its owner may have removed, disabled or moved it since.
const MAX_READING_AGE: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// Makes the claimed attempt, as this span of a trace, and records it. `None` when no attempt was recorded: the webhook
    /// was removed or disabled, too little is left of the lease, or another worker has the delivery by now.
    pub(crate) async fn attempt(
        &self,
        entity: &AuthorizedEntity,
        claimed: &Claimed,
        webhook: CurrentWebhook,
        (body, trace): (&str, &Trace),
    ) -> Result<Option<AttemptOutcome>, DispatchError> {
        let Some((webhook, prepared)) = self.prepare(entity, claimed, webhook, (body, trace)).await? else {
            return Ok(None);
        };
        let sent_to = prepared.sent_to(&webhook);
        let began = self.clock.now();
        // The end is read inside, since noting that a webhook is slow may take longer than its exchange.
        let mut exchange = pin!(async { (prepared.send(&self.outbound, entity.id()).await, self.clock.now()) });
        let ((outcome, ended), was_slow) = match timeout(SLOW_EXCHANGE, exchange.as_mut()).await {
            Ok(exchanged) => (exchanged, false),
            // Noted while the exchange is still under way, so that later deliveries of the webhook go by the slow lane, and
            // the sweep leaves this one alone.
            Err(_) => (join!(exchange, self.note_slow(entity, &webhook)).0, true),
        };
        let next = self.next(claimed, &outcome, ended);
        let next = self.next_of_present_webhook(entity, claimed, next).await;
        let delivery_url = &claimed.delivery().url;
        let attempt = Attempt::of(claimed.attempt(), began, ended, &outcome, sent_to, delivery_url);
        log(claimed, &attempt, next);
        if next == Next::Gone {
            self.disable_gone(entity, claimed, &webhook, ended).await;
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
        if !recorded.is_done() {
            let delivery = &claimed.delivery().id;
            let attempt = claimed.attempt();
            tracing::warn!(deliveryId = %delivery, attempt, "the claim was lost before the attempt was recorded");
            return Ok(None);
        }
        self.meter.attempted(AttemptMetric::of(claimed, (began, ended), next));
        if let Next::RetryAt(time) = next {
            let lane = Lane::of(was_slow || webhook.webhook.is_slow(time));
            let notice = claimed.notice(claimed.attempt().saturating_add(1)).since(webhook.webhook.last_update);
            self.queue.announce(lane, notice, time, ended).await;
        }
        Ok(Some(outcome))
    }

    /// The request of a claimed attempt, by a webhook that was read at most a second ago or is read again. `None` when the
    /// delivery was cancelled or its claim released.
    async fn prepare(
        &self,
        entity: &AuthorizedEntity,
        claimed: &Claimed,
        webhook: CurrentWebhook,
        signed: (&str, &Trace),
    ) -> Result<Option<(SigningWebhook, Prepared)>, DispatchError> {
        let services = (&self.rings, &self.outbound);
        let CurrentWebhook { mut webhook, read } = webhook;
        let mut prepared = Prepared::new(claimed, &webhook, signed, services, self.clock.now()).await?;
        if read.elapsed() > MAX_READING_AGE {
            let current = self.sources().webhook(entity, &DeliveryOwner::of(claimed.delivery())).await?;
            let Some(current) = current.filter(|current| current.webhook.webhook.enabled) else {
                self.cancel(claimed).await?;
                return Ok(None);
            };
            webhook = current.webhook;
            // Quick by now: the keys that open its secrets were read above.
            prepared = Prepared::new(claimed, &webhook, signed, services, self.clock.now()).await?;
        }
        if !claimed.may_begin() {
            tracing::warn!(deliveryId = %claimed.delivery().id, "too little is left of the lease; the sweep will find it");
            self.deliveries.release(claimed).await?;
            return Ok(None);
        }
        Ok(Some((webhook, prepared)))
    }

    /// Nothing follows an attempt whose webhook was removed meanwhile: the delivery would wait for its next attempt to find
    /// that. If the webhook cannot be read soon, that attempt finds it.
    async fn next_of_present_webhook(&self, entity: &AuthorizedEntity, claimed: &Claimed, next: Next) -> Next {
        let Next::RetryAt(_) = next else { return next };
        let webhook = self.webhooks.find(entity, &claimed.delivery().webhook_identifier);
        match timeout(STEP_LIMIT, webhook).await {
            Ok(Ok(None)) => Next::Cancelled,
            _ => next,
        }
    }

    /// Disables a webhook whose endpoint answered 410, before the attempt is recorded: after a crash behind the record, no
    /// message would come back to it. A failure is logged, and the next 410 disables the webhook.
    async fn disable_gone(&self, entity: &AuthorizedEntity, claimed: &Claimed, webhook: &SigningWebhook, now: Time) {
        let operational = is_operational(&claimed.delivery().r#type);
        let id = &webhook.webhook.id;
        let reason = Reason::Gone { endpoint: &webhook.webhook.endpoint, operational };
        match timeout(STEP_LIMIT, self.health_tracker.disabler.disable(entity, id, reason, now)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::error!(error = %logging::chain(&error), webhookId = %id, "not disabled after a 410; the next 410 disables it");
            }
            Err(_) => tracing::error!(webhookId = %id, "not disabled in time after a 410; the next 410 disables it"),
        }
    }

    /// Marks the webhook as slow. No delivery depends on it, so an error is logged, and a long wait is given up: the
    /// attempt is still to be recorded.
    async fn note_slow(&self, entity: &AuthorizedEntity, webhook: &SigningWebhook) {
        let id = &webhook.webhook.id;
        match timeout(STEP_LIMIT, self.webhooks.note_slow(entity, id, self.clock.now())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %logging::chain(&error), webhookId = %id, "not noted that it is slow");
            }
            Err(_) => tracing::warn!(webhookId = %id, "not noted in time that it is slow"),
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
    /// schedule nor moves it; a pause that the endpoint asks for is kept. No attempt comes after the end of the retention,
    /// when the table removes the delivery: the last one before it ends the delivery.
    fn next(&self, claimed: &Claimed, outcome: &Result<HttpResponse, AttemptError>, now: Time) -> Next {
        let dice = random::unit(&*self.random);
        let next = self.schedule.next(claimed.attempt_in_schedule(), outcome, now, dice);
        let next = match (claimed.resumes_at(), next) {
            (Some(resume), Next::RetryAt(_) | Next::Exhausted) => {
                let asked = outcome.as_ref().ok().and_then(|answer| answer.pause_asked_for(now)).unwrap_or_default();
                Next::RetryAt(resume.max(now + asked))
            }
            _ => next,
        };
        match next {
            Next::RetryAt(time) if time >= claimed.expires() => Next::Exhausted,
            next => next,
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
