//! The canary's secret: its client's credentials, the identifiers of its entity and its webhook, and the webhook's
//! signing key. The webhook is created from the secret instead of over HTTP, since the receiver needs the key.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Deserializer};

use crate::subscriptions::{
    WebhookError,
    endpoint::secret::SigningSecret,
    webhook::register::{NewWebhook, Registration},
};
use auth::{AuthorizedEntity, EntityId};
use base::{
    Random, WebhookId, random,
    refreshed::{Reading, Source},
};
use storage::{SecretBytes, SecretError, SecretText, Secrets};

/// The secret's name after the prefix.
pub const SECRET: &str = "canary";

/// The canary's secret, as stored in Secrets Manager. All values are random and created together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CanarySecret {
    /// The client identifier of its application.
    pub client_id: String,
    /// Its application's client secret.
    #[serde(deserialize_with = "text")]
    pub client_secret: SecretText,
    /// The canary's managing entity.
    pub managing_entity_identifier: EntityId,
    /// Its receiver's webhook.
    pub webhook_identifier: WebhookId,
    /// The key that signs the webhook's deliveries, in Base64.
    pub signing_key: SecretBytes,
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretText, D::Error> {
    String::deserialize(deserializer).map(SecretText::new)
}

/// A new signing key for the webhook, in Base64.
pub fn fresh_signing_key(random: &dyn Random) -> String {
    BASE64_STANDARD.encode(random::bytes::<32>(random))
}

/// The source of the secret; `None` if the canary is not provisioned.
pub(super) struct SecretSource(pub Secrets);

impl Source for SecretSource {
    type Value = Option<CanarySecret>;
    type Error = SecretError;

    fn load(&self) -> Reading<'_, Self> {
        Box::pin(async {
            match self.0.read(SECRET).await {
                Err(SecretError::Missing { .. }) => Ok(None),
                read => read.map(Some),
            }
        })
    }
}

/// The path of the receiver.
pub const PATH: &str = "/task/canary";

/// Creates the canary's webhook. Replaces an existing one unless it is enabled and has the receiver's address and this
/// key.
pub async fn provide(registration: &Registration, secret: &CanarySecret, base_url: &str) -> Result<(), WebhookError> {
    let entity = AuthorizedEntity::of_canary(secret.managing_entity_identifier.clone());
    let key = SigningSecret::of(secret.signing_key.clone());
    let new = NewWebhook::plain("Canary", format!("{base_url}{PATH}"));
    registration.ensure(&entity, &secret.webhook_identifier, &key, new).await
}
