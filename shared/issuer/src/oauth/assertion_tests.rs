//! Client assertions: every claim, header and signature that is accepted or refused.

use super::*;
use crate::{applications::client_key::ALGORITHMS, oauth::testing::AssertionKey};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: Time = Time::from_millis(1_795_167_900_123);
const OURS: [&str; 2] = ["https://auth.example.com", "https://auth.example.com/oauth2/token"];

fn good() -> Value {
    json!({ "iss": "appX", "sub": "appX", "aud": OURS[0], "exp": NOW.as_seconds() + 300, "jti": "1" })
}

fn with(member: &str, value: Value) -> Value {
    let mut claims = good();
    claims[member] = value;
    claims
}

fn without(member: &str) -> Value {
    let mut claims = good();
    claims.as_object_mut().expect("an object").remove(member);
    claims
}

fn registered(key: &AssertionKey) -> ClientKey {
    ClientKey::parse(&key.jwk(), NOW).expect("a key")
}

fn judge(text: String, keys: &[ClientKey]) -> Result<String, AssertionFault> {
    let assertion = ClientAssertion::read(text)?;
    assertion.check(&OURS, NOW)?;
    assertion.signer(keys).map(|key| key.kid.clone())
}

#[test]
fn assertions_of_every_type_of_key_are_accepted() {
    for algorithm in ALGORITHMS {
        let key = AssertionKey::generate(algorithm);
        let other = AssertionKey::generate(algorithm);
        let keys = [registered(&other), registered(&key)];
        let text = key.assertion(&good());
        assert_eq!(judge(text.clone(), &keys), Ok(keys[1].kid.clone()), "{algorithm}");
        assert_eq!(judge(text.clone(), &keys[..1]), Err(AssertionFault::Signature), "{algorithm}");
        assert_eq!(judge(text, &[]), Err(AssertionFault::Signature), "{algorithm}");
    }
}

#[test]
fn the_key_decides_the_algorithm() {
    let key = AssertionKey::generate("ES256");
    for alg in ["none", "HS256", "ES384", "RS256", "EdDSA", "Ed25519", "es256"] {
        let text = key.sign(&json!({ "alg": alg }).to_string(), &good().to_string());
        assert_eq!(judge(text, &[registered(&key)]), Err(AssertionFault::Signature), "{alg}");
    }
    let rsa = AssertionKey::generate("PS256");
    let mut only_rs256 = rsa.jwk();
    only_rs256["alg"] = "RS256".into();
    let only_rs256 = ClientKey::parse(&only_rs256, NOW).expect("a key");
    assert_eq!(judge(rsa.assertion(&good()), &[only_rs256]), Err(AssertionFault::Signature));
    assert!(judge(rsa.assertion(&good()), &[registered(&rsa)]).is_ok());
}

#[test]
fn both_names_of_the_algorithm_are_accepted_for_an_ed25519_key() {
    let key = AssertionKey::generate("EdDSA");
    for registered_as in [Value::Null, json!("EdDSA"), json!("Ed25519")] {
        let mut jwk = key.jwk();
        if !registered_as.is_null() {
            jwk["alg"] = registered_as.clone();
        }
        let keys = [ClientKey::parse(&jwk, NOW).expect("a key")];
        for alg in ["EdDSA", "Ed25519"] {
            let text = key.sign(&json!({ "alg": alg }).to_string(), &good().to_string());
            assert!(judge(text, &keys).is_ok(), "{registered_as} {alg}");
        }
    }
}

#[test]
fn a_named_key_is_the_only_one_that_is_tried() {
    let key = AssertionKey::generate("EdDSA");
    let keys = [registered(&key)];
    let named = |kid: &str| key.sign(&json!({ "alg": "EdDSA", "kid": kid }).to_string(), &good().to_string());
    assert_eq!(judge(named(&keys[0].kid), &keys), Ok(keys[0].kid.clone()));
    assert_eq!(judge(named("other"), &keys), Err(AssertionFault::Signature));
}

#[test]
fn as_many_keys_are_tried_for_every_client() {
    for algorithm in ALGORITHMS {
        let text = |header: Value| AssertionKey::generate("EdDSA").sign(&header.to_string(), &good().to_string());
        let keys: Vec<_> = (0..MAX_KEYS).map(|_| registered(&AssertionKey::generate(algorithm))).collect();
        let tried = |text: &str, keys: &[ClientKey]| {
            let (theirs, decoys) = candidates(Jws::parse(text, LONGEST).expect("a JWS").header(), keys);
            (theirs.len(), decoys.len())
        };
        let any = text(json!({ "alg": algorithm }));
        let named = text(json!({ "alg": algorithm, "kid": keys[1].kid }));
        for known in 0..=MAX_KEYS {
            assert_eq!(tried(&any, &keys[..known]), (known, MAX_KEYS - known), "{algorithm}");
            let found = usize::from(known > 1);
            assert_eq!(tried(&named, &keys[..known]), (found, 1 - found), "{algorithm}");
        }
    }
}

#[test]
fn an_assertion_with_the_type_of_an_access_token_is_refused() {
    let key = AssertionKey::generate("EdDSA");
    let typed = |typ: &str| key.sign(&json!({ "alg": "EdDSA", "typ": typ }).to_string(), &good().to_string());
    for typ in ["JWT", "jwt", "client-authentication+jwt", "application/client-authentication+jwt"] {
        assert!(judge(typed(typ), &[registered(&key)]).is_ok(), "{typ}");
    }
    for typ in ["at+jwt", "application/at+jwt", "", "dpop+jwt"] {
        assert_eq!(judge(typed(typ), &[registered(&key)]), Err(AssertionFault::Type), "{typ}");
    }
}

#[test]
fn every_claim_is_checked() {
    use AssertionFault::{Audience, Identifier, Malformed, Subject, Time as Timing};
    let now = NOW.as_seconds();
    let key = AssertionKey::generate("EdDSA");
    let malformed = Malformed(JwsFault::Malformed);
    let cases = [
        (with("iss", json!("appY")), Subject),
        (with("sub", json!("appY")), Subject),
        (json!({ "iss": "", "sub": "", "aud": OURS[0], "exp": now + 1, "jti": "1" }), Subject),
        (without("iss"), malformed),
        (without("sub"), malformed),
        (with("aud", json!("https://other.example.com")), Audience),
        (with("aud", json!(OURS[0].to_uppercase())), Audience),
        (with("aud", json!([])), Audience),
        (with("aud", json!([OURS[0], "https://other.example.com"])), Audience),
        (without("aud"), malformed),
        (with("exp", json!(now)), Timing),
        (with("exp", json!(now - 1)), Timing),
        (with("exp", json!(now + 3661)), Timing),
        (with("exp", json!(1e300)), Timing),
        (with("exp", json!("soon")), malformed),
        (without("exp"), malformed),
        (with("iat", json!(now + 61)), Timing),
        (with("nbf", json!(now + 61)), Timing),
        (with("nbf", Value::Null), malformed),
        (with("jti", json!("")), Identifier),
        (with("jti", json!("x".repeat(257))), Identifier),
        (with("jti", json!(1)), malformed),
        (without("jti"), malformed),
    ];
    for (claims, fault) in cases {
        assert_eq!(judge(key.assertion(&claims), &[registered(&key)]), Err(fault), "{claims}");
    }
    for claims in [
        with("aud", json!(OURS[1])),
        with("aud", json!(OURS)),
        with("exp", json!(now + 3660)),
        with("exp", json!(NOW.as_seconds() as f64 + 0.5)),
        with("iat", json!(now + 60)),
        with("nbf", json!(now - 7)),
        with("jti", json!("ä".repeat(256))),
        with("anything", json!({ "else": [1] })),
    ] {
        assert!(judge(key.assertion(&claims), &[registered(&key)]).is_ok(), "{claims}");
    }
}

#[test]
fn a_member_that_comes_twice_is_refused() {
    let key = AssertionKey::generate("EdDSA");
    for member in ["iss", "sub", "aud", "exp", "jti"] {
        let twice = format!(r#"{{"{member}":{},{}"#, good()[member], &good().to_string()[1..]);
        let text = key.sign(r#"{"alg":"EdDSA"}"#, &twice);
        let fault = AssertionFault::Malformed(JwsFault::Malformed);
        assert_eq!(judge(text, &[registered(&key)]), Err(fault), "{member}");
    }
}

#[test]
fn there_is_a_decoy_for_every_algorithm() {
    for name in ALGORITHMS {
        let algorithm = algorithm(name).expect("an algorithm");
        assert!(DECOYS.iter().any(|key| key.algorithms().contains(&algorithm)), "{name}");
    }
    assert!(DECOYS.iter().all(|key| key.public().is_ok()));
}

#[test]
fn no_usable_part_of_an_assertion_is_printed() {
    let text = AssertionKey::generate("EdDSA").assertion(&good());
    let assertion = ClientAssertion::read(text.clone()).expect("an assertion");
    assert!(!format!("{assertion:?}").contains(text.rsplit('.').next().expect("a signature")));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,60}", parts in "[A-Za-z0-9_.-]{0,80}", claims in "\\PC{0,60}") {
        let key = AssertionKey::generate("EdDSA");
        let keys = [registered(&key)];
        for text in [text, parts, key.sign(r#"{"alg":"EdDSA"}"#, &claims), key.sign(&claims, &good().to_string())] {
            let _ = judge(text, &keys);
        }
    }

    #[test]
    fn a_changed_letter_is_noticed(position in 0usize..1000, letter in "[A-Za-z0-9_-]") {
        let key = AssertionKey::generate("EdDSA");
        let text = key.assertion(&good());
        let position = position % text.len();
        let changed = format!("{}{letter}{}", &text[..position], &text[position + 1..]);
        prop_assert_eq!(judge(changed.clone(), &[registered(&key)]).is_ok(), changed == text);
    }
}
