//! Shows webhooks, each with its health, and the statistics of their attempts.

use crate::{
    deliveries::Deliveries,
    subscriptions::{
        error::WebhookError,
        health::Healths,
        stats::{Stats, WebhookStats},
        webhook::{Webhook, WebhookView, store::Webhooks},
    },
};
use auth::AuthorizedEntity;
use base::{Time, WebhookId};
use storage::{Table, TableError};

/// Shows webhooks.
#[derive(Debug, Clone)]
pub struct Showing {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// The health of unhealthy webhooks.
    pub healths: Healths,
    deliveries: Deliveries,
    stats: Stats,
}

impl Showing {
    /// Shows the webhooks in this table.
    pub fn new(table: &Table) -> Self {
        Self {
            webhooks: Webhooks::new(table.clone()),
            healths: Healths::new(table.clone()),
            deliveries: Deliveries::new(table.clone()),
            stats: Stats::new(table.clone()),
        }
    }

    /// Shows a webhook.
    pub async fn one(&self, entity: &AuthorizedEntity, id: &WebhookId, now: Time) -> Result<WebhookView, WebhookError> {
        let (found, health) = tokio::try_join!(self.webhooks.find(entity, id), self.healths.find(entity, id))?;
        let webhook = found.ok_or(WebhookError::NotFound)?.webhook;
        let oldest = if webhook.is_pulled() { self.deliveries.oldest_unread(id).await? } else { None };
        Ok(webhook.view(health.as_ref(), now).with_oldest_unread(oldest))
    }

    /// Shows all of an entity's webhooks, oldest first.
    pub async fn all(&self, entity: &AuthorizedEntity, now: Time) -> Result<Vec<WebhookView>, WebhookError> {
        let (found, healths) = tokio::try_join!(self.webhooks.of(entity), self.healths.of(entity))?;
        Ok(found.iter().map(|webhook| webhook.view(healths.get(&webhook.id), now)).collect())
    }

    /// Shows the statistics of a webhook's attempts.
    pub async fn stats(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        now: Time,
    ) -> Result<WebhookStats, WebhookError> {
        self.webhooks.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
        Ok(self.stats.of(entity, id, now).await?)
    }

    /// Shows a webhook that has already been read.
    pub(in crate::subscriptions) async fn read(
        &self,
        entity: &AuthorizedEntity,
        webhook: &Webhook,
        now: Time,
    ) -> Result<WebhookView, TableError> {
        let health = self.healths.find(entity, &webhook.id).await?;
        Ok(webhook.view(health.as_ref(), now))
    }
}
