//! A release can read the data that the previous release wrote. `release_data/VERSION.json` has a sample of everything
//! that this version stores: the table's items, the secrets that open them, and facts that the version's clients know.
//! The secrets are not used anywhere else.
//!
//! Before a release, `cargo test --workspace --test contract -- --ignored release_data` writes the sample for the
//! version in Cargo.toml. The previous release's sample is kept until the next release.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    applications::{accepted, text},
    harness::{Behaviour, Entity, LONG, Receiver, Settings, Suite, Table, is_signed_by, now, project, until},
};

/// A URL on this machine that refuses connections.
const REFUSING: &str = "http://127.0.0.1:9";
const ENTITY: &str = "release-data";
const API_KEY: &str = "kept-value";
const SUBJECT: &str = "B-1";
/// All of the service's secrets; the providers' secrets belong to the suite.
const SECRETS: [&str; 6] =
    ["client-secret-pepper", "data-keys", "demo-application", "platform-application", "signing-key", "task-key"];

fn folder() -> PathBuf {
    project().join("tests/contract/release_data")
}

/// Settings that make the third attempt come only after the test.
fn settings() -> Settings {
    Settings::default().with("RETRY_SCHEDULE", "0s,1s,5h").with("DELIVERY_RETENTION", "3650d")
}

fn kept(base: &str) -> Value {
    json!({ "eventUrl": format!("{base}/kept?token={API_KEY}"), "headers": { "X-Api-Key": API_KEY } })
}

fn published() -> Value {
    json!({ "type": "booking.created", "subject": SUBJECT, "data": { "number": 1 } })
}

fn webhook(name: &str, endpoint: &Value) -> Value {
    let mut webhook = json!({ "name": name, "eventList": ["booking.*"] });
    let members = webhook.as_object_mut().expect("an object");
    members.extend(endpoint.as_object().expect("an object").clone());
    webhook
}

#[contract_test(on_demand)]
async fn a_sample_of_this_release_is_written(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(settings()).await;
    let entity = Entity::new(&api, ENTITY.to_owned()).await;
    let receiver = Receiver::start().await;
    let base = receiver.url("");
    let base = base.trim_end_matches('/');
    let mut facts = json!({ "entity": ENTITY, "webhooks": {}, "deliveries": {} });

    receiver.on(&format!("/kept?token={API_KEY}"), [Behaviour::status(200)]);
    let hook = entity.hook_with(webhook("kept", &kept(base))).await;
    let publication = entity.post("/webhook/event").header("idempotency-key", "release").json(&published());
    let publication = publication.expect(202).await.json();
    let delivered = text(&publication["deliveries"][0], "deliveryIdentifier");
    entity.until_status(&delivered, &["delivered"]).await;
    entity.changed(&hook.id, kept(REFUSING)).await;
    facts["webhooks"]["kept"] = json!({ "id": hook.id, "signingSecret": hook.json["signingSecret"] });
    facts["deliveries"]["delivered"] = delivered.into();
    facts["publication"] = publication;
    // The events that follow are for the other webhooks.
    entity.changed(&hook.id, json!({ "eventList": ["payment.*"] })).await;

    let gone = receiver.on("/gone", [Behaviour::status(410)]);
    let hook = entity.hook_with(webhook("gone", &json!({ "eventUrl": gone }))).await;
    // A body that has a separate item, even though compression halves it.
    let large: Vec<String> = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let large = json!({ "number": 2, "random": large });
    let failed = entity.publish(large.clone()).await;
    entity.until_status(&failed, &["failed"]).await;
    facts["webhooks"]["gone"] = json!({ "id": hook.id });
    facts["deliveries"]["failed"] = failed.into();
    facts["large"] = large;

    let refusing = json!({ "eventUrl": format!("{REFUSING}/failing") });
    let hook = entity.hook_with(webhook("failing", &refusing)).await;
    let retrying = entity.publish(json!({ "number": 3 })).await;
    entity.until_delivery(&retrying, "two attempts", |delivery| delivery["attemptCount"] == 2).await;
    facts["webhooks"]["failing"] = json!({ "id": hook.id });
    facts["deliveries"]["retrying"] = retrying.into();

    let new = json!({ "name": "Channel manager", "scopes": ["booking.read"] });
    let application = entity.post("/application").json(&new).expect(201).await.json();
    facts["application"] = json!({
        "clientId": text(&application, "clientId"), "clientSecret": text(&application, "clientSecret"),
    });

    let items = Table::of(&api.env).scan().await;
    assert!(bundle.stop().await.success());
    let secret = |name: &str| fs::read_to_string(bundle.data().join("secrets").join(format!("{name}.json")));
    let secrets: BTreeMap<_, Value> = SECRETS
        .into_iter()
        .map(|name| (name, serde_json::from_str(&secret(name).expect("a secret")).expect("JSON")))
        .collect();
    let sample = json!({ "facts": facts, "secrets": secrets, "items": items });
    let path = folder().join(format!("{}.json", env!("CARGO_PKG_VERSION")));
    fs::write(path, format!("{sample:#}\n")).expect("the folder is there");
}

fn sample() -> Value {
    let entries = fs::read_dir(folder()).expect("there are samples").map(|entry| entry.expect("a file").path());
    let newest = entries.max_by_key(|path| {
        let version = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        version.split('.').map(|part| part.parse().unwrap_or_default()).collect::<Vec<u32>>()
    });
    let text = fs::read_to_string(newest.expect("there is a sample")).expect("a text");
    serde_json::from_str(&text).expect("JSON")
}

#[contract_test]
async fn data_of_the_last_release_are_read(suite: Arc<Suite>) {
    let sample = sample();
    let secrets = sample["secrets"].as_object().expect("an object");
    let secrets: Vec<(&str, Value)> = secrets.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let (bundle, api, _permit) = suite.other_bundle_with(settings(), &secrets).await;
    let mut items = sample["items"].as_array().expect("a list").clone();
    // The table removes expired items, so extend their lifetime.
    for item in items.iter_mut().filter(|item| !item["expiresAt"].is_null()) {
        item["expiresAt"]["N"] = (now() + 86_400).to_string().into();
    }
    Table::of(&api.env).put_all(items).await;
    let facts = &sample["facts"];
    let entity = Entity::new(&api, text(facts, "entity")).await;

    let application = &facts["application"];
    assert!(accepted(&api, &text(application, "clientId"), &text(application, "clientSecret")).await);
    // The retried delivery's third attempt is due hours after the sample was written.
    let retrying = text(&facts["deliveries"], "retrying");
    let retrying = entity.delivery(&retrying).await;
    assert!(retrying["attemptCount"].as_u64() >= Some(2), "{retrying:#}");
    for status in ["delivered", "failed"] {
        let id = text(&facts["deliveries"], status);
        let delivery = entity.delivery(&id).await;
        assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!(status), &json!(1)), "{delivery:#}");
        assert_eq!(delivery["attempts"].as_array().map(Vec::len), Some(1), "{delivery:#}");
        let listed = entity.get(&format!("/webhook/delivery/list?status={status}")).expect(200).await.json();
        assert!(listed["items"].as_array().is_some_and(|items| items.iter().any(|item| item["id"] == id.as_str())));
        let event = text(&delivery["event"], "id");
        assert_eq!(
            entity.get(&format!("/webhook/event/{event}")).expect(200).await.json()["data"],
            delivery["event"]["data"]
        );
    }
    let again = entity.post("/webhook/event").header("idempotency-key", "release").json(&published());
    let mut publication = facts["publication"].clone();
    publication["kept"] = json!(true);
    assert_eq!(again.expect(202).await.json(), publication);
    let about = entity.get(&format!("/webhook/delivery/list?subject={SUBJECT}")).expect(200).await.json();
    assert_eq!(about["items"].as_array().map(Vec::len), Some(1), "{about:#}");
    assert_eq!(about["items"][0]["id"], facts["deliveries"]["delivered"]);
    let failed = entity.delivery(&text(&facts["deliveries"], "failed")).await;
    assert_eq!(failed["event"]["data"], facts["large"]);

    let id = |name: &str| text(&facts["webhooks"][name], "id");
    assert_eq!(entity.webhook(&id("kept")).await["headers"], json!({ "X-Api-Key": "***" }));
    assert_eq!(entity.webhook(&id("gone")).await["enabled"], json!(false));
    assert!(entity.webhook(&id("failing")).await["failuresInRow"].as_u64() >= Some(2));
    let receiver = Receiver::start().await;
    let moved = receiver.on("/moved", [Behaviour::status(200)]);
    let change = json!({ "eventUrl": moved, "headers": { "X-Api-Key": API_KEY }, "eventList": ["booking.*"] });
    entity.changed(&id("kept"), change).await;
    entity.publish_of_type("booking.created", json!({ "number": 4 })).await.json();
    let received = receiver.until("/moved", 1).await.remove(0);
    assert!(is_signed_by(&received, &text(&facts["webhooks"]["kept"], "signingSecret")));
    let gone = receiver.on("/gone", [Behaviour::status(200)]);
    entity.changed(&id("gone"), json!({ "eventUrl": gone, "enabled": true })).await;
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let recovered = entity.post(&format!("/webhook/{}/recover", id("gone"))).json(&range).expect(202).await.json();
    assert_eq!(recovered["count"], 1, "{recovered}");
    until("the recovered event", LONG, async || (!receiver.received("/gone").is_empty()).then_some(())).await;
    assert!(bundle.stop().await.success());
}
