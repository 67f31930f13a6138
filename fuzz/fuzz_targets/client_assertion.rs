//! Client assertions with a valid signature, any header and any claims: an accepted assertion has each required claim
//! once, is valid now, and expires soon enough.
#![no_main]

use std::{collections::HashSet, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use issuer::{applications::ClientKey, oauth::{assertion::ClientAssertion, testing::AssertionKey}};
use base::Time;

const NOW: Time = Time::from_millis(1_795_167_900_123);
const ISSUER: &str = "https://auth.waypost.example";

static KEY: LazyLock<(AssertionKey, ClientKey)> = LazyLock::new(|| {
    let pair = AssertionKey::generate("EdDSA");
    let key = ClientKey::parse(&pair.jwk(), NOW).expect("a key");
    (pair, key)
});

fuzz_target!(|text: &str| {
    let (pair, key) = &*KEY;
    let _ = ClientAssertion::read(text.to_owned());
    let Some((header, claims)) = text.split_once('\n') else { return };
    let Ok(assertion) = ClientAssertion::read(pair.sign(header, claims)) else { return };
    let keys = std::slice::from_ref(key);
    if assertion.check(&[ISSUER], NOW).is_err() || assertion.signer(keys).is_err() {
        return;
    }

    // Ignored claims may contain numbers that are too large for this parser.
    let parsed = serde_json::from_str::<Value>(header).ok().zip(serde_json::from_str::<Value>(claims).ok());
    let Some((header, claims)) = parsed else { return };
    assert!(header["alg"] == "EdDSA" || header["alg"] == "Ed25519");
    assert!(header.get("crit").is_none() && header.get("b64").is_none());
    assert_eq!((&claims["iss"], &claims["sub"]), (&claims["sub"], &assertion.client_id().into()));
    let audiences: HashSet<_> = match &claims["aud"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    assert_eq!(audiences, HashSet::from([ISSUER]));
    let left = claims["exp"].as_f64().expect("an end") - NOW.as_seconds() as f64;
    assert!(left > 0.0 && left <= 3661.0, "{left}");
    let letters = claims["jti"].as_str().expect("an identifier").chars().count();
    assert!((1..=256).contains(&letters));
});
