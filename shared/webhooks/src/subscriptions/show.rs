//! Showing webhooks, each with its health, and the statistics of their attempts.

use super::{
    breaker::{Health, HealthItem},
    health::Healths,
    problems::webhook_not_found,
    stats::{Stats, WebhookStats},
    store::Webhooks,
    webhook::{Webhook, WebhookView},
};
use auth::entity::AuthorizedEntity;
use base::{clock::Time, ids::WebhookId};
use problem::Problem;
use storage::table::{Table, TableError};

/// Shows webhooks.
#[derive(Debug, Clone)]
pub struct Showing {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// The health of those that are not simply well.
    pub healths: Healths,
    stats: Stats,
}

/// Why a webhook is not shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// The entity has no such webhook; another entity's webhook looks the same.
    #[error("the entity has no such webhook")]
    NotFound,
    /// The table failed.
    #[error("the table failed to show webhooks")]
    Table(#[from] TableError),
}

impl From<ShowError> for Problem {
    fn from(error: ShowError) -> Self {
        match error {
            ShowError::NotFound => webhook_not_found(),
            ShowError::Table(error) => error.into(),
        }
    }
}

impl Showing {
    /// Shows the webhooks in this table.
    pub fn new(table: &Table) -> Self {
        Self {
            webhooks: Webhooks::new(table.clone()),
            healths: Healths::new(table.clone()),
            stats: Stats::new(table.clone()),
        }
    }

    /// Shows a webhook.
    ///
    /// # Errors
    /// When the entity has no such webhook, or the table fails.
    pub async fn one(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<WebhookView, ShowError> {
        let (found, health) = tokio::try_join!(self.webhooks.find(entity, id), self.healths.find(entity, id))?;
        Ok(found.ok_or(ShowError::NotFound)?.webhook.view(in_a_word(health.as_ref())))
    }

    /// Shows all webhooks of an entity, the oldest first.
    ///
    /// # Errors
    /// When the table fails.
    pub async fn all(&self, entity: &AuthorizedEntity) -> Result<Vec<WebhookView>, ShowError> {
        let (found, healths) = tokio::try_join!(self.webhooks.of(entity), self.healths.of(entity))?;
        Ok(found.iter().map(|webhook| webhook.view(in_a_word(healths.get(&webhook.id)))).collect())
    }

    /// Shows the statistics of a webhook's attempts.
    ///
    /// # Errors
    /// When the entity has no such webhook, or the table fails.
    pub async fn stats(&self, entity: &AuthorizedEntity, id: &WebhookId, now: Time) -> Result<WebhookStats, ShowError> {
        self.webhooks.find(entity, id).await?.ok_or(ShowError::NotFound)?;
        Ok(self.stats.of(entity, id, now).await?)
    }

    /// Shows a webhook that was read before.
    pub(super) async fn read(&self, entity: &AuthorizedEntity, webhook: &Webhook) -> Result<WebhookView, TableError> {
        let health = self.healths.find(entity, &webhook.id).await?;
        Ok(webhook.view(in_a_word(health.as_ref())))
    }
}

/// The table keeps no health of a webhook that is well.
fn in_a_word(health: Option<&HealthItem>) -> Health {
    health.map_or(Health::Healthy, HealthItem::health)
}
