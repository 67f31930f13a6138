//! Sending a delivery again because its owner asks for it.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    delivery::{Delivery, MAX_ATTEMPTS, WholeDelivery, delivery_not_found},
    item::HeadItem,
    queue::{DueMessage, Lane, Notice, Queue, QueueError},
    sendable::{Unsendable, ensure_sendable},
    store::Deliveries,
};
use crate::subscriptions::{
    problems::{webhook_disabled, webhook_removed},
    store::Webhooks,
};
use auth::entity::AuthorizedEntity;
use base::{
    clock::{SharedClock, Time},
    ids::DeliveryId,
    logging,
};
use problem::{Problem, ProblemKind};
use storage::table::{TableError, Written};

/// How long telling the queue may take: the delivery is due already, and the sweep announces what
/// the queue was not told.
const ANNOUNCEMENT_LIMIT: Duration = Duration::from_secs(2);

/// Sends deliveries again.
pub struct Resending {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// Their webhooks.
    pub webhooks: Webhooks,
    /// Where the dispatcher listens.
    pub queue: Queue,
    /// Tells when the next attempt is due.
    pub clock: SharedClock,
}

/// Why a delivery is not sent again.
#[derive(Debug, thiserror::Error)]
pub enum ResendError {
    /// The entity has no such delivery; another entity's looks the same.
    #[error("the entity has no such delivery")]
    NotFound,
    /// Its webhook was removed.
    #[error("the webhook of the delivery was removed")]
    WebhookRemoved,
    /// Its webhook is disabled.
    #[error("the webhook of the delivery is disabled")]
    WebhookDisabled,
    /// It has had as many attempts as a delivery that is sent again may have.
    #[error("the delivery has had {MAX_ATTEMPTS} attempts or more")]
    TooManyAttempts,
    /// The table failed.
    #[error("the table failed a resend")]
    Table(#[from] TableError),
}

impl From<Unsendable> for ResendError {
    fn from(error: Unsendable) -> Self {
        match error {
            Unsendable::Missing => Self::WebhookRemoved,
            Unsendable::Disabled => Self::WebhookDisabled,
            Unsendable::Table(error) => Self::Table(error),
        }
    }
}

impl From<ResendError> for Problem {
    fn from(error: ResendError) -> Self {
        match error {
            ResendError::NotFound => delivery_not_found(),
            ResendError::WebhookRemoved => webhook_removed(),
            ResendError::WebhookDisabled => webhook_disabled(),
            ResendError::TooManyAttempts => {
                let detail = format!("The delivery has had {MAX_ATTEMPTS} attempts or more; it cannot be sent again.");
                Self::new(ProblemKind::AttemptLimit, detail).with_property("limit", MAX_ATTEMPTS)
            }
            ResendError::Table(error) => error.into(),
        }
    }
}

/// What there is to do for a delivery that is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is final: a fresh schedule.
    Reopen,
    /// Its next attempt is due later: one more now.
    AttemptNow,
    /// It is due, and perhaps waits for its message.
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
    /// Has a delivery attempted again, now; gives the delivery as the request has left it. A change
    /// that another request made at the same moment counts as this one's.
    pub async fn resend(&self, entity: &AuthorizedEntity, id: &DeliveryId) -> Result<WholeDelivery, ResendError> {
        let stored = self.deliveries.find(entity, id, self.clock.now()).await?.ok_or(ResendError::NotFound)?;
        let head = &stored.head;
        ensure_sendable(&self.webhooks, entity, &head.delivery.webhook_identifier).await?;
        if head.delivery.attempt_count >= MAX_ATTEMPTS {
            return Err(ResendError::TooManyAttempts);
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
            self.announce(&head.delivery, now).await;
        }
        tracing::info!(deliveryId = %id, step = ?step, done, "asked for again");
        let left = match changed {
            None => Some(stored),
            Some(Written::Done(head) | Written::Lost(Some(head))) => stored.with_head(head),
            Some(Written::Lost(None)) => None,
        };
        match left {
            Some(left) => Ok(left.into()),
            // An attempt was recorded since the delivery was read, or the delivery is gone.
            None => self.deliveries.with_attempts(entity, id, self.clock.now()).await?.ok_or(ResendError::NotFound),
        }
    }

    async fn announce(&self, delivery: &Delivery, now: Time) {
        let message = DueMessage { delivery: delivery.id.clone(), attempt: delivery.attempt_count.saturating_add(1) };
        let notice = Notice::new(message, delivery.owner_identifier.clone(), delivery.webhook_identifier.clone());
        // A dispatcher looks whether it belongs there.
        let announced = self.queue.announce(Lane::Quick, notice, now, now);
        if let Err(error) = timeout(ANNOUNCEMENT_LIMIT, announced).await.unwrap_or(Err(QueueError::Late)) {
            tracing::warn!(error = %logging::chain(&error), deliveryId = %delivery.id, "not announced; the sweep will find it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::item::tests::{LATER, NOW, head};

    #[test]
    fn what_there_is_to_do_depends_on_where_the_delivery_stands() {
        let at =
            |claimable_at, lease: Option<&str>| HeadItem { claimable_at, lease: lease.map(str::to_owned), ..head() };
        assert_eq!(Step::of(&at(None, None), NOW), Step::Reopen);
        assert_eq!(Step::of(&at(Some(LATER), None), NOW), Step::AttemptNow);
        assert_eq!(Step::of(&at(Some(NOW), None), NOW), Step::Announce);
        assert_eq!(Step::of(&at(Some(LATER), Some("worker")), NOW), Step::Nothing);
        assert_eq!(Step::of(&at(Some(NOW), Some("dead worker")), NOW), Step::Announce);
    }
}
