//! Dispatching: from "this attempt is due" to an attempt in the history.
//!
//! Claim, send, record, announce the next: a crash after any of them leaves a delivery that the sweep will find, and a
//! message that comes again finds a claim or an attempt and is dropped.

use std::sync::Arc;

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use futures::future::join_all;
use http::{HeaderName, HeaderValue, Method, header};
use hyper::body::Bytes;

use super::{
    Attempt, Deliveries,
    delivery::Claimed,
    queue::{DueMessage, Queue},
    schedule::{Next, RetrySchedule},
    signature,
    store::{Claim, Recorded},
};
use crate::{
    auth::entity::AuthorizedEntity,
    clock::{SharedClock, Time},
    events::store::Events,
    http::{SERVICE_VERSION, SERVICE_VERSION_HEADER},
    logging,
    outbound::{Answer, AttemptError, Outbound, USER_AGENT},
    random::{self, SharedRandom},
    sealing::{KeyRings, SealError},
    table::TableError,
    webhooks::{Webhooks, endpoint_url::EndpointUrl, store::SigningWebhook},
};

/// Why a webhook was disabled after a 410, in the words that its owner reads.
const GONE: &str = "The endpoint answered 410 Gone.";

/// Everything that dispatching needs.
pub struct Dispatcher {
    /// What is to be delivered.
    pub deliveries: Deliveries,
    /// The bodies.
    pub events: Events,
    /// The endpoints.
    pub webhooks: Webhooks,
    /// Where the next attempt is announced.
    pub queue: Queue,
    /// What sends.
    pub outbound: Outbound,
    /// What opens the signing secrets.
    pub rings: KeyRings,
    /// When attempts are made.
    pub schedule: RetrySchedule,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

/// Why a message could not be dealt with and has to come again.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// It is not one of ours.
    #[error("a message of the queue is malformed")]
    Message(#[source] serde_json::Error),
    /// The table failed.
    #[error("the table failed a dispatch")]
    Table(#[from] TableError),
    /// A signing secret cannot be opened.
    #[error("a signing secret cannot be opened")]
    Secret(#[from] SealError),
}

impl Dispatcher {
    /// Deals with all messages of a batch at once and says which of them have to come again.
    pub async fn dispatch(self: Arc<Self>, batch: SqsEvent) -> SqsBatchResponse {
        let outcomes = join_all(batch.records.iter().map(|message| self.one(message))).await;
        let failed = batch.records.iter().zip(outcomes).filter_map(|(message, outcome)| {
            let error = outcome.err()?;
            let message_id = message.message_id.clone().unwrap_or_default();
            tracing::error!(error = %logging::chain(&error), messageId = message_id, "a message has to come again");
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = message_id;
            Some(failure)
        });
        let mut response = SqsBatchResponse::default();
        response.batch_item_failures = failed.collect();
        response
    }

    async fn one(&self, message: &SqsMessage) -> Result<(), DispatchError> {
        let body = message.body.as_deref().unwrap_or_default();
        let due: DueMessage = serde_json::from_str(body).map_err(DispatchError::Message)?;
        // Before the claim: a lease must not run out while a secret is waited for.
        self.rings.get().await?;
        let lease = random::uuid(&*self.random);
        match self.deliveries.claim(&due.delivery, due.attempt, lease, self.clock.now()).await? {
            Claim::Started(claimed) => self.attempt(&claimed).await,
            Claim::NotNow => {
                tracing::debug!(deliveryId = %due.delivery, attempt = due.attempt, "nothing to do");
                Ok(())
            }
        }
    }

    async fn attempt(&self, claimed: &Claimed) -> Result<(), DispatchError> {
        let entity = AuthorizedEntity::owning_delivery(claimed.delivery.owner_identifier.clone());
        let (webhook, body) = tokio::try_join!(
            self.webhooks.find(&entity, &claimed.delivery.webhook_identifier),
            self.events.body(&claimed.event)
        )?;
        let (Some(webhook), Some(body)) = (webhook.filter(|found| found.webhook.enabled), body) else {
            tracing::info!(deliveryId = %claimed.delivery.id, "cancelled: its webhook is gone or disabled");
            return Ok(self.deliveries.cancel(claimed, self.clock.now()).await?);
        };
        let began = self.clock.now();
        let outcome = self.send(claimed, &webhook, &body, began).await?;
        let ended = self.clock.now();
        let next = self.schedule.next(claimed.attempts_in_schedule + 1, &outcome, ended, random::unit(&*self.random));
        let attempt = Attempt::of(claimed.attempt, began, ended, &outcome);
        log(claimed, &attempt, next);
        if self.deliveries.record(claimed, attempt, next, ended).await? == Recorded::ClaimLost {
            tracing::warn!(deliveryId = %claimed.delivery.id, attempt = claimed.attempt, "the claim was lost before the attempt was recorded");
            return Ok(());
        }
        self.follow_up(&entity, claimed, &webhook, next, ended).await
    }

    /// The request, exactly as the contract describes it. An error is of the endpoint; only an unreadable secret is ours.
    async fn send(
        &self,
        claimed: &Claimed,
        webhook: &SigningWebhook,
        body: &str,
        now: Time,
    ) -> Result<Result<Answer, AttemptError>, SealError> {
        let secrets = webhook.live_secrets(&self.rings, now).await?;
        let Ok(url) = EndpointUrl::parse(&claimed.delivery.url, &self.outbound.rules) else {
            return Ok(Err(AttemptError::Blocked("the URL of the endpoint is not allowed")));
        };
        let own = [
            (header::CONTENT_TYPE, "application/json".to_owned()),
            (header::USER_AGENT, USER_AGENT.to_owned()),
            (HeaderName::from_static("service-delivery-id"), claimed.delivery.id.to_string()),
            (HeaderName::from_static(SERVICE_VERSION_HEADER), SERVICE_VERSION.to_owned()),
            (HeaderName::from_static("webhook-id"), claimed.event.to_string()),
            (HeaderName::from_static("webhook-timestamp"), now.as_seconds().to_string()),
            (HeaderName::from_static("webhook-signature"), signature::sign(&secrets, &claimed.event, now, body)),
        ];
        let own = own.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)));
        // Checked when they were set; one that cannot be a header all the same is left out, and never breaks out of its line.
        let custom = webhook.webhook.headers.iter().filter_map(|(name, value)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
        });
        let headers: Vec<_> = own.chain(custom).collect();
        Ok(self.outbound.send(Method::POST, url.url(), &headers, Bytes::copy_from_slice(body.as_bytes())).await)
    }

    /// What comes after the record. The next attempt is announced first, and found by the sweep if that fails; that a
    /// webhook is gone is said again by its endpoint's next 410, if this fails.
    async fn follow_up(
        &self,
        entity: &AuthorizedEntity,
        claimed: &Claimed,
        webhook: &SigningWebhook,
        next: Next,
        now: Time,
    ) -> Result<(), DispatchError> {
        let id = &webhook.webhook.id;
        if let Next::RetryAt(time) = next {
            let message =
                DueMessage { delivery: claimed.delivery.id.clone(), attempt: claimed.attempt.saturating_add(1) };
            if let Err(error) = self.queue.announce(entity.id(), [message], time, now).await {
                tracing::warn!(error = %logging::chain(&error), "not announced; the sweep will find it");
            }
        }
        if next == Next::Gone {
            self.webhooks.disable(entity, id, GONE, now).await?;
        }
        let succeeded = next == Next::Delivered;
        if !succeeded || webhook.webhook.failures_in_row > 0 {
            // It only colours the webhook's health.
            if let Err(error) = self.webhooks.count_attempt(entity, id, succeeded).await {
                tracing::warn!(error = %logging::chain(&error), webhookId = %id, "an attempt was not counted");
            }
        }
        Ok(())
    }
}

fn log(claimed: &Claimed, attempt: &Attempt, next: Next) {
    tracing::info!(
        deliveryId = %claimed.delivery.id,
        webhookId = %claimed.delivery.webhook_identifier,
        eventId = %claimed.event,
        attempt = attempt.attempt_number,
        httpStatus = attempt.http_status,
        error = attempt.error,
        durationMs = attempt.duration_ms,
        next = ?next,
        "attempted"
    );
}
