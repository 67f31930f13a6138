//! The batch of a read with an idempotency key: repeating the read returns the same deliveries while their leases last.
//!
//! The batch is stored, with a receipt for each delivery, before its deliveries are handed out. A repeated read hands
//! out all of them again, even those that the first request did not reach, except for answered ones. The record ends
//! with the leases, so a read that is repeated later gets a new batch.

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::deliveries::{
    error::DeliveryError,
    feed::{
        Feeds, PARALLEL,
        find::without_failed,
        give::{FeedDelivery, FeedPage, Hold, LeaseEnd, Signing},
        receipt::Receipt,
    },
};
use auth::AuthorizedEntity;
use base::Time;
use storage::{IdempotencyError, IdempotentRequest, TableError};

/// The batch of a read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Batch {
    receipts: Vec<String>,
    visible_from: Time,
}

impl Batch {
    /// A batch with these receipts that ends at this time.
    pub(super) fn new<'a>(receipts: impl IntoIterator<Item = &'a Receipt>, visible_from: Time) -> Self {
        Self { receipts: receipts.into_iter().map(Receipt::to_string).collect(), visible_from }
    }

    /// Stores the batch under the idempotency key of a request. If a concurrent request with the same key came first,
    /// returns its batch.
    pub(super) async fn claim(
        self,
        feeds: &Feeds,
        once: &IdempotentRequest,
        now: Time,
    ) -> Result<Option<Self>, DeliveryError> {
        let own = self.receipts.clone();
        let end = self.visible_from;
        let batch = once.claim_batch(&feeds.table, self, end, now).await?.ok_or(IdempotencyError::Conflict)?;
        Ok((batch.receipts != own).then_some(batch))
    }

    /// The batch of an earlier request with this key, while its leases last.
    pub(super) async fn of_earlier(
        feeds: &Feeds,
        once: Option<&IdempotentRequest>,
        now: Time,
    ) -> Result<Option<Self>, IdempotencyError> {
        let Some(once) = once else { return Ok(None) };
        once.batch(&feeds.table, now).await
    }
}

impl Feeds {
    /// Hands a reader the deliveries of its batch again.
    pub(super) async fn give_again(
        &self,
        entity: &AuthorizedEntity,
        signing: &Signing,
        Batch { receipts, visible_from }: Batch,
        began: Instant,
    ) -> Result<FeedPage, TableError> {
        let receipts: Vec<_> = receipts.iter().filter_map(|text| Receipt::parse(text)).collect();
        let given = receipts.into_iter().map(|receipt| async move {
            let Some(head) = self.deliveries.head(&receipt.delivery).await? else { return Ok(None) };
            // Otherwise the delivery was answered, or another reader has it.
            if head.next_attempt() != receipt.attempt {
                return Ok(None);
            }
            let event = self.deliveries.events.find(&head.event()).await?;
            let event = event.filter(|event| Self::is_readable(entity, &head, event));
            let Some(event) = event else { return Ok(None) };
            self.give(signing, head, event, Hold { lease: receipt.lease, end: LeaseEnd::At(visible_from) }, began).await
        });
        let items: Vec<FeedDelivery> = without_failed(stream::iter(given).buffered(PARALLEL).collect().await)?;
        Ok(FeedPage { items, is_repeated: true })
    }
}
