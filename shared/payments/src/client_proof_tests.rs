//! The credentials of requests, and the keys that sign assertions.

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

fn authentication(proof: Proof) -> Authentication {
    let client = Client { id: "app:1 ü".into(), proof };
    let random = CountingRandom::default();
    let occasion =
        Occasion { address: "https://api.example.com/token", own_host: "waypost.example", now: NOW, random: &random };
    client.authentication(&occasion).expect("authentication")
}

#[test]
fn basic_encodes_identifier_and_secret_before_it_joins_them() {
    let authentication = authentication(Proof::Basic(SecretText::new("s:/+ %\u{e9}")));
    let value = authentication.authorization.expect("a header");
    let pair = BASE64_STANDARD.encode("app%3A1+%C3%BC:s%3A%2F%2B+%25%C3%A9");
    assert_eq!(value.to_str().expect("ASCII"), format!("Basic {pair}"));
    assert!(value.is_sensitive() && authentication.parameters.is_empty());
}

#[test]
fn body_and_json_carry_the_pair_as_it_is() {
    for proof in [Proof::Body(SecretText::new("s &=")), Proof::Json(SecretText::new("s &="))] {
        let authentication = authentication(proof);
        assert!(authentication.authorization.is_none());
        assert_eq!(
            authentication.parameters,
            [("client_id", "app:1 ü".to_owned()), ("client_secret", "s &=".to_owned())]
        );
    }
}

fn assertion(pem: &str, audience: Option<&str>, issuer: &str) -> Vec<(&'static str, String)> {
    let issuer = Template::parse(issuer).expect("a template");
    let key = PrivateKey::from_pem(pem).expect("a key");
    authentication(Proof::Key(Assertion { key, issuer, audience: audience.map(str::to_owned), key_id: None }))
        .parameters
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
fn a_key_of_another_kind_is_refused() {
    let p384 = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).expect("a key");
    let p384 = pem("PRIVATE KEY", p384.to_pkcs8v1().expect("written").as_ref());
    for bad in [p384, pem("PRIVATE KEY", b"x"), pem("RSA PRIVATE KEY", b"x"), pem("EC PRIVATE KEY", b"x")] {
        assert_eq!(PrivateKey::from_pem(&bad).err(), Some(BadPrivateKey::OtherKey));
    }
}

#[test]
fn only_the_identifier_of_a_client_is_printed() {
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
