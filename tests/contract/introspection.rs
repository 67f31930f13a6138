//! Introspection: a token's claims, for clients that have access to them.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, Application, Suite, now};

async fn introspect(api: &Api, application: Application, token: &str) -> ApiResponse {
    let answer = api.as_client("/oauth2/introspect", application, &[("token", token)]).expect(200).await;
    assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.exchange);
    assert_eq!(answer.header("pragma"), "no-cache", "{}", answer.exchange);
    answer
}

#[contract_test]
async fn an_active_token_is_described_as_it_is(suite: Arc<Suite>) {
    let api = &suite.api;
    let before = now();
    let token = api.new_token(Application::Demo, "mcp.read integrations.read").await;
    let own = introspect(api, Application::Demo, &token).await.json();
    assert_eq!(
        own,
        introspect(api, Application::Platform, &token).await.json(),
        "a platform-wide application sees it too"
    );
    let (id, [issued, expires]) =
        (&api.env["CLIENT_ID"], ["iat", "exp"].map(|name| own[name].as_i64().expect("a time")));
    assert!((before..=now()).contains(&issued) && expires == issued + 3600, "{own}");
    let jti = own["jti"].as_str().expect("a text").to_owned();
    let credential = own["credential_id"].as_str().expect("a text").to_owned();
    assert!(credential.starts_with("sec_"), "{own}");
    assert_eq!(
        own,
        json!({
            "active": true, "token_type": "Bearer", "scope": "integrations.read mcp.read", "client_id": id, "sub": id,
            "credential_id": credential,
            "aud": api.env["BASE_URL"], "iss": api.env["AUTH_URL"], "iat": issued, "exp": expires, "jti": jti,
            "managing_entities": [api.env["MANAGING_ENTITY"]], "may_publish": true,
        })
    );
}

#[contract_test]
async fn the_answer_about_an_inactive_token_has_no_other_member(suite: Arc<Suite>) {
    let api = &suite.api;
    let forge = suite.forge();
    let revoked = api.new_token(Application::Demo, "").await;
    api.as_client("/oauth2/revoke", Application::Demo, &[("token", &revoked)]).expect(200).await;
    let with = |name: &str, value: Value| {
        let mut claims = forge.claims();
        claims[name] = value;
        forge.token(&forge.header(), &claims)
    };
    for token in [
        "garbage".to_owned(),
        revoked,
        with("exp", (now() - 1).into()),
        with("nbf", (now() + 3_600).into()),
        with("aud", "https://api.example.com".into()),
        with("iss", "https://auth.example.com".into()),
        suite.forge().with_another_key().token(&forge.header(), &forge.claims()),
        forge.token_without_signature(&forge.claims()),
    ] {
        for application in [Application::Demo, Application::Platform] {
            assert_eq!(introspect(api, application, &token).await.json(), json!({ "active": false }), "{token}");
        }
    }
}

#[contract_test]
async fn another_applications_token_looks_inactive(suite: Arc<Suite>) {
    let api = &suite.api;
    let token = api.new_token(Application::Platform, "mcp.read").await;
    assert_eq!(introspect(api, Application::Demo, &token).await.json(), json!({ "active": false }));
    assert_eq!(introspect(api, Application::Platform, &token).await.json()["active"], true);
}

#[contract_test]
async fn a_platform_wide_application_needs_account_read_for_others_tokens(suite: Arc<Suite>) {
    let api = &suite.api;
    let entity = suite.entity().await;
    let foreign = api.new_token(Application::Demo, "mcp.read").await;
    for (scope, sees) in [("booking.read", false), ("account.write", false), ("account.read", true)] {
        let body = json!({ "name": "Everywhere", "scopes": [scope], "managingEntities": ["*"] });
        let made = entity.post("/application").json(&body).expect(201).await.json();
        let asks = async |token: &str| {
            let [id, secret] = ["clientId", "clientSecret"].map(|name| made[name].as_str().expect("a text"));
            let form = [("token", token), ("client_id", id), ("client_secret", secret)];
            api.post("/oauth2/introspect").form(&form).expect(200).await.json()["active"] == true
        };
        assert_eq!(asks(&foreign).await, sees, "{scope}");
        let [id, secret] = ["clientId", "clientSecret"].map(|name| made[name].as_str().expect("a text"));
        let form = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
        let own = api.post("/oauth2/token").form(&form).expect(200).await.json();
        assert!(asks(own["access_token"].as_str().expect("a token")).await, "its own, regardless of its scopes");
    }
}

#[contract_test]
async fn introspection_needs_a_token_and_an_authenticated_client(suite: Arc<Suite>) {
    let api = &suite.api;
    let token = api.token(Application::Demo, "").await;
    let id = api.env["CLIENT_ID"].as_str();
    let secret = api.env["CLIENT_SECRET"].as_str();
    for form in [
        vec![("token", token.as_str())],
        vec![("token", &token), ("client_id", id), ("client_secret", "wrong")],
        vec![("token", &token), ("client_id", "app0000000000000000000000"), ("client_secret", secret)],
    ] {
        let refused = api.post("/oauth2/introspect").form(&form).refused(401, "invalid-client").await;
        assert_eq!(refused["error"], "invalid_client");
    }
    // This endpoint does not accept tokens as credentials.
    api.post("/oauth2/introspect").bearer(&token).form(&[("token", &token)]).refused(401, "invalid-client").await;
    api.get(format!("/oauth2/introspect?token={token}")).refused(405, "method-not-allowed").await;
    api.as_client("/oauth2/introspect", Application::Demo, &[]).refused(400, "invalid-token-request").await;
    let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("{id}:{secret}")));
    let by_basic = api.post("/oauth2/introspect").header("authorization", &basic).form(&[("token", &token)]);
    assert_eq!(by_basic.expect(200).await.json()["active"], true);
    let twice =
        api.as_client("/oauth2/introspect", Application::Demo, &[("token", &token)]).header("authorization", &basic);
    twice.refused(400, "invalid-token-request").await;
}
