//! Applications: creation, limits, and removal.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    application_credentials::rotated,
    harness::{Api, AwsCall, Call, Entity, LONG, Moment, Settings, Suite, invalid_values, is_limited, until},
};

/// The public part of an Ed25519 key.
pub const KEY: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

/// The identifier and secret of a new application.
#[derive(Debug, Clone)]
pub struct Made {
    /// The application's client identifier.
    pub id: String,
    /// The application's secret.
    pub secret: String,
}

/// A string member of a response.
pub fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value:#}")).to_owned()
}

/// Creates an application from this body.
pub async fn made_with(entity: &Entity, body: Value) -> Made {
    let made = entity.post("/application").json(&body).expect(201).await.json();
    Made { id: text(&made, "clientId"), secret: text(&made, "clientSecret") }
}

/// Creates an application with two read scopes.
pub async fn made(entity: &Entity) -> Made {
    made_with(entity, json!({ "name": "test", "scopes": ["account.read", "integrations.read"] })).await
}

/// An application's path followed by `rest`.
pub fn of(application: &Made, rest: &str) -> String {
    format!("/application/{}{rest}", application.id)
}

/// An application, as shown to its owner.
pub async fn shown(entity: &Entity, application: &Made) -> Value {
    entity.get(&of(application, "")).expect(200).await.json()
}

fn asks_for_token(api: &Api, id: &str, secret: &str) -> Call {
    let form = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
    api.post("/oauth2/token").form(&form)
}

/// An application's token.
pub async fn token(api: &Api, id: &str, secret: &str) -> String {
    text(&asks_for_token(api, id, secret).expect(200).await.json(), "access_token")
}

/// Whether the issuer accepts a secret.
pub async fn accepted(api: &Api, id: &str, secret: &str) -> bool {
    let answer = asks_for_token(api, id, secret).answered().await;
    assert!([200, 401].contains(&answer.status), "{}", answer.exchange);
    answer.status == 200
}

/// A token's claims.
pub fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

/// A token with these scopes for these entities.
pub fn forged(suite: &Suite, scope: &str, entities: &[&str]) -> String {
    let forge = suite.forge();
    let mut claims = forge.claims();
    claims["scope"] = scope.into();
    claims["managing_entities"] = json!(entities);
    forge.token(&forge.header(), &claims)
}

#[contract_test]
async fn an_application_gets_tokens_with_a_secret_that_is_shown_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let body = json!({ "name": "Channel manager", "scopes": ["booking.read", "account.read", "booking.read"] });
    let answer = entity.post("/application").json(&body).expect(201).await;
    let application = answer.json();
    let id = text(&application, "clientId");
    let secret = text(&application, "clientSecret");
    assert_eq!(answer.header("cache-control"), "no-store");
    let address = format!("{}{}", api.base_url(), entity.path(&format!("/application/{id}")));
    assert_eq!(answer.header("location"), address);
    assert_eq!(application["scopes"], json!(["account.read", "booking.read"]));
    assert_eq!(application["ownerIdentifier"], entity.id.as_str());
    assert_eq!((&application["version"], &application["publicKeys"]), (&json!(1), &json!([])));

    let token = token(api, &id, &secret).await;
    let claims = claims(&token);
    assert_eq!(claims["scope"], "account.read booking.read");
    assert_eq!(claims["managing_entities"], json!([entity.id]));
    api.get(entity.path("/application/list")).bearer(&token).expect(200).await;

    let mut texts = vec![suite.bundle().whole_logs()];
    for path in ["/application/list".to_owned(), format!("/application/{id}")] {
        texts.push(entity.get(&path).expect(200).await.text());
    }
    texts.extend(suite.table().scan().await.iter().map(Value::to_string));
    assert!(texts.iter().all(|text| !text.contains(&secret)), "the secret was shown again");
}

#[contract_test]
async fn an_application_covers_the_entity_of_the_path_by_default(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (entities, expected) in [
        (None, json!([entity.id])),
        (Some(json!(["other", "another", "other"])), json!(["other", "another"])),
        (Some(json!(["*"])), json!(["*"])),
    ] {
        let mut body = json!({ "name": "n", "scopes": ["booking.read"] });
        if let Some(entities) = entities {
            body["managingEntities"] = entities;
        }
        let application = made_with(&entity, body).await;
        assert_eq!(shown(&entity, &application).await["managingEntities"], expected);
        let token = token(&suite.api, &application.id, &application.secret).await;
        assert_eq!(claims(&token)["managing_entities"], expected);
    }
}

#[contract_test]
async fn every_violation_is_reported_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY });
    for (body, members) in [
        (json!({}), vec!["name", "scopes"]),
        (
            json!({
                "name": " ", "scopes": ["booking.read", "booking.*", "root"], "managingEntities": ["a b", "good", ""],
                "publicKeys": [key, { "kty": "oct", "k": "AAAA" }, key], "withSecret": "no", "clientId": "mine",
            }),
            vec![
                "withSecret",
                "name",
                "scopes/1",
                "scopes/2",
                "managingEntities/0",
                "managingEntities/2",
                "publicKeys/1",
                "publicKeys/2",
                "clientId",
            ],
        ),
        (json!({ "name": "n", "scopes": [], "managingEntities": [] }), vec!["scopes", "managingEntities"]),
        (json!({ "name": "n", "scopes": ["mcp.read"], "withSecret": false }), vec!["withSecret"]),
        (json!({ "name": "n", "scopes": ["mcp.read"], "publicKeys": [], "withSecret": false }), vec!["withSecret"]),
        (
            json!({ "name": null, "scopes": "mcp.read", "managingEntities": null }),
            vec!["name", "scopes", "managingEntities"],
        ),
    ] {
        let problem = entity.post("/application").json(&body).refused(400, "invalid-request").await;
        let expected: Vec<_> = members.iter().map(|member| format!("body/{member}")).collect();
        assert_eq!(invalid_values(&problem), expected, "{body}");
    }
    let body = json!({ "name": "n", "scopes": ["integrations.publish"] });
    let problem = entity.post("/application").json(&body).refused(400, "invalid-request").await;
    let detail = text(&problem, "detail");
    assert!(detail.contains("`integrations.publish` is unknown (did you mean integrations."), "{detail}");
    assert!(
        entity.api().get("/").expect(200).await.text().contains("id=\"scopes\""),
        "the page that the detail names lists the scopes"
    );
}

#[contract_test]
async fn the_members_of_an_application_have_limits(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let ids = |count: usize, length: usize| -> Vec<String> { (0..count).map(|n| format!("{n:0length$}")).collect() };
    let keys = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": n.to_string() })).collect()
    };
    let good = || json!({ "name": "n", "scopes": ["booking.read"] });
    for (member, most, too_much) in [
        ("name", json!("ü".repeat(100)), json!("ü".repeat(101))),
        ("managingEntities", json!(ids(100, 40)), json!(ids(101, 3))),
        ("managingEntities", json!(ids(32, 128)), json!(ids(33, 128))),
        ("publicKeys", json!(keys(5)), json!(keys(6))),
    ] {
        let body = |value: Value| {
            let mut body = good();
            body[member] = value;
            body
        };
        made_with(&entity, body(most)).await;
        let problem = entity.post("/application").json(&body(too_much)).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), [format!("body/{member}")]);
    }
}

#[contract_test]
async fn an_application_with_every_scope_and_100_entities_gets_a_valid_token(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let metadata = suite.api.get("/.well-known/oauth-authorization-server").expect(200).await.json();
    let mut entities: Vec<String> = (0..99).map(|n| format!("{n:040}")).collect();
    entities.push(entity.id.clone());
    let body = json!({ "name": "n", "scopes": metadata["scopes_supported"], "managingEntities": entities });
    let application = made_with(&entity, body).await;
    let token = token(&suite.api, &application.id, &application.secret).await;
    suite.api.get(entity.path("/application/list")).bearer(&token).expect(200).await;
}

#[contract_test]
async fn an_application_is_renamed_only_at_the_version_that_was_read(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made(&entity).await;
    let change = |body: Value| entity.call("PATCH", &of(&application, "")).json(&body);
    let changed = change(json!({ "name": "Night audit", "version": 1 })).expect(200).await.json();
    assert_eq!((&changed["name"], &changed["version"]), (&json!("Night audit"), &json!(2)));
    assert!(text(&changed, "lastUpdate") >= text(&changed, "createdDate"), "{changed}");
    assert_eq!(shown(&entity, &application).await, changed);
    let problem = change(json!({ "name": "Late", "version": 1 })).refused(409, "version-conflict").await;
    assert_eq!(problem["properties"]["currentVersion"], 2);
    assert_eq!(change(json!({ "version": 2 })).expect(200).await.json(), changed, "an empty change has no effect");
    let problem = change(json!({ "name": "", "managingEntities": ["b"] })).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/name", "body/managingEntities"]);
    let problem = change(json!({ "mayPublish": true })).refused(400, "invalid-request").await;
    assert!(text(&problem, "detail").contains("only the operator"), "{problem}");
    let less = forged(&suite, "account.write", &[&entity.id]);
    let change = api.call("PATCH", entity.path(&of(&application, ""))).bearer(&less).json(&json!({ "name": "Mine" }));
    change.refused(403, "insufficient-scope").await;
    assert!(accepted(api, &application.id, &application.secret).await);
}

#[contract_test]
async fn only_a_published_client_creates_applications_without_scopes(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let scope = "account.write booking.read";
    let token = forged(&suite, scope, &[&entity.id]);
    let make = |body: Value| api.post(entity.path("/application")).bearer(&token).json(&body);
    let problem = make(json!({ "name": "n", "ownerIdentifier": entity.id })).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/scopes"]);
    let published = json!({
        "name": "n", "ownerIdentifier": entity.id, "ownerName": "The hotel", "ownerType": "COMPANY",
        "redirectUris": ["https://client.example.com/"],
    });
    let application = make(published.clone()).expect(201).await.json();
    assert_eq!(application["scopes"], json!(scope.split(' ').collect::<Vec<_>>()), "exactly the scopes of the token");
    assert_eq!(application["managingEntities"], json!([entity.id]));
    let mut of_another = published;
    of_another["ownerIdentifier"] = "another".into();
    let problem = make(of_another).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/ownerIdentifier"]);
}

/// Regression test: a tool that followed links removed its own application.
#[contract_test]
async fn an_application_that_removes_itself_is_asked_to_confirm(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let managing = || made_with(&entity, json!({ "name": "n", "scopes": ["account.remove", "account.write"] }));
    let application = managing().await;
    let other = managing().await;
    let token = token(api, &application.id, &application.secret).await;
    let remove = |whose: &Made, query: &str| api.call("DELETE", entity.path(&of(whose, query))).bearer(&token);
    for query in ["", "?confirm=false"] {
        let problem = remove(&application, query).refused(409, "confirmation-required").await;
        assert!(text(&problem, "detail").contains("?confirm=true"), "{problem:#}");
    }
    for (query, name) in
        [("?confirm=yes", "confirm"), ("?confirm=true&confirm=true", "confirm"), ("?sure=true", "sure")]
    {
        let problem = remove(&application, query).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), [format!("query/{name}")]);
    }
    assert!(accepted(api, &application.id, &application.secret).await);
    remove(&other, "").expect(200).await;
    remove(&application, "?confirm=true").expect(200).await;
    assert!(!accepted(api, &application.id, &application.secret).await);
}

#[contract_test]
async fn a_concurrent_change_does_not_refuse_a_removal(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "busy".to_owned()).await;
    let application = made(&entity).await;
    let partition = format!("APP#{}", application.id);
    let mut held = setup.table.hold("the removal", Moment::Before, move |call: &AwsCall| {
        call.operation == "TransactWriteItems" && call.mentions(&partition)
    });
    let path = of(&application, "");
    let changing = async {
        held.reached().await;
        rotated(&entity, &application, json!({})).await;
        held.release();
    };
    let (removed, ()) = tokio::join!(entity.call("DELETE", &path).expect(200), changing);
    assert_eq!(removed.json()["id"], application.id.as_str());
    entity.get(&path).refused(404, "application-not-found").await;
    assert!(setup.bundle.stop().await.success());
}

/// Each application, secret or key that is removed adds an entry to the list of revocations, which every function
/// reads.
#[contract_test]
async fn new_credentials_are_limited_per_hour_and_removals_are_not(suite: Arc<Suite>) {
    let (entity, neighbour) = (suite.entity().await, suite.entity().await);
    let body = json!({ "name": "n", "scopes": ["account.read"] });
    let application = made_with(&entity, body.clone()).await;
    let secret = text(&shown(&entity, &application).await["secrets"][0], "id");
    suite.table().count_as_used(&format!("credentials#{}", entity.id), 3600, 1000).await;
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY } });
    for (path, body) in [
        ("/application".to_owned(), &body),
        (of(&application, "/secret"), &json!({})),
        (of(&application, "/key"), &key),
    ] {
        let answer = entity.post(&path).json(body).expect(429).await;
        assert!(text(&answer.json(), "type").ends_with("/problems/too-many-credentials"), "{}", answer.exchange);
        let wait = is_limited(&answer, "credentials", 1000, 3600);
        assert!((1..=3601).contains(&wait), "{}", answer.exchange);
    }
    assert_eq!(shown(&entity, &application).await["version"], 1);
    made(&neighbour).await;
    entity.call("DELETE", &of(&application, &format!("/secret/{secret}"))).expect(200).await;
    entity.call("DELETE", &of(&application, "")).expect(200).await;
}

/// Removing a credential adds an entry to the list of revocations.
#[contract_test]
async fn an_application_that_is_made_with_credentials_counts_for_each_of_them(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({
        "name": "n", "scopes": ["account.read"], "publicKeys": [{ "kty": "OKP", "crv": "Ed25519", "x": KEY }],
    });
    let account = format!("credentials#{}", entity.id);
    // The new application takes three entries: one each for itself, its secret and its key.
    suite.table().count_as_used(&account, 3600, 998).await;
    entity.post("/application").json(&body).expect(429).await;
    suite.table().count_as_used(&account, 3600, 997).await;
    entity.post("/application").json(&body).expect(201).await;
}

#[contract_test]
async fn another_entitys_application_looks_like_a_missing_one(suite: Arc<Suite>) {
    let (entity, other) = (suite.entity().await, suite.entity().await);
    let application = made(&entity).await;
    let secret = text(&shown(&entity, &application).await["secrets"][0], "id");
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY } });
    for id in [application.id.as_str(), "app0000000000000000000000", "app", "%20", &"a".repeat(300)] {
        let path = |rest: &str| format!("/application/{id}{rest}");
        for call in [
            other.get(&path("")),
            other.call("DELETE", &path("")),
            other.post(&path("/secret")).json(&json!({})),
            other.call("DELETE", &path(&format!("/secret/{secret}"))),
            other.post(&path("/key")).json(&key),
            other.call("DELETE", &path("/key/k")),
        ] {
            let problem = call.refused(404, "application-not-found").await;
            assert_eq!(problem["properties"], json!({}));
        }
    }
    assert!(accepted(&suite.api, &application.id, &application.secret).await);
    // `list` is not an application's identifier.
    let answer = entity.call("DELETE", "/application/list").expect(405).await;
    assert_eq!(answer.header("allow"), "GET, HEAD");
}

#[contract_test]
async fn a_list_is_sorted_newest_first_and_shows_no_secrets(suite: Arc<Suite>) {
    let (entity, other) = (suite.entity().await, suite.entity().await);
    assert_eq!(entity.get("/application/list").expect(200).await.json(), json!([]));
    made(&other).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.insert(0, made(&entity).await.id);
        sleep(Duration::from_millis(2)).await;
    }
    let list = entity.get("/application/list").expect(200).await.json();
    let listed: Vec<String> = list.as_array().expect("a list").iter().map(|one| text(one, "clientId")).collect();
    assert_eq!(listed, ids);
    assert_eq!(list[0], entity.get(&format!("/application/{}", ids[0])).expect(200).await.json());
}

#[contract_test]
async fn an_entity_has_a_hundred_applications_at_most(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let mut last = None;
    for _ in 0..10 {
        last = join_all((0..10).map(|_| made(&entity))).await.pop();
    }
    let body = json!({ "name": "n", "scopes": ["account.read"] });
    let problem = entity.post("/application").json(&body).refused(409, "application-limit").await;
    assert_eq!(problem["properties"], json!({ "limitName": "applications", "limit": 100 }));
    assert_eq!(entity.get("/application/list").expect(200).await.json().as_array().map(Vec::len), Some(100));
    entity.call("DELETE", &of(&last.expect("a hundred"), "")).expect(200).await;
    made(&entity).await;
}

#[contract_test]
async fn the_tokens_of_a_removed_application_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made(&entity).await;
    let token = token(api, &application.id, &application.secret).await;
    let paths = ["/application/list", "/webhook/list", "/webhook/event/list"].map(|path| entity.path(path));
    for path in &paths {
        api.get(path).bearer(&token).expect(200).await;
    }
    let removed = entity.call("DELETE", &of(&application, "")).expect(200).await.json();
    assert_eq!((&removed["id"], &removed["success"]), (&json!(application.id), &json!(true)));
    assert!(!accepted(api, &application.id, &application.secret).await);
    entity.get(&of(&application, "")).refused(404, "application-not-found").await;
    entity.call("DELETE", &of(&application, "")).refused(404, "application-not-found").await;
    assert_eq!(entity.get("/application/list").expect(200).await.json(), json!([]));

    // The revocations take effect within a minute, which the simulator checks.
    for path in &paths {
        let refused = until("the token is refused", LONG, async || {
            let answer = api.get(path).bearer(&token).answered().await;
            (answer.status != 200).then_some(answer)
        });
        let answer = refused.await;
        assert_eq!(answer.status, 401, "{}", answer.exchange);
        assert!(answer.header("www-authenticate").contains(r#"error="invalid_token""#), "{}", answer.exchange);
    }
}
