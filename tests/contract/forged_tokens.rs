//! Tokens that the issuer never made, or did not make like this: none is believed, and none is more than a 401. Most of them
//! are properly signed, with the deployment's own key.

use std::sync::Arc;

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::harness::{Application, Forge, Suite, now, tests};

tests![
    a_forged_token_is_refused_as_invalid,
    a_forged_token_is_inactive_and_need_not_be_revoked,
    a_token_of_another_spelling_is_as_good,
    a_token_that_no_header_can_carry_is_none,
];

/// A forged token, and what is wrong with it.
type Forged = (String, String);

/// What a token is without a member.
const ABSENT: Option<Value> = None;

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// An object with a member that is another, or absent.
fn with(mut object: Value, name: &str, value: Option<Value>) -> Value {
    let members = object.as_object_mut().expect("headers and claims are objects");
    drop(members.remove(name));
    members.extend(value.map(|value| (name.to_owned(), value)));
    object
}

/// The text of an object that has a member twice.
fn twice(object: &Value, name: &str, value: &Value) -> String {
    object.to_string().replacen('{', &format!(r#"{{"{name}":{value},"#), 1)
}

/// All of them.
fn forged(forge: &Forge, stranger: &Forge) -> Vec<Forged> {
    [
        of_another_form(forge),
        of_other_headers(forge, stranger),
        of_other_claims(forge),
        of_other_signatures(forge, stranger),
    ]
    .concat()
}

fn of_another_form(forge: &Forge) -> Vec<Forged> {
    let good = forge.token(&forge.header(), &forge.claims());
    let parts: Vec<&str> = good.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("a token has three parts") };
    let of_texts = |header: &str, claims: &str| forge.token_of_texts(header, claims);
    let too_long = forge.token(&forge.header(), &with(forge.claims(), "x", Some("x".repeat(6_200).into())));
    let (header_text, claims_text) = (forge.header().to_string(), forge.claims().to_string());
    [
        ("no token", String::new()),
        ("a word", "garbage".to_owned()),
        ("a dot", ".".to_owned()),
        ("only dots", "..".to_owned()),
        ("too many dots", "....".to_owned()),
        ("three letters", "a.b.c".to_owned()),
        ("a header alone", header.to_owned()),
        ("no signature", format!("{header}.{claims}")),
        ("an empty signature", format!("{header}.{claims}.")),
        ("no header", format!(".{claims}.{signature}")),
        ("no claims", format!("{header}..{signature}")),
        ("a fourth part", format!("{good}.{signature}")),
        ("five parts, as of an encrypted one", format!("{good}.{signature}.{signature}")),
        ("padding", format!("{good}==")),
        ("padding inside", format!("{header}=.{claims}.{signature}")),
        ("a space inside", format!("{header}. {claims}.{signature}")),
        ("a space after it", format!("{good} x")),
        ("a comma after it", format!("{good},{good}")),
        ("the JSON form", json!({ "protected": header, "payload": claims, "signature": signature }).to_string()),
        ("standard base 64", format!("{}.{}.{}", BASE64_STANDARD.encode(&header_text), claims, signature)),
        ("parts in another order", format!("{claims}.{header}.{signature}")),
        ("longer than any", format!("{good}{}", "A".repeat(8_000))),
        ("properly signed, but too long", too_long),
        ("claims that are a list", of_texts(&header_text, "[]")),
        ("claims that are null", of_texts(&header_text, "null")),
        ("claims that are a text", of_texts(&header_text, r#""claims""#)),
        ("claims that are a number", of_texts(&header_text, "1")),
        ("claims that are empty", of_texts(&header_text, "")),
        ("claims in a list", of_texts(&header_text, &format!("[{claims_text}]"))),
        ("claims with something after them", of_texts(&header_text, &format!("{claims_text}{{}}"))),
        ("claims that are cut off", of_texts(&header_text, &claims_text[..claims_text.len() - 1])),
        ("claims that are nested deep", of_texts(&header_text, &"[".repeat(4_000))),
        ("claims that are not UTF-8", forge.token_of_texts(&header_text, b"{\"iss\":\"\xff\"}")),
        ("claims after a byte order mark", of_texts(&header_text, &format!("\u{feff}{claims_text}"))),
        ("a header that is a list", of_texts(&format!("[{header_text}]"), &claims_text)),
        ("a header that is null", of_texts("null", &claims_text)),
        ("a header with something after it", of_texts(&format!("{header_text} x"), &claims_text)),
        ("a header in single quotes", of_texts(&header_text.replace('"', "'"), &claims_text)),
        ("a header that is not UTF-8", forge.token_of_texts(b"{\"alg\":\"ES256\xff\"}", &claims_text)),
    ]
    .map(|(name, token)| (name.to_owned(), token))
    .to_vec()
}

fn of_other_headers(forge: &Forge, stranger: &Forge) -> Vec<Forged> {
    let claims = forge.claims();
    let values = [
        ("alg", ABSENT),
        ("alg", Some(Value::Null)),
        ("alg", Some("none".into())),
        ("alg", Some("None".into())),
        ("alg", Some("nOnE".into())),
        ("alg", Some("".into())),
        ("alg", Some("HS256".into())),
        ("alg", Some("RS256".into())),
        ("alg", Some("PS256".into())),
        ("alg", Some("ES384".into())),
        ("alg", Some("ES256K".into())),
        ("alg", Some("EdDSA".into())),
        ("alg", Some("es256".into())),
        ("alg", Some(json!(["ES256"]))),
        ("alg", Some(256.into())),
        ("typ", ABSENT),
        ("typ", Some(Value::Null)),
        ("typ", Some("JWT".into())),
        ("typ", Some("id+jwt".into())),
        ("typ", Some("at+jwt ".into())),
        ("typ", Some("at+jwt\u{0}".into())),
        ("typ", Some("application/jwt".into())),
        ("typ", Some("client-authentication+jwt".into())),
        ("typ", Some(json!(["at+jwt"]))),
        ("kid", ABSENT),
        ("kid", Some(Value::Null)),
        ("kid", Some("".into())),
        ("kid", Some("another".into())),
        ("kid", Some(1.into())),
        ("kid", Some("../../../../dev/null".into())),
        ("kid", Some("' OR '1'='1".into())),
        ("kid", Some("x".repeat(3_000).into())),
        ("crit", Some(json!([]))),
        ("crit", Some(json!(["exp"]))),
        ("crit", Some(json!(["unheard-of"]))),
        ("crit", Some(Value::Null)),
        ("crit", Some("exp".into())),
        ("b64", Some(true.into())),
        ("b64", Some(false.into())),
        ("b64", Some(Value::Null)),
    ];
    let changed = values.map(|(name, value)| {
        let told = format!("header {name}: {}", value.as_ref().map_or("absent".to_owned(), Value::to_string));
        (told, forge.token(&with(forge.header(), name, value), &claims))
    });
    let doubled =
        [("alg", json!("ES256")), ("alg", json!("none")), ("typ", json!("at+jwt")), ("kid", json!("another"))].map(
            |(name, value)| {
                let header = twice(&forge.header(), name, &value);
                (format!("header {name} twice"), forge.token_of_texts(header, claims.to_string()))
            },
        );
    let own_key = [
        ("a key that it brings along", with(stranger.header(), "jwk", Some(stranger.public_jwk()))),
        (
            "an address of keys that it brings along",
            with(stranger.header(), "jku", Some("https://example.com/jwks".into())),
        ),
        ("a certificate that it brings along", with(stranger.header(), "x5c", Some(json!(["MIIB"])))),
        ("the address of a certificate", with(stranger.header(), "x5u", Some("https://example.com/cert".into()))),
    ]
    .map(|(name, header)| (name.to_owned(), stranger.token(&header, &claims)));
    let mut all = [changed.to_vec(), doubled.to_vec(), own_key.to_vec()].concat();
    all.push(("no signature, as it says".to_owned(), forge.token_without_signature(&claims)));
    all.push(("the public key as a shared secret".to_owned(), forge.token_with_public_key_as_secret(&claims)));
    all
}

fn of_other_claims(forge: &Forge) -> Vec<Forged> {
    let header = forge.header();
    let (iss, aud) = (forge.claims()["iss"].clone(), forge.claims()["aud"].clone());
    let text = |value: &Value, suffix: &str| Some(format!("{}{suffix}", value.as_str().expect("a text")).into());
    let values = [
        ("iss", ABSENT),
        ("iss", Some(Value::Null)),
        ("iss", Some("".into())),
        ("iss", Some("https://auth.example.com".into())),
        ("iss", text(&iss, "/")),
        ("iss", text(&iss, ".example.com")),
        ("iss", Some(json!([iss]))),
        ("aud", ABSENT),
        ("aud", Some(Value::Null)),
        ("aud", Some("".into())),
        ("aud", Some("https://api.example.com".into())),
        ("aud", text(&aud, "/")),
        ("aud", Some(json!([]))),
        ("aud", Some(json!(["https://api.example.com"]))),
        ("aud", Some(json!([aud, 1]))),
        ("aud", Some(json!({ "is": aud }))),
        ("aud", Some("*".into())),
        ("exp", ABSENT),
        ("exp", Some(Value::Null)),
        ("exp", Some((now() - 1).into())),
        ("exp", Some((now() - 86_400).into())),
        ("exp", Some(0.into())),
        ("exp", Some((-1).into())),
        ("exp", Some("tomorrow".into())),
        ("exp", Some((now() + 600).to_string().into())),
        ("exp", Some(true.into())),
        ("exp", Some(json!(1e300))),
        ("exp", Some(json!(u64::MAX))),
        ("exp", Some(json!([now() + 600]))),
        ("iat", ABSENT),
        ("iat", Some(Value::Null)),
        ("iat", Some((now() + 120).into())),
        ("iat", Some("now".into())),
        ("nbf", Some((now() + 120).into())),
        ("nbf", Some(i64::MAX.into())),
        ("nbf", Some("now".into())),
        ("nbf", Some(Value::Null)),
        ("jti", ABSENT),
        ("jti", Some(Value::Null)),
        ("jti", Some("".into())),
        ("jti", Some(1.into())),
        ("jti", Some("x".repeat(257).into())),
        ("sub", ABSENT),
        ("sub", Some(Value::Null)),
        ("client_id", ABSENT),
        ("client_id", Some(Value::Null)),
        ("client_id", Some(json!(["appTest"]))),
        ("scope", ABSENT),
        ("scope", Some(Value::Null)),
        ("scope", Some(json!(["integrations.read"]))),
        ("scope", Some("integrations.read root".into())),
        ("scope", Some("INTEGRATIONS.READ".into())),
        ("managing_entities", ABSENT),
        ("managing_entities", Some(Value::Null)),
        ("managing_entities", Some("*".into())),
        ("managing_entities", Some(json!([1]))),
        ("managing_entities", Some(json!({ "*": true }))),
    ];
    let changed = values.map(|(name, value)| {
        let mut told = format!("claim {name}: {}", value.as_ref().map_or("absent".to_owned(), Value::to_string));
        told.truncate(100);
        (told, forge.token(&header, &with(forge.claims(), name, value)))
    });
    let names = ["iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope", "managing_entities"];
    let doubled = names.map(|name| {
        let claims = twice(&forge.claims(), name, &forge.claims()[name]);
        (format!("claim {name} twice"), forge.token_of_texts(header.to_string(), claims))
    });
    [changed.to_vec(), doubled.to_vec()].concat()
}

fn of_other_signatures(forge: &Forge, stranger: &Forge) -> Vec<Forged> {
    let good = forge.token(&forge.header(), &forge.claims());
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let (header, _) = signed.split_once('.').expect("two parts");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base 64");
    let (r, s) = bytes.split_at(32);
    let signed_as = |signature: &[u8]| format!("{signed}.{}", encoded(signature));
    let (other_claims, zero) = (with(forge.claims(), "scope", Some("account.write".into())), [0; 32]);
    let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let order: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&order[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect();
    let mut flipped = bytes.clone();
    flipped[17] ^= 1;
    // The last character of 64 bytes in base 64 has four bits that mean nothing.
    let last = signature.chars().last().expect("it is not empty");
    let respelt = if last == 'A' { 'B' } else { char::from(last as u8 + 1) };
    let respelt = format!("{signed}.{}{respelt}", &signature[..signature.len() - 1]);
    let text_of_der = [&[0x30, 68, 0x02, 32][..], r, &[0x02, 32], s].concat();
    [
        ("a stranger's key under a known name", stranger.token(&forge.header(), &forge.claims())),
        (
            "a key that is no longer published",
            stranger.token(&with(forge.header(), "kid", Some("retired".into())), &forge.claims()),
        ),
        ("another token's signature", format!("{header}.{}.{signature}", encoded(other_claims.to_string()))),
        ("a flipped bit", signed_as(&flipped)),
        ("its halves exchanged", signed_as(&[s, r].concat())),
        ("nothing but zeros", signed_as(&[zero, zero].concat())),
        ("zero for r", signed_as(&[&zero, s].concat())),
        ("zero for s", signed_as(&[r, &zero].concat())),
        ("the order for r", signed_as(&[&order, s].concat())),
        ("the order for r and s", signed_as(&[&order[..], &order].concat())),
        ("the highest number", signed_as(&[0xff; 64])),
        ("a byte less", signed_as(&bytes[..63])),
        ("a byte more", signed_as(&[&bytes[..], &[0]].concat())),
        ("DER", signed_as(&text_of_der)),
        ("a byte alone", signed_as(&[0])),
        ("twice the signature", signed_as(&[&bytes[..], &bytes].concat())),
        ("a signature of other bits in its last character", respelt),
        (
            "a signature in hexadecimal",
            format!("{signed}.{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        ),
    ]
    .map(|(name, token)| (name.to_owned(), token))
    .to_vec()
}

async fn a_forged_token_is_refused_as_invalid(suite: Arc<Suite>) {
    let list = "/api/managing-entity/covered/webhook/list";
    let (forge, stranger) = (suite.forge(), suite.forge().with_another_key());
    suite.api.get(list).bearer(&forge.token(&forge.header(), &forge.claims())).expect(200).await;
    let tokens = forged(&forge, &stranger);
    assert!(tokens.len() > 100, "{} tokens", tokens.len());
    stream::iter(tokens)
        .for_each_concurrent(8, async |(told, token)| {
            let answer = suite.api.get(list).bearer(&token).send().await;
            assert_eq!(answer.status, 401, "{told}: {token}: {}", answer.exchange);
            let challenge = answer.header("www-authenticate");
            let invalid = challenge.starts_with("Bearer ") && challenge.contains(r#"error="invalid_token""#);
            assert!(invalid, "{told}: {token}: {}", answer.exchange);
        })
        .await;
}

async fn a_forged_token_is_inactive_and_need_not_be_revoked(suite: Arc<Suite>) {
    let (forge, stranger) = (suite.forge(), suite.forge().with_another_key());
    stream::iter(forged(&forge, &stranger))
        .for_each_concurrent(8, async |(told, token)| {
            // A parameter without a value is absent.
            let (status, told) = if token.is_empty() { (400, told) } else { (200, told) };
            let form = [("token", token.as_str())];
            let answer = suite.api.as_client("/oauth2/introspect", Application::Platform, &form).send().await;
            assert_eq!(answer.status, status, "{told}: {}", answer.exchange);
            if status == 200 {
                assert_eq!(answer.json(), json!({ "active": false }), "{told}: {token}");
            }
            let answer = suite.api.as_client("/oauth2/revoke", Application::Platform, &form).send().await;
            assert_eq!(answer.status, status, "{told}: {}", answer.exchange);
        })
        .await;
}

async fn a_token_of_another_spelling_is_as_good(suite: Arc<Suite>) {
    let forge = suite.forge();
    let aud = forge.claims()["aud"].clone();
    for (header, claims) in [
        (with(forge.header(), "typ", Some("AT+JWT".into())), forge.claims()),
        (with(forge.header(), "typ", Some("application/at+jwt".into())), forge.claims()),
        (with(forge.header(), "x-unknown", Some(json!({ "deep": [1] }))), forge.claims()),
        (forge.header(), with(forge.claims(), "aud", Some(json!(["https://api.example.com", aud])))),
        (forge.header(), with(forge.claims(), "nbf", Some(now().into()))),
        (forge.header(), with(forge.claims(), "unknown", Some(json!([null])))),
    ] {
        let token = forge.token(&header, &claims);
        suite.api.get("/api/managing-entity/covered/webhook/list").bearer(&token).expect(200).await;
    }
}

async fn a_token_that_no_header_can_carry_is_none(suite: Arc<Suite>) {
    for authorization in ["Bearer \u{e9}".as_bytes(), b"Bearer \xff\xfe", b"Bearer\t"] {
        let call = suite.api.get("/api/managing-entity/covered/webhook/list").header("authorization", authorization);
        let answer = call.expect(401).await;
        assert!(answer.header("www-authenticate").starts_with("Bearer"), "{}", answer.exchange);
    }
}
