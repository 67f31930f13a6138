//! The rotation of the keys that sign tokens, in the four steps of Secrets Manager.
//! <https://docs.aws.amazon.com/secretsmanager/latest/userguide/rotate-secrets_lambda-functions.html>
//!
//! The previous rotation published the next key, so every verifier knows it before it signs. A rotation changes only
//! which key signs. The old key stays published until its last token has expired.
//!
//! | step | effect |
//! |---|---|
//! | `createSecret` | creates a version in which the next key becomes the current one, and a new key the next |
//! | `setSecret` | publishes the new key |
//! | `testSecret` | signs with both keys, and verifies with the published keys |
//! | `finishSecret` | makes the version the current one, and sets the old key's end |
//!
//! Each step can be repeated, so an interrupted rotation can continue.

use std::{fmt, future::Future, time::Duration};

use futures::FutureExt;
use serde::Deserialize;

use crate::settings::{SigningSettings, TokenSettings};
use auth::{
    jws::{self, Jws, JwsFault},
    keys::{Published, PublishedKeys, RevokedKey},
    signing::{BadSigningKey, SECRET, SigningKey, SigningKeys, SigningSecret},
};
use base::audit::{Action, AuditOutcome, Entry, Notes};
use base::{SharedClock, Time};
use storage::secrets::versions::{PENDING, SecretVersions, Version, Versioned};
use storage::{SecretError, Secrets, Table, TableError};

/// A request for one step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RotationEvent {
    /// The step.
    pub step: Step,
    /// The secret's name or ARN.
    pub secret_id: String,
    /// The name of the version that the rotation creates.
    pub client_request_token: String,
}

/// A step of the rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Creates the new version.
    CreateSecret,
    /// Publishes its new key.
    SetSecret,
    /// Tests its keys.
    TestSecret,
    /// Makes it the current one.
    FinishSecret,
}

impl Step {
    /// All steps, in their order.
    pub const ALL: [Self; 4] = [Self::CreateSecret, Self::SetSecret, Self::TestSecret, Self::FinishSecret];

    /// The step's name in an event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateSecret => "createSecret",
            Self::SetSecret => "setSecret",
            Self::TestSecret => "testSecret",
            Self::FinishSecret => "finishSecret",
        }
    }
}

/// A store of the published keys.
pub trait Publication: Send + Sync {
    /// The published keys.
    fn read(&self) -> impl Future<Output = Result<Published, TableError>> + Send;

    /// Changes them if they have not changed since they were read.
    fn change<C: Send>(
        &self,
        change: impl Fn(&mut Published) -> C + Send + Sync,
    ) -> impl Future<Output = Result<C, TableError>> + Send;
}

impl Publication for PublishedKeys {
    async fn read(&self) -> Result<Published, TableError> {
        Self::read(self).await
    }

    async fn change<C: Send>(&self, change: impl Fn(&mut Published) -> C + Send + Sync) -> Result<C, TableError> {
        Self::change(self, change).await
    }
}

/// How long a key is published before it signs. Verifiers, including those of third parties, may keep published keys
/// for five minutes, and refuse tokens of unknown keys. Twice as long leaves room for a cache in between.
const LEAD: Duration = Duration::from_secs(10 * 60);

/// Rotates a deployment's keys.
pub struct Rotation<S = SecretVersions, P = PublishedKeys> {
    secret: S,
    published: P,
    settings: SigningSettings,
    /// The lifetime of tokens, in seconds.
    lifetime: u32,
    environment: String,
    clock: SharedClock,
}

impl Rotation {
    /// Creates the rotation of the keys in these secrets, which are published in this table.
    pub fn new(
        secrets: &Secrets,
        table: Table,
        (settings, tokens): (SigningSettings, TokenSettings),
        environment: String,
        clock: SharedClock,
    ) -> Self {
        Self {
            secret: SecretVersions::of(secrets, SECRET),
            published: PublishedKeys::new(table),
            settings,
            lifetime: tokens.lifetime,
            environment,
            clock,
        }
    }
}

impl<S: Versioned, P: Publication> Rotation<S, P> {
    /// Performs a step.
    pub async fn step(&self, event: RotationEvent) -> Result<(), RotationError> {
        let RotationEvent { step, secret_id, client_request_token: id } = event;
        let outcome = if self.secret.is_called(&secret_id) {
            self.dispatch(step, &id).boxed().await // unboxed, the four futures nest too deeply for the compiler
        } else {
            Err(RotationError::Foreign)
        };
        match &outcome {
            Ok(()) => tracing::info!(step = step.as_str(), version = id, "completed a step of the rotation"),
            Err(error) => self.audit(AuditOutcome::Failed(error.reason()), &Notes::default()),
        }
        outcome
    }

    async fn dispatch(&self, step: Step, id: &str) -> Result<(), RotationError> {
        match step {
            Step::CreateSecret => self.create(id).await,
            Step::SetSecret => self.set(id).await,
            Step::TestSecret => self.test(id).await,
            Step::FinishSecret => self.finish(id).await,
        }
    }

    async fn create(&self, id: &str) -> Result<(), RotationError> {
        if self.secret.version(id).await?.is_some() {
            return Ok(());
        }
        // An earlier rotation may have been stopped before it set the old key's end.
        let secret = self.settle().await?;
        self.may_sign(&secret.keys()?.next).await?;
        let rotated = secret.rotated(self.settings.algorithm);
        Ok(self.secret.put(id, &rotated.value(), PENDING).await?)
    }

    async fn set(&self, id: &str) -> Result<(), RotationError> {
        let new = keys_of(&self.pending(id).await?.made)?.next;
        let now = self.clock.now();
        Ok(self.published.change(|published| published.add(new.public_key(), now)).await??)
    }

    /// Secrets Manager also requests this step when the rotation is configured, with a version that has no value.
    async fn test(&self, id: &str) -> Result<(), RotationError> {
        let Some(version) = self.secret.version(id).await? else { return Ok(()) };
        let keys = keys_of(&version)?;
        let published = self.published.read().await?;
        for key in [&keys.current, &keys.next] {
            try_out(key, &published, self.clock.now())?;
        }
        Ok(())
    }

    async fn finish(&self, id: &str) -> Result<(), RotationError> {
        let Pending { made, current } = self.pending(id).await?;
        let keys = keys_of(&made)?;
        if made.id != current {
            self.may_sign(&keys.current).await?;
            self.secret.make_current(id, &current).await?;
        }
        self.settle().await?;
        // The label is removed last: if it is gone, everything is done and logged.
        if made.is(PENDING) {
            let notes = Notes::default();
            notes.subject(keys.current.kid());
            self.audit(AuditOutcome::Done, &notes);
            self.secret.take_label(id, PENDING).await?;
        }
        Ok(())
    }

    /// The version that the rotation created, if it is the current one or can still become it. If its keys do not
    /// follow the current ones, as after an emergency, it loses its label, so that the next rotation can begin.
    async fn pending(&self, id: &str) -> Result<Pending, RotationError> {
        let made = self.secret.version(id).await?.ok_or(RotationError::NotPending)?;
        let current = self.secret.current().await?;
        if made.id == current.id {
            return Ok(Pending { made, current: current.id });
        }
        if !made.is(PENDING) {
            return Err(RotationError::NotPending);
        }
        if !SigningSecret::read(&made.value)?.follows(&SigningSecret::read(&current.value)?) {
            self.secret.take_label(id, PENDING).await?;
            return Err(RotationError::NotPending);
        }
        Ok(Pending { made, current: current.id })
    }

    /// Publishes the current secret's keys and returns the secret. If the secret was replaced in the meantime,
    /// publishes the new one's keys.
    async fn settle(&self) -> Result<SigningSecret, RotationError> {
        let mut current = self.secret.current().await?;
        loop {
            let secret = SigningSecret::read(&current.value)?;
            let keys = secret.keys()?;
            let now = self.clock.now();
            let settled = self.published.change(|published| published.settle(&keys, self.lifetime, now)).await?;
            let after = self.secret.current().await?;
            if after.id == current.id {
                return Ok(settled.map(|()| secret)?);
            }
            current = after;
        }
    }

    /// Fails unless all verifiers must know the key by now.
    async fn may_sign(&self, key: &SigningKey) -> Result<(), RotationError> {
        let kid = key.kid();
        let now = self.clock.now();
        let published = self.published.read().await?;
        let published = published.get(kid, now).ok_or_else(|| RotationError::NotPublished(kid.to_owned()))?;
        let ready = published.published + LEAD;
        if ready <= now { Ok(()) } else { Err(RotationError::TooYoung { kid: kid.to_owned(), ready }) }
    }

    fn audit(&self, outcome: AuditOutcome<'_>, notes: &Notes) {
        let environment = &self.environment;
        let at = self.clock.now();
        Entry { action: Action::RotateSigningKey, outcome, notes, environment, at }.log();
    }
}

/// Why a step failed. Secrets Manager or the operator retries it.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The event names another secret.
    #[error("this function rotates only the secret `{SECRET}` of its deployment")]
    Foreign,
    /// Secrets Manager failed.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The table failed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The secret has no valid keys.
    #[error(transparent)]
    Key(#[from] BadSigningKey),
    /// The version is not one that a rotation creates.
    #[error("no version of this name is labelled {PENDING} and follows the current one; begin with createSecret")]
    NotPending,
    /// The key was revoked.
    #[error(transparent)]
    Revoked(#[from] RevokedKey),
    /// The key is not published.
    #[error("the key {0} is not published and cannot sign")]
    NotPublished(String),
    /// Some verifiers may not know the key yet.
    #[error("the key {kid} was published too recently: it cannot sign before {ready}")]
    TooYoung {
        /// The key.
        kid: String,
        /// When the key can begin to sign.
        ready: Time,
    },
    /// The key cannot sign.
    #[error("the key {0} cannot sign")]
    CannotSign(String),
    /// The published key does not verify the signature.
    #[error("the published keys do not verify a signature by the key {kid}")]
    Unverifiable {
        /// The key.
        kid: String,
        /// The fault in the signature.
        source: JwsFault,
    },
}

impl RotationError {
    /// The error's name in the audit trail.
    fn reason(&self) -> &'static str {
        match self {
            Self::Foreign => "foreign-secret",
            Self::Secret(_) | Self::Table(_) => "service-unavailable",
            Self::Key(_) => "malformed-secret",
            Self::NotPending => "not-pending",
            Self::Revoked(_) => "key-revoked",
            Self::NotPublished(_) => "key-not-published",
            Self::TooYoung { .. } => "key-too-young",
            Self::CannotSign(_) | Self::Unverifiable { .. } => "key-unusable",
        }
    }
}

/// The version that a rotation created.
struct Pending {
    made: Version,
    /// The name of the version that this one replaces; after the replacement, this version's own name.
    current: String,
}

impl<S, P> fmt::Debug for Rotation<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rotation").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn keys_of(version: &Version) -> Result<SigningKeys, BadSigningKey> {
    SigningSecret::read(&version.value)?.keys()
}

/// Signs a test string and verifies it with the published key.
fn try_out(key: &SigningKey, published: &Published, now: Time) -> Result<(), RotationError> {
    let kid = || key.kid().to_owned();
    let header = serde_json::json!({ "alg": key.algorithm().as_str() });
    let unsigned = jws::unsigned(&header, &serde_json::json!({})).map_err(|_| RotationError::CannotSign(kid()))?;
    let signature = key.sign(unsigned.as_bytes()).map_err(|_| RotationError::CannotSign(kid()))?;
    let signed = jws::with_signature(unsigned, signature.as_ref());
    let public = &published.get(key.kid(), now).ok_or_else(|| RotationError::NotPublished(kid()))?.key;
    Jws::parse(&signed, signed.len())
        .and_then(|signed| signed.verify(public.public(), &[public.algorithm().verified_as()]))
        .map_err(|source| RotationError::Unverifiable { kid: kid(), source })
}

#[cfg(test)]
mod tests;
