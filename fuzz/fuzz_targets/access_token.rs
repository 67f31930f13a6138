//! Access tokens with a valid signature, any header and any claims: an accepted token has the right claims, and is
//! valid now.
#![no_main]

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use auth::{keys::KeySet, signing::{SigningAlgorithm, SigningKey}, token::{Audience, Claims, Presented, TokenFault}};
use base::Time;

const NOW: Time = Time::from_millis(1_795_167_900_123);

static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate(SigningAlgorithm::EdDsa));
static KEYS: LazyLock<KeySet> = LazyLock::new(|| KeySet::of([KEY.public_key()]));
static EXPECTED: LazyLock<Audience> = LazyLock::new(|| Audience {
    issuer: "https://auth.waypost.example".to_owned(),
    base_url: "https://api.waypost.example".to_owned(),
});

fuzz_target!(|text: &str| {
    let _ = validate(text);
    let Some((header, claims)) = text.split_once('\n') else { return };
    // The key's name is random, so the text cannot contain it.
    let header = header.replace("KID", KEY.kid());
    let Ok(taken) = validate(&signed(&header, claims)) else { return };

    // Ignored claims may contain numbers that are too large for this parser.
    let parsed = serde_json::from_str::<Value>(&header).ok().zip(serde_json::from_str::<Value>(claims).ok());
    let Some((header, claims)) = parsed else { return };
    assert_eq!((&header["alg"], &header["kid"]), (&"EdDSA".into(), &KEY.kid().into()));
    assert!(header.get("crit").is_none() && header.get("b64").is_none());
    assert_eq!(claims["iss"], EXPECTED.issuer);
    // A token's audience is the API, or the agents' resource below it.
    let is_ours = |aud: &Value| [&EXPECTED.base_url, &format!("{}/mcp", EXPECTED.base_url)].iter().any(|ours| aud == *ours);
    assert!(is_ours(&claims["aud"]) || claims["aud"].as_array().is_some_and(|all| all.iter().any(is_ours)));
    assert!(claims["exp"].as_i64() > Some(NOW.as_seconds()) && claims["iat"].as_i64() <= Some(NOW.as_seconds() + 2));
    assert_eq!((&claims["client_id"], &claims["jti"]), (&taken.client_id.into(), &taken.token_id.into()));
    let scopes = claims["scope"].as_str().expect("scopes");
    assert!(taken.scopes.iter().all(|scope| scopes.split(' ').any(|named| named == scope.as_str())));
});

fn validate(token: &str) -> Result<Claims, TokenFault> {
    Presented::parse(token)?.validate(&KEYS, &EXPECTED, NOW)
}

fn signed(header: &str, claims: &str) -> String {
    let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
    let text = format!("{header}.{claims}");
    let signature = KEY.sign(text.as_bytes()).expect("signs");
    format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}
