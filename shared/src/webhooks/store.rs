//! Webhooks in the table: all of an entity's in one partition, so that one query finds who is to be told.

use aws_sdk_dynamodb::{operation::update_item::UpdateItemError, types::AttributeValue};
use serde::{Deserialize, Serialize};

use super::{Webhook, secret::SigningSecret};
use crate::{
    auth::entity::{AuthorizedEntity, EntityId},
    clock::Time,
    ids::WebhookId,
    sealing::{KeyRings, SealError},
    table::{Table, TableError, read_item},
};

/// The webhooks in the table.
#[derive(Debug, Clone)]
pub struct Webhooks(Table);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebhookItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    webhook: Webhook,
    /// Those that sign, the newest first. Sealed.
    signing_secrets: Vec<SealedSecret>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SealedSecret {
    sealed: String,
    /// When it stops signing; never, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_date: Option<Time>,
}

/// A webhook with what signs for it.
#[derive(Debug)]
pub struct SigningWebhook {
    /// The webhook.
    pub webhook: Webhook,
    secrets: Vec<SealedSecret>,
}

impl SigningWebhook {
    /// The secrets that sign at this moment.
    pub async fn live_secrets(&self, rings: &KeyRings, now: Time) -> Result<Vec<SigningSecret>, SealError> {
        let (owner, id) = (&self.webhook.owner_identifier, &self.webhook.id);
        let mut live = Vec::new();
        for secret in self.secrets.iter().filter(|secret| secret.expires_date.is_none_or(|end| now < end)) {
            let ring = rings.for_text(&secret.sealed).await?;
            live.push(SigningSecret::open(&secret.sealed, &ring, owner, id)?);
        }
        Ok(live)
    }
}

impl Webhooks {
    /// The webhooks in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Adds a webhook.
    pub async fn add(&self, entity: &AuthorizedEntity, webhook: &Webhook, sealed: String) -> Result<(), TableError> {
        let (pk, sk) = key(entity.id(), &webhook.id);
        let signing_secrets = vec![SealedSecret { sealed, expires_date: None }];
        self.0.put(&WebhookItem { pk, sk, webhook: webhook.clone(), signing_secrets }, "adding a webhook").await
    }

    /// All webhooks of an entity, the oldest first. Sees every one that was acknowledged before.
    pub async fn of(&self, entity: &AuthorizedEntity) -> Result<Vec<Webhook>, TableError> {
        const DOING: &str = "reading an entity's webhooks";
        let items = self.0.partition(partition(entity.id()), Some("WHK#"), DOING).await?;
        items.into_iter().map(|item| read_item::<WebhookItem>(item, DOING).map(|item| item.webhook)).collect()
    }

    /// One webhook with what signs for it.
    pub async fn find(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<SigningWebhook>, TableError> {
        let item: Option<WebhookItem> = self.0.get(key(entity.id(), webhook), true, "reading a webhook").await?;
        // Whose it is, its place says, for which its secrets are sealed; not the row, which may be a copy of another's.
        let in_its_place =
            |found: Webhook| Webhook { id: webhook.clone(), owner_identifier: entity.id().clone(), ..found };
        Ok(item.map(|item| SigningWebhook { webhook: in_its_place(item.webhook), secrets: item.signing_secrets }))
    }

    /// Disables a webhook for a reason of the service's own, once: one that is disabled already keeps its reason.
    pub async fn disable(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        reason: &str,
        now: Time,
    ) -> Result<(), TableError> {
        let update = "SET enabled = :no, disabledReason = :reason, lastUpdate = :now, version = version + :one";
        let values = [
            (":no", AttributeValue::Bool(false)),
            (":yes", AttributeValue::Bool(true)),
            (":reason", AttributeValue::S(reason.to_owned())),
            (":now", AttributeValue::S(now.to_string())),
            (":one", AttributeValue::N("1".to_owned())),
        ];
        self.update(entity, webhook, update, "enabled = :yes", values, "disabling a webhook").await
    }

    /// Counts a failed attempt; a successful one starts the count again. A webhook that is gone is not made again.
    pub async fn count_attempt(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        succeeded: bool,
    ) -> Result<(), TableError> {
        let (update, value) = match succeeded {
            true => ("SET failuresInRow = :value", "0"),
            false => ("ADD failuresInRow :value", "1"),
        };
        let values = [(":value", AttributeValue::N(value.to_owned()))];
        self.update(entity, webhook, update, "attribute_exists(pk)", values, "counting a webhook's failures").await
    }

    async fn update<const N: usize>(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        update: &str,
        condition: &str,
        values: [(&str, AttributeValue); N],
        doing: &'static str,
    ) -> Result<(), TableError> {
        let (pk, sk) = key(entity.id(), webhook);
        let mut request = self
            .0
            .client
            .update_item()
            .table_name(&self.0.name)
            .key("pk", AttributeValue::S(pk))
            .key("sk", AttributeValue::S(sk))
            .update_expression(update)
            .condition_expression(condition);
        for (name, value) in values {
            request = request.expression_attribute_values(name, value);
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(error.as_service_error(), Some(UpdateItemError::ConditionalCheckFailedException(_))) =>
            {
                Ok(())
            }
            Err(error) => Err(TableError::sdk(doing)(error)),
        }
    }
}

fn partition(entity: &EntityId) -> String {
    format!("ENT#{entity}")
}

fn key(entity: &EntityId, webhook: &WebhookId) -> (String, String) {
    (partition(entity), format!("WHK#{webhook}"))
}
