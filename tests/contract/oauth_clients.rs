//! The token issuer, called by third-party libraries as their users call them: each library gets tokens by every
//! authentication method that it supports, and distinguishes a wrong secret from a wrong scope.

use std::sync::Arc;

use aws_lc_rs::{
    encoding::AsBigEndian,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract_test::contract_test;
use oauth2::{
    AuthType, ClientId, ClientSecret, HttpRequest, HttpResponse, RequestTokenError, Scope, TokenUrl, basic::BasicClient,
};
use serde_json::{Value, json};

use crate::harness::{Api, Suite, node, python};

const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";
const PRIVATE_KEY: &str = "private_key_jwt";

/// The scope of every attempt, which is sufficient for listing event types.
const SCOPE: &str = "integrations.read";

/// The demo application's attempt to get a token.
fn attempt(api: &Api, method: &str) -> Value {
    let endpoint = |name: &str| format!("{}/oauth2/{name}", api.address());
    json!({
        "issuer": api.env["AUTH_URL"],
        "tokenEndpoint": endpoint("token"),
        "introspectionEndpoint": endpoint("introspect"),
        "revocationEndpoint": endpoint("revoke"),
        "method": method,
        "clientId": api.env["CLIENT_ID"],
        "clientSecret": api.env["CLIENT_SECRET"],
        "scope": SCOPE,
        "revoke": false,
    })
}

fn with(mut attempt: Value, member: &str, value: impl Into<Value>) -> Value {
    attempt[member] = value.into();
    attempt
}

/// One attempt for every outcome that a library has to report, for both ways of sending a secret.
fn attempts(api: &Api) -> Value {
    [BASIC, POST]
        .into_iter()
        .flat_map(|method| {
            let right = attempt(api, method);
            let wrong_secret = with(right.clone(), "clientSecret", "wrong");
            let wrong_scope = with(right.clone(), "scope", "nonsense");
            [right, wrong_secret, wrong_scope]
        })
        .collect()
}

/// Asserts that these are the outcomes of [`attempts`].
async fn are_right(api: &Api, outcomes: &Value) {
    assert_eq!(outcomes.as_array().map(Vec::len), Some(6), "{outcomes}");
    for outcomes in outcomes.as_array().into_iter().flat_map(|outcomes| outcomes.chunks(3)) {
        is_granted(api, &api.env["MANAGING_ENTITY"], &outcomes[0]).await;
        assert_eq!(outcomes[1], json!({ "error": "invalid_client" }));
        assert_eq!(outcomes[2], json!({ "error": "invalid_scope" }));
    }
}

/// Asserts that the outcome is a token that the API accepts for this managing entity.
async fn is_granted(api: &Api, entity: &str, outcome: &Value) {
    let token = &outcome["token"];
    let token_type = token["token_type"].as_str().unwrap_or_default();
    assert!(token_type.eq_ignore_ascii_case("bearer"), "{outcome}");
    assert_eq!((&token["scope"], &token["expires_in"]), (&json!(SCOPE), &json!(3600)));
    let access_token = token["access_token"].as_str().expect("a token is a text");
    let path = format!("/api/managing-entity/{entity}/webhook/event/list");
    api.get(path).bearer(access_token).expect(200).await;
}

#[contract_test]
async fn authlib_gets_tokens_and_understands_errors(suite: Arc<Suite>) {
    are_right(&suite.api, &python("authlib_client.py", &attempts(&suite.api)).await).await;
}

#[contract_test]
async fn requests_oauthlib_gets_tokens_and_understands_errors(suite: Arc<Suite>) {
    are_right(&suite.api, &python("requests_oauthlib_client.py", &attempts(&suite.api)).await).await;
}

#[contract_test]
async fn openid_client_gets_tokens_and_understands_errors(suite: Arc<Suite>) {
    are_right(&suite.api, &node("openid_client.js", &attempts(&suite.api)).await).await;
}

#[contract_test]
async fn simple_oauth2_gets_tokens_and_understands_errors(suite: Arc<Suite>) {
    are_right(&suite.api, &node("simple_oauth2.js", &attempts(&suite.api)).await).await;
}

#[contract_test]
async fn the_oauth2_crate_gets_tokens_and_understands_errors(suite: Arc<Suite>) {
    let mut outcomes = Vec::new();
    for attempt in attempts(&suite.api).as_array().into_iter().flatten() {
        outcomes.push(outcome_with_the_oauth2_crate(attempt).await);
    }
    are_right(&suite.api, &outcomes.into()).await;
}

/// Makes an attempt with the `oauth2` crate, as the scripts do with their libraries.
async fn outcome_with_the_oauth2_crate(attempt: &Value) -> Value {
    let text = |name: &str| attempt[name].as_str().unwrap_or_default().to_owned();
    let client = BasicClient::new(ClientId::new(text("clientId")))
        .set_client_secret(ClientSecret::new(text("clientSecret")))
        .set_auth_type(if attempt["method"] == BASIC { AuthType::BasicAuth } else { AuthType::RequestBody })
        .set_token_uri(TokenUrl::new(text("tokenEndpoint")).expect("an address"));
    let request = client.exchange_client_credentials().add_scope(Scope::new(text("scope")));
    match request.request_async(&send).await {
        Ok(token) => json!({ "token": token }),
        Err(RequestTokenError::ServerResponse(answer)) => json!({ "error": answer.error() }),
        Err(other) => panic!("the library does not understand the answer: {other:?}"),
    }
}

/// An HTTP client for the library, whose built-in clients require TLS.
async fn send(request: HttpRequest) -> Result<HttpResponse, reqwest::Error> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let (parts, body) = request.into_parts();
    let request = client.request(parts.method, parts.uri.to_string()).headers(parts.headers).body(body);
    let answer = request.send().await?;
    let mut response = HttpResponse::default();
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    *response.body_mut() = answer.bytes().await?.to_vec();
    Ok(response)
}

/// A new private key as a JWK, and its public half.
pub fn fresh_key(kid: &str) -> (Value, Value) {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32); // skip the 4 of an uncompressed point (SEC 1 §2.3.3)
    let d = pair.private_key().as_be_bytes().expect("a generated key can be exported");
    let encoded = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let public = json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": kid, "x": encoded(x), "y": encoded(y) });
    (with(public.clone(), "d", encoded(d.as_ref())), public)
}

#[contract_test]
async fn authlib_and_openid_client_authenticate_with_a_private_key(suite: Arc<Suite>) {
    let (private, public) = fresh_key("of-a-library");
    let (stranger, _) = fresh_key("of-a-library");
    let entity = suite.entity().await;
    let application = json!({ "name": "With a key", "scopes": [SCOPE], "publicKeys": [public], "withSecret": false });
    let application = entity.post("/application").json(&application).expect(201).await.json();
    let right = with(attempt(&suite.api, PRIVATE_KEY), "clientId", application["clientId"].clone());
    let right = with(right, "privateKey", private);
    let attempts =
        json!([right, with(right.clone(), "privateKey", stranger), with(right.clone(), "scope", "nonsense")]);
    for outcomes in [python("authlib_client.py", &attempts).await, node("openid_client.js", &attempts).await] {
        is_granted(&suite.api, &entity.id, &outcomes[0]).await;
        assert_eq!(outcomes[1], json!({ "error": "invalid_client" }));
        assert_eq!(outcomes[2], json!({ "error": "invalid_scope" }));
    }
}

#[contract_test]
async fn openid_client_authenticates_with_an_ed25519_key(suite: Arc<Suite>) {
    let pair = Ed25519KeyPair::generate().expect("a key");
    let seed = pair.seed().expect("a generated key can be exported");
    let seed = seed.as_be_bytes().expect("bytes");
    let encoded = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let public = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "edwards", "x": encoded(pair.public_key().as_ref()) });
    let private = with(public.clone(), "d", encoded(seed.as_ref()));
    let entity = suite.entity().await;
    // Use the name that the library exports, and the one from before RFC 9864.
    for public in [with(public.clone(), "alg", "Ed25519"), with(public.clone(), "alg", "EdDSA"), public] {
        let application =
            json!({ "name": "With a key", "scopes": [SCOPE], "publicKeys": [public], "withSecret": false });
        let application = entity.post("/application").json(&application).expect(201).await.json();
        let right = with(attempt(&suite.api, PRIVATE_KEY), "clientId", application["clientId"].clone());
        let attempts = json!([with(right, "privateKey", private.clone())]);
        is_granted(&suite.api, &entity.id, &node("openid_client.js", &attempts).await[0]).await;
    }
}

#[contract_test]
async fn authlib_and_openid_client_ask_about_a_token_and_revoke_it(suite: Arc<Suite>) {
    let api = &suite.api;
    let attempts: Value = [BASIC, POST].map(|method| with(attempt(api, method), "revoke", true)).into_iter().collect();
    for outcomes in [python("authlib_client.py", &attempts).await, node("openid_client.js", &attempts).await] {
        for outcome in outcomes.as_array().into_iter().flatten() {
            assert_eq!(outcome["active"], json!([true, false]), "{outcome}");
        }
    }
}
