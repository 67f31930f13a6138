//! Signed texts in the compact form (RFC 7515 §7.1), read strictly: access tokens, and what
//! applications sign to prove who they are.
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
    /// The algorithm (RFC 7518 §3.1). It is compared with what the key is for, and never decides
    /// anything.
    pub alg: String,
    /// What kind of text it is.
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

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether this key made the signature, with one of the algorithms that the key is for: the key
    /// decides, never the text (RFC 8725 §3.1). The algorithms must be of the key's family.
    pub fn verify(&self, key: &DecodingKey, algorithms: &[Algorithm]) -> Result<(), JwsFault> {
        let algorithm = self.header.alg.parse().ok().filter(|algorithm| algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or(JwsFault::Algorithm)?;
        match crypto::verify(self.signature, self.signed.as_bytes(), key, algorithm) {
            Ok(true) => Ok(()),
            Ok(false) => Err(JwsFault::Signature),
            Err(_) => Err(JwsFault::Malformed),
        }
    }

    /// What the text says. A type that is a struct refuses members that come twice.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, JwsFault> {
        object(self.payload)
    }
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
mod tests {
    use super::*;
    use crate::signing::{SigningAlgorithm, SigningKey};
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Said {
        said: String,
    }

    fn signed(key: &SigningKey, header: &str, payload: &str) -> String {
        let text = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(header), BASE64_URL_SAFE_NO_PAD.encode(payload));
        let signature = key.sign(text.as_bytes()).expect("signs");
        with_signature(text, signature.as_ref())
    }

    fn read(key: &SigningKey, text: &str) -> Result<Said, JwsFault> {
        let jws = Jws::parse(text, 1000)?;
        jws.verify(key.public_key().public(), &[key.algorithm().verified_as()])?;
        jws.claims()
    }

    #[test]
    fn what_was_signed_is_read_and_what_was_not_is_not() {
        for algorithm in SigningAlgorithm::ALL {
            let (key, other) = (SigningKey::generate(algorithm), SigningKey::generate(algorithm));
            let header = format!(r#"{{"alg":"{algorithm}","jku":"https://nobody.asks.example","typ":"x"}}"#);
            let text = signed(&key, &header, r#"{"said":"yes","more":1}"#);
            assert_eq!(read(&key, &text), Ok(Said { said: "yes".to_owned() }));
            assert_eq!(read(&other, &text), Err(JwsFault::Signature));
            assert_eq!(Jws::parse(&text, 1000).expect("one").header().typ.as_deref(), Some("x"));
            assert_eq!(Jws::parse(&text, text.len() - 1).expect_err("too long"), JwsFault::Malformed);
        }
    }

    #[test]
    fn the_key_decides_the_algorithm() {
        let [es256, ed] = SigningAlgorithm::ALL.map(SigningKey::generate);
        for alg in ["none", "None", "HS256", "EdDSA", "ES384", "RS256", "es256", ""] {
            let text = signed(&es256, &format!(r#"{{"alg":"{alg}"}}"#), r#"{"said":"yes"}"#);
            assert_eq!(read(&es256, &text), Err(JwsFault::Algorithm), "{alg}");
        }
        let text = signed(&es256, r#"{"alg":"ES256"}"#, r#"{"said":"yes"}"#);
        assert_eq!(read(&ed, &text), Err(JwsFault::Algorithm));
    }

    #[test]
    fn a_header_that_is_doubled_extended_or_no_object_is_refused() {
        let key = SigningKey::generate(SigningAlgorithm::Es256);
        for (header, fault) in [
            (r#"{"alg":"ES256","alg":"ES256"}"#, JwsFault::Malformed),
            (r#"{"alg":"ES256","kid":"a","kid":"b"}"#, JwsFault::Malformed),
            (r#"{"alg":"ES256","crit":["x"]}"#, JwsFault::Extension),
            (r#"{"alg":"ES256","crit":null}"#, JwsFault::Extension),
            (r#"{"alg":"ES256","b64":true}"#, JwsFault::Extension),
            (r#"{"alg":"ES256","typ":null}"#, JwsFault::Malformed),
            (r#"{"alg":"ES256","kid":1}"#, JwsFault::Malformed),
            (r#"{"alg":["ES256"]}"#, JwsFault::Malformed),
            (r#"["ES256"]"#, JwsFault::Malformed),
            (r#"{"typ":"x"}"#, JwsFault::Malformed),
            (r#"{"alg":"ES256"} {}"#, JwsFault::Malformed),
            ("", JwsFault::Malformed),
            ("null", JwsFault::Malformed),
        ] {
            assert_eq!(read(&key, &signed(&key, header, r#"{"said":"yes"}"#)), Err(fault), "{header}");
        }
    }

    #[test]
    fn a_payload_that_is_doubled_or_no_object_is_refused() {
        let key = SigningKey::generate(SigningAlgorithm::Es256);
        for payload in [r#"{"said":"a","said":"b"}"#, r#"["yes"]"#, r#""yes""#, "{}", "", r#"{"said":"yes"}x"#] {
            let text = signed(&key, r#"{"alg":"ES256"}"#, payload);
            assert_eq!(read(&key, &text), Err(JwsFault::Malformed), "{payload}");
        }
    }

    #[test]
    fn there_are_three_parts_and_their_base_64_has_one_spelling() {
        let key = SigningKey::generate(SigningAlgorithm::Es256);
        let text = signed(&key, r#"{"alg":"ES256"}"#, r#"{"said":"yes"}"#);
        let (signed, signature) = text.rsplit_once('.').expect("three parts");
        for bad in [
            String::new(),
            "..".to_owned(),
            signed.to_owned(),
            format!("{signed}."),
            format!("{signed}.AAAA"),
            format!("{text}.{signature}"),
            format!("{text}="),
            format!(" {text}"),
            format!("{text}\n"),
            format!("{}.{signature}", signed.replace('.', "=.")),
        ] {
            assert!(read(&key, &bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,60}", parts in "[A-Za-z0-9_.-]{0,80}") {
            let key = SigningKey::generate(SigningAlgorithm::EdDsa);
            let _ = (read(&key, &text), read(&key, &parts));
        }
    }
}
