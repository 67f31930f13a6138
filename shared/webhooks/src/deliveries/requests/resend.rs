//! Sending a delivery again because its owner asks for it.

use crate::{
    deliveries::{
        delivery::{Delivery, MAX_ATTEMPTS, WholeDelivery},
        error::DeliveryError,
        queue::{Lane, Queue, message::AttemptMessage},
        store::{Deliveries, item::HeadItem},
    },
    subscriptions::{WebhookError, Webhooks, request_limits::RequestLimits},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, SharedClock, Time};
use serde::Serialize;
use storage::{Allowance, Answered, IdempotencyStore, IdempotentRequest, Written};

/// Sends deliveries again.
pub struct Resending {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// Their webhooks.
    pub webhooks: Webhooks,
    /// Knows the requests with an idempotency key.
    pub answers: IdempotencyStore,
    /// Counts the requests of entities.
    pub limits: RequestLimits,
    /// Where the dispatcher listens.
    pub queue: Queue,
    /// Dates the next attempt.
    pub clock: SharedClock,
}

/// A delivery that is sent again.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Resent {
    delivery: WholeDelivery,
    /// Whether the request's idempotency key had come before.
    #[serde(skip)]
    pub is_repeated: bool,
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
    /// The word for it in the log.
    fn as_str(self) -> &'static str {
        match self {
            Self::Reopen => "reopen",
            Self::AttemptNow => "attempt-now",
            Self::Announce => "announce",
            Self::Nothing => "nothing",
        }
    }

    fn of(head: &HeadItem, now: Time) -> Self {
        match head.claimable_at {
            None => Self::Reopen,
            Some(time) if time <= now => Self::Announce,
            Some(_) if head.lease.is_some() => Self::Nothing,
            Some(_) => Self::AttemptNow,
        }
    }
}

impl Resent {
    /// The delivery as it is now.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery.delivery
    }
}

impl Resending {
    /// Has a delivery attempted again, now, once for an idempotency key, and returns it as it is then.
    ///
    /// A repetition shows the delivery as it is by then: it may be as large as an answer can be, and is there to be
    /// read anyway.
    pub async fn resend(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        once: Option<&IdempotentRequest>,
    ) -> Result<Resent, DeliveryError> {
        let asked = self.answers.once(once, self.clock.now(), self.ask_again(entity, id, once)).await?;
        match asked {
            Answered::First(delivery) => Ok(Resent { delivery, is_repeated: false }),
            Answered::Again(_) => Ok(Resent { delivery: self.shown(entity, id).await?, is_repeated: true }),
        }
    }

    /// A change that another request made at the same moment counts as this one's.
    async fn ask_again(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        once: Option<&IdempotentRequest>,
    ) -> Result<WholeDelivery, DeliveryError> {
        self.limits.count(Allowance::Resends, entity, self.clock.now()).await?;
        let stored = self.deliveries.find(entity, id, self.clock.now()).await?.ok_or(DeliveryError::NotFound)?;
        let head = &stored.head;
        let webhook = self.webhooks.sendable(entity, &head.delivery.webhook_identifier).await;
        let webhook = webhook.map_err(|error| match error {
            WebhookError::NotFound => DeliveryError::WebhookRemoved,
            error => error.into(),
        })?;
        if head.delivery.attempt_count >= MAX_ATTEMPTS {
            return Err(DeliveryError::TooManyAttempts);
        }
        let now = self.clock.now();
        let step = Step::of(head, now);
        let record = self.answers.record(once, &(), id, now).await?;
        let changed = match step {
            Step::Reopen => Some(self.deliveries.reopen(&head.delivery, record, now).await?),
            Step::AttemptNow => Some(self.deliveries.hasten(head, record, now).await?),
            Step::Announce | Step::Nothing => {
                self.deliveries.leave_as_is(record).await?;
                None
            }
        };
        let done = changed.as_ref().is_some_and(Written::is_done);
        if done || step == Step::Announce {
            let notice =
                AttemptMessage::of(head, head.delivery.attempt_count.saturating_add(1)).since(webhook.last_update);
            // In any lane: a dispatcher moves it to the lane of its webhook.
            self.queue.announce_in_time(Lane::Quick, notice, now, now).await;
        }
        tracing::info!(deliveryId = %id, step = step.as_str(), done, "asked for again");
        let left = match changed {
            None => Some(stored),
            Some(Written::Done(Some(head)) | Written::Lost(Some(Some(head)))) => stored.with_head(head),
            Some(Written::Done(None) | Written::Lost(_)) => None,
        };
        match left {
            Some(left) => Ok(left.whole(now)),
            // It was not read back, an attempt was recorded since it was read, or it is gone.
            None => self.shown(entity, id).await,
        }
    }

    async fn shown(&self, entity: &AuthorizedEntity, id: &DeliveryId) -> Result<WholeDelivery, DeliveryError> {
        self.deliveries.with_attempts(entity, id, self.clock.now()).await?.ok_or(DeliveryError::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::store::item::tests::{LATER, NOW, head};

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
