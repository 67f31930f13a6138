//! Changes to an application's scopes (a caller can grant only its own) and metadata.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    application_credentials::introspected,
    applications::{Made, claims, forged, made_with, of, shown, text, token},
    harness::{Api, Call, Entity, LONG, Suite, invalid_values, until},
    panel_links::{MadeLink, link},
    panel_sessions::{opened, renew},
};

async fn with_scopes(entity: &Entity, scopes: &[&str]) -> Made {
    made_with(entity, json!({ "name": "test", "scopes": scopes })).await
}

fn change(entity: &Entity, application: &Made, body: &Value) -> Call {
    entity.call("PATCH", &of(application, "")).json(body)
}

/// A valid token for the application: tokens issued within seconds of a change are also revoked.
async fn next_token(api: &Api, application: &Made) -> String {
    until("a token that is good", LONG, async || {
        let next = token(api, &application.id, &application.secret).await;
        (introspected(api, &next).await["active"] == true).then_some(next)
    })
    .await
}

#[contract_test]
async fn a_scope_that_is_taken_from_an_application_stops_working(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = with_scopes(&entity, &["account.read", "integrations.read"]).await;
    let before = token(api, &application.id, &application.secret).await;
    let path = entity.path("/application/list");
    api.get(&path).bearer(&before).expect(200).await;

    let changed = change(&entity, &application, &json!({ "scopes": ["integrations.read"], "version": 1 }));
    let changed = changed.expect(200).await.json();
    assert_eq!((&changed["scopes"], &changed["version"]), (&json!(["integrations.read"]), &json!(2)));
    assert_eq!(shown(&entity, &application).await, changed);
    assert_eq!(introspected(api, &before).await["active"], false);
    // The revocation takes effect within a minute, which the simulator checks.
    until("the token is refused", LONG, async || {
        (api.get(&path).bearer(&before).answered().await.status == 401).then_some(())
    })
    .await;
    let next = next_token(api, &application).await;
    assert_eq!(claims(&next)["scope"], "integrations.read");
    api.get(&path).bearer(&next).refused(403, "insufficient-scope").await;
}

#[contract_test]
async fn an_application_gets_further_scopes_with_its_next_token(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = with_scopes(&entity, &["integrations.read"]).await;
    let before = token(api, &application.id, &application.secret).await;
    let wider = json!({ "scopes": ["integrations.read", "account.read", "account.read"] });
    let changed = change(&entity, &application, &wider).expect(200).await.json();
    assert_eq!(changed["scopes"], json!(["account.read", "integrations.read"]));
    let after = token(api, &application.id, &application.secret).await;
    assert_eq!(claims(&after)["scope"], "account.read integrations.read");
    for good in [&before, &after] {
        assert_eq!(introspected(api, good).await["active"], true, "a wider application ends no token");
    }
    for (body, field) in [
        (json!({ "scopes": [] }), "body/scopes"),
        (json!({ "scopes": null }), "body/scopes"),
        (json!({ "scopes": ["account.*"] }), "body/scopes/0"),
    ] {
        let problem = change(&entity, &application, &body).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), [field], "{body}");
    }
}

#[contract_test]
async fn a_caller_changes_only_scopes_that_its_token_has(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = with_scopes(&entity, &["booking.read", "payment.read"]).await;
    let ask = |scope: &str, scopes: &[&str]| {
        let caller = forged(&suite, scope, &[&entity.id]);
        let call = suite.api.call("PATCH", entity.path(&of(&application, ""))).bearer(&caller);
        call.json(&json!({ "scopes": scopes }))
    };
    // The caller lacks a scope that is added, or one that is removed.
    for (scope, scopes, lacking) in [
        ("account.write booking.read payment.read", ["booking.read", "mcp.read"], "mcp.read"),
        ("account.write booking.read mcp.read", ["booking.read", "mcp.read"], "payment.read"),
    ] {
        let problem = ask(scope, &scopes).refused(403, "insufficient-scope").await;
        assert_eq!(problem["properties"]["requiredScope"], lacking, "{scope}");
    }
    assert_eq!(shown(&entity, &application).await["version"], 1);
    ask("account.write booking.read payment.read", &["booking.read"]).expect(200).await;
}

#[contract_test]
async fn an_application_must_confirm_that_it_narrows_itself(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = with_scopes(&entity, &["account.read", "account.write"]).await;
    let own = token(api, &application.id, &application.secret).await;
    let ask =
        |query: &str, body: Value| api.call("PATCH", entity.path(&of(&application, query))).bearer(&own).json(&body);
    let narrower = json!({ "scopes": ["account.read"] });
    ask("", narrower.clone()).refused(409, "confirmation-required").await;
    let problem = ask("?sure=true", narrower.clone()).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["query/sure"]);
    // These changes cannot make the caller lose access.
    ask("", json!({ "name": "Itself", "scopes": ["account.write", "account.read"] })).expect(200).await;
    assert_eq!(introspected(api, &own).await["active"], true);
    ask("?confirm=true", narrower).expect(200).await;
    assert_eq!(introspected(api, &own).await["active"], false);
}

#[contract_test]
async fn a_panel_session_ends_with_a_scope_of_its_application(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let scopes = ["booking.read", "integrations.read", "integrations.write"];
    let application = with_scopes(&entity, &scopes).await;
    let maker = token(api, &application.id, &application.secret).await;
    let open = async |scopes: &[&str]| {
        let made = api.post(entity.path("/panel/link")).bearer(&maker).json(&json!({ "scopes": scopes }));
        opened(api, &MadeLink::of(&made.expect(201).await.json()).code).await
    };
    let narrow = open(&["integrations.read"]).await;
    let wide = open(&["booking.read", "integrations.read"]).await;
    let of_another = opened(api, &link(&entity, json!({})).await.code).await;
    change(&entity, &application, &json!({ "scopes": scopes[1..] })).expect(200).await;
    for session in [&narrow, &wide] {
        assert_eq!(introspected(api, &session.token).await["active"], false);
    }
    assert_eq!(introspected(api, &of_another.token).await["active"], true);
    let problem = renew(api, &wide.cookie).refused(403, "no-panel-session").await;
    assert!(text(&problem, "detail").contains("lost one of the session's scopes"), "{problem:#}");
    // A session that lacks the scope stays valid.
    renew(api, &narrow.cookie).expect(200).await;
}

#[contract_test]
async fn an_application_carries_its_owners_metadata(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let metadata = json!({ "customer": "C-1042", "Region": "Süd", "empty": "" });
    let body = json!({ "name": "n", "scopes": ["account.read"], "metadata": metadata });
    let made = entity.post("/application").json(&body).expect(201).await.json();
    assert_eq!(made["metadata"], metadata);
    let application = Made { id: text(&made, "clientId"), secret: text(&made, "clientSecret") };
    assert_eq!(shown(&entity, &application).await["metadata"], metadata);
    let list = entity.get("/application/list").expect(200).await.json();
    assert_eq!(list[0]["metadata"], metadata);

    let changed = async |body: Value| change(&entity, &application, &body).expect(200).await.json();
    assert_eq!(changed(json!({ "name": "m" })).await["metadata"], metadata, "another change keeps it");
    let other = json!({ "customer": "C-7" });
    assert_eq!(changed(json!({ "metadata": other })).await["metadata"], other, "it is replaced as a whole");
    assert_eq!(changed(json!({ "metadata": null })).await["metadata"], json!({}));
    assert_eq!(shown(&entity, &application).await["metadata"], json!({}));
    assert_eq!(changed(json!({ "metadata": {} })).await["version"], 5);
}

#[contract_test]
async fn metadata_has_limits_and_is_not_nested(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = with_scopes(&entity, &["account.read"]).await;
    let members = |count: usize| Value::from_iter((0..count).map(|number| (format!("k{number}"), json!("v"))));
    change(&entity, &application, &json!({ "metadata": members(20) })).expect(200).await;
    for (metadata, field) in [
        (members(21), "body/metadata"),
        (json!({ "k": { "nested": "v" } }), "body/metadata"),
        (json!({ "k": 1 }), "body/metadata"),
        (json!(["k"]), "body/metadata"),
        (json!({ "k": "é".repeat(501) }), "body/metadata/k"),
        (json!({ "": "v" }), "body/metadata/"),
        (
            json!({ "a": "v".repeat(500), "b": "v".repeat(500), "c": "v".repeat(500), "d": "v".repeat(500), "e": "v".repeat(20) }),
            "body/metadata",
        ),
    ] {
        let problem = change(&entity, &application, &json!({ "metadata": metadata })).refused(400, "invalid-request");
        assert_eq!(invalid_values(&problem.await), [field], "{metadata}");
        let body = json!({ "name": "n", "scopes": ["account.read"], "metadata": metadata });
        let problem = entity.post("/application").json(&body).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), [field], "{metadata}");
    }
    assert_eq!(shown(&entity, &application).await["metadata"], members(20));
}

#[contract_test]
async fn an_operator_sets_the_scopes_of_any_application(suite: Arc<Suite>) {
    let api = &suite.api;
    let create =
        ["application", "create", "--name", "All", "--entity", "*", "--scopes", "mcp.read mcp.write", "--json"];
    let made = suite.admin(&create).await.json();
    let application = Made { id: text(&made, "clientId"), secret: text(&made, "clientSecret") };
    let first = token(api, &application.id, &application.secret).await;
    let set = async |scopes: &str| suite.admin(&["application", "scopes", &application.id, scopes, "--json"]).await;
    let narrowed = set("mcp.read").await;
    assert!(narrowed.err.contains(r#""action":"application.change""#), "{}", narrowed.err);
    assert_eq!(narrowed.json()["scopes"], json!(["mcp.read"]));
    assert_eq!(introspected(api, &first).await["active"], false);
    assert_eq!(set("mcp.read booking.read").await.json()["scopes"], json!(["booking.read", "mcp.read"]));
    assert_eq!(claims(&next_token(api, &application).await)["scope"], "booking.read mcp.read");
    suite.admin(&["application", "scopes", "appNobody", "mcp.read"]).await.failed(3);
    suite.admin(&["application", "scopes", &application.id, "mcp"]).await.failed(2);
    suite.admin(&["application", "scopes", &application.id]).await.failed(2);
}
