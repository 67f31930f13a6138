//! Applications' public keys: the members that are read, stored, shown and refused.

use super::*;
use crate::oauth::testing::AssertionKey;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

const NOW: Time = Time::from_millis(1_795_167_900_123);

fn with(mut jwk: Value, member: &str, value: Value) -> Value {
    jwk[member] = value;
    jwk
}

fn refusal(jwk: &Value) -> String {
    ClientKey::parse(jwk, NOW).err().unwrap_or_else(|| panic!("{jwk} was accepted"))
}

#[test]
fn a_key_is_stored_and_shown_without_members_that_do_not_verify() {
    for (algorithm, possible) in [
        ("ES256", vec![Algorithm::ES256]),
        ("ES384", vec![Algorithm::ES384]),
        ("EdDSA", vec![Algorithm::EdDSA]),
        ("PS256", vec![Algorithm::RS256, Algorithm::PS256]),
    ] {
        let jwk = AssertionKey::generate(algorithm).jwk();
        let full = with(with(with(jwk.clone(), "use", json!("sig")), "x5t", json!("x")), "key_ops", json!(["verify"]));
        let key = ClientKey::parse(&full, NOW).expect("a key");
        assert_eq!((key.algorithms(), key.created_date), (&*possible, NOW));
        assert_eq!(Value::from(key.to_jwk()), with(jwk.clone(), "kid", json!(key.kid)));
        let stored = serde_json::to_value(&key).expect("JSON");
        assert_eq!(stored["jwk"], jwk);
        assert_eq!(serde_json::from_value::<ClientKey>(stored).expect("a key"), key);
        let item = storage::table::Put::item(&key, "").expect("an item");
        assert_eq!(item.read_back::<ClientKey>("").ok(), Some(key));
    }
}

#[test]
fn the_name_is_the_given_one_or_the_thumbprint() {
    // RFC 7638 §3.1.
    let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMst\
             n64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n9\
             1CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    let jwk = json!({ "kty": "RSA", "n": n, "e": "AQAB", "alg": "RS256" });
    let key = ClientKey::parse(&jwk, NOW).expect("a key");
    assert_eq!(key.kid, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    assert_eq!(key.algorithms(), [Algorithm::RS256]);
    // RFC 8037 §A.3.
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
    assert_eq!(ClientKey::parse(&jwk, NOW).expect("a key").kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    assert_eq!(ClientKey::parse(&with(jwk.clone(), "kid", json!("2026:a")), NOW).expect("a key").kid, "2026:a");
    for kid in ["", ".", "..", "...", "a/b", "ä", "sec_1", &"x".repeat(129)].map(Value::from) {
        assert!(refusal(&with(jwk.clone(), "kid", kid)).contains("`kid`"));
    }
    for kid in [json!(1), Value::Null] {
        assert!(refusal(&with(jwk.clone(), "kid", kid)).contains("`kid`"));
    }
    assert!(ClientKey::parse(&with(jwk, "kid", json!("..a")), NOW).is_ok());
}

#[test]
fn an_ed25519_key_is_registered_by_either_name_of_its_algorithm() {
    let jwk = AssertionKey::generate("EdDSA").jwk();
    for alg in ["EdDSA", "Ed25519"] {
        let key = ClientKey::parse(&with(jwk.clone(), "alg", json!(alg)), NOW).expect("a key");
        assert_eq!(key.to_jwk()["alg"], "EdDSA", "{alg}");
    }
}

#[test]
fn unknown_members_are_ignored_and_not_stored() {
    let jwk = AssertionKey::generate("ES256").jwk();
    let plain = ClientKey::parse(&jwk, NOW).expect("a key");
    // RFC 7517 §4. An `exp` in the past has no effect, since no RFC defines one for keys.
    for (member, value) in [
        ("exp", json!(0)),
        ("iat", json!(1_700_000_000)),
        ("nbf", Value::Null),
        ("name", json!("laptop")),
        ("ext", json!(true)),
        ("x5c", json!([])),
        ("keyOps", json!([])),
        ("D", json!("x")),
    ] {
        assert_eq!(ClientKey::parse(&with(jwk.clone(), member, value), NOW).as_ref(), Ok(&plain), "{member}");
    }
}

#[test]
fn private_keys_of_every_type_are_refused() {
    let ec = AssertionKey::generate("ES256").jwk();
    let rsa = AssertionKey::generate("PS256").jwk();
    for (jwk, member) in
        PRIVATE.map(|member| (&ec, member)).into_iter().chain([(&rsa, "qi"), (&json!({ "kty": "oct" }), "k")])
    {
        let refusal = refusal(&with(jwk.clone(), member, json!("hunter2")));
        assert!(refusal.contains(&format!("`{member}`")) && !refusal.contains("hunter2"), "{refusal}");
    }
}

#[test]
fn a_set_of_keys_is_refused_and_a_private_member_in_it_named() {
    let ec = AssertionKey::generate("ES256").jwk();
    let set = refusal(&json!({ "keys": [ec] }));
    assert!(set.contains("separately"), "{set}");
    let private = refusal(&json!({ "keys": [ec, with(ec.clone(), "d", json!("hunter2"))] }));
    assert!(
        private.contains("`d`") && private.contains("private key is now exposed") && !private.contains("hunter2"),
        "{private}"
    );
}

#[test]
fn a_key_that_verifies_nothing_is_refused() {
    let ec = AssertionKey::generate("ES256").jwk();
    let p384 = AssertionKey::generate("ES384").jwk();
    let ed = AssertionKey::generate("EdDSA").jwk();
    let rsa = AssertionKey::generate("RS256").jwk();
    let other = AssertionKey::generate("ES256").jwk();
    let number = |bytes: &[u8]| json!(BASE64_URL_SAFE_NO_PAD.encode(bytes));
    for (bad, why) in [
        (json!("key"), "an object"),
        (json!([]), "an object"),
        (json!({}), "`kty`"),
        (with(ec.clone(), "kty", json!("ec")), "`kty`"),
        (with(ec.clone(), "crv", json!("secp256k1")), "`kty`"),
        (
            with(ec.clone(), "crv", json!("P-384")),
            "`x` has 32 octets, but RFC 7518 section 6.2.1.2 requires 48 for P-384",
        ),
        (
            with(p384.clone(), "crv", json!("P-256")),
            "`x` has 48 octets, but RFC 7518 section 6.2.1.2 requires 32 for P-256",
        ),
        // A leading zero was lost.
        (
            with(ec.clone(), "x", number(&[1; 31])),
            "`x` has 31 octets, but RFC 7518 section 6.2.1.2 requires 32 for P-256",
        ),
        (
            with(ec.clone(), "y", number(&[1; 31])),
            "`y` has 31 octets, but RFC 7518 section 6.2.1.3 requires 32 for P-256",
        ),
        (
            with(p384.clone(), "y", number(&[1; 47])),
            "`y` has 47 octets, but RFC 7518 section 6.2.1.3 requires 48 for P-384",
        ),
        (with(ec.clone(), "y", other["y"].clone()), "not a point"),
        (with(ec.clone(), "y", Value::Null), "`y`"),
        (with(ec.clone(), "x", json!("a b")), "`x`"),
        (with(ec.clone(), "x", json!(format!("{}=", ec["x"].as_str().expect("text")))), "`x`"),
        (with(ed.clone(), "crv", json!("X25519")), "`kty`"),
        (
            with(ed.clone(), "x", number(&[1; 31])),
            "`x` has 31 octets, but RFC 8032 section 5.1.5 requires 32 for Ed25519",
        ),
        (with(rsa.clone(), "n", number(&[255; 128])), "2048"),
        (with(rsa.clone(), "n", number(&[255; 1025])), "8192"),
        (with(rsa.clone(), "n", number(&[&[0], [255; 256].as_slice()].concat())), "zeros"),
        (with(rsa.clone(), "n", number(&[255; 256])), "not a valid RSA key"), // divisible by three
        (with(rsa.clone(), "e", number(&[1])), "not a valid RSA key"),
        (with(rsa.clone(), "e", number(&[1, 0, 0])), "not a valid RSA key"),
        (with(rsa.clone(), "e", number(&[1; 9])), "not a valid RSA key"),
        (with(rsa.clone(), "alg", json!("RS512")), "`RS256` or `PS256`"),
        (with(ec.clone(), "alg", json!("ES384")), "`ES256`"),
        (with(ec.clone(), "alg", json!("Ed25519")), "`ES256`"),
        (with(ed.clone(), "alg", json!("ed25519")), "`EdDSA` or `Ed25519`"),
        (with(ec.clone(), "alg", json!(1)), "`ES256`"),
        (with(ec.clone(), "use", json!("enc")), "`use`"),
        (with(ec.clone(), "key_ops", json!(["encrypt"])), "`key_ops`"),
    ] {
        let refusal = refusal(&bad);
        assert!(refusal.contains(why), "{refusal}: {bad}");
    }
}

proptest! {
    #[test]
    fn no_value_makes_the_reader_panic(kty in "EC|OKP|RSA|.", crv in "P-256|P-384|Ed25519|.", x in "[A-Za-z0-9_-]{0,90}", y in "\\PC{0,50}") {
        let _ = ClientKey::parse(&json!({ "kty": kty, "crv": crv, "x": x, "y": y, "n": x, "e": y }), NOW);
        let _ = ClientKey::parse(&json!({ "kty": "RSA", "n": x.repeat(8), "e": x }), NOW);
    }
}
