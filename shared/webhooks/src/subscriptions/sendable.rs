//! Whether events can be sent to a webhook.

use super::{
    Webhook, Webhooks,
    problems::{webhook_disabled, webhook_not_found},
};
use auth::AuthorizedEntity;
use base::WebhookId;
use problem::Problem;
use storage::TableError;

/// Why no event can be sent to a webhook.
#[derive(Debug, thiserror::Error)]
pub enum Unsendable {
    /// The entity has no such webhook; another entity's webhook looks the same.
    #[error("the entity has no such webhook")]
    Missing,
    /// The webhook is disabled.
    #[error("the webhook is disabled")]
    Disabled,
    /// The table failed.
    #[error("the table failed a webhook that was to be sent to")]
    Table(#[from] TableError),
}

impl From<Unsendable> for Problem {
    fn from(error: Unsendable) -> Self {
        match error {
            Unsendable::Missing => webhook_not_found(),
            Unsendable::Disabled => webhook_disabled(),
            Unsendable::Table(error) => error.into(),
        }
    }
}

impl Webhooks {
    /// A webhook that is enabled.
    pub(crate) async fn sendable(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<Webhook, Unsendable> {
        let webhook = self.find(entity, id).await?.ok_or(Unsendable::Missing)?.webhook;
        if webhook.enabled { Ok(webhook) } else { Err(Unsendable::Disabled) }
    }
}
