//! Signing secrets of webhooks, in the form of Standard Webhooks: `whsec_` and base 64.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use auth::EntityId;
use base::{Random, Time, WebhookId, random};
use storage::{KeyRing, SealError, SecretBytes};

const PREFIX: &str = "whsec_";

/// The key that a webhook's deliveries are signed with.
#[derive(Clone)]
pub struct SigningSecret(SecretBytes);

impl SigningSecret {
    /// A new secret of 256 bits.
    pub fn new(random: &dyn Random) -> Self {
        Self(SecretBytes::new(random::bytes::<32>(random).to_vec()))
    }

    /// The secret with this key.
    pub(crate) fn of(key: SecretBytes) -> Self {
        Self(key)
    }

    /// The bytes of the key.
    pub fn key(&self) -> &[u8] {
        self.0.expose()
    }

    /// The secret as its owner sees it.
    pub fn reveal(&self) -> RevealedSecret {
        RevealedSecret(format!("{PREFIX}{}", BASE64_STANDARD.encode(self.key())))
    }

    /// The sealed secret for the table.
    pub fn seal(&self, ring: &KeyRing, random: &dyn Random, owner: &EntityId, webhook: &WebhookId) -> String {
        ring.seal(random, &context(owner, webhook), self.key())
    }

    /// Opens the sealed secret of this webhook.
    pub fn open(sealed: &str, ring: &KeyRing, owner: &EntityId, webhook: &WebhookId) -> Result<Self, SealError> {
        ring.open(&context(owner, webhook), sealed).map(Self)
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
