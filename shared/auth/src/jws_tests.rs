//! JSON Web Signatures: their form, algorithms and payloads.

use super::*;
use crate::signing::{SigningAlgorithm, SigningKey};
use proptest::prelude::*;

#[derive(Debug, PartialEq, Deserialize)]
struct Said {
    said: String,
}

/// A correctly signed JWS with any header and payload.
pub fn signed(key: &SigningKey, header: &str, payload: &str) -> String {
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
fn only_the_key_that_signed_a_text_verifies_it() {
    for algorithm in SigningAlgorithm::ALL {
        let key = SigningKey::generate(algorithm);
        let other = SigningKey::generate(algorithm);
        let header = format!(r#"{{"alg":"{algorithm}","jku":"https://ignored.example","typ":"x"}}"#);
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
fn an_ed25519_key_has_two_names_for_its_algorithm() {
    let [es256, ed] = SigningAlgorithm::ALL.map(SigningKey::generate);
    for alg in ["EdDSA", "Ed25519"] {
        let header = format!(r#"{{"alg":"{alg}"}}"#);
        assert!(read(&ed, &signed(&ed, &header, r#"{"said":"yes"}"#)).is_ok(), "{alg}");
        let text = signed(&es256, &header, r#"{"said":"yes"}"#);
        assert_eq!(read(&es256, &text), Err(JwsFault::Algorithm), "{alg}");
    }
    for other in ["ed25519", "Ed448", "ED25519", "ESP256"] {
        assert_eq!(algorithm(other), None, "{other}");
    }
}

#[test]
fn a_header_with_duplicates_or_extensions_or_no_object_is_refused() {
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
fn a_payload_with_duplicates_or_no_object_is_refused() {
    let key = SigningKey::generate(SigningAlgorithm::Es256);
    for payload in [r#"{"said":"a","said":"b"}"#, r#"["yes"]"#, r#""yes""#, "{}", "", r#"{"said":"yes"}x"#] {
        let text = signed(&key, r#"{"alg":"ES256"}"#, payload);
        assert_eq!(read(&key, &text), Err(JwsFault::Malformed), "{payload}");
    }
}

#[test]
fn a_text_has_three_parts_in_canonical_base_64() {
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
