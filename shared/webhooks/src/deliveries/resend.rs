//! Sending a delivery again because its owner asks for it.

use super::{
    delivery::{MAX_ATTEMPTS, WholeDelivery},
    error::DeliveryError,
    item::HeadItem,
    notice::Notice,
    queue::{Lane, Queue},
    store::Deliveries,
};
use crate::subscriptions::{WebhookError, Webhooks};
use auth::AuthorizedEntity;
use base::{DeliveryId, SharedClock, Time};
use storage::Written;

/// Sends deliveries again.
pub struct Resending {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// Their webhooks.
    pub webhooks: Webhooks,
    /// Where the dispatcher listens.
    pub queue: Queue,
    /// Dates the next attempt.
    pub clock: SharedClock,
}

/// How a delivery is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is final: it gets a fresh schedule.
    Reopen,
    /// Its next attempt is due later: it gets one more now.
    AttemptNow,
    /// It is due, and perhaps its message was lost.
    Announce,
    /// A worker is making the attempt.
    Nothing,
}

impl Step {
    fn of(head: &HeadItem, now: Time) -> Self {
        match head.claimable_at {
            None => Self::Reopen,
            Some(time) if time <= now => Self::Announce,
            Some(_) if head.lease.is_some() => Self::Nothing,
            Some(_) => Self::AttemptNow,
        }
    }
}

impl Resending {
    /// Has a delivery attempted again, now, and returns it as it is then. A change that another request made at the
    /// same moment counts as this one's.
    pub async fn resend(&self, entity: &AuthorizedEntity, id: &DeliveryId) -> Result<WholeDelivery, DeliveryError> {
        let stored = self.deliveries.find(entity, id, self.clock.now()).await?.ok_or(DeliveryError::NotFound)?;
        let head = &stored.head;
        let webhook = self.webhooks.sendable(entity, &head.delivery.webhook_identifier).await;
        webhook.map_err(|error| match error {
            WebhookError::NotFound => DeliveryError::WebhookRemoved,
            error => error.into(),
        })?;
        if head.delivery.attempt_count >= MAX_ATTEMPTS {
            return Err(DeliveryError::TooManyAttempts);
        }
        let now = self.clock.now();
        let step = Step::of(head, now);
        let changed = match step {
            Step::Reopen => Some(self.deliveries.reopen(&head.delivery, now).await?),
            Step::AttemptNow => Some(self.deliveries.hasten(head, now).await?),
            Step::Announce | Step::Nothing => None,
        };
        let done = changed.as_ref().is_some_and(Written::is_done);
        if done || step == Step::Announce {
            let notice = Notice::of(&head.delivery, head.delivery.attempt_count.saturating_add(1));
            // In any lane: a dispatcher moves it to the lane of its webhook.
            self.queue.announce_in_time(Lane::Quick, notice, now, now).await;
        }
        tracing::info!(deliveryId = %id, step = ?step, done, "asked for again");
        let left = match changed {
            None => Some(stored),
            Some(Written::Done(head) | Written::Lost(Some(head))) => stored.with_head(head),
            Some(Written::Lost(None)) => None,
        };
        match left {
            Some(left) => Ok(left.whole(now)),
            // An attempt was recorded since the delivery was read, or the delivery is gone.
            None => self.deliveries.with_attempts(entity, id, self.clock.now()).await?.ok_or(DeliveryError::NotFound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::item::tests::{LATER, NOW, head};

    #[test]
    fn a_final_delivery_is_reopened_a_waiting_one_hastened_and_a_due_one_announced() {
        let at =
            |claimable_at, lease: Option<&str>| HeadItem { claimable_at, lease: lease.map(str::to_owned), ..head() };
        assert_eq!(Step::of(&at(None, None), NOW), Step::Reopen);
        assert_eq!(Step::of(&at(Some(LATER), None), NOW), Step::AttemptNow);
        assert_eq!(Step::of(&at(Some(NOW), None), NOW), Step::Announce);
        assert_eq!(Step::of(&at(Some(LATER), Some("worker")), NOW), Step::Nothing);
        assert_eq!(Step::of(&at(Some(NOW), Some("dead worker")), NOW), Step::Announce);
    }
}
