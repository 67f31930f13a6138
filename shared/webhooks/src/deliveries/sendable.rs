//! Whether anything can be sent to a webhook.

use crate::subscriptions::store::Webhooks;
use auth::entity::AuthorizedEntity;
use base::ids::WebhookId;
use storage::table::TableError;

/// Why nothing can be sent to a webhook.
#[derive(Debug, thiserror::Error)]
pub enum Unsendable {
    /// The entity has no such webhook, or no longer.
    #[error("the entity has no such webhook")]
    Missing,
    /// The webhook is disabled.
    #[error("the webhook is disabled")]
    Disabled,
    /// The table failed.
    #[error("the table failed a look at a webhook")]
    Table(#[from] TableError),
}

/// Finds that a webhook is there and enabled, or why nothing can be sent to it.
pub(super) async fn ensure_sendable(
    webhooks: &Webhooks,
    entity: &AuthorizedEntity,
    webhook: &WebhookId,
) -> Result<(), Unsendable> {
    let found = webhooks.find(entity, webhook).await?.ok_or(Unsendable::Missing)?;
    if found.webhook.enabled { Ok(()) } else { Err(Unsendable::Disabled) }
}
