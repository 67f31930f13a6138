//! Webhooks in the table: all of an entity's in one partition, so that one query finds who is to be told.

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{Delete, ReturnValue, TransactWriteItem},
};
use serde::{Deserialize, Serialize};

use super::{
    masked::Headers,
    revision::Revision,
    secret::{SealedSecret, SigningSecret},
    webhook::Webhook,
};
use auth::entity::{AuthorizedEntity, EntityId};
use base::{clock::Time, ids::WebhookId};
use storage::{
    sealing::{KeyRings, SealError},
    table::{Table, TableError, Transacted, read_item, text},
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

/// A webhook with what signs for it.
#[derive(Debug)]
pub struct SigningWebhook {
    /// The webhook.
    pub webhook: Webhook,
    /// Those that sign, the newest first, and perhaps some that no longer do.
    pub secrets: Vec<SealedSecret>,
}

impl SigningWebhook {
    /// Where its events go, and with which headers.
    pub async fn endpoint(&self, rings: &KeyRings) -> Result<(String, Headers), SealError> {
        let place = self.webhook.place();
        let url = self.webhook.endpoint.url().open(rings, place).await?;
        Ok((url, self.webhook.endpoint.headers().open(rings, place).await?))
    }

    /// The secrets that sign at this moment.
    pub async fn live_secrets(&self, rings: &KeyRings, now: Time) -> Result<Vec<SigningSecret>, SealError> {
        let (owner, id) = (&self.webhook.owner_identifier, &self.webhook.id);
        let mut live = Vec::new();
        for secret in self.secrets.iter().filter(|secret| secret.is_live(now)) {
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

    pub(super) fn table(&self) -> &Table {
        &self.0
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
        let items = self.0.shared_partition(partition(entity.id()), "WHK#").await?;
        items.iter().map(|item| read_item::<WebhookItem>(item.clone(), DOING).map(|item| item.webhook)).collect()
    }

    /// One webhook with what signs for it.
    pub async fn find(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<SigningWebhook>, TableError> {
        let item: Option<WebhookItem> = self.0.read(key(entity.id(), webhook), "reading a webhook").await?;
        Ok(item.map(|item| SigningWebhook {
            webhook: in_its_place(item.webhook, entity, webhook),
            secrets: item.signing_secrets,
        }))
    }

    /// Changes what its owner wants to be changed; gives the webhook as it is then. Nothing, when it is not as it was read
    /// or is gone.
    pub async fn change(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        revision: Revision,
    ) -> Result<Option<Webhook>, TableError> {
        const DOING: &str = "changing a webhook";
        let (pk, sk) = key(entity.id(), webhook);
        let request = self
            .0
            .client
            .update_item()
            .table_name(&self.0.name)
            .key("pk", text(pk))
            .key("sk", text(sk))
            .update_expression(revision.update)
            .condition_expression(revision.condition)
            .set_expression_attribute_names(Some(revision.names))
            .set_expression_attribute_values(Some(revision.values))
            .return_values(ReturnValue::AllNew);
        match request.send().await {
            Ok(answer) => {
                let item: WebhookItem = read_item(answer.attributes.unwrap_or_default(), DOING)?;
                Ok(Some(in_its_place(item.webhook, entity, webhook)))
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(None),
                _ => Err(TableError::sdk(DOING)(error)),
            },
        }
    }

    /// Removes a webhook, together with these writes or not at all. The condition is lost when there is no such webhook.
    pub async fn remove(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        mut along: Vec<TransactWriteItem>,
    ) -> Result<Transacted, TableError> {
        const DOING: &str = "removing a webhook";
        let (pk, sk) = key(entity.id(), webhook);
        let delete = Delete::builder()
            .table_name(&self.0.name)
            .key("pk", text(pk))
            .key("sk", text(sk))
            .condition_expression("attribute_exists(pk)")
            .build();
        along.push(TransactWriteItem::builder().delete(delete.map_err(TableError::unbuilt(DOING))?).build());
        self.0.transact(along, DOING).await
    }
}

fn partition(entity: &EntityId) -> String {
    format!("ENT#{entity}")
}

/// Where a webhook stands.
pub(super) fn key(entity: &EntityId, webhook: &WebhookId) -> (String, String) {
    (partition(entity), format!("WHK#{webhook}"))
}

/// Whose it is, its place says, for which its secrets are sealed; not the row, which may be a copy of another's.
fn in_its_place(found: Webhook, entity: &AuthorizedEntity, webhook: &WebhookId) -> Webhook {
    Webhook { id: webhook.clone(), owner_identifier: entity.id().clone(), ..found }
}
