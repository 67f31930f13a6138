//! Key pairs for tests, of any type that applications can register.

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
        Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
    },
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A key pair.
#[derive(Debug)]
pub enum AssertionKey {
    /// On a NIST curve, with the name of its algorithm.
    Ecdsa(EcdsaKeyPair, &'static str),
    /// On the curve Ed25519, with one of the names of its algorithm.
    Edwards(Ed25519KeyPair, &'static str),
    /// RSA with 2048 bits, with the name of its algorithm.
    Rsa(RsaKeyPair, &'static str),
}

/// Why creating and using a key cannot fail in a test.
const WORKS: &str = "the cryptographic library makes and uses keys of this type";

impl AssertionKey {
    /// A new key for this algorithm.
    ///
    /// # Panics
    /// For an algorithm that applications' keys cannot have.
    pub fn generate(algorithm: &str) -> Self {
        let elliptic = |signing: &'static EcdsaSigningAlgorithm, name| {
            Self::Ecdsa(EcdsaKeyPair::generate(signing).expect(WORKS), name)
        };
        let edwards = |name| Self::Edwards(Ed25519KeyPair::generate().expect(WORKS), name);
        let rsa = |name| Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect(WORKS), name);
        match algorithm {
            "ES256" => elliptic(&ECDSA_P256_SHA256_FIXED_SIGNING, "ES256"),
            "ES384" => elliptic(&ECDSA_P384_SHA384_FIXED_SIGNING, "ES384"),
            "EdDSA" => edwards("EdDSA"),
            "Ed25519" => edwards("Ed25519"),
            "RS256" => rsa("RS256"),
            "PS256" => rsa("PS256"),
            other => panic!("{other} is no algorithm of an application's key"),
        }
    }

    /// The public half as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Ecdsa(pair, algorithm) => {
                // An uncompressed point: 0x04, then x and y (SEC 1 §2.3.3).
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let crv = if *algorithm == "ES256" { "P-256" } else { "P-384" };
                json!({ "kty": "EC", "crv": crv, "x": text(x), "y": text(y) })
            }
            Self::Edwards(pair, _) => json!({ "kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref()) }),
            Self::Rsa(pair, _) => {
                // RFC 8017 §A.1.1: a sequence of the modulus, after nine bytes, and the exponent, 65537.
                json!({ "kty": "RSA", "n": text(&pair.public_key().as_ref()[9..265]), "e": "AQAB" })
            }
        }
    }

    /// A correctly signed JWS in compact form, with any header and payload.
    pub fn sign(&self, header: &str, payload: &str) -> String {
        let [header, payload] = [header, payload].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let text = format!("{header}.{payload}");
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.signature(text.as_bytes()));
        format!("{text}.{signature}")
    }

    /// A JWS with these claims, and only the algorithm in its header.
    pub fn assertion(&self, claims: &Value) -> String {
        self.sign(&json!({ "alg": self.algorithm() }).to_string(), &claims.to_string())
    }

    /// The algorithm's name.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Ecdsa(_, name) | Self::Edwards(_, name) | Self::Rsa(_, name) => name,
        }
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let entropy = SystemRandom::new();
        match self {
            Self::Ecdsa(pair, _) => pair.sign(&entropy, message).expect(WORKS).as_ref().to_vec(),
            Self::Edwards(pair, _) => pair.sign(message).as_ref().to_vec(),
            Self::Rsa(pair, name) => {
                let encoding: &dyn RsaEncoding = if *name == "RS256" { &RSA_PKCS1_SHA256 } else { &RSA_PSS_SHA256 };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &entropy, message, &mut signature).expect(WORKS);
                signature
            }
        }
    }
}
