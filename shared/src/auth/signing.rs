//! The issuer's private key. It lives in Secrets Manager as `signing-key`, and only the `token` function reads it.

use std::fmt;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use jsonwebtoken::{Algorithm, EncodingKey};
use serde::{Deserialize, Serialize};

use super::keys::PublicKey;

/// The secret's name after the prefix.
pub const SECRET: &str = "signing-key";

/// A private key, and the name under which its public half is published.
pub struct SigningKey {
    kid: String,
    private: EncodingKey,
    public: PublicKey,
}

/// The key as it stands in Secrets Manager.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeySecret {
    kid: String,
    algorithm: String,
    /// PKCS #8 in DER, in base 64.
    pkcs8: String,
}

/// A signing key that is not what this program writes. Says nothing of its content.
#[derive(Debug, thiserror::Error)]
#[error("the signing key is not an ES256 key in PKCS #8")]
pub struct BadSigningKey;

impl SigningKey {
    /// Reads the key from its secret's text.
    pub fn from_secret(secret: &serde_json::Value) -> Result<Self, BadSigningKey> {
        let secret = KeySecret::deserialize(secret).map_err(|_| BadSigningKey)?;
        if secret.algorithm != "ES256" {
            return Err(BadSigningKey);
        }
        let der = BASE64_STANDARD.decode(&secret.pkcs8).map_err(|_| BadSigningKey)?;
        Self::from_der(secret.kid, &der)
    }

    fn from_der(kid: String, der: &[u8]) -> Result<Self, BadSigningKey> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).map_err(|_| BadSigningKey)?;
        // An uncompressed point: 0x04, then x and y of 32 bytes each (SEC 1 §2.3.3).
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|coordinate| BASE64_URL_SAFE_NO_PAD.encode(coordinate));
        let public = PublicKey::es256(kid.clone(), x, y).map_err(|_| BadSigningKey)?;
        Ok(Self { kid, private: EncodingKey::from_ec_der(der), public })
    }

    /// A new secret, ready for Secrets Manager.
    pub fn fresh_secret() -> serde_json::Value {
        let pair =
            EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("the system's generator gives bytes");
        let der = pair.to_pkcs8v1().expect("a key that was just made can be written");
        let kid = crate::random::alphanumeric(&crate::random::SystemRandom, 16);
        serde_json::json!({ "kid": kid, "algorithm": "ES256", "pkcs8": BASE64_STANDARD.encode(der.as_ref()) })
    }

    /// A new key.
    #[cfg(any(test, feature = "testing"))]
    pub fn generate() -> Self {
        Self::from_secret(&Self::fresh_secret()).expect("a fresh secret holds a key")
    }

    /// The key's name, which each token carries.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The algorithm that the key signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.public.algorithm()
    }

    /// The private half.
    pub(super) fn private(&self) -> &EncodingKey {
        &self.private
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        self.public.clone()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).finish_non_exhaustive()
    }
}
