//! Gives a delivery to a reader: its lease, its receipt, and the signed body.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;
use tokio::time::Instant;

use crate::{
    deliveries::{
        dispatch::request::signed_headers,
        feed::{Feeds, receipt::Receipt},
        state::head::Head,
    },
    events::store::StoredEvent,
    subscriptions::{
        endpoint::{masked::Headers, secret::SigningSecret},
        webhook::store::SigningWebhook,
    },
};
use base::{DeliveryId, Time};
use storage::TableError;

/// How long a request may hand out deliveries. Each takes at most `CLAIM_LIMIT`, and the gate ends the request after
/// 20 s: a reader that gets no response must not hold deliveries.
const HANDS_OUT_FOR: Duration = Duration::from_secs(13);

/// A delivery as its reader receives it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedDelivery {
    delivery_identifier: DeliveryId,
    attempt_number: u32,
    /// Proves that the reader holds the delivery.
    receipt: String,
    /// When the feed offers it again, unless the reader answers first.
    visible_from: Time,
    headers: BTreeMap<String, String>,
    body: String,
}

/// A response's deliveries.
#[derive(Debug, Default, Serialize)]
pub struct FeedPage {
    pub(super) items: Vec<FeedDelivery>,
    /// Whether an earlier request with the idempotency key received these deliveries.
    #[serde(skip)]
    pub is_repeated: bool,
}

/// How long a reader holds a delivery.
pub(super) struct Hold {
    pub(super) lease: String,
    pub(super) end: LeaseEnd,
}

/// The end of a reader's lease.
pub(super) enum LeaseEnd {
    /// This long after the delivery was handed out.
    After(Duration),
    /// The end of its batch.
    At(Time),
}

/// A webhook with its signing secrets, and when it was read.
pub(super) struct Signing {
    pub(super) webhook: SigningWebhook,
    pub(super) secrets: Vec<SigningSecret>,
    pub(super) read: Instant,
}

impl Feeds {
    /// Gives a delivery to the reader whose request began at this time, even if the reader already has it. Returns
    /// `None` if another reader has it.
    pub(super) async fn give(
        &self,
        signing: &Signing,
        head: Head,
        event: StoredEvent,
        Hold { lease, end }: Hold,
        began: Instant,
    ) -> Result<Option<FeedDelivery>, TableError> {
        if began.elapsed() > HANDS_OUT_FOR {
            return Err(TableError::late());
        }
        let now = self.clock.now();
        if !head.is_kept(now) {
            return Ok(None);
        }
        let until = match end {
            LeaseEnd::After(visibility) => now + visibility,
            LeaseEnd::At(end) => end,
        };
        let Some(head) = self.deliveries.hand_out(&head, &lease, until, now).await? else { return Ok(None) };
        let delivery = head.delivery.id.clone();
        let trace = event.item.trace().next_span(&*self.random);
        let body = event.payload(signing.webhook.webhook.payload).into_owned();
        let headers = signed_headers(&delivery, &signing.secrets, now, &body, &trace, &Headers::new());
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let attempt = head.next_attempt();
        Ok(Some(FeedDelivery {
            receipt: Receipt { delivery: delivery.clone(), attempt, lease }.to_string(),
            delivery_identifier: delivery,
            attempt_number: attempt,
            // Later, if the reader extended its lease.
            visible_from: head.claimable_at().unwrap_or(until),
            headers: headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
            body,
        }))
    }
}
