//! Client secrets. Only their hashes are stored.
//!
//! A secret is 256 random bits, so a fast keyed hash protects it as well as a slow one: HMAC-SHA256 under a pepper from
//! Secrets Manager. Without the pepper, the table cannot even be used to test a guess.

use aws_lc_rs::{constant_time, hmac};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use auth::revocations::TOKENS_REVOKED;
use base::{ClientSecretId, Random, Time, random};
use storage::{SecretBytes, SecretText};

/// A secret's length. A secret contains only letters and digits, so that all client libraries encode it alike for HTTP
/// Basic.
const LENGTH: usize = 43;

/// How many secrets may be accepted at the same time.
pub const MAX_SECRETS: usize = 2;

/// A client secret without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientSecret {
    /// The secret's identifier, which the owner sees.
    pub id: ClientSecretId,
    /// HMAC-SHA256 in Base64.
    pub(super) hash: String,
    /// When the secret was created.
    pub created_date: Time,
    /// When the secret stops being accepted; `None` means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_date: Option<Time>,
}

/// A new secret, which is shown to its owner once.
pub fn fresh(random: &dyn Random) -> SecretText {
    SecretText::new(random::alphanumeric(random, LENGTH))
}

impl ClientSecret {
    /// Hashes this secret.
    pub fn of(secret: &SecretText, pepper: &SecretBytes, now: Time, random: &dyn Random) -> Self {
        let hash = Self::hash_of(secret.expose(), pepper);
        Self { id: ClientSecretId::new(now, random), hash, created_date: now, expires_date: None }
    }

    /// A secret that nothing matches.
    pub(super) fn matching_no_text() -> Self {
        struct Zeros;
        impl Random for Zeros {
            fn fill(&self, buffer: &mut [u8]) {
                buffer.fill(0);
            }
        }
        let epoch = Time::from_millis(0);
        let hash = BASE64_STANDARD.encode([0; 32]);
        Self { id: ClientSecretId::new(epoch, &Zeros), hash, created_date: epoch, expires_date: None }
    }

    /// Whether the secret is accepted at this time.
    pub fn is_live(&self, now: Time) -> bool {
        self.expires_date.is_none_or(|end| now < end)
    }

    /// Whether tokens obtained with the secret may be valid at this time. Until they expire, the secret must be kept,
    /// so that its removal can revoke them.
    pub fn is_kept(&self, now: Time) -> bool {
        self.expires_date.is_none_or(|end| now < end + TOKENS_REVOKED)
    }

    /// A string's hash, as stored in a secret.
    pub(super) fn hash_of(secret: &str, pepper: &SecretBytes) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, pepper.expose()), secret.as_bytes());
        BASE64_STANDARD.encode(tag)
    }

    /// Whether the secret has this hash. Compares in constant time.
    pub(super) fn has_hash(&self, presented: &str) -> bool {
        constant_time::verify_slices_are_equal(self.hash.as_bytes(), presented.as_bytes()).is_ok()
    }
}
