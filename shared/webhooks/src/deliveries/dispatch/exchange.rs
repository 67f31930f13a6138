//! An attempt: one exchange with the endpoint, its record, and the announcement of the next attempt.

use std::{pin::pin, time::Duration};

use tokio::{join, time::timeout};

use crate::{
    deliveries::{
        dispatch::{
            dispatcher::{DispatchError, Dispatcher},
            metrics::AttemptMetric,
            prefetch::CurrentWebhook,
            request::Prepared,
            turn::Turn,
        },
        queue::{Lane, message::DeliveryOwner},
        state::{
            attempt::Attempt,
            decide::{Decision, decide},
            schedule::Next,
        },
        store::{claim::Claimed, held::Ended},
    },
    events::{outbox::OutboxEvent, store::StoredEvent},
    subscriptions::{
        Webhook,
        health::{disable::Reason, operational::DeliveryExhausted, pace::SLOW_EXCHANGE, tally::AttemptOutcome},
        webhook::store::SigningWebhook,
    },
};
use auth::AuthorizedEntity;
use base::{Random, Time, logging, random, stage::timed, trace::Trace};
use outbound::{AttemptError, HttpResponse};
use storage::SealError;

/// The time limit for each optional step between an exchange and its record.
const STEP_LIMIT: Duration = Duration::from_secs(2);
/// Maximum age of a webhook's values when a request is sent: the owner may have removed, disabled or changed the
/// webhook since. The limit is short because an eventually consistent read may return values that are already a second
/// old.
const MAX_READING_AGE: Duration = Duration::from_millis(250);

impl Dispatcher {
    /// Makes the claimed attempt as this span of a trace and records it. Returns `None` if no attempt was recorded: the
    /// webhook was removed, disabled or turned into a pull webhook, too little of the lease is left, or another worker
    /// has claimed the delivery.
    pub(super) async fn attempt(
        &self,
        turn: Turn<'_>,
        webhook: CurrentWebhook,
        event: &StoredEvent,
        trace: &Trace,
    ) -> Result<Option<AttemptOutcome>, DispatchError> {
        let Turn { entity, claimed, .. } = turn;
        let preparing = self.prepare(turn, webhook, event, trace);
        let Some((webhook, prepared)) = timed("request signed", preparing).await? else {
            return Ok(None);
        };
        let sent_to = prepared.sent_to(&webhook);
        let began = prepared.signed;
        let exchange = self.exchange(entity, &webhook, prepared);
        let (outcome, ended, was_slow) = timed("exchange", exchange).await;
        let next = self.next(claimed, &webhook.webhook, &outcome, ended);
        let delivery_url = &claimed.delivery().url;
        let attempt = Attempt::of(claimed.attempt(), began, ended, &outcome, sent_to, delivery_url);
        log(claimed, &attempt, next);
        if next == Next::Gone {
            self.disable_gone(entity, claimed, &webhook, ended).await;
        }
        let along = match exhausted(claimed, &attempt, next, ended, &*self.random) {
            Some(event) => self.announcer.writes(&webhook.webhook.id, &event, ended).await,
            None => Ok(Vec::new()),
        };
        let along = along.map_err(DispatchError::Unrecorded)?;
        let outcome = attempt.outcome();
        let recorded = timed("record", self.deliveries.record(claimed, &attempt, next, ended, along)).await;
        let Some(next) = recorded.map_err(DispatchError::Unrecorded)? else {
            let delivery = &claimed.delivery().id;
            let attempt = claimed.attempt();
            tracing::warn!(deliveryId = %delivery, attempt, "the claim was lost before the attempt was recorded");
            return Ok(None);
        };
        self.meter.attempted(AttemptMetric::of(claimed, began, ended, next));
        timed("announcement", self.announce_next(claimed, &webhook.webhook, (next, was_slow), ended)).await;
        Ok(Some(outcome))
    }

    /// Announces the next attempt, or wakes the next delivery about the subject.
    async fn announce_next(&self, claimed: &Claimed, webhook: &Webhook, (next, was_slow): (Next, bool), now: Time) {
        if let Next::RetryAt(time) = next {
            let lane = Lane::of(was_slow || webhook.is_slow(time));
            let message = claimed.message(claimed.attempt().saturating_add(1)).since(webhook.last_update);
            self.queue.announce(lane, message, time, now).await;
        } else {
            self.wake_next(Ended::attempted(claimed.head()), webhook, now).await;
        }
    }

    /// Sends the request. Returns the outcome, the time at which it was known, and whether the exchange was slow. A
    /// webhook is marked as slow while the exchange is still running, so that its other attempts use the slow lane from
    /// then on.
    async fn exchange(
        &self,
        entity: &AuthorizedEntity,
        webhook: &SigningWebhook,
        prepared: Prepared,
    ) -> (Result<HttpResponse, AttemptError>, Time, bool) {
        // The end is measured here, since setting the mark may take longer than the exchange.
        let mut exchange = pin!(async { (prepared.send(&self.outbound, entity.id()).await, self.clock.now()) });
        match timeout(SLOW_EXCHANGE, exchange.as_mut()).await {
            // A webhook's timeout may be shorter than `SLOW_EXCHANGE`, so a timeout always counts as slow.
            Ok((outcome @ Err(AttemptError::Timeout(_)), ended)) => {
                self.note_slow(entity, webhook).await;
                (outcome, ended, true)
            }
            Ok((outcome, ended)) => (outcome, ended, false),
            Err(_) => {
                let ((outcome, ended), ()) = join!(exchange, self.note_slow(entity, webhook));
                (outcome, ended, true)
            }
        }
    }

    /// Prepares the request of a claimed attempt. Reads the webhook again if the values are old. Returns `None` if the
    /// delivery was cancelled, put into a feed or postponed, or if its claim was released.
    async fn prepare(
        &self,
        turn: Turn<'_>,
        CurrentWebhook { mut webhook, read }: CurrentWebhook,
        event: &StoredEvent,
        trace: &Trace,
    ) -> Result<Option<(SigningWebhook, Prepared)>, DispatchError> {
        let claimed = turn.claimed;
        let mut prepared = self.request(claimed, &webhook, event, trace).await?;
        if read.elapsed() > MAX_READING_AGE {
            let Some(current) = self.current_webhook(turn, event).await? else { return Ok(None) };
            webhook = current;
            // This is fast: the keys that open the secrets were read above.
            prepared = self.request(claimed, &webhook, event, trace).await?;
        }
        if !claimed.may_begin() {
            tracing::warn!(
                deliveryId = %claimed.delivery().id,
                "the lease ends too soon for an exchange; the claim is released, and the sweep will announce the \
                 delivery"
            );
            self.deliveries.release(claimed).await?;
            return Ok(None);
        }
        Ok(Some((webhook, prepared)))
    }

    /// Reads the webhook again. Returns `None` if the delivery may no longer be sent to the webhook, in which case it
    /// was cancelled, put into a feed or postponed.
    async fn current_webhook(
        &self,
        turn: Turn<'_>,
        event: &StoredEvent,
    ) -> Result<Option<SigningWebhook>, DispatchError> {
        let claimed = turn.claimed;
        let current = self.sources().webhook(turn.entity, &DeliveryOwner::of(claimed.delivery())).await?;
        let now = self.clock.now();
        let webhook = current.as_ref().map(|current| &current.webhook.webhook);
        // The order, breaker and rate limit were checked earlier; only the webhook may have changed.
        match (decide(&turn.facts(current.as_ref(), Some(event), None, now), None), webhook) {
            (Decision::Cancel(reason), webhook) => self.cancel(claimed, reason, webhook, now).await?,
            (Decision::PutIntoFeed, Some(webhook)) => self.put_into_feed(claimed, webhook, now).await?,
            (Decision::Wait(wait, until), webhook) => self.wait(claimed, wait, (until, webhook), now).await?,
            _ => return Ok(current.map(|current| current.webhook)),
        }
        Ok(None)
    }

    async fn request(
        &self,
        claimed: &Claimed,
        webhook: &SigningWebhook,
        event: &StoredEvent,
        trace: &Trace,
    ) -> Result<Prepared, SealError> {
        Prepared::new(claimed, webhook, event, trace, &self.rings, &self.outbound, &self.clock).await
    }

    /// Disables a webhook whose endpoint responded with 410. This happens before the attempt is recorded: after a crash
    /// in between, no message would lead back to the webhook. If this fails, the error is logged, and the next 410
    /// disables the webhook.
    async fn disable_gone(&self, entity: &AuthorizedEntity, claimed: &Claimed, webhook: &SigningWebhook, now: Time) {
        let operational = claimed.delivery().is_operational();
        let id = &webhook.webhook.id;
        let reason = Reason::Gone { endpoint: &webhook.webhook.endpoint, operational };
        match timeout(STEP_LIMIT, self.health_tracker.disabler.disable(entity, id, reason, now)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::error!(
                    error = %logging::chain(&error),
                    webhookId = %id,
                    "the webhook was not disabled after a 410; the next 410 will disable it"
                );
            }
            Err(_) => {
                tracing::error!(
                    webhookId = %id,
                    "disabling the webhook after a 410 took too long; the next 410 will disable it"
                );
            }
        }
    }

    /// Marks the webhook as slow. Errors are logged, since no delivery depends on the mark. The time is limited because
    /// the attempt is not recorded yet.
    async fn note_slow(&self, entity: &AuthorizedEntity, webhook: &SigningWebhook) {
        let id = &webhook.webhook.id;
        match timeout(STEP_LIMIT, self.webhooks.note_slow(entity, id, self.clock.now())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(
                    error = %logging::chain(&error),
                    webhookId = %id,
                    "the webhook was not marked as slow; its next slow exchange will mark it"
                );
            }
            Err(_) => tracing::warn!(
                webhookId = %id,
                "marking the webhook as slow took too long; its next slow exchange will mark it"
            ),
        }
    }

    /// Decides on the next step after an outcome, using the webhook's `retries` setting at the time of the request.
    fn next(
        &self,
        claimed: &Claimed,
        webhook: &Webhook,
        outcome: &Result<HttpResponse, AttemptError>,
        now: Time,
    ) -> Next {
        let dice = random::unit(&*self.random);
        let schedule = self.schedule.of_webhook(webhook.retries);
        let next = schedule.next(claimed.attempt_in_schedule(), outcome, now, dice);
        let asked = outcome.as_ref().ok().and_then(|answer| answer.pause_asked_for(now)).unwrap_or_default();
        claimed.limited(next, asked, now)
    }
}

/// The event about a delivery whose last attempt failed; `None` if there is none to publish. A test needs no event,
/// since the person who requested it is watching the delivery.
pub(crate) fn exhausted(
    claimed: &Claimed,
    attempt: &Attempt,
    next: Next,
    now: Time,
    random: &dyn Random,
) -> Option<OutboxEvent> {
    let delivery = claimed.delivery();
    if next != Next::Exhausted || delivery.test {
        return None;
    }
    let event = claimed.event();
    let exhausted = DeliveryExhausted {
        delivery_identifier: &delivery.id,
        webhook_identifier: &delivery.webhook_identifier,
        event_identifier: &event,
        r#type: &delivery.r#type,
        attempt_count: attempt.attempt_number,
        last_http_status: attempt.http_status,
    };
    exhausted.outbox_event(&delivery.owner_identifier, now, random)
}

pub(crate) fn log(claimed: &Claimed, attempt: &Attempt, next: Next) {
    tracing::info!(
        deliveryId = %claimed.delivery().id,
        webhookId = %claimed.delivery().webhook_identifier,
        eventId = %claimed.event(),
        eventType = claimed.delivery().r#type,
        attempt = attempt.attempt_number,
        httpStatus = attempt.http_status,
        error = attempt.error_without_reason(),
        durationMs = attempt.duration_ms,
        next = next.as_str(),
        nextAttemptDate = next.retry_at().map(tracing::field::display),
        "attempted"
    );
}
