//! Applications that authenticate with a private key (`private_key_jwt`, RFC 7523), at every endpoint where clients
//! authenticate.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use contract_test::contract_test;
use futures::future::join_all;
use issuer::oauth::testing::AssertionKey;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, Call, LONG, Suite, now, until};

const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// An application with one key and no secret.
struct Client {
    api: Api,
    id: String,
    key: AssertionKey,
    /// The application's path, as its owner reads it.
    path: String,
    token: String,
}

/// A unique identifier for an assertion.
fn jti() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Client {
    async fn register(suite: &Suite, algorithm: &str) -> Self {
        let api = suite.api.clone();
        let entity = suite.entity().await;
        let key = AssertionKey::generate(algorithm);
        let body =
            json!({ "name": "Signs", "scopes": ["booking.read"], "publicKeys": [key.jwk()], "withSecret": false });
        let made = entity.post("/application").json(&body).expect(201).await.json();
        let id = made["clientId"].as_str().expect("openapi.yaml says so").to_owned();
        let token = api.token(crate::harness::Application::Platform, "").await;
        Self { path: entity.path(&format!("/application/{id}")), api, id, key, token }
    }

    fn claims(&self) -> Value {
        json!({ "iss": self.id, "sub": self.id, "aud": self.api.env["AUTH_URL"], "exp": now() + 600, "jti": jti() })
    }

    fn claims_with(&self, member: &str, value: impl Into<Value>) -> Value {
        let mut claims = self.claims();
        claims[member] = value.into();
        claims
    }

    fn call(&self, path: &str, assertion: &str, more: &[(&str, &str)]) -> Call {
        let mut form = vec![("client_assertion_type", TYPE), ("client_assertion", assertion)];
        form.extend(more);
        self.api.post(path).form(&form)
    }

    fn ask(&self, assertion: &str) -> Call {
        self.call("/oauth2/token", assertion, &[("grant_type", "client_credentials")])
    }

    async fn shown(&self) -> Value {
        self.api.get(&self.path).bearer(&self.token).expect(200).await.json()
    }
}

async fn invalid_client(call: Call) -> ApiResponse {
    let answer = call.expect(401).await;
    assert_eq!(answer.json()["error"], "invalid_client", "{}", answer.exchange);
    answer
}

#[contract_test]
async fn an_assertion_of_every_type_of_key_gets_a_token(suite: Arc<Suite>) {
    for algorithm in ["ES256", "ES384", "EdDSA", "Ed25519", "RS256", "PS256"] {
        let client = Client::register(&suite, algorithm).await;
        let answer = client.ask(&client.key.assertion(&client.claims())).expect(200).await.json();
        assert_eq!(answer["scope"], "booking.read", "{algorithm}");
        let id = client.id.as_str();
        let both = [("grant_type", "client_credentials"), ("client_id", id), ("scope", "booking.read")];
        client.call("/oauth2/token", &client.key.assertion(&client.claims()), &both).expect(200).await;
    }
}

#[contract_test]
async fn every_endpoint_accepts_an_assertion_with_its_audience(suite: Arc<Suite>) {
    let client = Client::register(&suite, "EdDSA").await;
    let issuer = &client.api.env["AUTH_URL"];
    let token = client.ask(&client.key.assertion(&client.claims())).expect(200).await.json();
    let token = token["access_token"].as_str().expect("openapi.yaml says so");
    let more = [("grant_type", "client_credentials"), ("token", token)];
    for (path, other) in [
        ("/oauth2/token", "/oauth2/revoke"),
        ("/oauth2/introspect", "/oauth2/revoke"),
        ("/oauth2/revoke", "/oauth2/introspect"),
    ] {
        let endpoint = format!("{issuer}{path}");
        let token_endpoint = format!("{issuer}/oauth2/token");
        // Libraries that parse the issuer's URL add a slash, since it has no path.
        let slash = format!("{issuer}/");
        for audience in [json!(issuer), json!(slash), json!(token_endpoint), json!(endpoint), json!([issuer, endpoint])]
        {
            let assertion = client.key.assertion(&client.claims_with("aud", audience));
            client.call(path, &assertion, &more).expect(200).await;
        }
        let elsewhere = client.claims_with("aud", format!("{issuer}{other}"));
        invalid_client(client.call(path, &client.key.assertion(&elsewhere), &more)).await;
    }
}

#[contract_test]
async fn an_assertion_is_accepted_once_even_if_sent_concurrently(suite: Arc<Suite>) {
    let client = Client::register(&suite, "ES256").await;
    let assertion = client.key.assertion(&client.claims());
    let answers = join_all((0..20).map(|_| client.ask(&assertion).answered())).await;
    let (accepted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    // A request that got a 503 may have been the one that used the assertion, so its repetition is refused.
    let is_lost = accepted.is_empty() && refused.iter().any(|answer| answer.is_repetition);
    assert!(accepted.len() == 1 || is_lost, "accepted {} times", accepted.len());
    assert!(refused.iter().all(|answer| answer.status == 401), "{refused:#?}");
    // The identifier was already used in an assertion sent to another endpoint.
    let claims = client.claims();
    client.ask(&client.key.assertion(&claims)).expect(200).await;
    let mut again = claims.clone();
    again["exp"] = (now() + 90).into();
    invalid_client(client.call("/oauth2/revoke", &client.key.assertion(&again), &[("token", "x")])).await;
    // Another application may use the same identifier.
    let other = Client::register(&suite, "ES256").await;
    let same = other.claims_with("jti", claims["jti"].clone());
    other.ask(&other.key.assertion(&same)).expect(200).await;
}

#[contract_test]
async fn a_wrong_assertion_is_an_invalid_client(suite: Arc<Suite>) {
    let client = Client::register(&suite, "ES256").await;
    let stranger = AssertionKey::generate("ES256");
    let other_client = client.api.env["CLIENT_ID"].as_str();
    let signed = |header: &Value, claims: &Value| client.key.sign(&header.to_string(), &claims.to_string());
    let good = client.key.assertion(&client.claims());
    let (start, signature) = good.rsplit_once('.').expect("three parts");
    let without = |member: &str| {
        let mut claims = client.claims();
        claims.as_object_mut().expect("an object").remove(member);
        client.key.assertion(&claims)
    };
    let doubled = format!(r#"{{"sub":"{}",{}"#, client.id, &client.claims().to_string()[1..]);
    let bad = [
        "x".to_owned(),
        "..".to_owned(),
        format!("{start}."),
        format!("{start}.{}", signature.chars().rev().collect::<String>()),
        stranger.assertion(&client.claims()),
        client.key.assertion(&client.claims_with("iss", other_client)),
        client.key.assertion(&json!({ "iss": other_client, "sub": other_client, "aud": client.api.env["AUTH_URL"],
            "exp": now() + 60, "jti": jti() })),
        client.key.assertion(&client.claims_with("sub", "appNobody")),
        client.key.assertion(&client.claims_with("aud", "https://other.example.com")),
        client.key.assertion(&client.claims_with("aud", format!("{}//", client.api.env["AUTH_URL"]))),
        client.key.assertion(&client.claims_with("aud", format!("{}/oauth2/token/", client.api.env["AUTH_URL"]))),
        client
            .key
            .assertion(&client.claims_with("aud", json!([client.api.env["AUTH_URL"], "https://other.example.com"]))),
        client.key.assertion(&client.claims_with("exp", now() - 1)),
        client.key.assertion(&client.claims_with("exp", now() + 2 * 60 * 60)),
        client.key.assertion(&client.claims_with("iat", now() + 3_600)),
        client.key.assertion(&client.claims_with("nbf", now() + 3_600)),
        client.key.assertion(&client.claims_with("jti", "")),
        client.key.assertion(&client.claims_with("jti", "x".repeat(300))),
        signed(&json!({ "alg": "none" }), &client.claims()),
        signed(&json!({ "alg": "HS256" }), &client.claims()),
        signed(&json!({ "alg": "EdDSA" }), &client.claims()),
        signed(&json!({ "alg": "ES256", "typ": "at+jwt" }), &client.claims()),
        signed(&json!({ "alg": "ES256", "kid": "other" }), &client.claims()),
        signed(&json!({ "alg": "ES256", "crit": ["x"] }), &client.claims()),
        signed(&json!({ "alg": "ES256", "b64": false }), &client.claims()),
        client.key.sign(r#"{"alg":"ES256"}"#, &doubled),
        without("iss"),
        without("sub"),
        without("aud"),
        without("exp"),
        without("jti"),
    ];
    for assertion in bad {
        let answer = invalid_client(client.ask(&assertion)).await;
        assert!(answer.header("www-authenticate").starts_with("Basic"), "{}", answer.exchange);
    }
    let other = [("grant_type", "client_credentials"), ("client_id", other_client)];
    invalid_client(client.call("/oauth2/token", &client.key.assertion(&client.claims()), &other)).await;
    client.ask(&good).expect(200).await;
}

#[contract_test]
async fn a_removed_key_authenticates_no_client(suite: Arc<Suite>) {
    let client = Client::register(&suite, "EdDSA").await;
    let second = AssertionKey::generate("RS256");
    let body = json!({ "publicKey": second.jwk() });
    let path = format!("{}/key", client.path);
    client.api.post(&path).bearer(&client.token).json(&body).expect(201).await;
    let first = client.shown().await["publicKeys"][0]["kid"].as_str().expect("a key").to_owned();
    client.ask(&client.key.assertion(&client.claims())).expect(200).await;
    client.ask(&second.assertion(&client.claims())).expect(200).await;
    client.api.call("DELETE", format!("{path}/{first}")).bearer(&client.token).expect(200).await;
    invalid_client(client.ask(&client.key.assertion(&client.claims()))).await;
    client.ask(&second.assertion(&client.claims())).expect(200).await;
}

#[contract_test]
async fn the_tokens_that_were_got_with_a_removed_key_end_with_it(suite: Arc<Suite>) {
    let client = Client::register(&suite, "ES256").await;
    // Tokens name the key itself rather than its `kid`, which another key may get later.
    let second = AssertionKey::generate("EdDSA");
    let with_kid = |key: &AssertionKey| {
        let mut jwk = key.jwk();
        jwk["kid"] = "laptop".into();
        json!({ "publicKey": jwk })
    };
    let path = format!("{}/key", client.path);
    client.api.post(&path).bearer(&client.token).json(&with_kid(&second)).expect(201).await;
    let token = async |key: &AssertionKey| {
        let answer = client.ask(&key.assertion(&client.claims())).expect(200).await.json();
        answer["access_token"].as_str().expect("a token").to_owned()
    };
    let look = async |token: &str| {
        let form = [("token", token)];
        let platform = crate::harness::Application::Platform;
        client.api.as_client("/oauth2/introspect", platform, &form).expect(200).await.json()
    };
    let [of_first, of_second] = [token(&client.key).await, token(&second).await];
    let thumbprint = client.shown().await["publicKeys"][0]["kid"].clone();
    assert_eq!(look(&of_first).await["credential_id"], thumbprint, "the thumbprint names a key without a `kid`");
    client.api.call("DELETE", format!("{path}/laptop")).bearer(&client.token).expect(200).await;
    assert_eq!(look(&of_second).await, json!({ "active": false }));
    assert_eq!(look(&of_first).await["active"], true);
    // Another key with the same `kid` gets valid tokens immediately.
    let third = AssertionKey::generate("EdDSA");
    client.api.post(&path).bearer(&client.token).json(&with_kid(&third)).expect(201).await;
    assert_eq!(look(&token(&third).await).await["active"], true);
}

#[contract_test]
async fn a_key_that_loses_one_of_two_names_soon_gets_valid_tokens(suite: Arc<Suite>) {
    let client = Client::register(&suite, "EdDSA").await;
    let path = format!("{}/key", client.path);
    let mut jwk = client.key.jwk();
    jwk["kid"] = "laptop".into();
    client.api.post(&path).bearer(&client.token).json(&json!({ "publicKey": jwk })).expect(201).await;
    let is_active = async |token: &Value| {
        let form = [("token", token.as_str().expect("a token"))];
        let platform = crate::harness::Application::Platform;
        client.api.as_client("/oauth2/introspect", platform, &form).expect(200).await.json()["active"] == true
    };
    let token =
        async || client.ask(&client.key.assertion(&client.claims())).expect(200).await.json()["access_token"].clone();
    let earlier = token().await;
    client.api.call("DELETE", format!("{path}/laptop")).bearer(&client.token).expect(200).await;
    assert!(!is_active(&earlier).await, "it names the key, not the key's name");
    until("the key gets valid tokens", LONG, async || is_active(&token().await).await.then_some(())).await;
}

#[contract_test]
async fn an_application_with_keys_alone_has_no_secret(suite: Arc<Suite>) {
    let client = Client::register(&suite, "EdDSA").await;
    for secret in ["", "undefined", "x"] {
        let form = [("grant_type", "client_credentials"), ("client_id", client.id.as_str()), ("client_secret", secret)];
        invalid_client(client.api.post("/oauth2/token").form(&form)).await;
    }
}

#[contract_test]
async fn a_client_sends_complete_credentials_in_one_way(suite: Arc<Suite>) {
    let client = Client::register(&suite, "EdDSA").await;
    let assertion = client.key.assertion(&client.claims());
    let secret = client.api.env["CLIENT_SECRET"].as_str();
    let grant = ("grant_type", "client_credentials");
    for form in [
        vec![grant, ("client_assertion_type", TYPE), ("client_assertion", &assertion), ("client_secret", secret)],
        vec![grant, ("client_assertion", &assertion)],
        vec![
            grant,
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"),
            ("client_assertion", &assertion),
        ],
        vec![grant, ("client_assertion_type", TYPE), ("client_id", &client.id), ("client_secret", secret)],
    ] {
        let answer = client.api.post("/oauth2/token").form(&form).expect(400).await;
        assert_eq!(answer.json()["error"], "invalid_request", "{}", answer.exchange);
    }
    let basic = client.ask(&assertion).header("authorization", "Basic YTpi").expect(400).await;
    assert_eq!(basic.json()["error"], "invalid_request");
    client.ask(&assertion).expect(200).await;
}

#[contract_test]
async fn the_last_use_of_a_key_is_shown_by_its_day(suite: Arc<Suite>) {
    let client = Client::register(&suite, "EdDSA").await;
    assert!(client.shown().await["publicKeys"][0].get("lastUsedDate").is_none());
    let before = base::clock::Time::from_millis(now() * 1000).day();
    // A use that the table does not record in time is not noted, but the next one is.
    let shown = until("a use is noted", LONG, async || {
        client.ask(&client.key.assertion(&client.claims())).expect(200).await;
        client.shown().await["publicKeys"][0].get("lastUsedDate").cloned()
    })
    .await;
    let after = base::clock::Time::from_millis(now() * 1000).day();
    assert!(shown == before.as_str() || shown == after.as_str(), "{shown}");
}
