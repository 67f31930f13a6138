//! Cancels one delivery at its owner's request. One conditional write ends an open delivery, regardless of why it is
//! waiting. An attempt that is under way cannot be stopped.

use std::time::Duration;

use crate::{
    deliveries::{
        error::DeliveryError,
        queue::{Lane, Queue},
        state::{delivery::Status, head::Head},
        store::{
            Deliveries, StoredDelivery,
            held::{Ended, Woken},
        },
        view::WholeDelivery,
    },
    subscriptions::Webhooks,
};
use auth::AuthorizedEntity;
use base::{DeliveryId, SharedClock};
use storage::table::{TableError, Written};

/// How many times a change to a delivery is tried if the delivery changes concurrently. Each concurrent change is a
/// claim, a record or another request.
const TRIES: usize = 5;

/// The longest time until the sweep finds the delivery of a reader that did not answer, or of a worker that died, and
/// the dispatcher records the attempt.
const RECORDED_WITHIN: Duration = Duration::from_secs(60);

/// Cancels single deliveries.
pub struct Cancelling {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// The webhooks. Ordered webhooks hold their next delivery.
    pub webhooks: Webhooks,
    /// Where the next delivery is announced.
    pub queue: Queue,
    /// The clock for the time of a cancellation.
    pub clock: SharedClock,
}

impl Cancelling {
    /// Cancels an open delivery and returns it. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`DeliveryError::AttemptUnderWay`] while an attempt may still be recorded, and [`DeliveryError::Final`] if it
    /// was delivered or has failed.
    pub async fn cancel(&self, entity: &AuthorizedEntity, id: &DeliveryId) -> Result<WholeDelivery, DeliveryError> {
        let cancelled = self.cancelled(entity, id).await?;
        // A repeated request continues here as well, and so completes one that died after its write.
        self.wake_next(entity, &cancelled.head).await?;
        Ok(cancelled.whole(self.clock.now()))
    }

    /// Wakes the next delivery about the subject, if this one was holding it. Uses the quick lane, since a person is
    /// waiting.
    async fn wake_next(&self, entity: &AuthorizedEntity, cancelled: &Head) -> Result<(), TableError> {
        if cancelled.delivery.subject.is_none() {
            return Ok(());
        }
        let Some(webhook) = self.webhooks.find(entity, &cancelled.delivery.webhook_identifier).await? else {
            return Ok(());
        };
        let now = self.clock.now();
        if let Some(Woken::Due(message)) =
            self.deliveries.wake_next(Ended::cancelled(cancelled), &webhook.webhook, now).await?
        {
            self.queue.announce(Lane::Quick, message, now, now).await;
        }
        Ok(())
    }

    /// The delivery, cancelled now or earlier.
    async fn cancelled(&self, entity: &AuthorizedEntity, id: &DeliveryId) -> Result<StoredDelivery, DeliveryError> {
        for _ in 0..TRIES {
            let now = self.clock.now();
            let read = self.deliveries.find(entity, id, now).await?.ok_or(DeliveryError::NotFound)?;
            if read.head.is_final() {
                return match read.head.status() {
                    Status::Cancelled => Ok(read),
                    status => Err(DeliveryError::Final(status)),
                };
            }
            if let Some(end) = read.head.under_way_until(now) {
                return Err(DeliveryError::AttemptUnderWay(end));
            }
            if read.head.has_attempt_to_record() {
                // A reader of the feed did not answer in time, or a worker died. Its attempt must be recorded first, by
                // the dispatcher.
                self.deliveries.set_due_at_lease_end(&read.head).await?;
                return Err(DeliveryError::AttemptUnderWay(now + RECORDED_WITHIN));
            }
            // The write is lost if a worker has claimed the delivery in the meantime, or another request has changed
            // it.
            if let Written::Done(head) = self.deliveries.cancel_open(&read, now).await? {
                tracing::info!(deliveryId = %id, "cancelled by its owner");
                if let Some(cancelled) = read.with_head(head) {
                    return Ok(cancelled);
                }
            }
        }
        Err(TableError::code("cancelling a delivery", "TransactionConflict").into())
    }
}
