//! Access tokens: the forms that the verifier accepts, and every fault that it refuses.

use super::*;
use crate::{jws::tests::signed, scope::Scope, signing::SigningAlgorithm};
use base::SystemRandom;
use serde_json::{Value, json};

const NOW: Time = Time::from_millis(1_795_167_900_123);

fn expected() -> Audience {
    Audience { issuer: "https://auth.example.com".into(), base_url: "https://api.example.com".into() }
}

fn claims() -> Claims {
    Claims {
        client_id: "appX".into(),
        credential_id: Some("sec_1".into()),
        session_id: None,
        token_id: "id".into(),
        key_id: String::new(),
        resource: Resource::Api,
        scopes: [Scope::BookingRead].into_iter().collect(),
        entities: Entities::new(["hotel".to_owned()]),
        may_publish: false,
        issued: NOW,
        expires: NOW + std::time::Duration::from_secs(60),
    }
}

fn key() -> SigningKey {
    SigningKey::generate(SigningAlgorithm::Es256)
}

fn validate(token: &str, keys: &KeySet, expected: &Audience, now: Time) -> Result<Claims, TokenFault> {
    Presented::parse(token)?.validate(keys, expected, now)
}

fn good_header(key: &SigningKey) -> Value {
    json!({"alg": "ES256", "typ": "at+jwt", "kid": key.kid()})
}

fn good_claims() -> Value {
    let iat = NOW.as_seconds();
    json!({"iss": "https://auth.example.com", "aud": "https://api.example.com", "sub": "appX", "client_id": "appX",
           "credential_id": "sec_1", "iat": iat, "exp": iat + 60, "jti": "id", "scope": "booking.read", "managing_entities": ["hotel"], "may_publish": false})
}

fn with(mut object: Value, member: &str, value: Value) -> String {
    match value {
        Value::Null => object.as_object_mut().expect("an object").remove(member),
        value => object.as_object_mut().expect("an object").insert(member.into(), value),
    };
    object.to_string()
}

#[test]
fn an_issued_token_is_accepted_until_its_last_second() {
    for key in SigningAlgorithm::ALL.map(SigningKey::generate) {
        let token = issue(&claims(), &expected(), &key).expect("a token");
        let keys = KeySet::of([key.public_key()]);
        let last = NOW + std::time::Duration::from_millis(59_800);
        for now in [NOW, last] {
            let claims = validate(&token, &keys, &expected(), now).expect("valid");
            assert_eq!((claims.client_id.as_str(), claims.token_id.as_str()), ("appX", "id"));
            assert_eq!(claims.credential_id.as_deref(), Some("sec_1"));
            assert_eq!((claims.key_id.as_str(), claims.issued.as_seconds()), (key.kid(), NOW.as_seconds()));
            assert!(claims.scopes.contains(Scope::BookingRead) && claims.entities.cover("hotel"));
            assert!(!claims.may_publish);
        }
        let over = NOW + std::time::Duration::from_secs(60);
        assert_eq!(validate(&token, &keys, &expected(), over).expect_err("over"), TokenFault::Expired);
    }
}

#[test]
fn a_signed_header_that_the_issuer_does_not_write_is_refused() {
    let key = key();
    let keys = KeySet::of([key.public_key()]);
    let cases = [
        ("typ", json!("JWT"), TokenFault::Header),
        ("typ", json!("at+jwt "), TokenFault::Header),
        ("typ", Value::Null, TokenFault::Malformed),
        ("typ", json!(1), TokenFault::Malformed),
        ("alg", json!("none"), TokenFault::Header),
        ("alg", json!("HS256"), TokenFault::Header),
        ("alg", json!("es256"), TokenFault::Header),
        ("alg", json!("EdDSA"), TokenFault::Header),
        ("kid", json!("other"), TokenFault::UnknownKey),
        ("kid", Value::Null, TokenFault::Malformed),
        ("crit", json!(["x"]), TokenFault::Header),
        ("crit", json!([]), TokenFault::Header),
        ("b64", json!(false), TokenFault::Header),
        ("b64", json!(true), TokenFault::Header),
    ];
    for (member, value, fault) in cases {
        let token = signed(&key, &with(good_header(&key), member, value.clone()), &good_claims().to_string());
        assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), fault, "{member}: {value}");
    }
    let array = json!(["ES256", "at+jwt", key.kid()]).to_string();
    let token = signed(&key, &array, &good_claims().to_string());
    assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err("an array"), TokenFault::Malformed);
    let null_crit = format!(r#"{{"alg":"ES256","typ":"at+jwt","kid":"{}","crit":null}}"#, key.kid());
    let token = signed(&key, &null_crit, &good_claims().to_string());
    assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err("crit: null"), TokenFault::Header);
}

#[test]
fn a_signed_claim_that_the_issuer_does_not_write_is_refused() {
    let key = key();
    let keys = KeySet::of([key.public_key()]);
    let iat = NOW.as_seconds();
    let cases = [
        ("iss", json!("https://auth.example.com/"), TokenFault::Audience),
        ("iss", Value::Null, TokenFault::Malformed),
        ("aud", json!("https://other.example.com"), TokenFault::Audience),
        ("aud", json!("https://api.example.com/"), TokenFault::Audience),
        ("aud", json!("https://api.example.com/mcp/more"), TokenFault::Audience),
        ("aud", json!([]), TokenFault::Audience),
        ("aud", json!(["https://other.example.com"]), TokenFault::Audience),
        ("aud", Value::Null, TokenFault::Malformed),
        ("exp", json!(iat), TokenFault::Expired),
        ("exp", json!(iat - 30), TokenFault::Expired),
        ("exp", Value::Null, TokenFault::Malformed),
        ("exp", json!("never"), TokenFault::Malformed),
        ("exp", json!(1e300), TokenFault::Malformed),
        ("iat", json!(iat + 60), TokenFault::NotYet),
        ("iat", Value::Null, TokenFault::Malformed),
        ("nbf", json!(iat + 60), TokenFault::NotYet),
        ("nbf", json!("soon"), TokenFault::Malformed),
        ("jti", Value::Null, TokenFault::Malformed),
        ("sub", Value::Null, TokenFault::Malformed),
        ("client_id", Value::Null, TokenFault::Malformed),
        ("credential_id", json!(1), TokenFault::Malformed),
        ("credential_id", Value::Null, TokenFault::Malformed),
        ("scope", json!("booking.read root"), TokenFault::Malformed),
        ("scope", json!(["booking.read"]), TokenFault::Malformed),
        ("managing_entities", json!("hotel"), TokenFault::Malformed),
        ("managing_entities", Value::Null, TokenFault::Malformed),
        ("may_publish", json!("true"), TokenFault::Malformed),
        ("may_publish", json!([]), TokenFault::Malformed),
        ("may_publish", Value::Null, TokenFault::Malformed),
    ];
    for (member, value, fault) in cases {
        let token = signed(&key, &good_header(&key).to_string(), &with(good_claims(), member, value.clone()));
        assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), fault, "{member}: {value}");
    }
    let mut of_session = good_claims();
    of_session["sid"] = "plk_1".into();
    let of_session = signed(&key, &good_header(&key).to_string(), &with(of_session, "credential_id", Value::Null));
    assert!(validate(&of_session, &keys, &expected(), NOW).is_ok(), "a session of the operator has no credential");
    let several = with(good_claims(), "aud", json!(["https://other.example.com", "https://api.example.com"]));
    assert!(validate(&signed(&key, &good_header(&key).to_string(), &several), &keys, &expected(), NOW).is_ok());
}

#[test]
fn a_duplicate_member_is_refused_in_header_and_claims() {
    let key = key();
    let keys = KeySet::of([key.public_key()]);
    let twice =
        |object: Value, member: &str, value: Value| format!(r#"{{"{member}":{value},{}"#, &object.to_string()[1..]);
    for (member, value) in [("typ", json!("at+jwt")), ("alg", json!("none")), ("kid", json!("x"))] {
        let token = signed(&key, &twice(good_header(&key), member, value), &good_claims().to_string());
        assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), TokenFault::Malformed, "{member}");
    }
    for member in ["iss", "aud", "exp", "iat", "scope", "managing_entities", "client_id", "may_publish"] {
        let payload = twice(good_claims(), member, good_claims()[member].clone());
        let token = signed(&key, &good_header(&key).to_string(), &payload);
        assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), TokenFault::Malformed, "{member}");
    }
}

#[test]
fn a_token_with_a_wrong_form_or_signature_is_refused() {
    let (key, stranger) = (key(), key());
    let keys = KeySet::of([key.public_key()]);
    let token = issue(&claims(), &expected(), &key).expect("a token");
    let parts: Vec<&str> = token.split('.').collect();
    let forged = signed(&stranger, &good_header(&key).to_string(), &good_claims().to_string());
    assert_eq!(validate(&forged, &keys, &expected(), NOW).expect_err("forged"), TokenFault::Signature);
    let long = format!("{token}{}", "A".repeat(MAX_LENGTH));
    for bad in [
        "",
        ".",
        "..",
        "a.b.c",
        parts[0],
        &parts[..2].join("."),
        &format!("{}.{}.", parts[0], parts[1]),
        &format!("{token}.{}", parts[2]),
        &format!("{token}="),
        &format!(" {token}"),
        &long,
        &format!("{}.{}.{}", parts[0], parts[1], "AAAA"),
    ] {
        assert!(validate(bad, &keys, &expected(), NOW).is_err(), "{bad}");
    }
}

#[test]
fn only_the_header_of_a_token_is_printed() {
    let token = issue(&claims(), &expected(), &key()).expect("a token");
    let shown = format!("{:?}", Presented::parse(&token).expect("of our form"));
    assert!(token.split('.').all(|part| !shown.contains(part)) && shown.contains("at+jwt"), "{shown}");
}

#[test]
fn changing_any_character_makes_a_token_invalid() {
    let key = key();
    let keys = KeySet::of([key.public_key()]);
    let mut claims = claims();
    claims.token_id = new_token_id(&SystemRandom);
    let token = issue(&claims, &expected(), &key).expect("a token");
    for (position, letter) in token.char_indices() {
        let other = if letter == 'A' { 'B' } else { 'A' };
        let changed = format!("{}{other}{}", &token[..position], &token[position + 1..]);
        assert!(validate(&changed, &keys, &expected(), NOW).is_err(), "character {position}");
    }
}
