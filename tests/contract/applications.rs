//! Applications: who may make them and with what, their secrets and keys, and how they end.

use std::{collections::HashSet, process::Stdio, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{Instant, sleep, timeout},
};

use crate::harness::{
    Answer, Api, AwsCall, Call, Entity, LONG, Moment, Settings, Suite, local, now, tests, time, until,
};

tests![
    the_tokens_of_a_removed_application_end_within_a_minute,
    an_entity_has_a_hundred_applications_at_most,
    an_application_gets_tokens_with_a_secret_that_is_shown_once,
    an_application_is_for_the_entity_of_the_path_unless_others_are_said,
    every_violation_is_told_at_once,
    what_an_application_is_made_of_has_bounds,
    an_application_with_all_that_may_be_gets_a_token_that_is_accepted,
    nobody_gives_scopes_that_their_own_token_lacks,
    nobody_gives_entities_that_their_own_token_does_not_cover,
    nobody_gets_at_an_application_that_can_do_more_than_their_token,
    nobody_removes_an_application_or_its_credentials_that_can_do_more_than_their_token,
    an_application_that_removes_itself_is_asked_to_confirm,
    an_application_that_removes_its_own_last_credential_is_asked_to_confirm,
    the_tokens_that_were_got_with_a_removed_secret_end_within_a_minute_and_no_others,
    the_tokens_of_a_secret_that_was_replaced_at_once_can_be_ended,
    a_removal_is_not_refused_because_somebody_changes_the_application_meanwhile,
    what_an_entity_makes_in_an_hour_is_limited_and_what_it_removes_is_not,
    an_application_that_is_made_with_credentials_counts_for_each_of_them,
    another_entitys_application_looks_like_a_missing_one,
    a_list_has_the_newest_first_and_no_secrets,
    a_new_secret_is_accepted_beside_the_old_one_which_ends_by_itself,
    without_an_overlap_the_old_secret_ends_at_once,
    a_third_secret_is_refused_while_two_are_live,
    an_overlap_is_seven_days_at_most,
    a_removed_secret_ends_at_once_even_the_last,
    keys_are_told_apart_by_their_names_and_limited,
    an_application_may_have_keys_alone,
    the_day_of_the_last_use_is_shown_and_is_no_change,
    of_fifty_rotations_at_once_one_is_made,
    fifty_rotations_and_removals_at_once_leave_nothing_half_done,
    a_change_whose_answer_was_lost_is_made_once_and_acknowledged,
    an_operator_makes_and_looks_after_applications,
    an_operator_ends_one_secret_or_key_at_once,
    what_its_owner_has_changed_of_the_demo_application_outlives_a_restart,
];

const KEY: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

/// An application that was made: its identifier and its secret.
#[derive(Debug, Clone)]
struct Made {
    id: String,
    secret: String,
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value:#}")).to_owned()
}

async fn made_with(entity: &Entity, body: Value) -> Made {
    let made = entity.post("/application").json(&body).expect(201).await.json();
    Made { id: text(&made, "clientId"), secret: text(&made, "clientSecret") }
}

async fn made(entity: &Entity) -> Made {
    made_with(entity, json!({ "name": "test", "scopes": ["account.read", "integrations.read"] })).await
}

fn of(application: &Made, rest: &str) -> String {
    format!("/application/{}{rest}", application.id)
}

async fn shown(entity: &Entity, application: &Made) -> Value {
    entity.get(&of(application, "")).expect(200).await.json()
}

fn asks_for_token(api: &Api, id: &str, secret: &str) -> Call {
    let form = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
    api.post("/oauth2/token").form(&form)
}

async fn token(api: &Api, id: &str, secret: &str) -> String {
    text(&asks_for_token(api, id, secret).expect(200).await.json(), "access_token")
}

/// Whether the issuer accepts a secret.
async fn accepted(api: &Api, id: &str, secret: &str) -> bool {
    let answer = asks_for_token(api, id, secret).send().await;
    assert!([200, 401].contains(&answer.status), "{}", answer.exchange);
    answer.status == 200
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

/// A token with these scopes for these entities.
fn forged(suite: &Suite, scope: &str, entities: &[&str]) -> String {
    let forge = suite.forge();
    let mut claims = forge.claims();
    claims["scope"] = scope.into();
    claims["managing_entities"] = json!(entities);
    forge.token(&forge.header(), &claims)
}

fn violations(problem: &Value) -> Vec<&str> {
    let list = problem["properties"]["violations"].as_array().expect("a list");
    list.iter().map(|violation| violation["field"].as_str().expect("a field")).collect()
}

async fn an_application_gets_tokens_with_a_secret_that_is_shown_once(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let body = json!({ "name": "Channel manager", "scopes": ["booking.read", "account.read", "booking.read"] });
    let answer = entity.post("/application").json(&body).expect(201).await;
    let application = answer.json();
    let (id, secret) = (text(&application, "clientId"), text(&application, "clientSecret"));
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

    let mut texts = vec![suite.bundle.logs()];
    for path in ["/application/list".to_owned(), format!("/application/{id}")] {
        texts.push(entity.get(&path).expect(200).await.text());
    }
    texts.extend(suite.table().scan().await.iter().map(Value::to_string));
    assert!(texts.iter().all(|text| !text.contains(&secret)), "the secret was shown again");
}

async fn an_application_is_for_the_entity_of_the_path_unless_others_are_said(suite: Arc<Suite>) {
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

async fn every_violation_is_told_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY });
    for (body, fields) in [
        (json!({}), vec!["name", "scopes"]),
        (
            json!({
                "name": " ", "scopes": ["booking.read", "booking.*", "root"], "managingEntities": ["a b", "good", ""],
                "publicKeys": [key, { "kty": "oct", "k": "AAAA" }, key], "withSecret": "no", "clientId": "mine",
            }),
            vec![
                "withSecret",
                "name",
                "scopes[1]",
                "scopes[2]",
                "managingEntities[0]",
                "managingEntities[2]",
                "publicKeys[1]",
                "publicKeys[2]",
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
        assert_eq!(violations(&problem), fields, "{body}");
    }
}

async fn what_an_application_is_made_of_has_bounds(suite: Arc<Suite>) {
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
        assert_eq!(violations(&problem), [member]);
    }
}

async fn an_application_with_all_that_may_be_gets_a_token_that_is_accepted(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let metadata = suite.api.get("/.well-known/oauth-authorization-server").expect(200).await.json();
    let mut entities: Vec<String> = (0..99).map(|n| format!("{n:040}")).collect();
    entities.push(entity.id.clone());
    let body = json!({ "name": "n", "scopes": metadata["scopes_supported"], "managingEntities": entities });
    let application = made_with(&entity, body).await;
    let token = token(&suite.api, &application.id, &application.secret).await;
    suite.api.get(entity.path("/application/list")).bearer(&token).expect(200).await;
}

async fn nobody_gives_scopes_that_their_own_token_lacks(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let token = forged(&suite, "account.write booking.read", &[&entity.id]);
    let ask = |body: &Value| suite.api.post(entity.path("/application")).bearer(&token).json(body);
    let body = json!({ "name": "n", "scopes": ["booking.write", "booking.read", "mcp.read"] });
    let answer = ask(&body).expect(403).await;
    let challenge = answer.header("www-authenticate");
    assert!(challenge.contains(r#"error="insufficient_scope", scope="booking.write mcp.read""#), "{challenge}");
    assert_eq!(answer.json()["properties"]["requiredScope"], "booking.write mcp.read");
    // What is wrong with the values is told first.
    let wrong = json!({ "name": "", "scopes": ["booking.write"] });
    ask(&wrong).refused(400, "invalid-request").await;
    ask(&json!({ "name": "n", "scopes": ["account.write", "booking.read"] })).expect(201).await;
    assert_eq!(entity.get("/application/list").expect(200).await.json().as_array().map(Vec::len), Some(1));
}

async fn nobody_gives_entities_that_their_own_token_does_not_cover(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let ask = |token: &str, entities: &[&str]| {
        let body = json!({ "name": "n", "scopes": ["account.write"], "managingEntities": entities });
        suite.api.post(entity.path("/application")).bearer(token).json(&body)
    };
    let token = forged(&suite, "account.write", &[&entity.id, "second"]);
    ask(&token, &[&entity.id, "second"]).expect(201).await;
    for foreign in ["third", "*"] {
        let problem = ask(&token, &["second", foreign]).refused(403, "entity-not-covered").await;
        assert_eq!(problem["properties"]["notCovered"], json!([foreign]));
    }
    let platform = forged(&suite, "account.write", &["*"]);
    ask(&platform, &["third", "*"]).expect(201).await;
}

async fn nobody_gets_at_an_application_that_can_do_more_than_their_token(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body =
        json!({ "name": "n", "scopes": ["account.write", "payment.write"], "managingEntities": [entity.id, "b"] });
    let application = made_with(&entity, body).await;
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY } });
    for (path, body) in [("/secret", json!({})), ("/key", key)] {
        let ask = |scope: &str, entities: &[&str], application: &Made| {
            let token = forged(&suite, scope, entities);
            suite.api.post(entity.path(&of(application, path))).bearer(&token).json(&body)
        };
        let (both, own) = (["b", &entity.id], [entity.id.as_str()]);
        ask("account.write", &both, &application).refused(403, "insufficient-scope").await;
        ask("account.write payment.write", &own, &application).refused(403, "entity-not-covered").await;
        let missing = Made { id: "app0000000000000000000000".to_owned(), secret: String::new() };
        ask("account.write", &own, &missing).refused(404, "application-not-found").await;
        ask("account.write payment.write", &both, &application).send().await;
    }
    let after = shown(&entity, &application).await;
    assert_eq!((&after["version"], after["secrets"].as_array().map(Vec::len)), (&json!(3), Some(2)), "{after:#}");
}

/// A token for little once removed what others work with: an entity's widest application, and with it all that depends on it.
async fn nobody_removes_an_application_or_its_credentials_that_can_do_more_than_their_token(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "key" });
    let wide = json!({
        "name": "n", "scopes": ["account.remove", "payment.write"], "managingEntities": [entity.id, "b"], "publicKeys": [key],
    });
    let application = made_with(&entity, wide).await;
    let before = shown(&entity, &application).await;
    let secret = text(&before["secrets"][0], "id");
    let (own, both) = ([entity.id.as_str()], [entity.id.as_str(), "b"]);
    for path in [format!("/secret/{secret}"), "/key/key".to_owned(), String::new()] {
        let remove = |scope: &str, entities: &[&str]| {
            let token = forged(&suite, scope, entities);
            suite.api.call("DELETE", entity.path(&of(&application, &path))).bearer(&token)
        };
        let problem = remove("account.remove account.write", &both).refused(403, "insufficient-scope").await;
        assert_eq!(problem["properties"]["requiredScope"], "payment.write");
        let problem = remove("account.remove payment.write", &own).refused(403, "entity-not-covered").await;
        assert_eq!(problem["properties"]["notCovered"], json!(["b"]));
        let problem = remove("account.remove", &own).refused(403, "insufficient-scope").await;
        assert!(text(&problem, "detail").contains("removes"), "{problem:#}");
    }
    assert_eq!(shown(&entity, &application).await, before);
    for path in [format!("/secret/{secret}"), "/key/key".to_owned(), String::new()] {
        let token = forged(&suite, "account.remove payment.write", &both);
        suite.api.call("DELETE", entity.path(&of(&application, &path))).bearer(&token).expect(200).await;
    }
}

/// A tool that followed links once removed the very application that it was given.
async fn an_application_that_removes_itself_is_asked_to_confirm(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let managing = || made_with(&entity, json!({ "name": "n", "scopes": ["account.remove", "account.write"] }));
    let (application, other) = (managing().await, managing().await);
    let token = token(api, &application.id, &application.secret).await;
    let remove = |whose: &Made, query: &str| api.call("DELETE", entity.path(&of(whose, query))).bearer(&token);
    for query in ["", "?confirm=false"] {
        let problem = remove(&application, query).refused(409, "confirmation-required").await;
        assert!(text(&problem, "detail").contains("?confirm=true"), "{problem:#}");
    }
    for (query, field) in
        [("?confirm=yes", "confirm"), ("?confirm=true&confirm=true", "confirm"), ("?sure=true", "sure")]
    {
        let problem = remove(&application, query).refused(400, "invalid-request").await;
        assert_eq!(violations(&problem), [field]);
    }
    assert!(accepted(api, &application.id, &application.secret).await);
    remove(&other, "").expect(200).await;
    remove(&application, "?confirm=true").expect(200).await;
    assert!(!accepted(api, &application.id, &application.secret).await);
}

async fn an_application_that_removes_its_own_last_credential_is_asked_to_confirm(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "key" });
    let body = json!({ "name": "n", "scopes": ["account.remove"], "publicKeys": [key] });
    let application = made_with(&entity, body).await;
    let secret = text(&shown(&entity, &application).await["secrets"][0], "id");
    let token = token(api, &application.id, &application.secret).await;
    let remove = |rest: &str| api.call("DELETE", entity.path(&of(&application, rest))).bearer(&token);
    // While another is left, it goes without a question: that is how secrets are replaced.
    remove("/key/key").expect(200).await;
    remove(&format!("/secret/{secret}")).refused(409, "confirmation-required").await;
    assert!(accepted(api, &application.id, &application.secret).await);
    let removed = remove(&format!("/secret/{secret}?confirm=true")).expect(200).await.json();
    assert!(text(&removed, "message").contains("the last"), "{removed:#}");
}

/// What introspection says of a token.
async fn introspected(api: &Api, token: &str) -> Value {
    let platform = crate::harness::Application::Platform;
    api.as_client("/oauth2/introspect", platform, &[("token", token)]).expect(200).await.json()
}

async fn the_tokens_that_were_got_with_a_removed_secret_end_within_a_minute_and_no_others(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let application = made(&entity).await;
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    let leaked = token(api, &application.id, &application.secret).await;
    let new = rotated(&entity, &application, json!({})).await;
    let good = token(api, &application.id, &text(&new, "clientSecret")).await;
    // As releases made it that did not say how a token was got.
    let (forge, neighbour) = (suite.forge(), made(&entity).await);
    let of_before = |client: &Made| {
        let mut claims = forge.claims();
        (claims["client_id"], claims["jti"]) = (client.id.as_str().into(), format!("before {}", client.id).into());
        forge.token(&forge.header(), &claims)
    };
    let [before, neighbours] = [of_before(&application), of_before(&neighbour)];
    assert_eq!(introspected(api, &leaked).await["credential_id"], first);
    assert_eq!(introspected(api, &good).await["credential_id"], new["secretId"]);
    let path = entity.path("/webhook/list");
    for token in [&leaked, &good, &before, &neighbours] {
        api.get(&path).bearer(token).expect(200).await;
    }

    let removed = entity.call("DELETE", &of(&application, &format!("/secret/{first}"))).expect(200).await.json();
    assert!(text(&removed, "message").contains("end within a minute"), "{removed:#}");
    let removed = Instant::now();
    for (token, active) in [(&leaked, false), (&before, false), (&good, true), (&neighbours, true)] {
        assert_eq!(introspected(api, token).await["active"], active, "{token}");
    }
    until("the token is refused", Duration::from_secs(70), async || {
        (api.get(&path).bearer(&leaked).send().await.status == 401).then_some(())
    })
    .await;
    assert!(removed.elapsed() < Duration::from_secs(60), "it took {:?}", removed.elapsed());
    api.get(&path).bearer(&before).expect(401).await;
    api.get(&path).bearer(&good).expect(200).await;
}

async fn the_tokens_of_a_secret_that_was_replaced_at_once_can_be_ended(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let application = made(&entity).await;
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    let leaked = token(api, &application.id, &application.secret).await;
    let new = rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await;
    assert_eq!(introspected(api, &leaked).await["active"], true, "its clients go on until they ask for a new one");
    let remove = || entity.call("DELETE", &of(&application, &format!("/secret/{first}")));
    remove().expect(200).await;
    assert_eq!(introspected(api, &leaked).await["active"], false);
    assert!(accepted(api, &application.id, &text(&new, "clientSecret")).await);
    remove().refused(404, "credential-not-found").await;
}

async fn a_removal_is_not_refused_because_somebody_changes_the_application_meanwhile(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&stood.api, "busy".to_owned()).await;
    let application = made(&entity).await;
    let partition = format!("APP#{}", application.id);
    let mut held = stood.table.hold("the removal", Moment::Before, move |call: &AwsCall| {
        call.operation == "TransactWriteItems" && call.mentions(&partition)
    });
    let path = of(&application, "");
    let changing = async {
        held.reached().await;
        rotated(&entity, &application, json!({})).await;
        held.go_on();
    };
    let (removed, ()) = tokio::join!(entity.call("DELETE", &path).expect(200), changing);
    assert_eq!(removed.json()["id"], application.id.as_str());
    entity.get(&path).refused(404, "application-not-found").await;
    assert!(stood.bundle.stop().await.success());
}

/// Each of what is made is an entry in the list of revocations when it goes, and every function has to know that list.
async fn what_an_entity_makes_in_an_hour_is_limited_and_what_it_removes_is_not(suite: Arc<Suite>) {
    let (entity, neighbour) = (suite.entity().await, suite.entity().await);
    let body = json!({ "name": "n", "scopes": ["account.read"] });
    let application = made_with(&entity, body.clone()).await;
    let secret = text(&shown(&entity, &application).await["secrets"][0], "id");
    let hour = now() - now() % 3600;
    for hour in [hour, hour + 3600] {
        let spent = json!({
            "pk": { "S": format!("ALLOWANCE#credentials#{}", entity.id) }, "sk": { "S": format!("{hour:010}") },
            "count": { "N": "1000" },
        });
        suite.table().put(spent).await;
    }
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY } });
    for (path, body) in [
        ("/application".to_owned(), &body),
        (of(&application, "/secret"), &json!({})),
        (of(&application, "/key"), &key),
    ] {
        let answer = entity.post(&path).json(body).expect(429).await;
        assert!(text(&answer.json(), "type").ends_with("/problems/too-many-credentials"), "{}", answer.exchange);
        let wait: u64 = answer.header("retry-after").parse().expect("a number of seconds");
        assert!((1..=3601).contains(&wait), "{}", answer.exchange);
    }
    assert_eq!(shown(&entity, &application).await["version"], 1);
    made(&neighbour).await;
    entity.call("DELETE", &of(&application, &format!("/secret/{secret}"))).expect(200).await;
    entity.call("DELETE", &of(&application, "")).expect(200).await;
}

/// Each of them is an entry in the list of revocations when it is removed.
async fn an_application_that_is_made_with_credentials_counts_for_each_of_them(suite: Arc<Suite>) {
    let (entity, table) = (suite.entity().await, suite.table());
    let body = json!({
        "name": "n", "scopes": ["account.read"], "publicKeys": [{ "kty": "OKP", "crv": "Ed25519", "x": KEY }],
    });
    let hour = now() - now() % 3600;
    let spend = async |count: u32| {
        for hour in [hour, hour + 3600] {
            let spent = json!({
                "pk": { "S": format!("ALLOWANCE#credentials#{}", entity.id) }, "sk": { "S": format!("{hour:010}") },
                "count": { "N": count.to_string() },
            });
            table.put(spent).await;
        }
    };
    // Three are made: the application, its secret and its key.
    spend(998).await;
    entity.post("/application").json(&body).expect(429).await;
    spend(997).await;
    entity.post("/application").json(&body).expect(201).await;
}

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
    // What is beside it is something else.
    let answer = entity.call("DELETE", "/application/list").expect(405).await;
    assert_eq!(answer.header("allow"), "GET");
}

async fn a_list_has_the_newest_first_and_no_secrets(suite: Arc<Suite>) {
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

async fn an_entity_has_a_hundred_applications_at_most(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let mut last = None;
    for _ in 0..10 {
        last = join_all((0..10).map(|_| made(&entity))).await.pop();
    }
    let body = json!({ "name": "n", "scopes": ["account.read"] });
    let problem = entity.post("/application").json(&body).refused(409, "application-limit").await;
    assert_eq!(problem["properties"]["limit"], 100);
    assert_eq!(entity.get("/application/list").expect(200).await.json().as_array().map(Vec::len), Some(100));
    entity.call("DELETE", &of(&last.expect("a hundred"), "")).expect(200).await;
    made(&entity).await;
}

/// Gives the application a new secret.
async fn rotated(entity: &Entity, application: &Made, body: Value) -> Value {
    let answer = entity.post(&of(application, "/secret")).json(&body).expect(200).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.json()
}

async fn a_new_secret_is_accepted_beside_the_old_one_which_ends_by_itself(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let application = made(&entity).await;
    let answer = rotated(&entity, &application, json!({ "overlapSeconds": 3 })).await;
    let new = text(&answer, "clientSecret");
    let ends = time(&answer["previousSecretExpiresDate"]);
    for secret in [&application.secret, &new] {
        assert!(accepted(api, &application.id, secret).await);
    }
    let both = shown(&entity, &application).await;
    assert_eq!(both["version"], 2);
    assert_eq!(both["secrets"][0]["id"], answer["secretId"]);
    assert!(both["secrets"][0].get("expiresDate").is_none());
    assert_eq!(both["secrets"][1]["expiresDate"], answer["previousSecretExpiresDate"]);

    until("the old secret ends", LONG, async || {
        (!accepted(api, &application.id, &application.secret).await).then_some(())
    })
    .await;
    assert!(now() >= ends.as_second(), "it ended too early");
    assert!(accepted(api, &application.id, &new).await);
    let after = shown(&entity, &application).await;
    assert_eq!(after["secrets"].as_array().map(Vec::len), Some(1), "{after:#}");
    // There is room again; and without a word the overlap is a day.
    let answer = entity.post(&of(&application, "/secret")).body("application/json", "").expect(200).await.json();
    let seconds = time(&answer["previousSecretExpiresDate"]).as_second() - now();
    assert!((86_340..=86_400).contains(&seconds), "{seconds}");
}

async fn without_an_overlap_the_old_secret_ends_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let new = text(&rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await, "clientSecret");
    assert!(!accepted(&suite.api, &application.id, &application.secret).await);
    assert!(accepted(&suite.api, &application.id, &new).await);
    rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await;
}

async fn a_third_secret_is_refused_while_two_are_live(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let ends = rotated(&entity, &application, json!({})).await["previousSecretExpiresDate"].clone();
    for body in [json!({}), json!({ "overlapSeconds": 0 })] {
        let third = entity.post(&of(&application, "/secret")).json(&body);
        let problem = third.refused(409, "client-secret-limit").await;
        assert_eq!(problem["properties"], json!({ "limit": 2, "oldestEndsDate": ends }));
    }
    assert_eq!(shown(&entity, &application).await["version"], 2);
}

async fn an_overlap_is_seven_days_at_most(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    for bad in [json!(604_801), json!(-1), json!(1.5), json!("1"), json!(null)] {
        let call = entity.post(&of(&application, "/secret")).json(&json!({ "overlapSeconds": bad }));
        assert_eq!(violations(&call.refused(400, "invalid-request").await), ["overlapSeconds"]);
    }
    let answer = rotated(&entity, &application, json!({ "overlapSeconds": 604_800 })).await;
    let days = (time(&answer["previousSecretExpiresDate"]).as_second() - now()) / 86_340;
    assert_eq!(days, 7);
}

async fn a_removed_secret_ends_at_once_even_the_last(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let application = made(&entity).await;
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    let answer = rotated(&entity, &application, json!({})).await;
    let (second, new) = (text(&answer, "secretId"), text(&answer, "clientSecret"));
    let remove = |id: &str| entity.call("DELETE", &of(&application, &format!("/secret/{id}")));

    let removed = remove(&first).expect(200).await.json();
    assert_eq!((&removed["id"], &removed["success"]), (&json!(first), &json!(true)));
    assert!(!accepted(api, &application.id, &application.secret).await);
    assert!(accepted(api, &application.id, &new).await);
    for gone in [first.as_str(), "sec_00000000000000000000000000", "sec_", "x"] {
        remove(gone).refused(404, "credential-not-found").await;
    }
    let last = remove(&second).expect(200).await.json();
    assert!(text(&last, "message").contains("the last"), "{last:#}");
    assert!(!accepted(api, &application.id, &new).await);
    assert_eq!(shown(&entity, &application).await["secrets"], json!([]));

    let answer = rotated(&entity, &application, json!({})).await;
    assert!(answer.get("previousSecretExpiresDate").is_none(), "{answer:#}");
    assert!(accepted(api, &application.id, &text(&answer, "clientSecret")).await);
}

async fn keys_are_told_apart_by_their_names_and_limited(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let add = |jwk: Value| entity.post(&of(&application, "/key")).json(&json!({ "publicKey": jwk }));
    let key = |kid: &str| json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": kid });
    let unnamed = add(json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY })).expect(201).await.json();
    // RFC 8037, appendix A.3: the thumbprint of this very key.
    assert_eq!(unnamed["publicKeys"][0]["kid"], "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    assert_eq!(unnamed["version"], 2);
    for kid in ["one", "two", "three", "four"] {
        add(key(kid)).expect(201).await;
    }
    let known = add(key("two")).refused(409, "key-exists").await;
    assert_eq!(known["properties"]["kid"], "two");
    assert_eq!(add(key("five")).refused(409, "key-limit").await["properties"]["limit"], 5);
    let for_anybody = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode([0; 32]) });
    let private = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "d": KEY });
    for bad in [json!({}), json!("key"), private, json!(null), for_anybody] {
        assert_eq!(violations(&add(bad).refused(400, "invalid-request").await), ["publicKey"]);
    }

    let remove = |kid: &str| entity.call("DELETE", &of(&application, &format!("/key/{kid}")));
    assert_eq!(remove("two").expect(200).await.json()["id"], "two");
    remove("two").refused(404, "credential-not-found").await;
    let left = shown(&entity, &application).await;
    let kids: Vec<&Value> = left["publicKeys"].as_array().expect("a list").iter().map(|key| &key["kid"]).collect();
    assert_eq!(kids, ["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "one", "three", "four"]);
    assert_eq!(left["version"], 7);
}

async fn an_application_may_have_keys_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({
        "name": "n", "scopes": ["account.read"], "withSecret": false,
        "publicKeys": [{ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "only", "use": "sig", "alg": "EdDSA" }],
    });
    let made = entity.post("/application").json(&body).expect(201).await.json();
    assert!(made.get("clientSecret").is_none() && made["secrets"] == json!([]), "{made:#}");
    assert_eq!(made["publicKeys"][0]["kid"], "only");
    let id = text(&made, "clientId");
    assert!(!accepted(&suite.api, &id, "").await);
    let removed = entity.call("DELETE", &format!("/application/{id}/key/only")).expect(200).await.json();
    assert!(text(&removed, "message").contains("the last"));
}

async fn the_day_of_the_last_use_is_shown_and_is_no_change(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let before = shown(&entity, &application).await;
    assert!(before["secrets"][0].get("lastUsedDate").is_none());
    let days = [now(), now() + 60]
        .map(|second| jiff::Timestamp::from_second(second).expect("a time").to_string()[..10].to_owned());
    accepted(&suite.api, &application.id, &application.secret).await;
    let mut after = until("the use is noted", LONG, async || {
        let after = shown(&entity, &application).await;
        after["secrets"][0].get("lastUsedDate").is_some().then_some(after)
    })
    .await;
    let day = text(&after["secrets"][0], "lastUsedDate");
    assert!(days.contains(&day), "{day}");
    after["secrets"][0].as_object_mut().expect("an object").remove("lastUsedDate");
    assert_eq!(after, before);

    // What was known of a removed credential goes with it.
    let id = text(&before["secrets"][0], "id");
    entity.call("DELETE", &of(&application, &format!("/secret/{id}"))).expect(200).await;
    let item = suite.table().item(&format!("APP#{}", application.id), "APP").await.expect("it is there");
    assert_eq!(item["lastUsed"]["M"], json!({}), "{item:#}");
}

async fn of_fifty_rotations_at_once_one_is_made(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let answers = join_all((0..50).map(|_| entity.post(&of(&application, "/secret")).json(&json!({})).send())).await;
    let (made, refused): (Vec<&Answer>, Vec<&Answer>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(made.len(), 1);
    for answer in refused {
        assert_eq!(answer.status, 409, "{}", answer.exchange);
    }
    let after = shown(&entity, &application).await;
    assert_eq!(after["version"], 2);
    assert_eq!(after["secrets"][0]["id"], made[0].json()["secretId"]);
    for secret in [text(&made[0].json(), "clientSecret"), application.secret] {
        assert!(accepted(&suite.api, &application.id, &secret).await);
    }
}

async fn fifty_rotations_and_removals_at_once_leave_nothing_half_done(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for _ in 0..4 {
        let application = made(&entity).await;
        let calls = (0..50).map(|number| match number % 2 {
            0 => entity.post(&of(&application, "/secret")).json(&json!({ "overlapSeconds": 0 })),
            _ => entity.call("DELETE", &of(&application, "")),
        });
        let answers = join_all(calls.map(Call::send)).await;
        let statuses: HashSet<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(statuses.is_subset(&HashSet::from([200, 404, 409])), "{statuses:?}");
        let removals = answers.iter().skip(1).step_by(2).filter(|answer| answer.status == 200).count();
        let secrets = answers.iter().step_by(2).filter(|answer| answer.status == 200);
        let secrets: Vec<String> = secrets.map(|answer| text(&answer.json(), "clientSecret")).collect();
        assert!(removals <= 1, "it was removed {removals} times");

        let (table, partition) = (suite.table(), format!("APP#{}", application.id));
        let item = table.item(&partition, "APP").await;
        let pointer = table.item(&format!("APPS#{}", entity.id), &application.id).await;
        let mut alive = 0;
        for secret in secrets.iter().chain([&application.secret]) {
            alive += usize::from(accepted(&suite.api, &application.id, secret).await);
        }
        assert_eq!(item.is_some(), removals == 0);
        assert_eq!(item.is_some(), pointer.is_some());
        assert_eq!(alive, usize::from(removals == 0), "{secrets:?}");
    }
}

async fn the_tokens_of_a_removed_application_end_within_a_minute(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let application = made(&entity).await;
    let token = token(api, &application.id, &application.secret).await;
    let paths = ["/application/list", "/webhook/list", "/webhook/event/list"].map(|path| entity.path(path));
    for path in &paths {
        api.get(path).bearer(&token).expect(200).await;
    }
    let removed = entity.call("DELETE", &of(&application, "")).expect(200).await.json();
    assert_eq!((&removed["id"], &removed["success"]), (&json!(application.id), &json!(true)));
    let removed = Instant::now();
    assert!(!accepted(api, &application.id, &application.secret).await);
    entity.get(&of(&application, "")).refused(404, "application-not-found").await;
    entity.call("DELETE", &of(&application, "")).refused(404, "application-not-found").await;
    assert_eq!(entity.get("/application/list").expect(200).await.json(), json!([]));

    for path in &paths {
        let refused = until("the token is refused", Duration::from_secs(70), async || {
            let answer = api.get(path).bearer(&token).send().await;
            (answer.status != 200).then_some(answer)
        });
        let answer = refused.await;
        assert_eq!(answer.status, 401, "{}", answer.exchange);
        assert!(answer.header("www-authenticate").contains(r#"error="invalid_token""#), "{}", answer.exchange);
    }
    assert!(removed.elapsed() < Duration::from_secs(60), "it took {:?}", removed.elapsed());
}

async fn a_change_whose_answer_was_lost_is_made_once_and_acknowledged(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&stood.api, "lossy".to_owned()).await;
    let application = made(&entity).await;
    let changing = || {
        let partition = format!("APP#{}", application.id);
        stood.table.hold("the change", Moment::After, move |call: &AwsCall| {
            ["UpdateItem", "TransactWriteItems"].contains(&call.operation.as_str()) && call.mentions(&partition)
        })
    };
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "lossy" } });
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    for (call, status) in [
        (entity.post(&of(&application, "/secret")).json(&json!({})), 200),
        (entity.post(&of(&application, "/key")).json(&key), 201),
        (entity.call("DELETE", &of(&application, "/key/lossy")), 200),
        (entity.call("DELETE", &of(&application, &format!("/secret/{first}"))), 200),
    ] {
        let mut held = changing();
        let losing = async {
            held.reached().await;
            held.lose();
        };
        let (answer, ()) = tokio::join!(call.expect(status), losing);
        if let Some(secret) = answer.json()["clientSecret"].as_str() {
            assert!(accepted(&stood.api, &application.id, secret).await);
        }
    }
    let after = shown(&entity, &application).await;
    assert_eq!((&after["version"], &after["publicKeys"]), (&json!(5), &json!([])), "each once: {after:#}");
    assert!(stood.bundle.stop().await.success());
}

async fn what_its_owner_has_changed_of_the_demo_application_outlives_a_restart(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, api.env["MANAGING_ENTITY"].clone()).await;
    let demo = Made { id: api.env["CLIENT_ID"].clone(), secret: api.env["CLIENT_SECRET"].clone() };
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY } });
    entity.post(&of(&demo, "/key")).json(&key).expect(201).await;
    let secret = text(&shown(&entity, &demo).await["secrets"][0], "id");
    entity.call("DELETE", &of(&demo, &format!("/secret/{secret}"))).expect(200).await;
    let changed = shown(&entity, &demo).await;
    assert_eq!((&changed["version"], &changed["secrets"]), (&json!(3), &json!([])));
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    assert_eq!(shown(&entity, &demo).await, changed);
    assert!(!accepted(&api, &demo.id, &demo.secret).await);
    assert!(bundle.logs().contains("is no longer good"), "{}", bundle.logs());

    // One that is gone is made anew, as it was in the beginning.
    entity.call("DELETE", &of(&demo, "")).expect(200).await;
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    let anew = shown(&entity, &demo).await;
    assert_eq!((&anew["version"], &anew["publicKeys"]), (&json!(1), &json!([])));
    assert!(accepted(&api, &demo.id, &demo.secret).await);
    assert!(bundle.stop().await.success());
}

/// Runs the operator's command against the bundle; what it says, if it succeeds.
async fn operator(suite: &Suite, arguments: &[&str]) -> Result<String, String> {
    let program = local().expect("the bundle runs it").with_file_name("application");
    let mut command = Command::new(program);
    command.arg("--data").arg(suite.bundle.data()).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(LONG, command.output()).await.expect("it ends").expect("it can be run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// The values of lines `NAME=value`.
fn values(said: &str) -> Vec<String> {
    said.lines().filter_map(|line| Some(line.split_once('=')?.1.to_owned())).collect()
}

async fn an_operator_makes_and_looks_after_applications(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let both = format!("{} second", entity.id);
    let create = ["create", "--name", "By hand", "--entity", &both, "--scopes", "booking.read account.read"];
    let said = operator(&suite, &create).await.expect("made");
    let [id, secret] = <[String; 2]>::try_from(values(&said)).expect("an identifier and a secret");
    let claimed = claims(&token(api, &id, &secret).await);
    assert_eq!(claimed["managing_entities"], json!([entity.id, "second"]));
    assert_eq!(claimed["scope"], "account.read booking.read");
    // Its owner is the first of its entities.
    let listed = entity.get("/application/list").expect(200).await.json();
    assert_eq!(listed[0]["clientId"], id);
    let said = operator(&suite, &["list", &entity.id]).await.expect("listed");
    let mut shown: Value = serde_json::from_str(&said).expect("one line of JSON");
    assert_eq!(shown["clientId"], id);
    assert!(!said.contains(&secret));
    shown = serde_json::from_str(&operator(&suite, &["show", &id]).await.expect("shown")).expect("JSON");
    assert_eq!(shown["name"], "By hand");

    let said = operator(&suite, &["add-secret", &id, "--overlap-seconds", "0"]).await.expect("added");
    let new = values(&said).pop().expect("a secret");
    assert!(accepted(api, &id, &new).await && !accepted(api, &id, &secret).await);
    operator(&suite, &["remove", &id]).await.expect("removed");
    assert!(!accepted(api, &id, &new).await);
    assert!(operator(&suite, &["show", &id]).await.expect_err("gone").contains(&id));

    // What is for every entity is nobody's, unless the operator says whose.
    let said = operator(&suite, &["create", "--name", "All", "--entity", "*"]).await.expect("made");
    let [id, secret] = <[String; 2]>::try_from(values(&said)).expect("an identifier and a secret");
    assert_eq!(claims(&token(api, &id, &secret).await)["managing_entities"], json!(["*"]));
    assert_eq!(entity.get("/application/list").expect(200).await.json(), json!([]));
    let owned = ["create", "--name", "All", "--entity", "*", "--owner", &entity.id];
    operator(&suite, &owned).await.expect("made");
    assert_eq!(entity.get("/application/list").expect(200).await.json().as_array().map(Vec::len), Some(1));
    for bad in [["--entity", "a b/c"], ["--entity", ""], ["--scopes", "booking"], ["--owner", "*"]] {
        let arguments = ["create", "--name", "n", "--entity", "good", bad[0], bad[1]];
        operator(&suite, &arguments).await.expect_err("refused");
    }
}

async fn an_operator_ends_one_secret_or_key_at_once(suite: Arc<Suite>) {
    let (entity, api) = (suite.entity().await, &suite.api);
    let created = ["create", "--name", "All", "--entity", "*", "--owner", &entity.id];
    let [id, leaked] = <[String; 2]>::try_from(values(&operator(&suite, &created).await.expect("made"))).expect("both");
    let application = Made { id: id.clone(), secret: leaked.clone() };
    let leaked_id = text(&shown(&entity, &application).await["secrets"][0], "id");
    let good = values(&operator(&suite, &["add-secret", &id]).await.expect("added")).pop().expect("a secret");
    let refusal = operator(&suite, &["add-secret", &id]).await.expect_err("there are two");
    assert!(refusal.contains("remove-secret"), "{refusal}");
    let [stolen, kept] = [token(api, &id, &leaked).await, token(api, &id, &good).await];
    operator(&suite, &["remove-secret", &id, &leaked_id]).await.expect("removed");
    assert!(accepted(api, &id, &good).await && !accepted(api, &id, &leaked).await);
    assert_eq!(introspected(api, &stolen).await["active"], false);
    assert_eq!(introspected(api, &kept).await["active"], true);
    for missing in [leaked_id.as_str(), "sec_1", &leaked] {
        operator(&suite, &["remove-secret", &id, missing]).await.expect_err("there is no such secret");
    }
    operator(&suite, &["remove-secret", "appNobody", &leaked_id]).await.expect_err("there is no such application");

    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "laptop" } });
    entity.post(&of(&application, "/key")).json(&key).expect(201).await;
    operator(&suite, &["remove-key", &id, "laptop"]).await.expect("removed");
    let after = shown(&entity, &application).await;
    assert_eq!((&after["publicKeys"], after["secrets"].as_array().map(Vec::len)), (&json!([]), Some(1)));
    let refusal = operator(&suite, &["remove-key", &id, "laptop"]).await.expect_err("there is no such key");
    assert!(refusal.contains("laptop"), "{refusal}");
}
