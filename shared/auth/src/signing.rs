//! The issuer's private keys. The `signing-key` secret in Secrets Manager contains the current key and the next one.
//! Only `token` and `panel-session` sign with them, and only `rotate-signing-key` replaces them.

use std::fmt;

use aws_lc_rs::{
    error::Unspecified,
    rand::SystemRandom as Entropy,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, Signature},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use crate::public_key::PublicKey;
pub use crate::public_key::SigningAlgorithm;
use base::{SystemRandom, random};

/// The secret's name after the prefix.
pub const SECRET: &str = "signing-key";

/// A private key, and the name under which its public half is published.
pub struct SigningKey {
    pair: Pair,
    public: PublicKey,
}

/// The parsed key pair: parsing a private key costs more than signing with it.
enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

/// A deployment's keys.
#[derive(Debug)]
pub struct SigningKeys {
    /// The key that signs.
    pub current: SigningKey,
    /// The key that will sign after the next rotation, already published.
    pub next: SigningKey,
}

/// The keys as stored in Secrets Manager. Never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningSecret {
    current: KeySecret,
    next: KeySecret,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeySecret {
    kid: String,
    algorithm: SigningAlgorithm,
    /// PKCS #8 in DER, encoded in Base64.
    pkcs8: String,
}

/// A secret in a form that this program does not write. The error shows none of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret `signing-key` does not hold a current and a next key, each ES256 or EdDSA in PKCS #8")]
pub struct BadSigningKey;

impl SigningSecret {
    /// A secret with two new keys.
    pub fn fresh(algorithm: SigningAlgorithm) -> Self {
        Self { current: KeySecret::fresh(algorithm), next: KeySecret::fresh(algorithm) }
    }

    /// Reads the secret from its JSON.
    pub fn read(value: &serde_json::Value) -> Result<Self, BadSigningKey> {
        Self::deserialize(value).map_err(|_| BadSigningKey)
    }

    /// Whether a rotation of `replaced` could have produced this secret.
    pub fn follows(&self, replaced: &Self) -> bool {
        self.current == replaced.next
    }

    /// The secret after a rotation: the next key signs, and a new key is the next.
    pub fn rotated(&self, algorithm: SigningAlgorithm) -> Self {
        Self { current: self.next.clone(), next: KeySecret::fresh(algorithm) }
    }

    /// The parsed keys, ready for use.
    pub fn keys(&self) -> Result<SigningKeys, BadSigningKey> {
        Ok(SigningKeys { current: self.current.key()?, next: self.next.key()? })
    }

    /// The secret's JSON for Secrets Manager.
    pub fn value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("texts can be written as JSON")
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningSecret").field("current", &self.current.kid).field("next", &self.next.kid).finish()
    }
}

impl KeySecret {
    fn fresh(algorithm: SigningAlgorithm) -> Self {
        const GENERATES: &str = "the system's generator gives bytes, and a key that was just made can be written";
        let der = match algorithm {
            SigningAlgorithm::Es256 => {
                EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).and_then(|pair| pair.to_pkcs8v1())
            }
            SigningAlgorithm::EdDsa => Ed25519KeyPair::generate().and_then(|pair| pair.to_pkcs8()),
        };
        let pkcs8 = BASE64_STANDARD.encode(der.expect(GENERATES).as_ref());
        Self { kid: random::alphanumeric(&SystemRandom, 16), algorithm, pkcs8 }
    }

    fn key(&self) -> Result<SigningKey, BadSigningKey> {
        let der = BASE64_STANDARD.decode(&self.pkcs8).map_err(|_| BadSigningKey)?;
        let pair = match self.algorithm {
            SigningAlgorithm::Es256 => {
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map(Pair::Es256)
            }
            SigningAlgorithm::EdDsa => Ed25519KeyPair::from_pkcs8(&der).map(Pair::EdDsa),
        };
        let pair = pair.map_err(|_| BadSigningKey)?;
        let public = match &pair {
            Pair::Es256(pair) => PublicKey::es256(&self.kid, pair.public_key().as_ref()),
            Pair::EdDsa(pair) => PublicKey::ed25519(&self.kid, pair.public_key().as_ref()),
        };
        Ok(SigningKey { pair, public: public.map_err(|_| BadSigningKey)? })
    }
}

impl SigningKey {
    /// A new key.
    #[cfg(any(test, feature = "testing"))]
    pub fn generate(algorithm: SigningAlgorithm) -> Self {
        KeySecret::fresh(algorithm).key().expect("a fresh secret holds a key")
    }

    /// The key's name, which each token carries.
    pub fn kid(&self) -> &str {
        self.public.kid()
    }

    /// The algorithm that the key signs with.
    pub fn algorithm(&self) -> SigningAlgorithm {
        self.public.algorithm()
    }

    /// Signs a message. Fails only if the cryptographic library does.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Unspecified> {
        match &self.pair {
            Pair::Es256(pair) => pair.sign(&Entropy::new(), message),
            Pair::EdDsa(pair) => pair.try_sign(message),
        }
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        self.public.clone()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_can_be_read_back_and_a_rotation_promotes_its_next_key() {
        for algorithm in SigningAlgorithm::ALL {
            let secret = SigningSecret::fresh(SigningAlgorithm::Es256);
            let rotated = secret.rotated(algorithm);
            assert_eq!(SigningSecret::read(&rotated.value()).expect("the written secret"), rotated);
            let before = secret.keys().expect("keys");
            let after = rotated.keys().expect("keys");
            assert_eq!(before.next.kid(), after.current.kid());
            assert_eq!(after.next.algorithm(), algorithm);
            assert_ne!(after.next.kid(), after.current.kid());
            assert!(rotated.follows(&secret) && !secret.follows(&rotated) && !secret.follows(&secret));
        }
    }

    #[test]
    fn a_secret_of_another_form_is_refused() {
        let good = SigningSecret::fresh(SigningAlgorithm::Es256).value();
        let with = |member: &str, value: serde_json::Value| {
            let mut secret = good.clone();
            secret["next"][member] = value;
            secret
        };
        let other = SigningSecret::fresh(SigningAlgorithm::EdDsa).value();
        for bad in [
            json!(null),
            json!({}),
            json!({ "current": good["current"] }),
            good["current"].clone(),
            with("algorithm", json!("RS256")),
            with("algorithm", json!("EdDSA")),
            with("pkcs8", other["next"]["pkcs8"].clone()),
            with("pkcs8", json!("?")),
            with("more", json!(1)),
        ] {
            let read = SigningSecret::read(&bad).and_then(|secret| secret.keys());
            assert_eq!(read.err(), Some(BadSigningKey), "{}", bad["next"]["algorithm"]);
        }
    }

    #[test]
    fn nothing_of_a_private_key_is_printed() {
        let secret = SigningSecret::fresh(SigningAlgorithm::EdDsa);
        let printed = format!("{secret:?} {:?}", secret.keys().expect("keys"));
        assert!(printed.contains(&secret.current.kid) && !printed.contains(&secret.current.pkcs8), "{printed}");
        assert!(!printed.contains("pkcs8"), "{printed}");
    }
}
