//! Resends a delivery at its owner's request.

use std::time::Duration;

use crate::{
    deliveries::{
        error::DeliveryError,
        queue::{Lane, Queue, message::AttemptMessage},
        state::{Open, Wait, delivery::MAX_ATTEMPTS, head::Head},
        store::{Deliveries, StoredDelivery},
        view::{DeliveryView, WholeDelivery},
    },
    subscriptions::{WebhookError, Webhooks, request_limits::RequestLimits},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, SharedClock, Time, pause};
use serde::Serialize;
use storage::{Allowance, Answered, IdempotencyStore, IdempotentRequest, Written};

/// Sends deliveries again.
pub struct Resending {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// Their webhooks.
    pub webhooks: Webhooks,
    /// Requests with an idempotency key.
    pub answers: IdempotencyStore,
    /// Limits on entities' requests.
    pub limits: RequestLimits,
    /// The queue of the dispatcher.
    pub queue: Queue,
    /// The clock for the next attempt.
    pub clock: SharedClock,
}

/// A resent delivery.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Resent {
    delivery: WholeDelivery,
    /// Whether the request repeats an idempotency key.
    #[serde(skip)]
    pub is_repeated: bool,
}

/// How a delivery is resent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The delivery is final and gets a new schedule.
    Reopen,
    /// The delivery gets one more attempt now: its next one is due later, or it is waiting for another delivery, or
    /// would have to.
    AttemptNow,
    /// The delivery is due, and its message may be lost.
    Announce,
    /// A worker is making the attempt.
    Nothing,
}

/// The result of a request to attempt a delivery again.
struct Requested {
    /// The delivery as it was read.
    stored: StoredDelivery,
    step: Step,
    /// The head after the change, if it was changed and read back.
    changed: Option<Written<Option<Head>>>,
    now: Time,
}

impl Step {
    /// The step's name in the log.
    fn as_str(self) -> &'static str {
        match self {
            Self::Reopen => "reopen",
            Self::AttemptNow => "attempt-now",
            Self::Announce => "announce",
            Self::Nothing => "nothing",
        }
    }

    fn of(head: &Head, is_ordered: bool, now: Time) -> Self {
        let Some(open) = head.state.open() else { return Self::Reopen };
        let is_claimed = open.claim.lease.is_some();
        match open.wait {
            // At its due time, the dispatcher would hold the delivery again.
            Wait::Before(_) if !is_claimed => Self::AttemptNow,
            // After a mere announcement, a dispatcher could hold the delivery.
            _ if open.claimable_at() <= now && is_ordered && may_be_held(head, open) => Self::AttemptNow,
            _ if open.claimable_at() <= now => Self::Announce,
            _ if is_claimed => Self::Nothing,
            _ => Self::AttemptNow,
        }
    }
}

/// Whether a dispatcher may hold an unclaimed delivery at its next attempt. A delivery in a feed was checked before.
fn may_be_held(head: &Head, open: &Open) -> bool {
    let is_unclaimed = open.claim.lease.is_none() && open.asked_at.is_none();
    is_unclaimed && head.delivery.attempt_count == 0 && open.wait != Wait::Reader
}

impl Resent {
    /// The delivery after the request.
    pub fn delivery(&self) -> &DeliveryView {
        &self.delivery.delivery
    }

    /// The delivery after the request, with its event and its attempts.
    pub fn into_whole(self) -> WholeDelivery {
        self.delivery
    }
}

impl Resending {
    /// Resends a delivery now, once per idempotency key, and returns the changed delivery.
    ///
    /// A repeated request reads the delivery again, since a stored response could be too large.
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

    async fn ask_again(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        once: Option<&IdempotentRequest>,
    ) -> Result<WholeDelivery, DeliveryError> {
        self.limits.count(Allowance::Resends, entity, self.clock.now()).await?;
        let stored = self.found(entity, id).await?;
        if let Some(erased) = stored.head.delivery.erased_date {
            return Err(DeliveryError::EventErased(erased));
        }
        let webhook = self.webhooks.sendable(entity, &stored.head.delivery.webhook_identifier).await;
        let webhook = webhook.map_err(|error| match error {
            WebhookError::NotFound => DeliveryError::WebhookRemoved,
            error => error.into(),
        })?;
        if stored.head.delivery.attempt_count >= MAX_ATTEMPTS {
            return Err(DeliveryError::TooManyAttempts);
        }
        let Requested { stored, step, changed, now } = self.request(entity, stored, webhook.is_ordered(), once).await?;
        let done = changed.as_ref().is_some_and(Written::is_done);
        if done || step == Step::Announce {
            let message = AttemptMessage::of(&stored.head, stored.head.next_attempt()).since(webhook.last_update);
            // Any lane will do: a dispatcher moves the message to its webhook's lane.
            self.queue.announce_in_time(Lane::Quick, entity.id(), vec![message], now, now).await;
        }
        tracing::info!(deliveryId = %id, step = step.as_str(), done, "resend requested");
        let left = match changed {
            None => Some(stored),
            Some(Written::Done(Some(head)) | Written::Lost(Some(Some(head)))) => stored.with_head(head),
            Some(Written::Done(None) | Written::Lost(_)) => None,
        };
        match left {
            Some(left) => Ok(left.whole(now)),
            // The head was not read back, an attempt was recorded in the meantime, or the delivery was removed.
            None => self.shown(entity, id).await,
        }
    }

    /// Requests an attempt of a delivery. A concurrent change by another request counts as this request's change. A
    /// dispatcher's change that held the delivery does not count: the delivery would wait even though its owner wants
    /// it now.
    async fn request(
        &self,
        entity: &AuthorizedEntity,
        mut stored: StoredDelivery,
        is_ordered: bool,
        once: Option<&IdempotentRequest>,
    ) -> Result<Requested, DeliveryError> {
        /// How many times the delivery is read again.
        const MORE_TRIES: u32 = 3;
        /// The time that a dispatcher needs to hold a delivery.
        const HOLDING: Duration = Duration::from_millis(50);
        let id = stored.head.delivery.id.clone();
        let attempts = stored.head.delivery.attempt_count;
        let mut tries = 0;
        loop {
            let head = &stored.head;
            let now = self.clock.now();
            let step = Step::of(head, is_ordered, now);
            let record = self.answers.record(once, &(), &id, now).await?;
            let changed = match step {
                Step::Reopen | Step::AttemptNow => Some(self.deliveries.request(head, record.clone(), now).await?),
                Step::Announce | Step::Nothing => None,
            };
            let is_done = changed.as_ref().is_some_and(Written::is_done);
            let may_be_held = match step {
                Step::AttemptNow => !is_done,
                Step::Nothing => is_ordered && attempts == 0,
                Step::Reopen | Step::Announce => false,
            };
            if may_be_held && tries < MORE_TRIES {
                tries += 1;
                pause(HOLDING).await;
                let left = self.found(entity, &id).await?;
                if left.head.delivery.attempt_count == attempts && !left.head.is_final() {
                    stored = left;
                    continue;
                }
            }
            if !is_done {
                self.deliveries.leave_as_is(record).await?;
            }
            return Ok(Requested { stored, step, changed, now });
        }
    }

    async fn found(&self, entity: &AuthorizedEntity, id: &DeliveryId) -> Result<StoredDelivery, DeliveryError> {
        self.deliveries.find(entity, id, self.clock.now()).await?.ok_or(DeliveryError::NotFound)
    }

    async fn shown(&self, entity: &AuthorizedEntity, id: &DeliveryId) -> Result<WholeDelivery, DeliveryError> {
        self.deliveries.with_attempts(entity, id, self.clock.now()).await?.ok_or(DeliveryError::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::{
        State,
        head::tests::{LATER, NOW, head},
    };

    #[test]
    fn final_deliveries_reopen_waiting_ones_expedite_due_ones_are_announced() {
        let step = |head: &Head| Step::of(head, false, NOW);
        let at = |time| head().waiting(time, Wait::Schedule);
        assert_eq!(step(&head().with(State::Failed)), Step::Reopen);
        assert_eq!(step(&at(LATER)), Step::AttemptNow);
        assert_eq!(step(&at(NOW)), Step::Announce);
        assert_eq!(step(&at(NOW).leased(LATER)), Step::Nothing);
        assert_eq!(step(&at(NOW).leased(NOW)), Step::Announce, "its worker is dead");
    }

    #[test]
    fn a_held_delivery_is_sent_although_its_look_is_due() {
        for look in [NOW, LATER] {
            let held = head().waiting(look, Wait::Before(head().delivery.id));
            assert_eq!(Step::of(&held, true, NOW), Step::AttemptNow, "{look}");
        }
    }

    #[test]
    fn a_due_delivery_of_an_ordered_webhook_is_asked_for_before_a_dispatcher_can_hold_it() {
        let step = |head: &Head| Step::of(head, true, NOW);
        let due = head().waiting(NOW, Wait::Schedule);
        assert_eq!(step(&due), Step::AttemptNow);
        assert_eq!(step(&due.clone().opened(|open| open.asked_at = Some(NOW))), Step::Announce);
        assert_eq!(step(&due.clone().leased(NOW)), Step::Announce, "its worker is dead");
        assert_eq!(step(&due.waiting(NOW, Wait::Reader)), Step::Announce, "it stays in its feed");
    }
}
