//! Key pairs of webhooks whose deliveries are also signed with Ed25519, in the format of Standard Webhooks: `whpk_` and
//! Base64 for a public key. The private key never leaves the service, so it has no such format here.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use auth::EntityId;
use base::{Random, Time, WebhookId, random};
use storage::{KeyRing, SealError, SecretBytes};

const PREFIX: &str = "whpk_";

/// The signatures that a webhook's deliveries carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureScheme {
    /// HMAC-SHA256 under the signing secret (`v1`).
    #[default]
    Hmac,
    /// Ed25519 (`v1a`), in addition to HMAC, so that a receiver can switch from one to the other without refusing a
    /// delivery.
    Ed25519,
}

/// A public key as receivers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PublicKey(String);

impl PublicKey {
    fn of(bytes: &[u8]) -> Self {
        Self(format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes)))
    }
}

/// A webhook's public key, and when it stops being used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedKey {
    /// The key.
    pub key: PublicKey,
    /// When its private key stops signing, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_date: Option<Time>,
}

/// A key pair that signs deliveries.
pub struct SigningKeyPair {
    /// The private key of RFC 8032 §5.1.5.
    seed: SecretBytes,
    pair: Ed25519KeyPair,
}

impl SigningKeyPair {
    /// A new key pair, with a private key that is independent of every other secret.
    pub fn new(random: &dyn Random) -> Self {
        let seed = random::bytes::<32>(random);
        Self::of(SecretBytes::new(seed.to_vec())).expect("any 32 bytes are a private key")
    }

    /// The key pair with this private key; `None` if the key is not 32 bytes long.
    fn of(seed: SecretBytes) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose()).ok()?;
        Some(Self { seed, pair })
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        PublicKey::of(self.pair.public_key().as_ref())
    }

    /// The signature of a message, in Base64.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        BASE64_STANDARD.encode(self.pair.sign(message))
    }

    /// The key pair for the table, with a sealed private key.
    pub fn seal(&self, ring: &KeyRing, random: &dyn Random, owner: &EntityId, webhook: &WebhookId) -> SealedKeyPair {
        let sealed = ring.seal(random, &context(owner, webhook), self.seed.expose());
        SealedKeyPair { sealed, public: self.public_key() }
    }

    /// Opens the key pair of this webhook. Fails if the public key does not match the private one: otherwise, the owner
    /// would see a key that signs nothing.
    pub fn open(
        kept: &SealedKeyPair,
        ring: &KeyRing,
        owner: &EntityId,
        webhook: &WebhookId,
    ) -> Result<Self, SealError> {
        let pair = Self::of(ring.open(&context(owner, webhook), &kept.sealed)?);
        pair.filter(|pair| pair.public_key() == kept.public).ok_or(SealError::NotOurs)
    }
}

impl fmt::Debug for SigningKeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKeyPair").field(&self.public_key()).finish()
    }
}

/// A key pair as stored in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedKeyPair {
    /// The private key, sealed.
    pub sealed: String,
    /// The public key.
    pub public: PublicKey,
}

/// The context that a private key is sealed for.
pub fn context(owner: &EntityId, webhook: &WebhookId) -> String {
    format!("signing-key/{owner}/{webhook}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::{SystemRandom, testing::CountingRandom};
    use storage::sealing::ring;

    /// The key pair of `test_asymmetric_key_signing` in Svix's server, whose signature is the example of `v1a` in the
    /// specification. Its `whsk_` is the private key followed by the public one.
    pub(crate) fn of_the_specification() -> SigningKeyPair {
        let seed = BASE64_STANDARD.decode("6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc=").expect("base64");
        SigningKeyPair::of(SecretBytes::new(seed)).expect("32 bytes")
    }

    fn owner(name: &str) -> EntityId {
        EntityId::parse(name).expect("an entity")
    }

    fn webhook() -> WebhookId {
        WebhookId::new(Time::from_millis(0), &CountingRandom::default())
    }

    #[test]
    fn a_public_key_has_the_form_of_the_specification() {
        let public = of_the_specification().public_key();
        assert_eq!(public, PublicKey("whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=".into()));
        assert_eq!(format!("{:?}", of_the_specification()), format!("SigningKeyPair({public:?})"));
    }

    #[test]
    fn a_sealed_key_pair_opens_for_its_webhook_only() {
        let pair = SigningKeyPair::new(&SystemRandom);
        let kept = pair.seal(&ring("a"), &SystemRandom, &owner("hotel"), &webhook());
        let open = |kept: &SealedKeyPair, name: &str| SigningKeyPair::open(kept, &ring("b"), &owner(name), &webhook());
        let opened = open(&kept, "hotel").expect("opens");
        assert_eq!((opened.public_key(), opened.sign(b"m")), (pair.public_key(), pair.sign(b"m")));
        assert!(matches!(open(&kept, "other"), Err(SealError::NotOurs)));
        let of_another = SealedKeyPair { public: of_the_specification().public_key(), ..kept };
        assert!(matches!(open(&of_another, "hotel"), Err(SealError::NotOurs)));
    }

    #[test]
    fn a_signing_secret_is_no_private_key() {
        let context = crate::subscriptions::endpoint::secret::context(&owner("hotel"), &webhook());
        let pair = of_the_specification();
        let sealed = ring("a").seal(&SystemRandom, &context, pair.seed.expose());
        let kept = SealedKeyPair { sealed, public: pair.public_key() };
        let opened = SigningKeyPair::open(&kept, &ring("a"), &owner("hotel"), &webhook());
        assert!(matches!(opened, Err(SealError::NotOurs)));
    }
}
