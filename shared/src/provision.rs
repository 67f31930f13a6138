//! What a deployment needs before its first request: for the operator's command and for running on one machine.
//! Not part of any deployed binary.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    applications::{Applications, HashedSecret, NewApplication},
    auth::{
        entity::Entities,
        keys::{JsonWebKeys, PublishedKeys},
        scope::Scope,
        signing::{self, BadSigningKey, SigningKey},
    },
    clock::{Clock, SystemClock},
    geo_ip::configuration,
    oauth::issuer::PEPPER_SECRET,
    random::{self, SystemRandom},
    secrets::SecretBytes,
    table::{Table, TableError},
};

/// A client's identifier and secret, as its owner is told them once.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// `app` and 22 letters and digits.
    pub client_id: String,
    /// 43 letters and digits: 256 bits.
    pub client_secret: String,
}

/// Why a deployment could not be provided with what it needs.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The signing key's secret is malformed.
    #[error(transparent)]
    SigningKey(#[from] BadSigningKey),
    /// The pepper's secret is malformed.
    #[error("the secret `client-secret-pepper` is malformed")]
    Pepper(#[source] serde_json::Error),
    /// The table did not take it.
    #[error("the table could not be written")]
    Table(#[from] TableError),
}

/// The secrets that a deployment begins with, by name: fresh random ones, and a configuration of nothing.
pub fn fresh_secrets() -> BTreeMap<&'static str, Value> {
    let bytes = || BASE64_STANDARD.encode(random::bytes::<32>(&SystemRandom));
    let key = random::alphanumeric(&SystemRandom, 8);
    BTreeMap::from([
        (signing::SECRET, SigningKey::fresh_secret()),
        (PEPPER_SECRET, json!({ "pepper": bytes() })),
        ("data-keys", json!({ "current": key, "keys": { &key: bytes() } })),
        ("task-key", json!({ "key": random::alphanumeric(&SystemRandom, 43) })),
        // Which databases are kept is for the operator to say; until then, none.
        (configuration::SECRET, json!({ "editions": [] })),
    ])
}

/// A fresh client id and secret.
pub fn fresh_credentials() -> Credentials {
    let client_id = format!("app{}", random::alphanumeric(&SystemRandom, 22));
    Credentials { client_id, client_secret: random::alphanumeric(&SystemRandom, 43) }
}

/// Publishes the public half of the `signing-key` secret beside what is published already.
pub async fn publish_signing_key(table: &Table, signing_key: &Value) -> Result<(), ProvisionError> {
    let key = SigningKey::from_secret(signing_key)?.public_key();
    let published = PublishedKeys::new(table.clone());
    let JsonWebKeys { mut keys } = published.read().await?;
    keys.retain(|known| known.kid() != key.kid());
    keys.push(key);
    Ok(published.publish(JsonWebKeys { keys }).await?)
}

/// Writes an application.
pub async fn register_application(
    table: &Table,
    pepper: &Value,
    credentials: &Credentials,
    name: &str,
    scopes: &[Scope],
    managing_entities: &[String],
) -> Result<(), ProvisionError> {
    #[derive(Deserialize)]
    struct Pepper {
        pepper: SecretBytes,
    }
    let Pepper { pepper } = Pepper::deserialize(pepper).map_err(ProvisionError::Pepper)?;
    let application = NewApplication {
        client_id: &credentials.client_id,
        name,
        scopes: scopes.iter().copied().collect(),
        entities: Entities::new(managing_entities.iter().cloned()),
        secret: HashedSecret::of(&credentials.client_secret, &pepper),
        created: SystemClock.now(),
    };
    Ok(Applications::new(table.clone()).put(application).await?)
}
