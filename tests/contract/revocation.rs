//! Revocation: a revoked token is refused everywhere within a minute.

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    applications::{made, of, shown, text, token},
    harness::{
        Api, ApiResponse, Application, Bundle, Call, Entity, Forge, LONG, Settings, Suite, Table, now, until,
        until_gone,
    },
};

fn revoke(api: &Api, application: Application, token: &str) -> Call {
    api.as_client("/oauth2/revoke", application, &[("token", token)])
}

async fn is_active(api: &Api, token: &str) -> bool {
    let answer = api.as_client("/oauth2/introspect", Application::Platform, &[("token", token)]).expect(200).await;
    answer.json()["active"] == true
}

/// Asserts that a response is empty and not cacheable.
fn says_nothing(answer: &ApiResponse) {
    assert!(answer.body.is_empty(), "{}", answer.exchange);
    assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.exchange);
    assert_eq!(answer.header("pragma"), "no-cache", "{}", answer.exchange);
}

#[contract_test]
async fn a_revoked_token_is_refused_by_every_operation(suite: Arc<Suite>) {
    let api = &suite.api;
    // No operation needs this scope, so an operation that accepts the token has no effect.
    let [token, spared] = [
        api.new_token(Application::Demo, "booking.read").await,
        api.new_token(Application::Demo, "booking.read").await,
    ];
    let operations: Vec<_> =
        suite.contract.operations().into_iter().filter(|operation| operation.needs_token).collect();
    let own = &api.env["MANAGING_ENTITY"];
    let call = |method: &str, path: &str, token: &str| {
        api.call(method, path.replace("{managingEntityIdentifier}", own).replace(['{', '}'], "")).bearer(token)
    };
    // Every function is warm, and has read the list before the token is added.
    for operation in &operations {
        let answer = call(&operation.method, &operation.path, &token).answered().await;
        assert_ne!(answer.status, 401, "{}", answer.exchange);
    }
    says_nothing(&revoke(api, Application::Demo, &token).expect(200).await);
    assert!(!is_active(api, &token).await, "introspection reports the revocation at once");
    // The token is refused within a minute, which the simulator checks.
    let refusals = operations.iter().map(async |operation| {
        let refusal = until(&format!("{} refuses the token", operation.id), LONG, async || {
            // Together, all operations receive enough requests.
            sleep(Duration::from_secs(1)).await;
            Some(call(&operation.method, &operation.path, &token).answered().await)
                .filter(|answer| answer.status == 401)
        })
        .await;
        let challenge = refusal.header("www-authenticate");
        assert!(
            challenge.starts_with("Bearer") && challenge.contains(r#"error="invalid_token""#),
            "{}",
            refusal.exchange
        );
    });
    join_all(refusals).await;
    for operation in &operations {
        let answer = call(&operation.method, &operation.path, &spared).answered().await;
        assert_ne!(answer.status, 401, "another token of the application is valid: {}", answer.exchange);
    }
}

#[contract_test]
async fn a_revocation_has_an_empty_response_for_any_token(suite: Arc<Suite>) {
    let api = &suite.api;
    let forge = suite.forge();
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
    assert!(!is_active(api, &hinted).await, "the hint has no effect");
}

/// Regression test: for half a minute, a revoked token could create applications, secrets and links.
#[contract_test]
async fn a_revoked_token_makes_no_credential_from_its_revocation_on(suite: Arc<Suite>) {
    let api = &suite.api;
    let scope = "account.write integrations.write mcp.read mcp.write payment.write";
    let entity = suite.entity().await;
    let path = |rest: &str| entity.path(rest);
    let webhook = json!({ "name": "n", "eventUrl": "https://hooks.example.com/", "eventList": [] });
    let tool = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let calls = [
        (path("/application"), json!({ "name": "n", "scopes": ["account.write"] })),
        (path("/panel/link"), json!({})),
        (path("/webhook"), webhook),
        ("/mcp".to_owned(), tool),
    ];
    for (path, body) in calls {
        let token = api.new_token(Application::Platform, scope).await;
        let call = || api.post(path.clone()).header("accept", "application/json, text/event-stream").bearer(&token);
        // The function is warm, and has read the list before the token is added.
        let before = call().json(&body).answered().await;
        assert!(before.status < 300, "{}", before.exchange);
        revoke(api, Application::Platform, &token).expect(200).await;
        call().json(&body).expect(401).await;
    }
}

#[contract_test]
async fn an_application_revokes_its_own_tokens_only(suite: Arc<Suite>) {
    let api = &suite.api;
    let foreign = api.new_token(Application::Platform, "mcp.read").await;
    let refused = revoke(api, Application::Demo, &foreign).refused(400, "foreign-token").await;
    assert_eq!(refused["error"], "unauthorized_client");
    assert!(is_active(api, &foreign).await);
}

#[contract_test]
async fn revoking_any_token_needs_the_scope_to_remove_accounts(suite: Arc<Suite>) {
    let api = &suite.api;
    let entity = suite.entity().await;
    let token = api.new_token(Application::Demo, "mcp.read").await;
    for scope in ["booking.read", "account.read", "account.write"] {
        let body = json!({ "name": "Everywhere", "scopes": [scope], "managingEntities": ["*"] });
        let made = entity.post("/application").json(&body).expect(201).await.json();
        let refused = revokes(api, &made, &token).refused(400, "foreign-token").await;
        assert_eq!(refused["error"], "unauthorized_client");
    }
    assert!(is_active(api, &token).await);
    let body = json!({ "name": "Everywhere", "scopes": ["account.remove"], "managingEntities": ["*"] });
    let made = entity.post("/application").json(&body).expect(201).await.json();
    says_nothing(&revokes(api, &made, &token).expect(200).await);
    assert!(!is_active(api, &token).await);
}

/// A request by a new application to revoke a token.
fn revokes(api: &Api, made: &Value, token: &str) -> Call {
    let [id, secret] = ["clientId", "clientSecret"].map(|name| made[name].as_str().expect("a text"));
    api.post("/oauth2/revoke").form(&[("token", token), ("client_id", id), ("client_secret", secret)])
}

#[contract_test]
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
    // The token does not authenticate the client.
    api.post("/oauth2/revoke").bearer(&token).form(&[("token", &token)]).expect(401).await;
    assert!(is_active(api, &token).await);
}

/// With a single allowance per entity, a thief who has one application could use the allowance up; for the rest of the
/// hour, the owner could then neither revoke tokens nor remove the application.
#[contract_test]
async fn a_stolen_application_that_revokes_endlessly_costs_others_nothing(suite: Arc<Suite>) {
    let api = &suite.api;
    let forge = suite.forge();
    let entity = suite.entity().await;
    let made = || async {
        entity.post("/application").json(&json!({ "name": "n", "scopes": ["mcp.read"] })).expect(201).await.json()
    };
    let stolen = made().await;
    let other = made().await;
    let token = |by: &Value, name: &str, seconds_ago: i64| {
        let mut claims = forge.claims();
        claims["client_id"] = by["clientId"].clone();
        claims["credential_id"] = by["secrets"][0]["id"].clone();
        claims["jti"] = format!("{name} of {}", by["clientId"]).into();
        claims["iat"] = (now() - seconds_ago).into();
        forge.token(&forge.header(), &claims)
    };
    // Two entries remain in the application's allowance and two in the shared one, even if an hour ends in the
    // meantime.
    let own = format!("own-tokens#{}", stolen["clientId"].as_str().expect("a text"));
    suite.table().count_as_used(&own, 3600, 48).await;
    suite.table().count_as_used(&format!("shared-tokens#{}", entity.id), 3600, 998).await;
    for number in 0..20 {
        revokes(api, &stolen, &token(&stolen, &number.to_string(), 60)).expect(200).await;
    }
    let listed = |items: &[Value], by: &Value, kind: &str| {
        let id = by["clientId"].as_str().expect("a text").to_owned();
        let is_one = |item: &&Value| {
            let [pk, sk] = ["pk", "sk"].map(|name| item[name]["S"].as_str().unwrap_or_default());
            pk.starts_with("REVOKED") && sk.contains(&format!("#{kind}#")) && sk.contains(&id)
        };
        items.iter().filter(is_one).count()
    };
    let items = suite.table().scan().await;
    assert!((4..=8).contains(&listed(&items, &stolen, "token")), "the list stays short");
    assert!((1..=2).contains(&listed(&items, &stolen, "issued")), "the rest share an entry for five minutes");

    // From now on, a revocation also covers earlier tokens, but not later ones.
    let [older, last, newer] =
        [("older", 50), ("last", 40), ("newer", 30)].map(|(name, ago)| token(&stolen, name, ago));
    assert!(is_active(api, &older).await && is_active(api, &last).await);
    revokes(api, &stolen, &last).expect(200).await;
    assert!(!is_active(api, &older).await && !is_active(api, &last).await);
    assert!(is_active(api, &newer).await);

    // The neighbour revokes its tokens one by one.
    let [one, two] = ["one", "two"].map(|name| token(&other, name, 60));
    says_nothing(&revokes(api, &other, &one).expect(200).await);
    assert!(!is_active(api, &one).await && is_active(api, &two).await);

    let path = format!("/application/{}", stolen["clientId"].as_str().expect("a text"));
    entity.call("DELETE", &path).expect(200).await;
    assert!(!is_active(api, &newer).await);
}

/// Replaces the `list-event-types` process with a new one that has not read the list.
async fn restart_list_event_types(bundle: &Bundle) {
    let before = bundle.process("list-event-types").await;
    before.kill();
    until_gone(&[before]).await;
    bundle.process("list-event-types").await;
}

#[contract_test]
async fn every_kind_of_revocation_is_known_to_the_next_start(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "start".to_owned()).await;
    for ends in ["token", "secret", "application"] {
        let application = made(&entity).await;
        let token = token(&api, &application.id, &application.secret).await;
        let asks = || api.get(entity.path("/webhook/event/list")).bearer(&token);
        asks().expect(200).await;
        let secret = text(&shown(&entity, &application).await["secrets"][0], "id");
        let call = match ends {
            "token" => revoke(&api, Application::Platform, &token),
            "secret" => entity.call("DELETE", &of(&application, &format!("/secret/{secret}"))),
            _ => entity.call("DELETE", &of(&application, "")),
        };
        call.expect(200).await;
        restart_list_event_types(&bundle).await;
        asks().expect(401).await;
    }
}

/// A single response from the table has at most 1 MB.
#[contract_test]
async fn a_start_knows_every_revocation_of_a_list_of_several_pages(suite: Arc<Suite>) {
    const LISTED: usize = 2_500;
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let table = Table::of(&api.env);
    let forge = Forge::of(&bundle);
    let entity = Entity::new(&api, "pages".to_owned()).await;
    let id = |number: usize| format!("app{number:0900}");
    let items = (0..LISTED).map(|number| {
        // The last token is from half an hour ago.
        let made = (now() - 1_800) * 1000 - (LISTED - number) as i64;
        json!({
            "pk": { "S": "REVOKED" }, "sk": { "S": format!("{made:013}#client#{}", id(number)) },
            "expiresAt": { "N": (now() + 1_800).to_string() },
        })
    });
    table.put_all(items).await;
    restart_list_event_types(&bundle).await;
    let status = async |number: usize| {
        let mut claims = forge.claims();
        (claims["client_id"], claims["iat"]) = (id(number).into(), (now() - 1_900).into());
        let token = forge.token(&forge.header(), &claims);
        api.get(entity.path("/webhook/event/list")).bearer(&token).answered().await.status
    };
    for number in [0, LISTED / 2, LISTED - 1] {
        assert_eq!(status(number).await, 401, "{number}");
    }
    assert_eq!(status(LISTED).await, 200, "this token was never revoked");
}
