//! Replaces the keys that sign access tokens.
//!
//! In an ordinary rotation, the next key starts signing and a new next key is published. No token is refused, since the
//! next key was published long before. On AWS, Secrets Manager rotates, and `rotate` waits; for a local service,
//! `rotate` performs the steps itself. An emergency replaces both keys at once, and every token signed by the old keys
//! is refused within a minute.
//!
//! Both can be interrupted at any moment and run again.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use http_body_util::BodyExt;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::Serialize;
use serde_json::{Value, json};
use storage::aws::CallError;

use crate::{
    Deployment, DeploymentError,
    deployment::{self, Folder, Location, ReplacedSecret},
};
use auth::{
    keys::{PublishedKeys, RevokedKey, last_token_of_a_retired_key},
    revocations::RevocationList,
    signing::{BadSigningKey, SECRET, SigningKeys, SigningSecret},
    token::LONGEST_LIFETIME,
};
use base::audit::{Action, Notes};
use base::{Clock, SystemClock, SystemRandom, logging, pause, random};
use issuer::rotation::Step;
use storage::secrets::versions::{CURRENT, Versioned};
use storage::{SecretError, TableError};

/// The time limit for a rotation. Secrets Manager takes a few seconds, or longer if it has to repeat a step.
const LIMIT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Why the keys were not replaced, or were only partly replaced.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeysError {
    /// The deployment cannot be used.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// Secrets Manager refused the call or did not respond.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Secrets Manager is not rotating the secret.
    #[error("Secrets Manager could not rotate the secret {name}: {reason}")]
    NotRotated {
        /// The secret's full name.
        name: String,
        /// The error from Secrets Manager or the SDK.
        reason: String,
    },
    /// The rotation ended without a change.
    #[error(
        "the rotation of the secret {name} has ended, but tokens are still signed with {kid}: the function \
         rotate-signing-key was not invoked. Check the rotation configured for the secret"
    )]
    SameKeys {
        /// The secret's full name.
        name: String,
        /// The key that signed before and still does.
        kid: String,
    },
    /// Secrets Manager did not end the rotation in time.
    #[error(
        "the rotation did not finish within {} s. Secrets Manager tries again; see the log of rotate-signing-key for \
         the cause",
        LIMIT.as_secs()
    )]
    Late,
    /// The secret is malformed.
    #[error(transparent)]
    Keys(#[from] BadSigningKey),
    /// The function cannot be invoked.
    #[error("the function rotate-signing-key cannot be invoked: {0}")]
    Unreachable(String),
    /// The function failed in a step.
    #[error("{step} failed: {reason}")]
    Step {
        /// The step's name.
        step: &'static str,
        /// The function's error.
        reason: String,
    },
    /// A concurrent emergency replacement revoked the new keys.
    #[error("another emergency replacement revoked the new keys in the meantime; run this again")]
    Revoked(#[from] RevokedKey),
    /// The table did not respond.
    #[error("the replacement is incomplete; run this again")]
    Table(#[from] TableError),
}

impl SigningKeysError {
    /// Whether the named deployment does not exist or another rotation is in progress, in which case nothing was
    /// changed.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Deployment(error) if error.is_refusal())
    }
}

/// The names of the keys after a rotation or an emergency.
#[derive(Debug, Serialize)]
pub struct Replaced {
    /// The key that signs.
    pub current: String,
    /// The key that will sign after the next rotation.
    pub next: String,
    /// The revoked keys, whose tokens are all refused. Empty after an ordinary rotation.
    pub revoked: Vec<String>,
}

impl Replaced {
    fn by(keys: &SigningKeys, revoked: Vec<String>) -> Self {
        Self { current: keys.current.kid().to_owned(), next: keys.next.kid().to_owned(), revoked }
    }
}

/// A deployment's signing keys.
pub struct SigningKeysOf<'a> {
    deployment: &'a Deployment,
    secret: ReplacedSecret,
    name: String,
}

impl<'a> SigningKeysOf<'a> {
    /// Opens this deployment's keys. For a local service, this locks out other rotations.
    pub fn open(deployment: &'a Deployment) -> Result<Self, SigningKeysError> {
        let secret = ReplacedSecret::open(deployment, SECRET)?;
        Ok(Self { deployment, secret, name: format!("{}{SECRET}", deployment.secrets_prefix) })
    }

    /// Makes the next key sign. No token is refused.
    pub async fn rotate(&self) -> Result<Replaced, SigningKeysError> {
        let before = self.keys().await?;
        match &self.deployment.location {
            Location::Stack(_) => self.wait_for_secrets_manager().await?,
            Location::Folder(folder) => self.do_the_steps(folder).await?,
        }
        let after = self.keys().await?;
        if has_rotated(&before, &after) {
            Ok(Replaced::by(&after, Vec::new()))
        } else {
            Err(SigningKeysError::SameKeys { name: self.name.clone(), kid: after.current.kid().to_owned() })
        }
    }

    async fn keys(&self) -> Result<SigningKeys, SigningKeysError> {
        Ok(SigningSecret::read(&self.secret.versions.current().await?.value)?.keys()?)
    }

    async fn wait_for_secrets_manager(&self) -> Result<(), SigningKeysError> {
        let refused = |reason: String| SigningKeysError::NotRotated { name: self.name.clone(), reason };
        let asked = self.deployment.secrets.rotate_secret().secret_id(&self.name).send().await;
        let asked = asked.map_err(|error| refused(CallError::of(&error).to_string()))?;
        let version = asked.version_id().unwrap_or_default();
        tracing::info!("Secrets Manager is rotating the secret; this takes a few seconds");
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            let described = self.deployment.secrets.describe_secret().secret_id(&self.name).send().await;
            let described = described.map_err(|error| refused(CallError::of(&error).to_string()))?;
            let labels = described.version_ids_to_stages().and_then(|versions| versions.get(version));
            if labels.is_some_and(|labels| labels.iter().any(|label| label == CURRENT)) {
                return Ok(());
            }
            pause(POLL_INTERVAL).await;
        }
        Err(SigningKeysError::Late)
    }

    /// Performs Secrets Manager's steps in order.
    async fn do_the_steps(&self, folder: &Folder) -> Result<(), SigningKeysError> {
        let version = random::uuid(&SystemRandom);
        for step in Step::ALL {
            self.invoke(folder, step, &version).await?;
        }
        Ok(())
    }

    async fn invoke(&self, folder: &Folder, step: Step, version: &str) -> Result<(), SigningKeysError> {
        let unreachable = |error: &(dyn Error + 'static)| SigningKeysError::Unreachable(logging::chain(error));
        let event = json!({ "Step": step.as_str(), "SecretId": self.name, "ClientRequestToken": version });
        let request = folder.invocation("rotate-signing-key", event.to_string().as_bytes())?;
        let answer = Client::builder(TokioExecutor::new()).build_http().request(request).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        let failed = !answer.status().is_success() || answer.headers().contains_key("x-amz-function-error");
        let body = answer.into_body().collect().await.map_err(|error| unreachable(&error))?.to_bytes();
        if !failed {
            return Ok(());
        }
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let reason = said["errorMessage"].as_str().map_or_else(|| String::from_utf8_lossy(&body).into(), str::to_owned);
        Err(SigningKeysError::Step { step: step.as_str(), reason })
    }

    /// Replaces both keys at once, and revokes every token signed by the old keys. The new keys are published before
    /// they sign.
    pub async fn replace_in_emergency(&self) -> Result<Replaced, SigningKeysError> {
        let versions = &self.secret.versions;
        let table = &self.deployment.table;
        let (algorithm, lifetime) = match &self.deployment.location {
            Location::Stack(stack) => (Some(stack.parsed("SigningAlgorithm")?), stack.parsed("TokenLifetime")?),
            // A local service has no outputs for the algorithm and the lifetime.
            Location::Folder(_) => (None, LONGEST_LIFETIME),
        };
        let replaced = versions.current().await?;
        let old = SigningSecret::read(&replaced.value)?.keys()?;
        let secret = SigningSecret::fresh(algorithm.unwrap_or_else(|| old.next.algorithm()));
        let new = secret.keys()?;
        let published = PublishedKeys::new(table.clone());
        let now = SystemClock.now();
        let publish = published.change(|published| {
            published.add(new.current.public_key(), now)?;
            published.add(new.next.public_key(), now)
        });
        publish.await??;

        // A rotation in progress would restore an old key, and its pending label would block the next rotation.
        let mut abandoned: Vec<_> = versions.abandon_pending().await?.into_iter().collect();
        self.secret.replace(&secret.value(), &replaced.id).await?;
        abandoned.extend(versions.abandon_pending().await?);
        tracing::info!("{} now signs access tokens", new.current.kid());

        let staying = [new.current.kid(), new.next.kid()];
        let mut revoked: Vec<_> = published.read().await?.keys.iter().map(|key| key.key.kid().to_owned()).collect();
        // A key that a rotation created but did not publish may also be compromised.
        let made = abandoned.iter().filter_map(|version| SigningSecret::read(&version.value).ok()?.keys().ok());
        let unwanted = made.chain([old]).flat_map(|keys| [keys.current, keys.next]);
        revoked.extend(unwanted.map(|key| key.kid().to_owned()));
        revoked.retain(|kid| !staying.contains(&kid.as_str()));
        revoked.sort();
        revoked.dedup();
        let until = last_token_of_a_retired_key(lifetime, now);
        let revocations = RevocationList::new(table.clone());
        for kid in &revoked {
            revocations.key(kid, until, SystemClock.now()).await?;
        }
        published.change(|published| published.revoke_others(&new, &revoked, now)).await??;
        let notes = Notes::default();
        notes.subject(new.current.kid());
        deployment::audit(&self.deployment.environment, Action::ReplaceSigningKeys, &notes);
        Ok(Replaced::by(&new, revoked))
    }
}

/// Whether another key is now signing. A rotation that does not invoke rotate-signing-key may end with the same keys.
fn has_rotated(before: &SigningKeys, after: &SigningKeys) -> bool {
    before.current.kid() != after.current.kid()
}

#[cfg(test)]
mod tests {
    use auth::signing::SigningAlgorithm;

    use super::*;

    #[test]
    fn a_new_version_with_the_same_keys_is_no_rotation() {
        let secret = SigningSecret::fresh(SigningAlgorithm::Es256);
        let rotated = secret.rotated(SigningAlgorithm::Es256);
        let before = secret.keys().expect("keys");
        let after = rotated.keys().expect("keys");
        assert!(has_rotated(&before, &after));
        assert!(!has_rotated(&before, &secret.keys().expect("the same keys")));
    }
}
