//! The queues' messages: each announces due attempts of one entity's deliveries.

use serde::{Deserialize, Serialize};

use crate::deliveries::state::{delivery::Delivery, head::Head};
use auth::EntityId;
use base::{DeliveryId, Time, WebhookId};

/// Maximum number of attempts that one message announces. A batch of ten messages then announces as many attempts as
/// one entity has permits in a dispatch run. With more, a burst would wait for permits and leave the quick lane.
pub const ATTEMPTS_AT_ONCE: usize = 4;

/// The body of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Announcement {
    /// The entity, which is also the message group for SQS fair queues, so that a tenant with a backlog does not delay
    /// others.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>
    entity: EntityId,
    attempts: Vec<DueAttempt>,
}

/// An attempt that is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DueAttempt {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The number of the attempt. A message for an attempt that has already been made is dropped.
    pub attempt: u32,
    /// The webhook.
    pub webhook: WebhookId,
    /// The time of the webhook's last change, as known to the sender. A dispatcher that reads an older version reads
    /// the webhook again. `None` if the sender has not read the webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_changed: Option<Time>,
    /// Whether the delivery has waited before, for a permit, a slot or another delivery, or is overdue. If so, it takes
    /// precedence, and it has a head, which the dispatcher claims while it reads the event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_waited: bool,
}

/// The entity and the webhook of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOwner {
    /// The entity.
    pub entity: EntityId,
    /// The webhook.
    pub webhook: WebhookId,
}

/// An attempt that a message announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptMessage {
    /// The delivery's entity.
    pub entity: EntityId,
    /// The attempt that is due.
    pub due: DueAttempt,
}

/// The body of a message is not the JSON of due attempts: the service did not send it.
#[derive(Debug, thiserror::Error)]
#[error("the body names no attempts")]
pub struct MalformedMessage(#[from] serde_json::Error);

impl DeliveryOwner {
    pub(crate) fn of(delivery: &Delivery) -> Self {
        Self { entity: delivery.owner_identifier.clone(), webhook: delivery.webhook_identifier.clone() }
    }
}

impl AttemptMessage {
    /// The first message for this attempt of a delivery.
    pub fn of(head: &Head, attempt: u32) -> Self {
        let delivery = head.delivery();
        Self::new(delivery.id.clone(), attempt, DeliveryOwner::of(delivery))
    }

    /// The first message for an attempt.
    pub fn new(delivery: DeliveryId, attempt: u32, owner: DeliveryOwner) -> Self {
        let DeliveryOwner { entity, webhook } = owner;
        Self { entity, due: DueAttempt { delivery, attempt, webhook, webhook_changed: None, has_waited: false } }
    }

    /// The entity and the webhook of the delivery.
    pub fn owner(&self) -> DeliveryOwner {
        DeliveryOwner { entity: self.entity.clone(), webhook: self.due.webhook.clone() }
    }

    /// The message with the time of the webhook's last change.
    pub fn since(self, webhook_changed: Time) -> Self {
        Self { due: DueAttempt { webhook_changed: Some(webhook_changed), ..self.due }, ..self }
    }

    /// The message for a delivery that has waited.
    pub fn waiting(self) -> Self {
        Self { due: DueAttempt { has_waited: true, ..self.due }, ..self }
    }

    /// Reads the attempts that a message announces.
    pub fn read(body: &str) -> Result<Vec<Self>, MalformedMessage> {
        let Announcement { entity, attempts } = serde_json::from_str(body)?;
        Ok(attempts.into_iter().map(|due| Self { entity: entity.clone(), due }).collect())
    }

    /// The body of a message that announces these attempts of one entity's deliveries.
    pub(crate) fn body(entity: &EntityId, attempts: impl IntoIterator<Item = Self>) -> String {
        let attempts = attempts.into_iter().map(|attempt| attempt.due).collect();
        let announcement = Announcement { entity: entity.clone(), attempts };
        serde_json::to_string(&announcement).expect("identifiers, times and numbers can always be written")
    }
}
