//! Prefetch: an attempt's webhook, health and event, read concurrently with its claim, so that the claim adds no round
//! trip. A prefetch is an eventually consistent read: it costs half as much, and may return stale values. Some values
//! are read again after the claim: a webhook older than the change named by the message, a disabled or paused webhook,
//! an open breaker, and missing values.

use std::sync::Arc;

use tokio::{join, time::Instant};

use crate::{
    deliveries::{
        queue::message::{AttemptMessage, DeliveryOwner},
        store::claim::Claimed,
    },
    events::store::{Events, StoredEvent},
    subscriptions::{
        Webhooks,
        health::{Healths, breaker::HealthItem},
        webhook::store::SigningWebhook,
    },
};
use auth::AuthorizedEntity;
use base::logging;
use storage::TableError;

/// Prefetched values; missing or stale ones are read again.
#[derive(Debug, Default)]
pub(crate) struct Prefetch {
    owner: Option<DeliveryOwner>,
    webhook: Option<CurrentWebhook>,
    pub(crate) event: Option<Arc<StoredEvent>>,
    /// The health, unless it could not be read or the breaker was open: the breaker may have been closed since.
    health: Option<Option<HealthItem>>,
}

impl Prefetch {
    /// The webhook, if it was found, is enabled, and is not paused by its owner.
    pub(crate) fn webhook(&self) -> Option<&SigningWebhook> {
        self.webhook.as_ref().map(|current| &current.webhook)
    }
}

/// A webhook, and the time at which its read began.
#[derive(Debug)]
pub(crate) struct CurrentWebhook {
    pub(crate) webhook: SigningWebhook,
    pub(crate) read: Instant,
}

/// An attempt's inputs, other than its head. An attempt needs both the webhook and the event.
pub(crate) struct AttemptInputs {
    pub(crate) webhook: Option<CurrentWebhook>,
    pub(crate) event: Option<Arc<StoredEvent>>,
    pub(crate) health: Option<HealthItem>,
}

/// The stores that the inputs are read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) webhooks: &'a Webhooks,
    pub(crate) events: &'a Events,
    pub(crate) healths: &'a Healths,
}

impl Sources<'_> {
    /// Reads the inputs of an attempt before its claim succeeds. If a read fails, the error is logged, and
    /// [`Self::inputs`] reads the value.
    pub(crate) async fn prefetch(self, message: &AttemptMessage) -> Prefetch {
        let AttemptMessage { due, .. } = message;
        let owner = message.owner();
        let event = due.delivery.event();
        let entity = AuthorizedEntity::owning_delivery(owner.entity.clone());
        let event = self.events.read_eventual(&event);
        let health = self.healths.read_eventual(&entity, &owner.webhook);
        let read = Instant::now();
        let (webhook, event, health) = join!(self.webhooks.read_eventual(&entity, &owner.webhook), event, health);
        // A disabled or paused webhook is read again: the owner may have just enabled or resumed it, and the delivery
        // would otherwise be cancelled, or wait for a long time.
        let is_current = |found: &SigningWebhook| {
            let webhook = &found.webhook;
            let is_sent_to = webhook.enabled && webhook.pause.is_none();
            is_sent_to && due.webhook_changed.is_none_or(|changed| changed <= webhook.last_update)
        };
        let webhook = found(webhook).flatten().filter(is_current);
        Prefetch {
            owner: Some(owner),
            webhook: webhook.map(|webhook| CurrentWebhook { webhook, read }),
            event: found(event).flatten(),
            health: found(health).filter(|found| found.as_ref().is_none_or(|health| health.open_until.is_none())),
        }
    }

    /// The inputs of a claimed attempt: prefetched values where they are usable, and consistent reads of the others.
    /// The entity, webhook and event come from the delivery, since a message is only a hint.
    pub(crate) async fn inputs(self, claimed: &Claimed, prefetch: Prefetch) -> Result<AttemptInputs, TableError> {
        let owner = DeliveryOwner::of(claimed.delivery());
        let entity = AuthorizedEntity::owning_delivery(owner.entity.clone());
        let prefetch = if prefetch.owner.as_ref() == Some(&owner) { prefetch } else { Prefetch::default() };
        let webhook = async {
            match prefetch.webhook {
                Some(webhook) => Ok(Some(webhook)),
                None => self.webhook(&entity, &owner).await,
            }
        };
        let event = async {
            let id = claimed.event();
            match prefetch.event.filter(|event| *event.item.id() == id) {
                Some(event) => Ok(Some(event)),
                None => Ok(self.events.find(&id).await?.map(Arc::new)),
            }
        };
        let health = async {
            match prefetch.health {
                Some(health) => Ok(health),
                None => self.healths.find(&entity, &owner.webhook).await,
            }
        };
        let (webhook, event, health) = tokio::try_join!(webhook, event, health)?;
        Ok(AttemptInputs { webhook, event, health })
    }

    /// A delivery's webhook, from a consistent read; `None` if it was removed.
    pub(crate) async fn webhook(
        self,
        entity: &AuthorizedEntity,
        owner: &DeliveryOwner,
    ) -> Result<Option<CurrentWebhook>, TableError> {
        let read = Instant::now();
        let found = self.webhooks.find(entity, &owner.webhook).await?;
        Ok(found.map(|webhook| CurrentWebhook { webhook, read }))
    }
}

fn found<T>(read: Result<T, TableError>) -> Option<T> {
    let read = read.inspect_err(|error| {
        tracing::warn!(error = %logging::chain(error), "a prefetch failed; the value is read again after the claim");
    });
    read.ok()
}
