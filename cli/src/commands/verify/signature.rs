//! The keys and signatures of Standard Webhooks.

use std::str::FromStr;

use aws_lc_rs::{
    hmac,
    signature::{ED25519, UnparsedPublicKey},
};
use base64::{Engine, prelude::BASE64_STANDARD};

/// A public key's length, in bytes.
const PUBLIC_KEY: usize = 32;

/// A key that verifies signatures.
pub enum Key {
    /// A signing secret: HMAC-SHA256.
    Secret(Vec<u8>),
    /// A public key: Ed25519.
    Public(Vec<u8>),
}

impl Key {
    /// The prefix of the signatures that the key verifies.
    pub fn version(&self) -> &'static str {
        match self {
            Self::Secret(_) => "v1",
            Self::Public(_) => "v1a",
        }
    }

    /// The part of a sentence that says what a valid signature proves.
    pub fn description(&self) -> &'static str {
        match self {
            Self::Secret(_) => "a signature was made with this secret",
            Self::Public(_) => "a signature was made with this public key's private key",
        }
    }

    /// Whether one of the signatures in `webhook-signature` is valid for a string.
    pub fn verifies(&self, signatures: &str, signed: &[u8]) -> bool {
        self.signatures(signatures).any(|signature| match self {
            Self::Secret(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::verify(&key, signed, &signature).is_ok()
            }
            Self::Public(key) => UnparsedPublicKey::new(&ED25519, key).verify(signed, &signature).is_ok(),
        })
    }

    /// The signatures of this key's version, decoded. Others are ignored.
    pub fn signatures<'a>(&self, signatures: &'a str) -> impl Iterator<Item = Vec<u8>> + use<'a> {
        let version = self.version();
        let of_version = signatures.split_ascii_whitespace().filter_map(|signature| signature.split_once(','));
        let encoded = of_version.filter(move |(given, _)| *given == version).map(|(_, encoded)| encoded);
        encoded.filter_map(|encoded| BASE64_STANDARD.decode(encoded).ok())
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = |encoded: &str| BASE64_STANDARD.decode(encoded).ok().filter(|bytes| !bytes.is_empty());
        let wrong = || "the part after the prefix is not a base64-encoded key".to_owned();
        if let Some(encoded) = text.strip_prefix("whsec_") {
            bytes(encoded).map(Self::Secret).ok_or_else(wrong)
        } else if let Some(encoded) = text.strip_prefix("whpk_") {
            bytes(encoded).filter(|key| key.len() == PUBLIC_KEY).map(Self::Public).ok_or_else(wrong)
        } else {
            Err("it begins with `whsec_`, or a public key with `whpk_`".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    /// The Standard Webhooks libraries' test vector:
    /// <https://github.com/standard-webhooks/standard-webhooks/tree/main/libraries>.
    #[test]
    fn the_vector_of_standard_webhooks_verifies() {
        let secret = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = br#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert!(secret.verifies(signature, signed));
        assert!(!secret.verifies(signature, &signed[1..]));
        assert!(secret.verifies(&format!("v1,b3RoZXI= v2,x {signature}"), signed), "any of several is enough");
        assert!(!secret.verifies(&signature.replace("v1,", "v1a,"), signed), "only signatures of its version count");
    }

    #[test]
    fn a_key_has_its_prefix_and_is_base64() {
        for wrong in ["", "whsec_", "whsec_!", "whpk_", "whpk_c2hvcnQ=", "C2FVsBQIhrscChlQIMV+b5sSYspob7oDM6hHCb0bUrQ="]
        {
            assert!(wrong.parse::<Key>().is_err(), "{wrong}");
        }
    }
}
