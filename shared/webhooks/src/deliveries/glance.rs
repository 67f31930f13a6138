//! What an attempt needs beside its head: the webhook, its health and the event where the message does not carry it, looked
//! at in one call before the claim.
//!
//! A glance costs half of a consistent read, and may show what was there moments ago. What matters then is read again:
//! a webhook that its message knows to have changed since, an event that is not there yet, and a breaker that is open.
//! What is left is a change of the last moments that no message knows of: an attempt that does not see it is as good as
//! one that began just before the change.

use tokio::join;

use super::{
    claim::Claimed,
    notice::{DeliveryOwner, Notice},
};
use crate::{
    events::store::{Events, StoredEvent},
    subscriptions::{Webhooks, breaker::HealthItem, health::Healths, store::SigningWebhook},
};
use auth::AuthorizedEntity;
use base::EventId;
use storage::TableError;

/// What was seen at a glance; a part that was not found, or cannot be relied on, is read again when it is needed.
#[derive(Debug, Default)]
pub(super) struct Glance {
    owner: Option<DeliveryOwner>,
    pub(super) webhook: Option<SigningWebhook>,
    event: Option<(EventId, StoredEvent)>,
    /// The health, unless it could not be read or the breaker was open: one that was closed since must hold up nothing.
    health: Option<Option<HealthItem>>,
}

/// What an attempt needs beside its head; without a webhook or an event it cannot be made.
pub(super) struct Parts {
    pub(super) webhook: Option<SigningWebhook>,
    pub(super) event: Option<StoredEvent>,
    pub(super) health: Option<HealthItem>,
}

/// Where all of it is looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) webhooks: &'a Webhooks,
    pub(super) events: &'a Events,
    pub(super) healths: &'a Healths,
}

impl Sources<'_> {
    /// Looks at what the attempt of a message needs beside the event that it may carry.
    pub(super) async fn glance(
        self,
        notice: &Notice,
        owner: &DeliveryOwner,
        carried: Option<StoredEvent>,
    ) -> Result<Glance, TableError> {
        let entity = AuthorizedEntity::owning_delivery(owner.entity.clone());
        let event = async {
            match (&notice.event, carried) {
                (Some(event), Some(carried)) => Ok(Some((event.clone(), carried))),
                (Some(event), None) => Ok(self.events.glance(event).await?.map(|found| (event.clone(), found))),
                // Of an earlier version.
                (None, _) => Ok(None),
            }
        };
        let health = self.healths.glance(&entity, &owner.webhook);
        let (webhook, event, health) = join!(self.webhooks.glance(&entity, &owner.webhook), event, health);
        let webhook = readable(webhook)?.flatten();
        // One that is disabled is read again, since the delivery would be cancelled for good, and the owner may have
        // enabled it a moment ago.
        let is_up_to_date = |found: &SigningWebhook| {
            let webhook = &found.webhook;
            webhook.enabled && notice.webhook_changed.is_none_or(|changed| changed <= webhook.last_update)
        };
        Ok(Glance {
            owner: Some(owner.clone()),
            webhook: webhook.filter(is_up_to_date),
            event: readable(event)?.flatten(),
            health: readable(health)?.filter(|found| found.as_ref().is_none_or(|health| health.open_until.is_none())),
        })
    }

    /// What a claimed attempt needs, as far as it was seen; the rest is read. Entity, webhook and event come from the
    /// delivery, since the message is a hint.
    pub(super) async fn parts(self, claimed: &Claimed, seen: Glance) -> Result<Parts, TableError> {
        let owner = DeliveryOwner::of(claimed.delivery());
        let entity = AuthorizedEntity::owning_delivery(owner.entity.clone());
        let seen = if seen.owner.as_ref() == Some(&owner) { seen } else { Glance::default() };
        let webhook = async {
            match seen.webhook {
                Some(webhook) => Ok(Some(webhook)),
                None => self.webhooks.find(&entity, &owner.webhook).await,
            }
        };
        let event = async {
            match seen.event.filter(|(event, _)| event == claimed.event()) {
                Some((_, event)) => Ok(Some(event)),
                None => self.events.find(claimed.event()).await,
            }
        };
        let health = async {
            match seen.health {
                Some(health) => Ok(health),
                None => self.healths.find(&entity, &owner.webhook).await,
            }
        };
        let (webhook, event, health) = tokio::try_join!(webhook, event, health)?;
        Ok(Parts { webhook, event, health })
    }
}

/// What was read; `None` for an item that cannot be read. It is read again under the claim, so that its delivery waits.
fn readable<T>(read: Result<T, TableError>) -> Result<Option<T>, TableError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error @ TableError::Unavailable { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}
