//! Prepares a deployment for its first request: fills its secrets, and publishes its keys.

use std::collections::BTreeMap;

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    Deployment, DeploymentError,
    canary::{self, CanaryError},
    data_keys::key_ring::KeyRingSecret,
    deployment::Stack,
};
use auth::{
    keys::{PublishedKeys, RevokedKey},
    signing::{self, BadSigningKey, SigningAlgorithm, SigningSecret},
};
use base::{Clock, SystemClock, SystemRandom, random};
use geo_ip::configuration;
use issuer::oauth::pepper;
use payments::{builtin, providers::SECRET_PREFIX};
use storage::secrets::versions::{CURRENT, Versioned};
use storage::{SecretError, Secrets, Table, TableError, sealing};

/// Why a deployment was not provisioned.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The signing key's secret is malformed.
    #[error(transparent)]
    SigningKey(#[from] BadSigningKey),
    /// The signing keys were replaced in an emergency, but the secret still has the old ones.
    #[error("the secret `signing-key` holds revoked keys; restore its current value, or remove it to get a new one")]
    Revoked(#[from] RevokedKey),
    /// The table could not be read or written.
    #[error("the table could not be read or written")]
    Table(#[from] TableError),
    /// The stack lacks an output.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The canary was not provisioned.
    #[error(transparent)]
    Canary(#[from] CanaryError),
    /// A secret could not be read or written.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// Fills a stack's empty secrets, publishes the public halves of its signing keys, and creates the canary's application
/// and webhook. Existing secrets keep their values, so this can be repeated. Returns the names of the filled secrets.
pub async fn provide(deployment: &Deployment, stack: &Stack) -> Result<Vec<&'static str>, ProvisionError> {
    let algorithm = stack.parsed("SigningAlgorithm")?;
    let lifetime = stack.parsed("TokenLifetime")?;
    let (mut signing_key, mut filled) = fill_secrets(deployment, algorithm).await?;
    loop {
        let published = publish_signing_key(&deployment.table, &signing_key, lifetime).await;
        // A rotation or an emergency may have replaced the keys since they were read.
        let (now, more) = fill_secrets(deployment, algorithm).await?;
        filled.extend(more);
        if now == signing_key {
            published?;
            break;
        }
        signing_key = now;
    }
    let secrets = Secrets::new(deployment.secrets.clone(), &deployment.secrets_prefix);
    canary::provide(&deployment.table, secrets, &deployment.environment, stack.output("BaseUrl")?).await?;
    Ok(filled)
}

/// Fills the empty secrets. Returns the value of the secret with the signing keys, and the names of the filled secrets.
async fn fill_secrets(
    deployment: &Deployment,
    algorithm: SigningAlgorithm,
) -> Result<(Value, Vec<&'static str>), ProvisionError> {
    let mut signing_key = Value::Null;
    let mut filled = Vec::new();
    for (name, fresh) in fresh_secrets(algorithm) {
        let versions = deployment.versions(name);
        let (value, is_new) = match versions.current().await {
            Ok(present) => (present.value, false),
            Err(SecretError::Missing { .. }) => (fresh, true),
            Err(error) => return Err(error.into()),
        };
        if is_new {
            versions.put(&random::uuid(&SystemRandom), &value, CURRENT).await?;
            tracing::info!("created a value for the secret {}{name}", deployment.secrets_prefix);
            filled.push(name);
        }
        if name == signing::SECRET {
            signing_key = value;
        }
    }
    Ok((signing_key, filled))
}

/// The first values of a deployment's secrets, by name: random ones, and an empty geo-IP configuration.
pub fn fresh_secrets(algorithm: SigningAlgorithm) -> BTreeMap<&'static str, Value> {
    let bytes = || BASE64_STANDARD.encode(random::bytes::<32>(&SystemRandom));
    BTreeMap::from([
        (signing::SECRET, SigningSecret::fresh(algorithm).value()),
        (pepper::SECRET, json!({ "pepper": bytes() })),
        (sealing::SECRET, KeyRingSecret::new(SystemClock.now(), &SystemRandom).value()),
        ("task-key", json!({ "key": random::alphanumeric(&SystemRandom, 43) })),
        // No databases until the operator configures some.
        (configuration::SECRET, json!({ "editions": [] })),
        (webhooks::canary::SECRET, canary::fresh_secret()),
    ])
}

/// Secrets for the built-in payment providers, by name, for a local service. They have the right form, but the
/// providers do not know them, so the operator replaces them with real ones. Only missing secrets are created, since
/// generating a key takes noticeable time.
pub fn provider_secrets(missing: impl Fn(&str) -> bool) -> BTreeMap<String, Value> {
    let secret = |built_in: &builtin::BuiltIn| {
        let client_id = random::alphanumeric(&SystemRandom, 22);
        if built_in.has_key() {
            json!({ "clientId": client_id, "privateKey": fresh_private_key() })
        } else {
            json!({ "clientId": client_id, "clientSecret": random::alphanumeric(&SystemRandom, 43) })
        }
    };
    let named = builtin::all().iter().map(|built_in| (format!("{SECRET_PREFIX}{}", built_in.name), built_in));
    named.filter(|(name, _)| missing(name)).map(|(name, built_in)| (name, secret(built_in))).collect()
}

/// A new RSA key in PEM (PKCS #8). Every provider that accepts signed assertions accepts RS256.
fn fresh_private_key() -> String {
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("the system's generator gives bytes");
    let der: Pkcs8V1Der<'_> = pair.as_der().expect("a key that was just made can be written");
    let text = BASE64_STANDARD.encode(der.as_ref());
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

/// Publishes the public halves of the `signing-key` secret, and ends published keys that are not in the secret, in case
/// a rotation was interrupted. `lifetime` is the lifetime of tokens, in seconds.
pub async fn publish_signing_key(table: &Table, signing_key: &Value, lifetime: u32) -> Result<(), ProvisionError> {
    let keys = SigningSecret::read(signing_key)?.keys()?;
    let now = SystemClock.now();
    Ok(PublishedKeys::new(table.clone()).change(|published| published.settle(&keys, lifetime, now)).await??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbound::AddressRules;
    use payments::providers;

    #[test]
    fn fresh_provider_secrets_are_valid_and_unique() {
        let one = provider_secrets(|_| true);
        let other = provider_secrets(|_| true);
        assert_eq!(one.len(), 6);
        for (name, secret) in &one {
            let provider = name.strip_prefix(SECRET_PREFIX).expect("the prefix");
            providers::check(provider, secret, &AddressRules::default()).expect("a good secret");
            assert_ne!(secret, &other[name], "{name}");
        }
    }
}
