//! A deployment's canary: its secret, its application and its webhook.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::applications::{ApplicationError, Credentials, OperatorsApplications, fresh_credentials};
use auth::{Entities, Scope, Scopes};
use base::{Clock, SystemClock, SystemRandom, WebhookId, random};
use issuer::applications::new_application::NewApplication;
use storage::{IdempotencyStore, KeyRings, SecretError, Secrets, Table};
use webhooks::{
    canary::{self, CanarySecret, SECRET, fresh_signing_key},
    subscriptions::{WebhookError, Webhooks, webhook::register::Registration},
};

/// Why the canary was not provisioned.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// The canary's secret, or the keys that seal its webhook, could not be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The canary's application was not created.
    #[error("the canary's application could not be created")]
    Application(#[from] ApplicationError),
    /// The canary's webhook was not created.
    #[error("the canary's webhook could not be created")]
    Webhook(#[from] WebhookError),
}

/// A fresh secret. It contains an entity, an application and a webhook, which [`provide`] creates.
pub fn fresh_secret() -> Value {
    let Credentials { client_id, client_secret } = fresh_credentials();
    json!({
        "clientId": client_id,
        "clientSecret": client_secret,
        "managingEntityIdentifier": format!("canary-{}", random::alphanumeric(&SystemRandom, 22)),
        "webhookIdentifier": WebhookId::new(SystemClock.now(), &SystemRandom),
        "signingKey": fresh_signing_key(&SystemRandom),
    })
}

/// Creates the application and the webhook named in the canary's secret, unless they exist. The application may publish
/// only for the canary's entity. The webhook delivers to the canary receiver of the deployment at this address.
pub async fn provide(table: &Table, secrets: Secrets, environment: &str, base_url: &str) -> Result<(), CanaryError> {
    let secret: CanarySecret = secrets.read(SECRET).await?;
    let scopes: Scopes = [Scope::IntegrationsWrite].into_iter().collect();
    let entities = Entities::new([secret.managing_entity_identifier.to_string()]);
    let credentials =
        Credentials { client_id: secret.client_id.clone(), client_secret: secret.client_secret.expose().to_owned() };
    let applications = OperatorsApplications::new(table, secrets.clone(), environment);
    let new = NewApplication::of_operator("Canary".to_owned(), scopes, entities).publishing(true);
    applications.ensure(new, &credentials).await?;
    let rings = KeyRings::new(secrets, Arc::new(SystemClock));
    let registration = Registration {
        webhooks: Webhooks::new(table.clone()),
        answers: IdempotencyStore::sealed(table.clone(), rings.clone(), Arc::new(SystemRandom)),
        rings,
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
    };
    Ok(canary::provide(&registration, &secret, base_url).await?)
}
