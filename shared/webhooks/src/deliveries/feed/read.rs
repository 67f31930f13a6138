//! Reads a feed: the oldest deliveries that no reader holds.

use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::Instant;

use crate::{
    deliveries::{
        error::DeliveryError,
        feed::{
            DEFAULT_LIMIT, Feeds, MAX_AT_ONCE, PARALLEL, VISIBILITIES,
            batch::Batch,
            find::{Free, Passed, without_failed},
            give::{FeedPage, Hold, LeaseEnd, Signing},
            integer,
            receipt::Receipt,
        },
        state::head::Head,
    },
    events::store::StoredEvent,
    subscriptions::WebhookError,
};
use auth::AuthorizedEntity;
use base::{WebhookId, pause, random};
use problem::{JsonBody, Problem};
use storage::{Allowance, IdempotentRequest, KeyRings};

const MAX_WAIT: u64 = 10;
const DEFAULT_VISIBILITY: u64 = 60;
/// The pause between two looks at a feed that has no delivery for the reader. A look at an empty feed costs half a read
/// unit; waiting or held deliveries add half a unit each, up to ten units (`find::Passed`).
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum age of the webhook's values when its deliveries are handed out: the owner may have removed or disabled it
/// since.
const MAX_READING_AGE: Duration = Duration::from_millis(250);

/// A request for deliveries of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedRequest {
    limit: usize,
    wait: Duration,
    visibility: Duration,
}

/// The client that reads a feed.
pub trait Reader: Sync {
    /// Whether the client may still be waiting for the response. A delivery given to a disconnected client returns to
    /// the feed only after the visibility timeout.
    fn may_wait(&self) -> impl Future<Output = bool> + Send;
}

/// A reader whose client is unknown.
impl Reader for () {
    async fn may_wait(&self) -> bool {
        true
    }
}

impl FeedRequest {
    /// Reads a request's body. An empty body means the defaults.
    ///
    /// # Errors
    /// 400 for unknown members, and for values out of range.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
        let mut body = JsonBody::read(body)?;
        let limit = integer(&mut body, "limit", 1..=MAX_AT_ONCE as u64, "a number from 1 to 100");
        let wait = integer(&mut body, "wait", 0..=MAX_WAIT, "a number of seconds from 0 to 10");
        let visibility = integer(&mut body, "visibility", VISIBILITIES, "a number of seconds from 10 to 3600");
        body.finish()?;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        Ok(Self {
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            wait: Duration::from_secs(wait.unwrap_or(0)),
            visibility: Duration::from_secs(visibility.unwrap_or(DEFAULT_VISIBILITY)),
        })
    }
}

impl Feeds {
    /// The oldest deliveries of the feed that no reader holds. While the feed is empty, it is read again until the
    /// request's wait is over or the reader disconnects, unless too many of the entity's requests are waiting.
    /// Repeating a request with an idempotency key returns the first request's deliveries, while their leases last.
    ///
    /// # Errors
    /// [`IdempotencyError::Conflict`](storage::IdempotencyError) if the key was used before with a different body.
    pub async fn read(
        &self,
        rings: &KeyRings,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        request: FeedRequest,
        once: Option<&IdempotentRequest>,
        reader: &impl Reader,
    ) -> Result<FeedPage, DeliveryError> {
        let began = Instant::now();
        let end = began + request.wait;
        self.limits.count(Allowance::FeedReads, entity, self.clock.now()).await?;
        let mut signing = self.signing(rings, entity, webhook).await?;
        self.webhooks.note_read(entity, &signing.webhook.webhook, self.clock.now()).await?;
        if let Some(batch) = Batch::of_earlier(self, once, self.clock.now()).await? {
            return Ok(self.give_again(entity, &signing, batch, began).await?);
        }
        let mut passed = Passed::default();
        let mut waits = false;
        loop {
            let found = self.readable(webhook, request.limit, &mut passed).await?;
            let Free { free, unreadable } = self.free(entity, &signing.webhook.webhook, found, request.limit).await?;
            // Checked just before the deliveries are handed out: a reader that disconnects later holds them for the
            // visibility timeout.
            if !reader.may_wait().await {
                return Ok(FeedPage::default());
            }
            if !free.is_empty() {
                // The steps before this may have taken seconds.
                if signing.read.elapsed() > MAX_READING_AGE {
                    signing = self.signing(rings, entity, webhook).await?;
                }
                let page = self.give_all(entity, &signing, free, (request.visibility, once), began).await?;
                // The key now has a batch, even if other readers were faster.
                if !page.items.is_empty() || once.is_some() {
                    return Ok(page);
                }
            }
            if !unreadable.is_empty() {
                // There may be readable deliveries behind them.
                passed.for_good(unreadable);
                continue;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(FeedPage::default());
            }
            if !waits {
                self.limits.count(Allowance::FeedWaits, entity, self.clock.now()).await?;
                waits = true;
            }
            pause(LOOK_INTERVAL.min(left)).await;
        }
    }

    /// Hands these deliveries to the reader for this visibility timeout. With an idempotency key, their batch is stored
    /// first. If a concurrent request with the same key was faster, its deliveries are handed out again.
    async fn give_all(
        &self,
        entity: &AuthorizedEntity,
        signing: &Signing,
        free: Vec<(Head, StoredEvent)>,
        (visibility, once): (Duration, Option<&IdempotentRequest>),
        began: Instant,
    ) -> Result<FeedPage, DeliveryError> {
        let free: Vec<_> = free.into_iter().map(|(head, event)| (self.receipt(&head), head, event)).collect();
        let mut batch_end = None;
        if let Some(once) = once {
            let now = self.clock.now();
            let end = now + visibility;
            let batch = Batch::new(free.iter().map(|(receipt, ..)| receipt), end);
            if let Some(first) = batch.claim(self, once, now).await? {
                return Ok(self.give_again(entity, signing, first, began).await?);
            }
            batch_end = Some(end);
        }
        let given = free.into_iter().map(|(receipt, head, event)| {
            let end = batch_end.map_or(LeaseEnd::After(visibility), LeaseEnd::At);
            self.give(signing, head, event, Hold { lease: receipt.lease, end }, began)
        });
        let items = without_failed(stream::iter(given).buffered(PARALLEL).collect().await)?;
        Ok(FeedPage { items, is_repeated: false })
    }

    /// The webhook, if it can be read.
    async fn signing(
        &self,
        rings: &KeyRings,
        entity: &AuthorizedEntity,
        id: &WebhookId,
    ) -> Result<Signing, DeliveryError> {
        let read = Instant::now();
        let webhook = self.webhooks.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
        if !webhook.webhook.is_pulled() {
            return Err(WebhookError::NotPulled.into());
        }
        if !webhook.webhook.enabled {
            return Err(WebhookError::Disabled.into());
        }
        let secrets = webhook.live_secrets(rings, self.clock.now()).await?;
        Ok(Signing { webhook, secrets, read })
    }

    /// The receipt for a reader that is about to receive this delivery.
    fn receipt(&self, head: &Head) -> Receipt {
        Receipt { delivery: head.delivery.id.clone(), attempt: head.next_attempt(), lease: random::uuid(&*self.random) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<FeedRequest, Vec<String>> {
        FeedRequest::read(body.as_bytes()).map_err(|problem| crate::testing::refused(&problem))
    }

    #[test]
    fn a_request_has_defaults_and_bounds() {
        let seconds = Duration::from_secs;
        let request = FeedRequest { limit: 10, wait: seconds(0), visibility: seconds(60) };
        for empty in ["", " ", "{}"] {
            assert_eq!(read(empty), Ok(request));
        }
        let largest = FeedRequest { limit: 100, wait: seconds(10), visibility: seconds(3_600) };
        assert_eq!(read(r#"{"limit":100,"wait":10.0,"visibility":3600}"#), Ok(largest));
        for (name, bad) in [
            ("limit", "0"),
            ("limit", "101"),
            ("limit", "null"),
            ("wait", "11"),
            ("wait", "-1"),
            ("wait", "1.5"),
            ("visibility", "9"),
            ("visibility", "3601"),
            ("visibility", "\"60\""),
            ("more", "1"),
        ] {
            assert_eq!(read(&format!("{{\"{name}\":{bad}}}")), Err(vec![name.to_owned()]), "{name}={bad}");
        }
    }
}
