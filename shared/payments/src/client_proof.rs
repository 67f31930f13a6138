//! Client authentication at a provider: HTTP Basic or parameters (RFC 6749 §2.3.1), members of a JSON body, or a signed
//! assertion (RFC 7523).

use std::{fmt, time::Duration};

use aws_lc_rs::{
    rand::SystemRandom as KeyRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use http::HeaderValue;
use rustls::pki_types::PrivateKeyDer;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    pem::{self, BadPrivateKey},
    placeholder::{Placeholder, Template},
};
use base::{Random, Time, random};
use storage::SecretText;

/// How long an assertion is valid: long enough for one request.
const ASSERTION_LIFE: Duration = Duration::from_secs(120);
/// The `client_assertion_type` of an assertion (RFC 7523 §2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The authentication methods of a client, as descriptions name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    Basic,
    Body,
    Json,
    PrivateKeyJwt,
}

/// This service as a client of a provider.
#[derive(Debug)]
pub struct Client {
    pub id: String,
    pub proof: Proof,
}

/// The client's proof.
#[derive(Debug)]
pub enum Proof {
    /// A shared secret, sent by HTTP Basic.
    Basic(SecretText),
    /// A shared secret, sent as a parameter.
    Body(SecretText),
    /// A shared secret, sent as a member of a JSON body.
    Json(SecretText),
    /// A private key, which signs assertions.
    Key(Assertion),
}

/// The parts of an assertion that a description can set.
#[derive(Debug)]
pub struct Assertion {
    pub key: PrivateKey,
    /// The `iss` claim.
    pub issuer: Template,
    /// The `aud` claim, if it differs from the request's address.
    pub audience: Option<String>,
    /// The `kid` header, if the provider requires one.
    pub key_id: Option<String>,
}

/// A key that signs assertions, with its only algorithm.
pub enum PrivateKey {
    Rsa(Box<RsaKeyPair>),
    P256(Box<EcdsaKeyPair>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client's key failed to sign")]
pub struct SigningError;

/// The credentials that a request carries.
#[derive(Default)]
pub struct Authentication {
    pub authorization: Option<HeaderValue>,
    pub parameters: Vec<(&'static str, String)>,
}

/// The request that an assertion is made for.
pub struct Occasion<'a> {
    pub address: &'a str,
    pub own_host: &'a str,
    pub now: Time,
    /// Generates the assertion's identifier and signature.
    pub random: &'a dyn Random,
}

impl Client {
    /// The credentials for a request to the provider.
    pub fn authentication(&self, occasion: &Occasion<'_>) -> Result<Authentication, SigningError> {
        let id = || ("client_id", self.id.clone());
        Ok(match &self.proof {
            Proof::Basic(secret) => {
                Authentication { authorization: Some(basic(&self.id, secret.expose())), parameters: Vec::new() }
            }
            Proof::Body(secret) | Proof::Json(secret) => Authentication {
                authorization: None,
                parameters: vec![id(), ("client_secret", secret.expose().to_owned())],
            },
            Proof::Key(assertion) => Authentication {
                authorization: None,
                parameters: vec![
                    id(),
                    ("client_assertion_type", ASSERTION_TYPE.to_owned()),
                    ("client_assertion", assertion.sign(&self.id, occasion)?),
                ],
            },
        })
    }

    /// Whether the client's parameters are members of a JSON body.
    pub fn speaks_json(&self) -> bool {
        matches!(self.proof, Proof::Json(_))
    }

    /// The shared secret, if the client has one.
    pub fn secret(&self) -> Option<&SecretText> {
        match &self.proof {
            Proof::Basic(secret) | Proof::Body(secret) | Proof::Json(secret) => Some(secret),
            Proof::Key(_) => None,
        }
    }
}

/// The `Authorization` value for HTTP Basic. Identifier and secret are form-encoded before they are joined (RFC 6749
/// §2.3.1), so that a colon in either of them is not a separator.
fn basic(id: &str, secret: &str) -> HeaderValue {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = BASE64_STANDARD.encode(format!("{}:{}", encode(id), encode(secret)));
    sensitive(HeaderValue::try_from(format!("Basic {pair}")).expect("base 64 is valid in a header"))
}

/// Marks a value as sensitive, so that `Debug` does not show it.
pub fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

impl Assertion {
    fn sign(&self, client: &str, occasion: &Occasion<'_>) -> Result<String, SigningError> {
        let issuer = self.issuer.fill(|place| match place {
            Placeholder::ClientId => Some(client),
            Placeholder::OwnHost => Some(occasion.own_host),
            _ => None,
        });
        let mut header = json!({ "alg": self.key.algorithm(), "typ": "JWT" });
        if let Some(key_id) = &self.key_id {
            header["kid"] = Value::from(key_id.as_str());
        }
        let claims = json!({
            "iss": issuer.ok_or(SigningError)?,
            "sub": client,
            "aud": self.audience.as_deref().unwrap_or(occasion.address),
            "iat": occasion.now.as_seconds(),
            "exp": (occasion.now + ASSERTION_LIFE).as_seconds(),
            "jti": random::uuid(occasion.random),
        });
        let encode = |part: &Value| BASE64_URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes())?);
        Ok(format!("{signed}.{signature}"))
    }
}

impl PrivateKey {
    /// Parses a key in PEM: PKCS #8, PKCS #1 or SEC 1.
    pub fn from_pem(text: &str) -> Result<Self, BadPrivateKey> {
        let key = pem::private_key(text)?;
        let der = key.secret_der();
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let (rsa, p256) = match &key {
            PrivateKeyDer::Pkcs8(_) => (RsaKeyPair::from_pkcs8(der).ok(), EcdsaKeyPair::from_pkcs8(curve, der).ok()),
            PrivateKeyDer::Pkcs1(_) => (RsaKeyPair::from_der(der).ok(), None),
            PrivateKeyDer::Sec1(_) => (None, EcdsaKeyPair::from_private_key_der(curve, der).ok()),
            _ => (None, None),
        };
        match (rsa, p256) {
            (Some(rsa), _) => Ok(Self::Rsa(Box::new(rsa))),
            (None, Some(p256)) => Ok(Self::P256(Box::new(p256))),
            (None, None) => Err(BadPrivateKey::OtherKey),
        }
    }

    /// The algorithm's name (RFC 7518 §3.1).
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningError> {
        let random = KeyRandom::new();
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(|_| SigningError)?;
                Ok(signature)
            }
            Self::P256(key) => Ok(key.sign(&random, message).map_err(|_| SigningError)?.as_ref().to_vec()),
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({}, …)", self.algorithm())
    }
}

#[cfg(test)]
#[path = "client_proof_tests.rs"]
pub(crate) mod tests;
