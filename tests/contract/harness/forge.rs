//! Access tokens that the tests make: some that the issuer could issue, and many that it would never issue.

use std::{collections::BTreeMap, fs};

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{Bundle, now};

/// A signer with the bundle's key.
pub struct Forge {
    pub kid: String,
    key: EcdsaKeyPair,
    base_url: String,
    auth_url: String,
}

impl Forge {
    /// Reads the bundle's signing key.
    pub fn of(bundle: &Bundle) -> Self {
        let secret = fs::read(bundle.data().join("secrets/signing-key.json")).expect("the bundle has made a key");
        let secret: Value = serde_json::from_slice(&secret).expect("secrets are JSON");
        Self::with(&secret, &bundle.service_env())
    }

    /// Uses the current key in a `signing-key` secret.
    pub fn with(secret: &Value, env: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| secret["current"][name].as_str().expect("the secret has its members").to_owned();
        let pkcs8 = BASE64_STANDARD.decode(text("pkcs8")).expect("the key is in base64");
        Self {
            kid: text("kid"),
            key: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8).expect("the key is a key"),
            base_url: env["BASE_URL"].clone(),
            auth_url: env["AUTH_URL"].clone(),
        }
    }

    /// A signer that uses another key with the same identifier.
    pub fn with_another_key(self) -> Self {
        Self { key: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("randomness is there"), ..self }
    }

    /// The header of a valid token.
    pub fn header(&self) -> Value {
        json!({ "alg": "ES256", "typ": "at+jwt", "kid": self.kid })
    }

    /// The claims of a valid token that covers everything.
    pub fn claims(&self) -> Value {
        let now = now();
        json!({
            "iss": self.auth_url, "aud": self.base_url, "sub": "appTestTestTestTestTestTe", "client_id": "appTestTestTestTestTestTe",
            "credential_id": "sec_test", "iat": now, "exp": now + 600, "jti": "test",
            "scope": "integrations.read integrations.write", "managing_entities": ["*"], "may_publish": true,
        })
    }

    /// A signed token with this header and these claims.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        self.token_of_texts(header.to_string(), claims.to_string())
    }

    /// A signed token made from these strings, which no JSON library would write.
    pub fn token_of_texts(&self, header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes()).expect("signing cannot fail");
        format!("{message}.{}", encoded(signature))
    }

    /// A token that uses the public key as a shared secret for its signature, with the matching algorithm in its
    /// header.
    pub fn token_with_public_key_as_secret(&self, claims: &Value) -> String {
        let header = json!({ "alg": "HS256", "typ": "at+jwt", "kid": self.kid });
        let message = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let public = self.key.public_key().as_der().expect("a public key can be written");
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public.as_ref());
        format!("{message}.{}", encoded(aws_lc_rs::hmac::sign(&key, message.as_bytes())))
    }

    /// The public key as a JWK, for a token's header.
    pub fn public_jwk(&self) -> Value {
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        json!({ "kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y) })
    }

    /// A token without a signature, with the algorithm `none`.
    pub fn token_without_signature(&self, claims: &Value) -> String {
        let header = json!({ "alg": "none", "typ": "at+jwt", "kid": self.kid });
        format!("{}.{}.", encoded(header.to_string()), encoded(claims.to_string()))
    }
}

/// Base64 in the variant that tokens use.
fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
