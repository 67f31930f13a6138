//! Signing secrets of webhooks, in the format of Standard Webhooks: `whsec_` and Base64. A webhook that signs with
//! Ed25519 has a key pair for each secret, which begins and ends with the secret.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use crate::subscriptions::endpoint::key_pair::{PublishedKey, SealedKeyPair, SignatureScheme, SigningKeyPair};
use auth::EntityId;
use base::{Random, Time, WebhookId, random};
use storage::{KeyRing, KeyRings, SealError, SecretBytes};

const PREFIX: &str = "whsec_";

/// The key that signs a webhook's deliveries, and its key pair, if the webhook has one.
pub struct SigningSecret {
    key: SecretBytes,
    key_pair: Option<SigningKeyPair>,
}

impl SigningSecret {
    /// A new secret of 256 bits, with a new key pair if the scheme needs one.
    pub fn new(random: &dyn Random, scheme: SignatureScheme) -> Self {
        let key = SecretBytes::new(random::bytes::<32>(random).to_vec());
        Self { key, key_pair: (scheme == SignatureScheme::Ed25519).then(|| SigningKeyPair::new(random)) }
    }

    /// The secret with this key.
    pub(crate) fn of(key: SecretBytes) -> Self {
        Self { key, key_pair: None }
    }

    /// The key's bytes.
    pub fn key(&self) -> &[u8] {
        self.key.expose()
    }

    /// The key pair, if there is one.
    pub(crate) fn key_pair(&self) -> Option<&SigningKeyPair> {
        self.key_pair.as_ref()
    }

    /// The secret as its owner sees it.
    pub fn reveal(&self) -> RevealedSecret {
        RevealedSecret(format!("{PREFIX}{}", BASE64_STANDARD.encode(self.key())))
    }

    /// The sealed secret for the table, which signs until it is replaced.
    pub fn seal(&self, ring: &KeyRing, random: &dyn Random, owner: &EntityId, webhook: &WebhookId) -> SealedSecret {
        let sealed = ring.seal(random, &context(owner, webhook), self.key());
        let key_pair = self.key_pair.as_ref().map(|pair| pair.seal(ring, random, owner, webhook));
        SealedSecret { sealed, expires_date: None, key_pair }
    }

    /// Opens this webhook's sealed secret.
    pub(crate) async fn open(
        kept: &SealedSecret,
        rings: &KeyRings,
        owner: &EntityId,
        webhook: &WebhookId,
    ) -> Result<Self, SealError> {
        let key = rings.for_text(&kept.sealed).await?.open(&context(owner, webhook), &kept.sealed)?;
        let key_pair = match &kept.key_pair {
            // The key pair may be newer than the secret, and so sealed with a different key of the ring.
            Some(pair) => Some(SigningKeyPair::open(pair, &*rings.for_text(&pair.sealed).await?, owner, webhook)?),
            None => None,
        };
        Ok(Self { key, key_pair })
    }
}

/// A signing secret for the only response that shows it.
#[derive(Serialize)]
#[serde(transparent)]
pub struct RevealedSecret(String);

impl fmt::Debug for RevealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RevealedSecret(…)")
    }
}

/// The context that a signing secret is sealed for.
pub fn context(owner: &EntityId, webhook: &WebhookId) -> String {
    format!("signing-secret/{owner}/{webhook}")
}

/// A signing secret as stored in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedSecret {
    /// The secret, sealed.
    pub sealed: String,
    /// When it stops signing, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_date: Option<Time>,
    /// Its key pair, if the webhook signs with Ed25519.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_pair: Option<SealedKeyPair>,
}

/// The scheme of a webhook with these secrets, newest first.
pub(in crate::subscriptions) fn scheme(secrets: &[SealedSecret]) -> SignatureScheme {
    let has_pair = secrets.first().is_some_and(|current| current.key_pair.is_some());
    if has_pair { SignatureScheme::Ed25519 } else { SignatureScheme::Hmac }
}

/// The public keys of these secrets, in their order.
pub(in crate::subscriptions) fn public_keys(secrets: &[SealedSecret]) -> Vec<PublishedKey> {
    let published = |secret: &SealedSecret| {
        let key = secret.key_pair.as_ref()?.public.clone();
        Some(PublishedKey { key, expires_date: secret.expires_date })
    };
    secrets.iter().filter_map(published).collect()
}

impl SealedSecret {
    /// Whether it signs at this moment.
    pub fn is_live(&self, now: Time) -> bool {
        self.expires_date.is_none_or(|end| now < end)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}
