//! Reading a feed: the oldest deliveries that no reader holds.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures::{StreamExt, stream};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    deliveries::{
        dispatch::request::signed_headers,
        error::DeliveryError,
        feed::{Feeds, MAX_AT_ONCE, PARALLEL, outcome::Outcome, receipt::Receipt},
        queries::range::KeyRange,
        store::{index_group::IndexGroup, item::HeadItem},
    },
    events::store::StoredEvent,
    subscriptions::{Webhook, WebhookError, masked::Headers, secret::SigningSecret, store::SigningWebhook},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, WebhookId, logging, pause, random};
use problem::{Problem, Query};
use storage::{Allowance, KeyRings, TableError};

const DEFAULT_LIMIT: usize = 10;
const MAX_WAIT: u64 = 10;
const DEFAULT_VISIBILITY: u64 = 60;
const VISIBILITIES: std::ops::RangeInclusive<u64> = 10..=3_600;
/// The pause between two looks at an empty feed. A look costs half a read unit.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How many deliveries of a feed are looked at: its readers can hold that many at once.
const MAX_LOOKED_AT: usize = 1_000;
/// The greatest age of the webhook when its deliveries are handed out: its owner may have removed or disabled it since.
const MAX_READING_AGE: Duration = Duration::from_millis(250);
/// The longest time for the record of an attempt that a former reader did not answer. A later reader or the dispatcher
/// records it otherwise.
const RECORD_LIMIT: Duration = Duration::from_secs(5);
/// The most bytes of the bodies in one response. A quote takes four bytes there, since the body is a text within JSON,
/// and the response another text within JSON. The largest answer of a function is 6 MB.
const MAX_BODIES: usize = 1024 * 1024;

/// A request for deliveries of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedRequest {
    limit: usize,
    wait: Duration,
    visibility: Duration,
}

/// A delivery as its reader gets it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedDelivery {
    delivery_identifier: DeliveryId,
    attempt_number: u32,
    /// Proves that the reader holds the delivery.
    receipt: String,
    /// When the feed has it again, unless the reader answers before.
    visible_from: Time,
    headers: BTreeMap<String, String>,
    body: String,
}

/// The deliveries of a response.
#[derive(Debug, Serialize)]
pub struct FeedPage {
    deliveries: Vec<FeedDelivery>,
}

impl FeedRequest {
    /// Reads the parameters of a query.
    ///
    /// # Errors
    /// 400 for unknown parameters, and for values out of range.
    pub fn read(mut query: Query<'_>) -> Result<Self, Problem> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        let limit = query.optional("limit", "a number from 1 to 100", |text| {
            let limit = usize::try_from(number(text)?).ok()?;
            (1..=MAX_AT_ONCE).contains(&limit).then_some(limit)
        });
        let wait = query
            .optional("wait", "a number of seconds from 0 to 10", |text| number(text).filter(|wait| *wait <= MAX_WAIT));
        let visibility = query.optional("visibility", "a number of seconds from 10 to 3600", |text| {
            number(text).filter(|visibility| VISIBILITIES.contains(visibility))
        });
        query.finish()?;
        Ok(Self {
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            wait: Duration::from_secs(wait.unwrap_or(0)),
            visibility: Duration::from_secs(visibility.unwrap_or(DEFAULT_VISIBILITY)),
        })
    }
}

/// The deliveries without those that failed: a reader that got the others holds them already, and must see them. The first
/// error if nothing else is left. An item that cannot be read is left out, since it stays so.
fn without_failed<T>(all: Vec<Result<Option<T>, TableError>>) -> Result<Vec<T>, TableError> {
    let (mut left, mut failed) = (Vec::new(), None);
    for one in all {
        match one {
            Ok(one) => left.extend(one),
            Err(error @ (TableError::Item { .. } | TableError::Missing(_))) => tracing::error!(
                error = %logging::chain(&error),
                "a delivery of a feed is left out, since it cannot be read"
            ),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) if left.is_empty() => Err(error),
        Some(error) => {
            tracing::warn!(
                error = %logging::chain(&error),
                "a delivery of a feed is left to the next reader, since the table did not answer"
            );
            Ok(left)
        }
        None => Ok(left),
    }
}

/// A webhook that was read at this moment, with what signs its deliveries.
struct Signing {
    webhook: SigningWebhook,
    secrets: Vec<SigningSecret>,
    read: Instant,
}

impl Feeds {
    /// The oldest deliveries of the feed that no reader holds. An empty feed is looked at again until the wait of the
    /// request is over.
    pub async fn read(
        &self,
        rings: &KeyRings,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        request: FeedRequest,
    ) -> Result<FeedPage, DeliveryError> {
        let end = Instant::now() + request.wait;
        self.limits.count(Allowance::FeedReads, entity, self.clock.now()).await?;
        let mut signing = self.signing(rings, entity, webhook).await?;
        self.webhooks.note_read(entity, &signing.webhook.webhook, self.clock.now()).await?;
        let mut held = HashMap::new();
        loop {
            let found = self.readable(webhook, request.limit, &mut held).await?;
            let free = self.free(entity, &signing.webhook.webhook, found, request).await?;
            if !free.is_empty() {
                // Last, since the steps before may have taken seconds.
                if signing.read.elapsed() > MAX_READING_AGE {
                    signing = self.signing(rings, entity, webhook).await?;
                }
                let given = free.into_iter().map(|(head, event)| self.give(&signing, head, event, request.visibility));
                let deliveries = without_failed(stream::iter(given).buffered(PARALLEL).collect().await)?;
                if !deliveries.is_empty() {
                    return Ok(FeedPage { deliveries });
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(FeedPage { deliveries: Vec::new() });
            }
            pause(LOOK_INTERVAL.min(left)).await;
        }
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

    /// The oldest deliveries that no reader holds, and more than enough if there are many. `held` remembers those that
    /// are held, so that each look at the feed does not read them again.
    async fn readable(
        &self,
        webhook: &WebhookId,
        limit: usize,
        held: &mut HashMap<DeliveryId, Time>,
    ) -> Result<Vec<HeadItem>, TableError> {
        let mut range = KeyRange::since(Time::from_millis(0));
        let (mut found, mut expired) = (Vec::new(), Vec::new());
        let mut looked_at = 0;
        while found.len() < limit && looked_at < MAX_LOOKED_AT {
            let page_size = i32::try_from(limit.max(DEFAULT_LIMIT)).unwrap_or(i32::MAX);
            let page = self.deliveries.of_group(webhook, IndexGroup::Unread, &range, page_size).await?;
            looked_at += page.looked_at;
            let now = self.clock.now();
            let ids: Vec<_> =
                page.found.into_iter().filter(|id| held.get(id).is_none_or(|until| *until <= now)).collect();
            for head in self.deliveries.heads(&ids).await? {
                let Some(head) = head.head().filter(|head| head.delivery.webhook_identifier == *webhook) else {
                    continue;
                };
                if !head.is_kept(now) {
                    expired.push(head);
                    continue;
                }
                match head.claimable_at {
                    // The dispatcher ends it.
                    _ if head.is_erased() => {}
                    Some(from) if from <= now => found.push(head),
                    Some(from) => drop(held.insert(head.delivery.id.clone(), from)),
                    // The index lags behind.
                    None => {}
                }
            }
            let Some(end) = page.end else { break };
            range = range.after(&end);
        }
        // A feed that was not read for long begins with them, and the table removes them days later.
        let now = self.clock.now();
        let aside = expired.into_iter().map(|head| async move { self.deliveries.set_aside(&head, now).await });
        let aside: Vec<_> = stream::iter(aside).buffer_unordered(PARALLEL).collect().await;
        if let Some(error) = aside.iter().find_map(|done| done.as_ref().err()) {
            tracing::warn!(
                error = %logging::chain(error),
                webhookId = %webhook,
                "expired deliveries stay in a feed; the next reader passes over them again"
            );
        }
        Ok(found)
    }

    /// The deliveries that can be given to a reader, with their events, up to the limits of the request and of a response,
    /// in their order. The attempts of former readers that did not answer in time are recorded.
    async fn free(
        &self,
        entity: &AuthorizedEntity,
        webhook: &Webhook,
        found: Vec<HeadItem>,
        request: FeedRequest,
    ) -> Result<Vec<(HeadItem, StoredEvent)>, TableError> {
        let events = stream::iter(found).map(async |head| {
            let event = self.deliveries.events.find(&head.event()).await?;
            Ok::<_, TableError>(event.map(|event| (head, event)))
        });
        let mut events = events.buffered(PARALLEL);
        let (mut chosen, mut count, mut bytes) = (Vec::new(), 0, 0);
        while let Some(event) = events.next().await {
            // Without its event it waits: a late publication opens its deliveries before it writes the event.
            let event = event.map(|found| {
                found.filter(|(head, event)| {
                    head.delivery.owner_identifier == *entity.id() && event.item.erased_date.is_none()
                })
            });
            if let Ok(Some((_, event))) = &event {
                bytes += event.body.len();
                if count == request.limit || (bytes > MAX_BODIES && count > 0) {
                    break;
                }
                count += 1;
            }
            chosen.push(event);
        }
        drop(events);
        let free = without_failed(chosen)?.into_iter().map(|(head, event)| async move {
            let head = self.without_former_reader(webhook, head).await?;
            Ok::<_, TableError>(head.map(|head| (head, event)))
        });
        without_failed(stream::iter(free).buffered(PARALLEL).collect().await)
    }

    /// Gives a delivery to a reader; `None` when another has it.
    async fn give(
        &self,
        signing: &Signing,
        head: HeadItem,
        event: StoredEvent,
        visibility: Duration,
    ) -> Result<Option<FeedDelivery>, TableError> {
        let now = self.clock.now();
        if !head.is_kept(now) {
            return Ok(None);
        }
        let lease = random::uuid(&*self.random);
        let until = now + visibility;
        let Some(head) = self.deliveries.hand_out(&head, &lease, until, now).await? else { return Ok(None) };
        let delivery = head.delivery.id.clone();
        let trace = event.item.trace().next_span(&*self.random);
        let body = event.payload(signing.webhook.webhook.payload).into_owned();
        let headers = signed_headers(&delivery, &signing.secrets, now, &body, &trace, &Headers::new());
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let attempt = head.delivery.attempt_count.saturating_add(1);
        Ok(Some(FeedDelivery {
            receipt: Receipt { delivery: delivery.clone(), attempt, lease }.to_string(),
            delivery_identifier: delivery,
            attempt_number: attempt,
            visible_from: until,
            headers: headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
            body,
        }))
    }

    /// Records the attempt of a former reader that did not answer in time. `None` when nothing is left to read, or
    /// another reader is about to get it.
    async fn without_former_reader(&self, webhook: &Webhook, head: HeadItem) -> Result<Option<HeadItem>, TableError> {
        if head.handed_out_at.is_none() {
            return Ok(Some(head));
        }
        let id = &head.delivery.id;
        let now = self.clock.now();
        let attempt = head.delivery.attempt_count.saturating_add(1);
        let until = Instant::now() + RECORD_LIMIT;
        let claim = self.deliveries.claim(id, attempt, random::uuid(&*self.random), now).await?;
        let Some(claimed) = claim.done().map(|claimed| claimed.until(until)) else { return Ok(None) };
        let outcome = Outcome::Unconfirmed { in_feed: true };
        let Some((counted, next)) = self.recorder().record(&claimed, &outcome, now).await? else { return Ok(None) };
        self.count(claimed.delivery().clone(), vec![counted]).await;
        if next.retry_at().is_none() {
            self.wake_next(claimed.delivery(), webhook, now).await;
            return Ok(None);
        }
        self.deliveries.head(id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<FeedRequest, Vec<String>> {
        FeedRequest::read(Query::new(pairs.iter().copied())).map_err(|problem| crate::testing::fields(&problem))
    }

    #[test]
    fn one_failed_delivery_keeps_no_other_from_the_reader() {
        let throttled = || Err(TableError::code("claiming an attempt", "ThrottlingException"));
        let unreadable = || Err(TableError::Missing("the body of an event"));
        assert_eq!(
            without_failed(vec![Ok(Some(1)), throttled(), unreadable(), Ok(None), Ok(Some(2))]).ok(),
            Some(vec![1, 2])
        );
        assert_eq!(without_failed::<i32>(vec![unreadable(), Ok(None)]).ok(), Some(Vec::new()));
        let error = without_failed::<i32>(vec![Ok(None), unreadable(), throttled()]).expect_err("nothing is left");
        assert!(matches!(error, TableError::Unavailable { .. }), "{error}");
    }

    #[test]
    fn a_request_has_defaults_and_bounds() {
        let seconds = Duration::from_secs;
        let request = FeedRequest { limit: 10, wait: seconds(0), visibility: seconds(60) };
        assert_eq!(read(&[]), Ok(request));
        let largest = FeedRequest { limit: 100, wait: seconds(10), visibility: seconds(3_600) };
        assert_eq!(read(&[("limit", "100"), ("wait", "10"), ("visibility", "3600")]), Ok(largest));
        for (name, bad) in [
            ("limit", "0"),
            ("limit", "101"),
            ("wait", "11"),
            ("wait", "-1"),
            ("wait", "1.5"),
            ("visibility", "9"),
            ("visibility", "3601"),
            ("visibility", "+60"),
            ("more", "1"),
        ] {
            assert_eq!(read(&[(name, bad)]), Err(vec![name.to_owned()]), "{name}={bad}");
        }
    }
}
