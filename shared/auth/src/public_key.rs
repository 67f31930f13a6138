//! Public keys that verify tokens, and their algorithms.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, Serialize};

/// The algorithms that tokens can be signed with, chosen per deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SigningAlgorithm {
    /// ECDSA on the curve P-256 with SHA-256 (RFC 7518 §3.4).
    #[default]
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519 (RFC 8037 §3.1).
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl SigningAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 2] = [Self::Es256, Self::EdDsa];

    /// The algorithm's name in a header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm as the cryptographic library represents it.
    pub const fn verified_as(self) -> Algorithm {
        match self {
            Self::Es256 => Algorithm::ES256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

impl fmt::Display for SigningAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SigningAlgorithm {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name).ok_or("neither `ES256` nor `EdDSA`")
    }
}

/// A public key in its published form (RFC 7518 §6.2, RFC 8037 §2).
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Jwk", into = "Jwk")]
pub struct PublicKey {
    jwk: Jwk,
    algorithm: SigningAlgorithm,
    public: DecodingKey,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Jwk {
    kty: String,
    crv: String,
    #[serde(rename = "use")]
    usage: String,
    alg: String,
    kid: String,
    x: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y: Option<String>,
}

/// A public key in a form that this service does not publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a published key is neither a P-256 key for ES256 nor an Ed25519 key for EdDSA")]
pub struct BadPublicKey;

impl PublicKey {
    /// A key on the curve P-256, from an uncompressed point: 0x04, then x and y of 32 bytes each (SEC 1 §2.3.3).
    pub fn es256(kid: &str, point: &[u8]) -> Result<Self, BadPublicKey> {
        let coordinates = point.strip_prefix(&[4]).filter(|coordinates| coordinates.len() == 64).ok_or(BadPublicKey)?;
        let (x, y) = coordinates.split_at(32);
        Self::of("EC", "P-256", SigningAlgorithm::Es256, kid, x, Some(y))
    }

    /// An Ed25519 key: 32 bytes.
    pub fn ed25519(kid: &str, x: &[u8]) -> Result<Self, BadPublicKey> {
        Self::of("OKP", "Ed25519", SigningAlgorithm::EdDsa, kid, x, None)
    }

    fn of(
        kty: &str,
        crv: &str,
        algorithm: SigningAlgorithm,
        kid: &str,
        x: &[u8],
        y: Option<&[u8]>,
    ) -> Result<Self, BadPublicKey> {
        let [kty, crv, usage, alg, kid] = [kty, crv, "sig", algorithm.as_str(), kid].map(str::to_owned);
        let x = BASE64_URL_SAFE_NO_PAD.encode(x);
        let y = y.map(|y| BASE64_URL_SAFE_NO_PAD.encode(y));
        Jwk { kty, crv, usage, alg, kid, x, y }.try_into()
    }

    /// The key's name.
    pub fn kid(&self) -> &str {
        &self.jwk.kid
    }

    /// The only algorithm that may be used with the key.
    pub fn algorithm(&self) -> SigningAlgorithm {
        self.algorithm
    }

    /// The public half, which verifies signatures.
    pub fn public(&self) -> &DecodingKey {
        &self.public
    }
}

impl TryFrom<Jwk> for PublicKey {
    type Error = BadPublicKey;

    fn try_from(jwk: Jwk) -> Result<Self, BadPublicKey> {
        let (algorithm, public) = match (jwk.kty.as_str(), jwk.crv.as_str(), jwk.alg.as_str(), &jwk.y) {
            ("EC", "P-256", "ES256", Some(y)) => (SigningAlgorithm::Es256, DecodingKey::from_ec_components(&jwk.x, y)),
            ("OKP", "Ed25519", "EdDSA", None) => (SigningAlgorithm::EdDsa, DecodingKey::from_ed_components(&jwk.x)),
            _ => return Err(BadPublicKey),
        };
        Ok(Self { algorithm, public: public.map_err(|_| BadPublicKey)?, jwk })
    }
}

impl From<PublicKey> for Jwk {
    fn from(key: PublicKey) -> Self {
        key.jwk
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.jwk.fmt(f)
    }
}
