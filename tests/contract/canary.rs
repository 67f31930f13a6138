//! The canary: an event that the deployment sends to itself, and the requests that its receiver refuses.

use std::{fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{
        Application, Bundle, Entity, LONG, Settings, Suite, Table, delete_secret, free_port, invocation, now,
        signature, until,
    },
    metrics::{lines, sum, values},
};

const PATH: &str = "/task/canary";

fn secret(bundle: &Bundle) -> Value {
    let text = fs::read_to_string(bundle.data().join("secrets/canary.json")).expect("each start makes it");
    serde_json::from_str(&text).expect("it is JSON")
}

fn member(secret: &Value, name: &str) -> String {
    secret[name].as_str().unwrap_or_else(|| panic!("the secret has no {name}")).to_owned()
}

/// Runs the canary once, as its schedule does.
async fn run(bundle: &Bundle) {
    let answer = invocation(&bundle.service_env(), "run-canary", "{}").send().await.expect("functions can be invoked");
    assert_eq!(answer.text().await.expect("a text"), "null");
}

/// Runs the canary until a run has this outcome, and returns all counted lines. On a slow machine, a step may take too
/// long, which counts as a failure.
async fn run_until(bundle: &Bundle, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    until(what, LONG, async || {
        let before = lines(bundle, "run-canary").len();
        run(bundle).await;
        let counted = counted(bundle, before + 1).await;
        is_wanted(&counted[before]).then_some(counted)
    })
    .await
}

/// The log lines with the canary's metrics, once there are `runs` of them.
async fn counted(bundle: &Bundle, runs: usize) -> Vec<Value> {
    until("the runs are counted", LONG, async || Some(lines(bundle, "run-canary")).filter(|lines| lines.len() == runs))
        .await
}

#[contract_test]
async fn a_canary_arrives_and_its_latency_is_counted(suite: Arc<Suite>) {
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    let arrives = |line: &Value| line.get("CanaryArrivalAfter").is_some();
    run_until(&bundle, "a canary arrives", arrives).await;
    let counted = run_until(&bundle, "another canary arrives", arrives).await;
    let latencies = values(&counted, "CanaryArrivalAfter");
    let failures = sum(&counted, "CanaryFailures");
    assert_eq!((latencies.len(), 2.0 + failures), (2, counted.len() as f64), "{counted:#?}");
    assert!(latencies.iter().all(|millis| *millis < 60_000.0), "longer than the canary waits: {latencies:?}");
    let secret = secret(&bundle);
    let log = bundle.whole_logs();
    for name in ["clientSecret", "signingKey"] {
        assert!(!log.contains(&member(&secret, name)), "the log has the {name}");
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn canary_failures_are_counted_and_provisioning_repairs_the_canary(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let secret = secret(&bundle);
    let entity = Entity::new(&api, member(&secret, "managingEntityIdentifier")).await;
    let webhook = member(&secret, "webhookIdentifier");
    let down = format!("http://127.0.0.1:{}/", free_port());
    entity.changed(&webhook, json!({ "eventUrl": down })).await;
    run_until(&bundle, "a canary does not arrive", |line| line["Step"] == "arrival").await;
    entity.changed(&webhook, json!({ "enabled": false })).await;
    let failed = run_until(&bundle, "a canary is not published", |line| line["Step"] == "publish").await;
    let failures = sum(&failed, "CanaryFailures");
    assert_eq!((failures, values(&failed, "CanaryArrivalAfter").len()), (failed.len() as f64, 0), "{failed:#?}");
    // Each time it starts, the bundle does what `waypost-admin provision` does.
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    run_until(&bundle, "the canary comes through", |line| line.get("CanaryArrivalAfter").is_some()).await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn calls_that_the_canary_did_not_sign_are_refused_and_not_stored(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let env = bundle.service_env();
    let secret = secret(&bundle);
    let table = Table::of(&env);
    let key = format!("whsec_{}", member(&secret, "signingKey"));
    let now = now();
    let id = "evt_01kaqf2x9bg0c7m5y8w3t6r1qd";
    let body = r#"{"data":{"canary":true}}"#;
    let call = |time: i64, signed: &str, sent: &str| {
        let signature = signature(&key, id, &time.to_string(), signed.as_bytes());
        let call = api.post(PATH).header("webhook-id", id).header("webhook-timestamp", time.to_string());
        call.header("webhook-signature", signature).body("application/json", sent)
    };
    let refused = async |call: crate::harness::Call| {
        let problem = call.refused(403, "task-refused").await;
        assert!(table.item(&format!("CANARY#{id}"), "ARRIVAL").await.is_none(), "{problem}");
    };
    refused(api.post(PATH).body("application/json", body)).await;
    refused(call(now, "{}", body)).await;
    refused(call(now - 600, body, body)).await;
    refused(call(now + 600, body, body)).await;
    let other_key = format!("whsec_{}", "A".repeat(43) + "=");
    let forged = signature(&other_key, id, &now.to_string(), body.as_bytes());
    let call_of_another = api.post(PATH).header("webhook-id", id).header("webhook-timestamp", now.to_string());
    refused(call_of_another.header("webhook-signature", forged).body("application/json", body)).await;
    call(now, body, body).expect(200).await;
    let noted = table.item(&format!("CANARY#{id}"), "ARRIVAL").await.expect("a genuine call is stored");
    let kept: i64 = noted["expiresAt"]["N"].as_str().and_then(|time| time.parse().ok()).expect("a time");
    assert!((now..now + 2 * 3_600).contains(&kept), "it is stored for about an hour: {noted}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_canary_that_is_not_provisioned_counts_nothing_and_says_so(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    delete_secret(&bundle.service_env(), "canary").await;
    run(&bundle).await;
    until("the run says so", LONG, async || bundle.logs().contains("the canary is not provisioned").then_some(()))
        .await;
    assert_eq!(lines(&bundle, "run-canary"), Vec::<Value>::new());
    // A stranger cannot find out whether the canary exists, and cannot trigger an alarm.
    api.post(PATH).body("application/json", "{}").refused(403, "task-refused").await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn the_entity_of_the_canary_is_covered_by_no_customers_token(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let secret = secret(&bundle);
    let path = format!("/api/managing-entity/{}/webhook/list", member(&secret, "managingEntityIdentifier"));
    let token = api.token(Application::Demo, "").await;
    api.get(path).bearer(&token).refused(403, "entity-not-covered").await;
    // The canary's token covers no other entity and can only publish.
    let (id, secret) = (member(&secret, "clientId"), member(&secret, "clientSecret"));
    let form = [("grant_type", "client_credentials"), ("client_id", id.as_str()), ("client_secret", secret.as_str())];
    let answer = api.post("/oauth2/token").form(&form).expect(200).await.json();
    assert_eq!(answer["scope"], "integrations.write", "{answer}");
    let token = answer["access_token"].as_str().expect("a token");
    let event = json!({ "type": "booking.created", "data": {} });
    let publish = api.post("/api/managing-entity/demo-hotel/webhook/event").bearer(token).json(&event);
    publish.refused(403, "entity-not-covered").await;
    assert!(bundle.stop().await.success());
}
