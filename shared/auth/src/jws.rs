//! Signed texts in the compact form (RFC 7515 §7.1), read strictly: access tokens, and the
//! assertions of applications.
//!
//! `jsonwebtoken` and `aws-lc-rs` do the cryptography. The form is checked here, since libraries
//! let through an unknown `crit`, `b64: false` and doubled members.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

/// A signed text, taken apart. Nothing of it is to be trusted before [`Jws::verify`].
pub struct Jws<'a> {
    header: Header,
    /// Header and payload as they came, over which the signature is made.
    signed: &'a str,
    payload: &'a str,
    signature: &'a str,
}

impl fmt::Debug for Jws<'_> {
    /// Without the text, which is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jws").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The header of a signed text. Unknown members are ignored, as they must be (RFC 7515 §4); a
/// struct and not a map, so that a member that comes twice is an error.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// The algorithm (RFC 7518 §3.1). It is compared with those of the key, and never decides
    /// anything.
    pub alg: String,
    /// The kind of text.
    #[serde(default, deserialize_with = "present")]
    pub typ: Option<String>,
    /// The key's name.
    #[serde(default, deserialize_with = "present")]
    pub kid: Option<String>,
    /// Extensions that must be understood (RFC 7515 §4.1.11): none is, so its mere presence is
    /// refused.
    #[serde(default)]
    crit: Mentioned,
    /// An unencoded payload (RFC 7797): not ours.
    #[serde(default)]
    b64: Mentioned,
}

/// Whether a member is there at all, whatever its value, null included.
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

/// Why a signed text is not accepted. The sentence is for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwsFault {
    /// It is too long, or not three parts of base 64 with JSON objects of the right form in the
    /// first two.
    #[error("it is not three parts of base 64 with JSON of the form that is wanted")]
    Malformed,
    /// It wants an extension understood.
    #[error("its header asks for an extension")]
    Extension,
    /// Its algorithm is none that its key is for.
    #[error("its algorithm is not its key's")]
    Algorithm,
    /// The signature does not fit.
    #[error("its signature does not verify")]
    Signature,
}

impl<'a> Jws<'a> {
    /// Takes a text apart that is at most so many bytes long; a longer one is not even decoded.
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

    /// The text's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether this key made the signature, with one of the algorithms that the key is for: the key
    /// decides, never the text (RFC 8725 §3.1). The algorithms must be of the key's family.
    pub fn verify(&self, key: &DecodingKey, algorithms: &[Algorithm]) -> Result<(), JwsFault> {
        let algorithm = algorithm(&self.header.alg).filter(|algorithm| algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or(JwsFault::Algorithm)?;
        match crypto::verify(self.signature, self.signed.as_bytes(), key, algorithm) {
            Ok(true) => Ok(()),
            Ok(false) => Err(JwsFault::Signature),
            Err(_) => Err(JwsFault::Malformed),
        }
    }

    /// The payload. A type that is a struct refuses members that come twice.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, JwsFault> {
        object(self.payload)
    }
}

/// The algorithm of this name in a header or a key. The one of Ed25519 keys has two: `EdDSA` (RFC 8037 §3.1) and
/// `Ed25519` (RFC 9864 §2.2), which newer libraries write. That RFC leaves the names of the other algorithms as they are.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    if name == "Ed25519" { Some(Algorithm::EdDSA) } else { name.parse().ok() }
}

/// One part of a text: strict base 64 with a JSON object in it, and nothing after the object.
fn object<T: DeserializeOwned>(encoded: &str) -> Result<T, JwsFault> {
    let json = BASE64_URL_SAFE_NO_PAD.decode(encoded).map_err(|_| JwsFault::Malformed)?;
    // A struct could be read from an array as well.
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(JwsFault::Malformed);
    }
    serde_json::from_slice(&json).map_err(|_| JwsFault::Malformed)
}

/// The text of a header and claims over which a signature is made.
pub fn unsigned(header: &impl Serialize, claims: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = String::with_capacity(1024);
    BASE64_URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(header)?, &mut text);
    text.push('.');
    BASE64_URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(claims)?, &mut text);
    Ok(text)
}

/// The signed text with its signature.
pub fn with_signature(mut unsigned: String, signature: &[u8]) -> String {
    unsigned.push('.');
    BASE64_URL_SAFE_NO_PAD.encode_string(signature, &mut unsigned);
    unsigned
}

#[cfg(test)]
#[path = "jws_tests.rs"]
pub(crate) mod tests;
