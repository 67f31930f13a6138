//! Events in the table: their bodies, and what was answered for an idempotency key.

use std::time::Duration;

use aws_sdk_dynamodb::{operation::put_item::PutItemError, types::AttributeValue};
use serde::{Deserialize, Serialize};

use super::Event;
use auth::entity::AuthorizedEntity;
use base::{
    clock::Time,
    ids::{DeliveryId, EventId, WebhookId},
};
use storage::table::{Statement, Table, TableError, read_item, write_item};

/// The largest body that shares its call with other writes, in bytes; a larger one would hold them up.
const MAX_SHARED: usize = 16 * 1024;

/// How long an idempotency key is remembered.
pub const IDEMPOTENCY_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// The events in the table.
#[derive(Debug, Clone)]
pub struct Events(Table);

/// The body of an event, one item for all its deliveries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BodyItem {
    pk: String,
    sk: String,
    body: String,
    expires_at: i64,
}

/// What was decided for an idempotency key: enough to do and to answer the same again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Publication {
    /// The event that the key stands for.
    pub event: EventId,
    /// When it was published.
    pub timestamp: Time,
    /// SHA-256 of the request's body, in base 64.
    pub request_hash: String,
    /// Its deliveries.
    pub deliveries: Vec<PlannedDelivery>,
}

/// One delivery of a publication.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedDelivery {
    /// The delivery.
    #[serde(rename = "deliveryIdentifier")]
    pub delivery: DeliveryId,
    /// The webhook that it goes to.
    #[serde(rename = "webhookIdentifier")]
    pub webhook: WebhookId,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicationItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    publication: Publication,
    expires_at: i64,
}

impl Events {
    /// The events in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Keeps an event's body for so long. Writing it again changes nothing, since an event's body never changes.
    pub async fn keep(&self, event: &Event, retention: Duration) -> Result<(), TableError> {
        const DOING: &str = "keeping an event";
        let (pk, sk) = body_key(&event.id);
        let expires_at = (event.timestamp + retention).as_seconds();
        let item = BodyItem { pk, sk, body: event.body.clone(), expires_at };
        if event.body.len() <= MAX_SHARED {
            return self.0.execute(Statement::insert(write_item(&item, DOING)?)).await.map(drop);
        }
        let put = self.0.client.put_item().table_name(&self.0.name).set_item(Some(write_item(&item, DOING)?));
        match put.condition_expression("attribute_not_exists(pk)").send().await {
            Ok(_) => Ok(()),
            // It stands there, and stays as it was first sent.
            Err(error)
                if matches!(error.as_service_error(), Some(PutItemError::ConditionalCheckFailedException(_))) =>
            {
                Ok(())
            }
            Err(error) => Err(TableError::sdk(DOING)(error)),
        }
    }

    /// The body of an event.
    pub async fn body(&self, event: &EventId) -> Result<Option<String>, TableError> {
        let item: Option<BodyItem> = self.0.read(body_key(event), "reading an event").await?;
        Ok(item.map(|item| item.body))
    }

    /// Claims an idempotency key for a publication, or gives the one that has it already.
    ///
    /// The first of several at once wins, and all of them go on with what it decided. A memory that is over counts as
    /// none, whether or not it was swept away yet.
    pub async fn claim_key(
        &self,
        entity: &AuthorizedEntity,
        key_hash: &str,
        publication: Publication,
        now: Time,
    ) -> Result<Publication, TableError> {
        const DOING: &str = "claiming an idempotency key";
        let item = PublicationItem {
            pk: format!("IDEMPOTENCY#{}#{key_hash}", entity.id()),
            sk: "PUBLICATION".into(),
            expires_at: (now + IDEMPOTENCY_MEMORY).as_seconds(),
            publication,
        };
        let outcome = self
            .0
            .client
            .put_item()
            .table_name(&self.0.name)
            .set_item(Some(write_item(&item, DOING)?))
            .condition_expression("attribute_not_exists(pk) OR expiresAt <= :now")
            .expression_attribute_values(":now", AttributeValue::N(now.as_seconds().to_string()))
            .return_values_on_condition_check_failure(
                aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld,
            )
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(item.publication),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(lost)) => {
                    let item = lost
                        .item
                        .clone()
                        .ok_or(TableError::Missing("the publication that holds an idempotency key"))?;
                    Ok(read_item::<PublicationItem>(item, DOING)?.publication)
                }
                _ => Err(TableError::sdk(DOING)(error)),
            },
        }
    }
}

fn body_key(event: &EventId) -> (String, String) {
    (format!("EVT#{event}"), "BODY".to_owned())
}
