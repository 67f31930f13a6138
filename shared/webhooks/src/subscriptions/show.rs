//! Showing webhooks, each with its health.

use super::{
    Webhook, Webhooks,
    breaker::{Health, HealthItem},
    health::Healths,
};
use auth::entity::AuthorizedEntity;
use gate::{EntityCall, Reply};
use problem::Problem;
use storage::table::Table;

/// Everything that showing webhooks needs.
#[derive(Debug, Clone)]
pub struct Showing {
    /// Where webhooks are kept.
    pub webhooks: Webhooks,
    /// How they are doing.
    pub healths: Healths,
}

impl Showing {
    /// Shows the webhooks in this table.
    pub fn new(table: &Table) -> Self {
        Self { webhooks: Webhooks::new(table.clone()), healths: Healths::new(table.clone()) }
    }

    /// Answers a request for a webhook.
    pub async fn show(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let (entity, id) = (&call.entity, call.webhook_id()?);
        let (found, health) = tokio::try_join!(self.webhooks.find(entity, &id), self.healths.find(entity, &id))?;
        let webhook = found.ok_or_else(Problem::webhook_not_found)?.webhook; // another entity's looks the same
        Reply::ok(&webhook.view(in_a_word(health.as_ref()), None))
    }

    /// Answers a request for all webhooks of an entity, the oldest first.
    pub async fn list(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        let (found, healths) = tokio::try_join!(self.webhooks.of(entity), self.healths.of(entity))?;
        Reply::ok(
            &found.iter().map(|webhook| webhook.view(in_a_word(healths.get(&webhook.id)), None)).collect::<Vec<_>>(),
        )
    }

    /// The answer with a webhook that was read before.
    pub(super) async fn reply(&self, entity: &AuthorizedEntity, webhook: &Webhook) -> Result<Reply, Problem> {
        let health = self.healths.find(entity, &webhook.id).await?;
        Reply::ok(&webhook.view(in_a_word(health.as_ref()), None))
    }
}

/// Of a webhook that is well, nothing is kept.
fn in_a_word(health: Option<&HealthItem>) -> Health {
    health.map_or(Health::Healthy, HealthItem::health)
}
