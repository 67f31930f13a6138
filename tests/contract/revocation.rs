//! Revocation: a token that its application ends is refused everywhere within a minute.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, future::join_all, stream};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{Answer, Api, Application, Call, Suite, now, tests};

tests![
    a_revoked_token_is_refused_by_every_operation_within_a_minute,
    a_revocation_is_answered_with_nothing_whatever_the_token,
    an_application_revokes_its_own_tokens_only,
    a_platform_wide_application_revokes_any_token,
    a_revocation_needs_a_token_and_an_authenticated_client,
    the_applications_of_an_entity_revoke_a_limited_number_of_tokens,
];

/// How long a revocation may take to be known everywhere.
const MINUTE: Duration = Duration::from_secs(60);

fn revoke(api: &Api, application: Application, token: &str) -> Call {
    api.as_client("/oauth2/revoke", application, &[("token", token)])
}

async fn is_active(api: &Api, token: &str) -> bool {
    let answer = api.as_client("/oauth2/introspect", Application::Platform, &[("token", token)]).expect(200).await;
    answer.json()["active"] == true
}

/// Fails unless an answer says nothing, and is kept out of caches.
fn says_nothing(answer: &Answer) {
    assert!(answer.body.is_empty(), "{}", answer.exchange);
    assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.exchange);
    assert_eq!(answer.header("pragma"), "no-cache", "{}", answer.exchange);
}

async fn a_revoked_token_is_refused_by_every_operation_within_a_minute(suite: Arc<Suite>) {
    let api = &suite.api;
    // A scope that no operation wants: whoever believes the token says that its scope does not do, and does nothing.
    let [token, spared] =
        [api.new_token(Application::Demo, "mcp.read").await, api.new_token(Application::Demo, "mcp.read").await];
    let operations: Vec<_> =
        suite.contract.operations().into_iter().filter(|operation| operation.needs_token).collect();
    let own = &api.env["MANAGING_ENTITY"];
    let call = |method: &str, path: &str, token: &str| {
        api.call(method, path.replace("{managingEntityIdentifier}", own).replace(['{', '}'], "")).bearer(token)
    };
    // Every function is warm, and has read the list before the token stands in it.
    for operation in &operations {
        let answer = call(&operation.method, &operation.path, &token).send().await;
        assert_ne!(answer.status, 401, "{}", answer.exchange);
    }
    let start = Instant::now();
    says_nothing(&revoke(api, Application::Demo, &token).expect(200).await);
    assert!(!is_active(api, &token).await, "introspection knows it at once");
    let refusals = operations.iter().map(async |operation| {
        let refusal = loop {
            let answer = call(&operation.method, &operation.path, &token).send().await;
            if answer.status == 401 {
                break answer;
            }
            assert!(start.elapsed() < MINUTE, "{} goes on: {}", operation.id, answer.exchange);
            sleep(Duration::from_secs(1)).await;
        };
        let challenge = refusal.header("www-authenticate");
        assert!(
            challenge.starts_with("Bearer") && challenge.contains(r#"error="invalid_token""#),
            "{}",
            refusal.exchange
        );
    });
    join_all(refusals).await;
    for operation in &operations {
        let answer = call(&operation.method, &operation.path, &spared).send().await;
        assert_ne!(answer.status, 401, "another token of the application is good: {}", answer.exchange);
    }
}

async fn a_revocation_is_answered_with_nothing_whatever_the_token(suite: Arc<Suite>) {
    let (api, forge) = (&suite.api, suite.forge());
    let token = api.new_token(Application::Demo, "").await;
    let mut expired = forge.claims();
    expired["exp"] = (now() - 1).into();
    let of_strangers_key = suite.forge().with_another_key().token(&forge.header(), &forge.claims());
    for token in [&token, &token, "garbage", "a.b.c", &forge.token(&forge.header(), &expired), &of_strangers_key] {
        says_nothing(&revoke(api, Application::Demo, token).expect(200).await);
    }
    assert!(!is_active(api, &token).await);
    let hinted = api.new_token(Application::Demo, "").await;
    let with_hint = [("token", hinted.as_str()), ("token_type_hint", "refresh_token")];
    says_nothing(&api.as_client("/oauth2/revoke", Application::Demo, &with_hint).expect(200).await);
    assert!(!is_active(api, &hinted).await, "the hint changes nothing");
}

async fn an_application_revokes_its_own_tokens_only(suite: Arc<Suite>) {
    let api = &suite.api;
    let foreign = api.new_token(Application::Platform, "mcp.read").await;
    let refused = revoke(api, Application::Demo, &foreign).refused(400, "foreign-token").await;
    assert_eq!(refused["error"], "unauthorized_client");
    assert!(is_active(api, &foreign).await);
}

async fn a_platform_wide_application_revokes_any_token(suite: Arc<Suite>) {
    let api = &suite.api;
    let token = api.new_token(Application::Demo, "mcp.read").await;
    assert!(is_active(api, &token).await);
    says_nothing(&revoke(api, Application::Platform, &token).expect(200).await);
    assert!(!is_active(api, &token).await);
}

async fn a_revocation_needs_a_token_and_an_authenticated_client(suite: Arc<Suite>) {
    let api = &suite.api;
    let token = api.new_token(Application::Demo, "mcp.read").await;
    let id = api.env["CLIENT_ID"].as_str();
    for (form, status, error) in [
        (vec![("token", token.as_str())], 401, "invalid_client"),
        (vec![("token", &token), ("client_id", id)], 401, "invalid_client"),
        (vec![("token", &token), ("client_id", id), ("client_secret", "wrong")], 401, "invalid_client"),
        (vec![("token", &token), ("token", &token), ("client_id", id)], 400, "invalid_request"),
    ] {
        let refused = api.post("/oauth2/revoke").form(&form).expect(status).await;
        assert_eq!(refused.json()["error"], error, "{}", refused.exchange);
    }
    for form in [vec![], vec![("token", "")], vec![("access_token", token.as_str())]] {
        let refused = api.as_client("/oauth2/revoke", Application::Demo, &form).expect(400).await;
        assert_eq!(refused.json()["error"], "invalid_request", "{}", refused.exchange);
    }
    api.post("/oauth2/revoke").json(&json!({ "token": token })).expect(400).await;
    // The token itself is no credential here.
    api.post("/oauth2/revoke").bearer(&token).form(&[("token", &token)]).expect(401).await;
    assert!(is_active(api, &token).await);
}

async fn the_applications_of_an_entity_revoke_a_limited_number_of_tokens(suite: Arc<Suite>) {
    let (api, forge, entity) = (&suite.api, suite.forge(), suite.entity().await);
    // They are counted by the hour: none is to end meanwhile.
    sleep(Duration::from_secs(u64::try_from(now() % 3600 - 3480).unwrap_or(0))).await;
    let made = || async {
        entity.post("/application").json(&json!({ "name": "limited", "scopes": ["mcp.read"] })).expect(201).await.json()
    };
    let (application, other) = (made().await, made().await);
    let revoke = |by: &Value, number: usize| {
        let mut claims = forge.claims();
        claims["client_id"] = by["clientId"].clone();
        claims["jti"] = format!("limited{number}").into();
        let [id, secret] = ["clientId", "clientSecret"].map(|name| by[name].as_str().expect("a text").to_owned());
        let token = forge.token(&forge.header(), &claims);
        api.post("/oauth2/revoke").form(&[("token", &token), ("client_id", &id), ("client_secret", &secret)])
    };
    let revocations = stream::iter(0..1010).map(async |number| revoke(&application, number).send().await);
    let answers: Vec<_> = revocations.buffer_unordered(8).collect().await;
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert_eq!(refused.len(), 10, "{:?}", refused.first().map(|answer| &answer.exchange));
    let of_other = revoke(&other, 2000).send().await;
    for answer in refused.into_iter().chain([&of_other]) {
        assert_eq!((answer.status, answer.json()["error"].as_str()), (429, Some("temporarily_unavailable")));
        assert!((1..=3600).contains(&wait(answer)), "{}", answer.exchange);
    }
    // An application that is removed stands on the list as well.
    let path = format!("/application/{}", application["clientId"].as_str().expect("a text"));
    let kept = entity.call("DELETE", &path).expect(429).await;
    assert!(kept.json()["type"].as_str().is_some_and(|kind| kind.ends_with("/problems/too-many-revocations")));
    assert!((1..=3600).contains(&wait(&kept)), "{}", kept.exchange);
    entity.get(&path).expect(200).await;
}

fn wait(answer: &Answer) -> u64 {
    answer.header("retry-after").parse().expect("a number of seconds")
}
