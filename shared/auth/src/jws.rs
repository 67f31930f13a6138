//! JSON Web Signatures in compact form (RFC 7515 §7.1), parsed strictly: access tokens, and applications' assertions.
//!
//! `jsonwebtoken` and `aws-lc-rs` do the cryptography. This module checks the form, because the libraries accept an
//! unknown `crit`, `b64: false` and duplicate members.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

/// A parsed JWS. Its content is untrusted until [`Jws::verify`] succeeds.
pub struct Jws<'a> {
    header: Header,
    /// Header and payload as received: the signed bytes.
    signed: &'a str,
    payload: &'a str,
    signature: &'a str,
}

impl fmt::Debug for Jws<'_> {
    /// Omits the JWS, which is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jws").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The header of a JWS. Unknown members are ignored, as RFC 7515 §4 requires. A struct rather than a map, so that a
/// duplicate member is an error.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// The algorithm (RFC 7518 §3.1). It is compared with the key's algorithms and never selects one.
    pub alg: String,
    /// The type of the JWS.
    #[serde(default, deserialize_with = "present")]
    pub typ: Option<String>,
    /// The key's name.
    #[serde(default, deserialize_with = "present")]
    pub kid: Option<String>,
    /// Extensions that must be understood (RFC 7515 §4.1.11). This service supports none, so the mere presence of
    /// `crit` is refused.
    #[serde(default)]
    crit: Mentioned,
    /// An unencoded payload (RFC 7797), which is not supported.
    #[serde(default)]
    b64: Mentioned,
}

/// Whether a member is present, with any value, including null.
#[derive(Debug, Default)]
struct Mentioned(bool);

impl<'de> Deserialize<'de> for Mentioned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}

/// A member that may be absent, but not null.
pub fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Why a JWS is not accepted. The message is for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwsFault {
    /// The JWS is too long, or is not three Base64 parts of which the first two are JSON objects of the expected form.
    #[error("it does not consist of three Base64 parts with the expected JSON")]
    Malformed,
    /// The JWS requires an extension.
    #[error("its header requires an extension")]
    Extension,
    /// The algorithm is not one of the key's.
    #[error("its algorithm does not match its key")]
    Algorithm,
    /// The signature does not match.
    #[error("its signature is wrong")]
    Signature,
}

impl<'a> Jws<'a> {
    /// Parses a JWS of at most `longest` bytes. A longer one is not even decoded.
    pub fn parse(text: &'a str, longest: usize) -> Result<Self, JwsFault> {
        if text.len() > longest {
            return Err(JwsFault::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(JwsFault::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JwsFault::Malformed)?;
        let header: Header = object(header)?;
        if header.crit.0 || header.b64.0 {
            return Err(JwsFault::Extension);
        }
        Ok(Self { header, signed, payload, signature })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Verifies the signature with this key and one of the key's algorithms. The key determines the algorithm, never
    /// the JWS (RFC 8725 §3.1). The algorithms must belong to the key's family.
    pub fn verify(&self, key: &DecodingKey, algorithms: &[Algorithm]) -> Result<(), JwsFault> {
        let algorithm = algorithm(&self.header.alg).filter(|algorithm| algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or(JwsFault::Algorithm)?;
        match crypto::verify(self.signature, self.signed.as_bytes(), key, algorithm) {
            Ok(true) => Ok(()),
            Ok(false) => Err(JwsFault::Signature),
            Err(_) => Err(JwsFault::Malformed),
        }
    }

    /// The payload. A struct type refuses duplicate members.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, JwsFault> {
        object(self.payload)
    }
}

/// The algorithm with this name in a header or a key. Ed25519 keys have two names: `EdDSA` (RFC 8037 §3.1) and
/// `Ed25519` (RFC 9864 §2.2), which newer libraries use. RFC 9864 leaves the names of the other algorithms unchanged.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    if name == "Ed25519" { Some(Algorithm::EdDSA) } else { name.parse().ok() }
}

/// Decodes one part of a string: strict Base64 of one JSON object, with nothing after the object.
fn object<T: DeserializeOwned>(encoded: &str) -> Result<T, JwsFault> {
    let json = BASE64_URL_SAFE_NO_PAD.decode(encoded).map_err(|_| JwsFault::Malformed)?;
    // serde would also read a struct from an array.
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(JwsFault::Malformed);
    }
    serde_json::from_slice(&json).map_err(|_| JwsFault::Malformed)
}

/// The signing input: the encoded header and claims.
pub fn unsigned(header: &impl Serialize, claims: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = String::with_capacity(1024);
    BASE64_URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(header)?, &mut text);
    text.push('.');
    BASE64_URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(claims)?, &mut text);
    Ok(text)
}

/// Appends the signature to the signing input.
pub fn with_signature(mut unsigned: String, signature: &[u8]) -> String {
    unsigned.push('.');
    BASE64_URL_SAFE_NO_PAD.encode_string(signature, &mut unsigned);
    unsigned
}

#[cfg(test)]
#[path = "jws_tests.rs"]
pub(crate) mod tests;
