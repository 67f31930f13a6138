//! Webhooks in the table. All of an entity's webhooks are in one partition, so that one query reads them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::subscriptions::{
    endpoint::{
        masked::Headers,
        secret::{self, SealedSecret, SigningSecret},
    },
    error::WebhookError,
    webhook::{PREFIX, Webhook, key, partition},
};
use auth::AuthorizedEntity;
use base::{Time, WebhookId};
use storage::table::{Change, Delete, Put, Table, TableError, Transaction, Write, Written, exists};
use storage::{IdempotencyError, KeyRings, Record, SealError};

const READING: &str = "reading a webhook";

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
    /// The secrets that sign, newest first.
    signing_secrets: Vec<SealedSecret>,
}

impl From<WebhookItem> for Webhook {
    fn from(WebhookItem { webhook, signing_secrets, .. }: WebhookItem) -> Self {
        let previous_secret_ends = signing_secrets.iter().find_map(|secret| secret.expires_date);
        Self { previous_secret_ends, public_keys: secret::public_keys(&signing_secrets), ..webhook }
    }
}

/// A webhook with its signing secrets.
#[derive(Debug)]
pub(crate) struct SigningWebhook {
    pub(crate) webhook: Webhook,
    /// The secrets that sign, newest first, and possibly some that no longer do.
    pub(in crate::subscriptions) secrets: Vec<SealedSecret>,
}

impl SigningWebhook {
    fn of(item: WebhookItem, entity: &AuthorizedEntity, webhook: &WebhookId) -> Self {
        let secrets = item.signing_secrets.clone();
        Self { secrets, webhook: with_key(item.into(), entity, webhook) }
    }

    /// The URL that its events go to, and the headers that are sent with them.
    pub(crate) async fn endpoint(&self, rings: &KeyRings) -> Result<(String, Headers), SealError> {
        let context = self.webhook.seal_context();
        let url = self.webhook.endpoint.url().open(rings, context).await?;
        Ok((url, self.webhook.endpoint.headers().open(rings, context).await?))
    }

    /// The secrets that sign at this moment.
    pub(crate) async fn live_secrets(&self, rings: &KeyRings, now: Time) -> Result<Vec<SigningSecret>, SealError> {
        let owner = &self.webhook.owner_identifier;
        let id = &self.webhook.id;
        let mut live = Vec::new();
        for secret in self.secrets.iter().filter(|secret| secret.is_live(now)) {
            live.push(SigningSecret::open(secret, rings, owner, id).await?);
        }
        Ok(live)
    }
}

impl Webhooks {
    /// The webhooks in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    pub(crate) fn table(&self) -> &Table {
        &self.0
    }

    /// Adds a webhook, atomically with these writes and with the request's record, if it has an idempotency key.
    pub(in crate::subscriptions) async fn add(
        &self,
        entity: &AuthorizedEntity,
        webhook: &Webhook,
        secret: SealedSecret,
        along: Vec<Write>,
        record: Option<Record>,
    ) -> Result<(), IdempotencyError> {
        const DOING: &str = "adding a webhook";
        let (pk, sk) = key(entity.id(), &webhook.id);
        let signing_secrets = vec![secret];
        let put = Put::item(&WebhookItem { pk, sk, webhook: webhook.clone(), signing_secrets }, DOING)?;
        self.0.write_recorded(Transaction::new().with(put).with_all(along), record, DOING).await.map(drop)
    }

    /// All of an entity's webhooks, oldest first, including every webhook acknowledged so far.
    pub(crate) async fn of(&self, entity: &AuthorizedEntity) -> Result<Vec<Webhook>, TableError> {
        const DOING: &str = "reading an entity's webhooks";
        let items: Vec<WebhookItem> = self.0.shared_partition(partition(entity.id()), PREFIX, DOING).await?;
        Ok(items.into_iter().map(Webhook::from).collect())
    }

    pub(crate) async fn find(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<SigningWebhook>, TableError> {
        let item: Option<WebhookItem> = self.0.read(key(entity.id(), webhook), READING).await?;
        Ok(item.map(|item| SigningWebhook::of(item, entity, webhook)))
    }

    /// A webhook with its signing secrets from an eventually consistent read, at half the cost.
    pub(crate) async fn read_eventual(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<SigningWebhook>, TableError> {
        let item: Option<WebhookItem> = self.0.read_eventual(key(entity.id(), webhook), READING).await?;
        Ok(item.map(|item| SigningWebhook::of(item, entity, webhook)))
    }

    /// A webhook that events can be sent to. Fails if it is missing or disabled.
    pub(crate) async fn sendable(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<Webhook, WebhookError> {
        let webhook = self.find(entity, id).await?.ok_or(WebhookError::NotFound)?.webhook;
        if webhook.enabled { Ok(webhook) } else { Err(WebhookError::Disabled) }
    }

    /// Changes a webhook and returns the new state. Returns `Lost` if a condition of the change fails, or the webhook
    /// is gone.
    pub(in crate::subscriptions) async fn change(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        change: Change,
    ) -> Result<Written<Webhook>, TableError> {
        let changed: Written<WebhookItem> = self.0.write_and_read(change, "changing a webhook").await?;
        Ok(changed.map(|item| with_key(item.into(), entity, webhook)))
    }

    /// Changes a webhook in a transaction. Returns `Lost` as [`Self::change`] does.
    pub(in crate::subscriptions) async fn change_in_transaction(
        &self,
        change: Change,
    ) -> Result<Written<()>, TableError> {
        self.0.write_all(Transaction::new().with(change), "changing a webhook").await
    }

    /// Changes a webhook, atomically with the request's record, if it has an idempotency key. Returns `Lost` as
    /// [`Self::change`] does.
    pub(in crate::subscriptions) async fn change_once(
        &self,
        change: Change,
        record: Option<Record>,
    ) -> Result<Written<()>, IdempotencyError> {
        self.0.write_recorded(Transaction::new().with(change), record, "changing a webhook").await
    }

    /// Notes that a webhook's feed was read, writing at most once every five minutes.
    pub(crate) async fn note_read(
        &self,
        entity: &AuthorizedEntity,
        read: &Webhook,
        now: Time,
    ) -> Result<(), TableError> {
        /// How old the recorded time may become.
        const INTERVAL: Duration = Duration::from_secs(5 * 60);
        if read.read_at.is_some_and(|noted| now.since(noted) < INTERVAL) {
            return Ok(());
        }
        let change = Change::of(key(entity.id(), &read.id)).set("readAt", now).only_if(exists());
        self.0.write(change, "recording that a feed is read").await.map(drop)
    }

    /// Writes the record of a request that changes nothing.
    pub(in crate::subscriptions) async fn change_nothing(
        &self,
        record: Option<Record>,
    ) -> Result<(), IdempotencyError> {
        self.0.write_recorded(Transaction::new(), record, "changing a webhook").await.map(drop)
    }

    /// Removes a webhook, atomically with these writes and with the request's record, if it has an idempotency key.
    /// Returns `Lost` if there is no such webhook.
    pub(in crate::subscriptions) async fn remove(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        along: Vec<Write>,
        record: Option<Record>,
    ) -> Result<Written<()>, IdempotencyError> {
        let removal = Delete::of(key(entity.id(), webhook)).only_if(exists());
        self.0.write_recorded(Transaction::new().with_all(along).with(removal), record, "removing a webhook").await
    }
}

/// The owner and the id come from the key, not from the item's attributes: secrets are sealed for the key, and a copied
/// item must not change its owner.
fn with_key(found: Webhook, entity: &AuthorizedEntity, webhook: &WebhookId) -> Webhook {
    Webhook { id: webhook.clone(), owner_identifier: entity.id().clone(), ..found }
}
