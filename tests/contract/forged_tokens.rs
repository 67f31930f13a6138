//! Tokens that the issuer did not create: each is refused with 401, and none causes an internal error. Most of these
//! tokens have a valid signature with the deployment's key.

use std::sync::Arc;

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use contract_test::contract_test;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::harness::{Application, Forge, Suite, now};

/// The fault in a forged token, and the token itself.
type Forged = (String, String);

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// An object with one member replaced or removed.
fn with(mut object: Value, name: &str, value: Option<Value>) -> Value {
    let members = object.as_object_mut().expect("headers and claims are objects");
    drop(members.remove(name));
    members.extend(value.map(|value| (name.to_owned(), value)));
    object
}

/// Tokens with each of these values for a member, and tokens that lack one of the required members.
fn changes(values: &[(&str, Value)], required: &[&str], token: impl Fn(&str, Option<Value>) -> String) -> Vec<Forged> {
    let mut changes = Vec::new();
    for (name, values) in values {
        for value in values.as_array().expect("a list") {
            let shown: String = value.to_string().chars().take(80).collect();
            changes.push((format!("{name}: {shown}"), token(name, Some(value.clone()))));
        }
    }
    changes.extend(required.iter().map(|name| (format!("{name} absent"), token(name, None))));
    changes
}

/// The JSON text of an object with a duplicate member.
fn twice(object: &Value, name: &str, value: &Value) -> String {
    object.to_string().replacen('{', &format!(r#"{{"{name}":{value},"#), 1)
}

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
    let header_text = forge.header().to_string();
    let claims_text = forge.claims().to_string();
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
    let algorithms = json!([
        null,
        "none",
        "None",
        "nOnE",
        "",
        "HS256",
        "RS256",
        "PS256",
        "ES384",
        "ES256K",
        "EdDSA",
        "es256",
        ["ES256"],
        256
    ]);
    let types = json!([
        null,
        "JWT",
        "id+jwt",
        "at+jwt ",
        "at+jwt\u{0}",
        "application/jwt",
        "client-authentication+jwt",
        ["at+jwt"]
    ]);
    let names = json!([null, "", "another", 1, "../../../../dev/null", "' OR '1'='1", "x".repeat(3_000)]);
    let extensions = json!([[], ["exp"], ["unheard-of"], null, "exp"]);
    let values = [
        ("alg", algorithms),
        ("typ", types),
        ("kid", names),
        ("crit", extensions),
        ("b64", json!([true, false, null])),
    ];
    let changed = changes(&values, &["alg", "typ", "kid"], |name, value| {
        forge.token(&with(forge.header(), name, value), &claims)
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
    let mut all = [changed, doubled.to_vec(), own_key.to_vec()].concat();
    all.push(("no signature, as it says".to_owned(), forge.token_without_signature(&claims)));
    all.push(("the public key as a shared secret".to_owned(), forge.token_with_public_key_as_secret(&claims)));
    all
}

fn of_other_claims(forge: &Forge) -> Vec<Forged> {
    let header = forge.header();
    let iss = forge.claims()["iss"].clone();
    let aud = forge.claims()["aud"].clone();
    let text = |value: &Value, suffix: &str| format!("{}{suffix}", value.as_str().expect("a text"));
    let (other, soon) = ("https://api.example.com", now() + 600);
    let values = [
        ("iss", json!([null, "", "https://auth.example.com", text(&iss, "/"), text(&iss, ".example.com"), [iss]])),
        ("aud", json!([null, "", other, text(&aud, "/"), [], [other], [aud, 1], { "is": aud }, "*"])),
        (
            "exp",
            json!([
                null,
                now() - 1,
                now() - 86_400,
                0,
                -1,
                "tomorrow",
                soon.to_string(),
                true,
                1e300,
                u64::MAX,
                [soon]
            ]),
        ),
        // These times are later than the tokens' last use, even on a slow machine.
        ("iat", json!([null, now() + 3_600, "now"])),
        ("nbf", json!([now() + 3_600, i64::MAX, "now", null])),
        ("jti", json!([null, "", 1, "x".repeat(257)])),
        ("sub", json!([null])),
        ("client_id", json!([null, ["appTest"]])),
        ("scope", json!([null, ["integrations.read"], "integrations.read root", "INTEGRATIONS.READ"])),
        ("managing_entities", json!([null, "*", [1], { "*": true }])),
        ("credential_id", json!([null, 1])),
        ("may_publish", json!([null, "true", 1])),
    ];
    let names = [
        "iss",
        "aud",
        "sub",
        "client_id",
        "credential_id",
        "iat",
        "exp",
        "jti",
        "scope",
        "managing_entities",
        "may_publish",
    ];
    let changed = changes(&values, &names, |name, value| forge.token(&header, &with(forge.claims(), name, value)));
    let doubled = names.map(|name| {
        let claims = twice(&forge.claims(), name, &forge.claims()[name]);
        (format!("claim {name} twice"), forge.token_of_texts(header.to_string(), claims))
    });
    [changed, doubled.to_vec()].concat()
}

fn of_other_signatures(forge: &Forge, stranger: &Forge) -> Vec<Forged> {
    let good = forge.token(&forge.header(), &forge.claims());
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let (header, _) = signed.split_once('.').expect("two parts");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base 64");
    let (r, s) = bytes.split_at(32);
    let signed_as = |signature: &[u8]| format!("{signed}.{}", encoded(signature));
    let other_claims = with(forge.claims(), "scope", Some("account.write".into()));
    let zero = [0; 32];
    let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let order: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&order[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect();
    let mut flipped = bytes.clone();
    flipped[17] ^= 1;
    // The last Base64 character of 64 bytes has four unused bits.
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

#[contract_test]
async fn a_forged_token_is_refused_as_invalid(suite: Arc<Suite>) {
    let list = "/api/managing-entity/covered/webhook/list";
    let (forge, stranger) = (suite.forge(), suite.forge().with_another_key());
    suite.api.get(list).bearer(&forge.token(&forge.header(), &forge.claims())).expect(200).await;
    let tokens = forged(&forge, &stranger);
    assert!(tokens.len() > 100, "{} tokens", tokens.len());
    stream::iter(tokens)
        .for_each_concurrent(8, async |(fault, token)| {
            let answer = suite.api.get(list).bearer(&token).answered().await;
            assert_eq!(answer.status, 401, "{fault}: {token}: {}", answer.exchange);
            let challenge = answer.header("www-authenticate");
            let invalid = challenge.starts_with("Bearer ") && challenge.contains(r#"error="invalid_token""#);
            assert!(invalid, "{fault}: {token}: {}", answer.exchange);
        })
        .await;
}

#[contract_test]
async fn a_forged_token_is_inactive_and_need_not_be_revoked(suite: Arc<Suite>) {
    let (forge, stranger) = (suite.forge(), suite.forge().with_another_key());
    stream::iter(forged(&forge, &stranger))
        .for_each_concurrent(8, async |(fault, token)| {
            // A parameter without a value counts as missing.
            let status = if token.is_empty() { 400 } else { 200 };
            let form = [("token", token.as_str())];
            let answer = suite.api.as_client("/oauth2/introspect", Application::Platform, &form).answered().await;
            assert_eq!(answer.status, status, "{fault}: {}", answer.exchange);
            if status == 200 {
                assert_eq!(answer.json(), json!({ "active": false }), "{fault}: {token}");
            }
            let answer = suite.api.as_client("/oauth2/revoke", Application::Platform, &form).answered().await;
            assert_eq!(answer.status, status, "{fault}: {}", answer.exchange);
        })
        .await;
}

#[contract_test]
async fn a_token_in_another_notation_is_accepted(suite: Arc<Suite>) {
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

#[contract_test]
async fn a_token_that_no_header_can_carry_is_missing(suite: Arc<Suite>) {
    for authorization in ["Bearer \u{e9}".as_bytes(), b"Bearer \xff\xfe", b"Bearer\t"] {
        let call = suite.api.get("/api/managing-entity/covered/webhook/list").header("authorization", authorization);
        let answer = call.expect(401).await;
        assert!(answer.header("www-authenticate").starts_with("Bearer"), "{}", answer.exchange);
    }
}
