//! How this service proves to a provider that it is its client: HTTP Basic or parameters (RFC 6749 §2.3.1), members of a
//! JSON body, or a signed assertion (RFC 7523).

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
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::placeholder::{Placeholder, Template};
use base::{
    clock::Time,
    random::{self, Random},
};
use storage::secrets::SecretText;

/// How long an assertion is good: time enough for one request.
const ASSERTION_LIFE: Duration = Duration::from_secs(120);
/// What an assertion is called on the wire (RFC 7523 §2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The ways of a client to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// HTTP Basic.
    Basic,
    /// Two parameters of the form.
    Body,
    /// Two members of a JSON body.
    Json,
    /// A JWT signed with the client's key.
    PrivateKeyJwt,
}

/// Who this service is at a provider, and what proves it.
#[derive(Debug)]
pub struct Client {
    pub(super) id: String,
    pub(super) proof: Proof,
}

/// What proves it.
#[derive(Debug)]
pub enum Proof {
    /// A shared secret, sent by HTTP Basic.
    Basic(SecretText),
    /// A shared secret, sent as a parameter.
    Body(SecretText),
    /// A shared secret, sent as a member of a JSON body.
    Json(SecretText),
    /// A key of our own, which signs.
    Key(Assertion),
}

/// What an assertion is made of.
#[derive(Debug)]
pub struct Assertion {
    pub(super) key: PrivateKey,
    /// The claim `iss`.
    pub(super) issuer: Template,
    /// The claim `aud`, where it is not the address that the assertion is sent to.
    pub(super) audience: Option<String>,
    /// The header `kid`, where the provider wants one.
    pub(super) key_id: Option<String>,
}

/// A key that signs assertions, with the one algorithm that is its own.
pub enum PrivateKey {
    /// RS256.
    Rsa(Box<RsaKeyPair>),
    /// ES256.
    P256(Box<EcdsaKeyPair>),
}

/// A text that holds no key that can sign here. Says nothing of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a private key in PEM: RSA of at least 2048 bits, or P-256")]
pub struct BadPrivateKey;

/// The key did not sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client's key did not sign")]
pub struct SigningError;

/// What a request carries of the client.
#[derive(Default)]
pub struct Carried {
    /// The value of `Authorization`.
    pub authorization: Option<HeaderValue>,
    /// Parameters of the body.
    pub parameters: Vec<(&'static str, String)>,
}

/// To whom, when and from where an assertion is sent.
pub struct Occasion<'a> {
    /// The address that it is sent to.
    pub address: &'a str,
    /// This service's own host.
    pub own_host: &'a str,
    /// The present moment.
    pub now: Time,
    /// Makes the assertion's identifier and signature.
    pub random: &'a dyn Random,
}

impl Client {
    /// What a request to the provider carries.
    pub fn carried(&self, occasion: &Occasion<'_>) -> Result<Carried, SigningError> {
        let id = || ("client_id", self.id.clone());
        Ok(match &self.proof {
            Proof::Basic(secret) => {
                Carried { authorization: Some(basic(&self.id, secret.expose())), parameters: Vec::new() }
            }
            Proof::Body(secret) | Proof::Json(secret) => {
                Carried { authorization: None, parameters: vec![id(), ("client_secret", secret.expose().to_owned())] }
            }
            Proof::Key(assertion) => Carried {
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

    /// The shared secret, where there is one.
    pub fn secret(&self) -> Option<&SecretText> {
        match &self.proof {
            Proof::Basic(secret) | Proof::Body(secret) | Proof::Json(secret) => Some(secret),
            Proof::Key(_) => None,
        }
    }
}

/// Identifier and secret are form-encoded before they are joined (RFC 6749 §2.3.1), so that a colon in one divides
/// nothing.
fn basic(id: &str, secret: &str) -> HeaderValue {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = BASE64_STANDARD.encode(format!("{}:{}", encode(id), encode(secret)));
    sensitive(HeaderValue::try_from(format!("Basic {pair}")).expect("base 64 can stand in a header"))
}

/// Marks a value as sensitive, so that printed headers do not show it.
pub(super) fn sensitive(mut value: HeaderValue) -> HeaderValue {
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
    /// Reads a key from PEM: PKCS #8, PKCS #1 or SEC 1.
    pub fn from_pem(pem: &str) -> Result<Self, BadPrivateKey> {
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| BadPrivateKey)?;
        let (der, curve) = (key.secret_der(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let (rsa, p256) = match &key {
            PrivateKeyDer::Pkcs8(_) => (RsaKeyPair::from_pkcs8(der).ok(), EcdsaKeyPair::from_pkcs8(curve, der).ok()),
            PrivateKeyDer::Pkcs1(_) => (RsaKeyPair::from_der(der).ok(), None),
            PrivateKeyDer::Sec1(_) => (None, EcdsaKeyPair::from_private_key_der(curve, der).ok()),
            _ => (None, None),
        };
        match (rsa, p256) {
            (Some(rsa), _) => Ok(Self::Rsa(Box::new(rsa))),
            (None, Some(p256)) => Ok(Self::P256(Box::new(p256))),
            (None, None) => Err(BadPrivateKey),
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
pub(super) mod tests {
    use super::*;
    use aws_lc_rs::{
        encoding::{AsDer, Pkcs8V1Der},
        rsa::KeySize,
        signature::{
            ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED_SIGNING, KeyPair, RSA_PKCS1_2048_8192_SHA256,
            UnparsedPublicKey, VerificationAlgorithm,
        },
    };
    use base::testing::CountingRandom;
    use proptest::prelude::*;

    pub const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn pem(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
    }

    pub fn p256_pem() -> String {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        pem("PRIVATE KEY", pair.to_pkcs8v1().expect("written").as_ref())
    }

    fn rsa() -> RsaKeyPair {
        RsaKeyPair::generate(KeySize::Rsa2048).expect("a key")
    }

    fn rsa_pem(key: &RsaKeyPair) -> String {
        let der: Pkcs8V1Der<'_> = key.as_der().expect("written");
        pem("PRIVATE KEY", der.as_ref())
    }

    fn carried(proof: Proof) -> Carried {
        let client = Client { id: "app:1 ü".into(), proof };
        let random = CountingRandom::default();
        let occasion = Occasion {
            address: "https://api.example.com/token",
            own_host: "waypost.example",
            now: NOW,
            random: &random,
        };
        client.carried(&occasion).expect("carried")
    }

    #[test]
    fn basic_encodes_identifier_and_secret_before_it_joins_them() {
        let carried = carried(Proof::Basic(SecretText::new("s:/+ %\u{e9}")));
        let value = carried.authorization.expect("a header");
        let pair = BASE64_STANDARD.encode("app%3A1+%C3%BC:s%3A%2F%2B+%25%C3%A9");
        assert_eq!(value.to_str().expect("ASCII"), format!("Basic {pair}"));
        assert!(value.is_sensitive() && carried.parameters.is_empty());
    }

    #[test]
    fn body_and_json_carry_the_pair_as_it_is() {
        for proof in [Proof::Body(SecretText::new("s &=")), Proof::Json(SecretText::new("s &="))] {
            let carried = carried(proof);
            assert!(carried.authorization.is_none());
            assert_eq!(carried.parameters, [("client_id", "app:1 ü".to_owned()), ("client_secret", "s &=".to_owned())]);
        }
    }

    fn assertion(pem: &str, audience: Option<&str>, issuer: &str) -> Vec<(&'static str, String)> {
        let issuer = Template::parse(issuer).expect("a template");
        let key = PrivateKey::from_pem(pem).expect("a key");
        carried(Proof::Key(Assertion { key, issuer, audience: audience.map(str::to_owned), key_id: None })).parameters
    }

    fn decoded(part: &str) -> String {
        String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(part).expect("base 64")).expect("text")
    }

    fn verified(jwt: &str, algorithm: &'static dyn VerificationAlgorithm, key: &[u8]) -> (String, String) {
        let (signed, signature) = jwt.rsplit_once('.').expect("three parts");
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base 64");
        UnparsedPublicKey::new(algorithm, key).verify(signed.as_bytes(), &signature).expect("verifies");
        let (header, claims) = signed.split_once('.').expect("two parts");
        (decoded(header), decoded(claims))
    }

    #[test]
    fn an_rsa_key_signs_rs256_with_the_claims_of_the_rfc() {
        let key = rsa();
        let parameters = assertion(&rsa_pem(&key), None, "{clientId}");
        let names: Vec<_> = parameters.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["client_id", "client_assertion_type", "client_assertion"]);
        assert_eq!(parameters[1].1, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
        let (header, claims) = verified(&parameters[2].1, &RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
        assert_eq!(header, r#"{"alg":"RS256","typ":"JWT"}"#);
        assert_eq!(
            claims,
            concat!(
                r#"{"aud":"https://api.example.com/token","exp":1795168020,"iat":1795167900,"iss":"app:1 ü","#,
                r#""jti":"00010203-0405-4607-8809-0a0b0c0d0e0f","sub":"app:1 ü"}"#
            )
        );
    }

    #[test]
    fn a_p256_key_signs_es256_for_the_described_audience_and_issuer() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let pem = pem("PRIVATE KEY", pair.to_pkcs8v1().expect("written").as_ref());
        let parameters = assertion(&pem, Some("https://aud.example"), "{ownHost}");
        let (header, claims) = verified(&parameters[2].1, &ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        assert_eq!(header, r#"{"alg":"ES256","typ":"JWT"}"#);
        let claims: Value = serde_json::from_str(&claims).expect("JSON");
        assert_eq!((&claims["aud"], &claims["iss"]), (&json!("https://aud.example"), &json!("waypost.example")));
    }

    #[test]
    fn a_key_of_another_kind_or_no_key_is_refused() {
        let p384 = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).expect("a key");
        let p384 = pem("PRIVATE KEY", p384.to_pkcs8v1().expect("written").as_ref());
        let certificate = pem("CERTIFICATE", b"x");
        for bad in ["", "sk_live_1", &p384, &certificate, &pem("PRIVATE KEY", b"x"), &p256_pem()[..60]] {
            assert_eq!(PrivateKey::from_pem(bad).err(), Some(BadPrivateKey));
        }
    }

    #[test]
    fn nothing_of_a_client_is_printed_but_its_identifier() {
        let pem = p256_pem();
        let key = PrivateKey::from_pem(&pem).expect("a key");
        let issuer = Template::only(Placeholder::ClientId);
        let proof = Proof::Key(Assertion { key, issuer, audience: None, key_id: None });
        let shown = format!("{:?}", Client { id: "app".into(), proof });
        assert!(shown.contains("PrivateKey(ES256, …)") && shown.len() < 250, "{shown}");
        let shown = format!("{:?}", Client { id: "app".into(), proof: Proof::Basic(SecretText::new("hunter2")) });
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_keys_panic(text in "\\PC{0,80}", label in "[A-Z ]{0,12}") {
            let _ = PrivateKey::from_pem(&text);
            let _ = PrivateKey::from_pem(&pem(&label, text.as_bytes()));
        }
    }
}
