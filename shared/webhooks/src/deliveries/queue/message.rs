//! Messages of the queues: each announces that an attempt of a delivery is due.

use serde::{Deserialize, Serialize};

use crate::deliveries::{delivery::Delivery, store::item::HeadItem};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId};

const ENTITY: &str = "entity";
const WEBHOOK: &str = "webhook";
const EVENT: &str = "event";
const CHANGED: &str = "changed";
const WAITED: &str = "waited";

/// The body of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DueMessage {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The number of the attempt. A message for an attempt that was made already is dropped.
    pub attempt: u32,
}

/// Entity and webhook of a delivery, which are attributes of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOwner {
    /// The entity, which is also the group of SQS's fair queues, so that a tenant with a backlog does not hold up
    /// others. <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>
    pub entity: EntityId,
    /// The webhook.
    pub webhook: WebhookId,
}

/// A message as it is sent and received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptMessage {
    /// The attempt that is due.
    pub due: DueMessage,
    /// Entity and webhook of the delivery.
    pub owner: DeliveryOwner,
    /// The event, so that it is read in one call with the webhook.
    pub event: EventId,
    /// The webhook's last change that the sender has read: a dispatcher that reads an earlier version reads again.
    /// `None` if the sender has not read the webhook.
    pub webhook_changed: Option<Time>,
    /// Whether the delivery found no permit before, or is overdue. Then it takes precedence.
    pub has_waited: bool,
}

/// Why a message cannot be from the service.
#[derive(Debug, thiserror::Error)]
pub enum MalformedMessage {
    /// The body is not the JSON of an attempt that is due.
    #[error("the body names no attempt")]
    Body(#[from] serde_json::Error),
    /// An attribute is missing or malformed.
    #[error("the attribute `{0}` is missing or malformed")]
    Attribute(&'static str),
}

impl DeliveryOwner {
    pub(crate) fn of(delivery: &Delivery) -> Self {
        Self { entity: delivery.owner_identifier.clone(), webhook: delivery.webhook_identifier.clone() }
    }
}

impl AttemptMessage {
    /// The first message for this attempt of a delivery.
    pub fn of(head: &HeadItem, attempt: u32) -> Self {
        let delivery = head.delivery();
        let due = DueMessage { delivery: delivery.id.clone(), attempt };
        Self::new(due, DeliveryOwner::of(delivery), head.event().clone())
    }

    /// The first message for an attempt.
    pub fn new(due: DueMessage, owner: DeliveryOwner, event: EventId) -> Self {
        Self { due, owner, event, webhook_changed: None, has_waited: false }
    }

    /// The message with the last change of the webhook.
    pub fn since(self, webhook_changed: Time) -> Self {
        Self { webhook_changed: Some(webhook_changed), ..self }
    }

    /// The message for a delivery that has waited.
    pub fn waiting(self) -> Self {
        Self { has_waited: true, ..self }
    }

    /// Reads a message from its body and attributes.
    pub fn read<'a>(body: &str, attribute: impl Fn(&str) -> Option<&'a str>) -> Result<Self, MalformedMessage> {
        let missing = MalformedMessage::Attribute;
        let entity = attribute(ENTITY).and_then(|entity| EntityId::parse(entity).ok()).ok_or(missing(ENTITY))?;
        let webhook = attribute(WEBHOOK).and_then(WebhookId::parse).ok_or(missing(WEBHOOK))?;
        Ok(Self {
            due: serde_json::from_str(body)?,
            owner: DeliveryOwner { entity, webhook },
            event: attribute(EVENT).and_then(EventId::parse).ok_or(missing(EVENT))?,
            webhook_changed: attribute(CHANGED).and_then(Time::of_client),
            has_waited: attribute(WAITED).is_some(),
        })
    }

    pub(crate) fn body(&self) -> String {
        serde_json::to_string(&self.due).expect("an identifier and a number can always be written")
    }

    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'static str, String)> {
        let DeliveryOwner { entity, webhook } = &self.owner;
        let always = [(ENTITY, entity.to_string()), (WEBHOOK, webhook.to_string()), (EVENT, self.event.to_string())];
        let changed = self.webhook_changed.iter().map(|changed| (CHANGED, changed.to_string()));
        let waited = self.has_waited.then(|| (WAITED, "yes".to_owned()));
        always.into_iter().chain(changed).chain(waited)
    }
}
