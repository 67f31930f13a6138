//! Rotating the keys that seal values in the table: deliveries are unaffected, and the old keys are no longer needed
//! afterwards.

use std::{cell::Cell, collections::BTreeSet, fs, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::time;

use crate::harness::{
    Api, Behaviour, Bundle, Choice, Entity, Receiver, Settings, Suite, Table, admin, is_signed_by, now, outcomes,
};

/// The number of sealed values that belong to the canary: its webhook's signing secret.
const CANARY: usize = 1;

/// Runs the operator's program, which must succeed, and returns its summary.
async fn rotate(bundle: &Bundle, options: &[&str]) -> String {
    admin(bundle, &[&["data-keys", "rotate"], options].concat()).await.done()
}

/// The key ring that the next start will load.
fn ring(bundle: &Bundle) -> Value {
    let text = fs::read_to_string(ring_file(bundle)).expect("the bundle has a key ring");
    serde_json::from_str(&text).expect("it is JSON")
}

fn ring_file(bundle: &Bundle) -> std::path::PathBuf {
    bundle.data().join("secrets/data-keys.json")
}

fn current(ring: &Value) -> &str {
    ring["current"].as_str().expect("a ring has a current key")
}

/// Every value in the table that one of the ring's keys sealed.
async fn sealed_texts(table: &Table, ring: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, ring: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) if text.split_once('.').is_some_and(|(key, _)| ring["keys"].get(key).is_some()) => {
                found.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, ring, found)),
            Value::Object(members) => members.values().for_each(|member| collect(member, ring, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    table.scan().await.iter().for_each(|item| collect(item, ring, &mut found));
    found
}

fn sealed_by(texts: &BTreeSet<String>, key: &str) -> usize {
    texts.iter().filter(|text| text.starts_with(&format!("{key}."))).count()
}

/// Publishes until `stop` is set, and returns all deliveries.
async fn publish_until(stop: &Cell<bool>, entity: &Entity) -> Vec<String> {
    let mut deliveries = Vec::new();
    while !stop.get() {
        let published = entity.publish_of_type("booking.created", json!({})).await.json();
        let made = published["deliveries"].as_array().expect("openapi.yaml says so");
        let ids = made.iter().map(|delivery| delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so"));
        deliveries.extend(ids.map(str::to_owned));
        time::sleep(Duration::from_millis(20)).await;
    }
    deliveries
}

#[contract_test]
async fn a_rotation_under_load_breaks_no_signature_and_reseals_everything(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "rotation".to_owned()).await;
    let receiver = Receiver::start().await;
    let mut secrets = Vec::new();
    for path in ["/one", "/two", "/three"] {
        secrets.push((path, entity.hook_without_key(&receiver.on(path, [Behaviour::status(200)])).await.secret));
    }
    for provider in ["sim-basic", "stripe"] {
        entity.link(provider, Choice::ALLOW).await;
    }
    let table = Table::of(&api.env);
    let before = ring(&bundle);
    assert_eq!(sealed_by(&sealed_texts(&table, &before).await, current(&before)), 5 + CANARY);

    let stop = Cell::new(false);
    let (deliveries, said) = tokio::join!(publish_until(&stop, &entity), async {
        time::sleep(Duration::from_millis(500)).await;
        let said = rotate(&bundle, &[]).await;
        time::sleep(Duration::from_millis(500)).await;
        stop.set(true);
        said
    });
    assert!(said.contains("4 webhooks and 2 connections resealed, 0 unreadable"), "{said}");
    for delivery in &deliveries {
        let delivery = entity.until_status(delivery, &["delivered", "failed"]).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1), "{delivery:#}");
    }
    // Normally, no delivery is delayed, since a function loads a new key as soon as it encounters one. If the machine
    // pauses for two seconds, the function gives up loading, and the delivery's message comes again.
    let complaints = bundle.logs();
    let is_without_key = |line: &str| {
        let gave_up = line.contains("the key ring could not be read") && line.contains("deadline has elapsed");
        line.contains("sealed value cannot be opened") && !gave_up
    };
    assert!(!complaints.lines().any(is_without_key), "{complaints}");
    let received = receiver.everything();
    assert!(received.len() >= deliveries.len() && !deliveries.is_empty());
    for received in &received {
        let (_, secret) =
            secrets.iter().find(|(path, _)| received.path == *path).expect("only these webhooks lead here");
        assert!(is_signed_by(received, secret), "{received:?}");
    }

    let after = ring(&bundle);
    assert_ne!(current(&before), current(&after));
    assert!(after["keys"].get(current(&before)).is_some(), "the old key is needed until it is forgotten");
    let texts = sealed_texts(&table, &after).await;
    assert_eq!((sealed_by(&texts, current(&before)), sealed_by(&texts, current(&after))), (0, 5 + CANARY));

    for options in [&["--reseal-only"], &["--forget"]] {
        let said = rotate(&bundle, options).await;
        assert!(said.contains("0 webhooks and 0 connections resealed, 0 unreadable"), "{said}");
        assert!(said.contains("0 keys forgotten"), "a key that was just replaced may still be needed: {said}");
        assert!(said.contains("1 old key stays in the ring"), "and is not reported as forgotten: {said}");
        assert_eq!((ring(&bundle), sealed_texts(&table, &after).await), (after.clone(), texts.clone()), "{options:?}");
    }

    // After a restart, a token that only the new key can open still works.
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    let entity = Entity::new(&Api::of(&bundle, &suite.contract), "rotation".to_owned()).await;
    let answer = entity.disconnect("sim-basic").expect(200).await.json();
    assert_eq!(answer["providerAccess"], "revoked", "{answer}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_stopped_rotation_is_finished_and_unneeded_keys_are_forgotten(suite: Arc<Suite>) {
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    // Start a bundle with older keys.
    assert!(bundle.stop().await.success());
    let key = |byte: u8| BASE64_STANDARD.encode([byte; 32]);
    let replace_ring =
        |ring: Value| fs::write(ring_file(&bundle), ring.to_string()).expect("the test may write the file");
    replace_ring(json!({ "current": "first", "keys": { "first": key(1) } }));
    bundle.start_again(Settings::default()).await;
    let api = Api::of(&bundle, &suite.contract);
    let entity = Entity::new(&api, "forgetting".to_owned()).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/?token=of-the-query", [Behaviour::status(200)]);
    let headers = json!({ "X-Key": "of-the-header" });
    let hook =
        json!({ "name": "sealed", "eventUrl": url, "eventList": [], "headers": headers, "signature": "ed25519" });
    let hook = Entity::created(entity.post("/webhook"), hook).await;
    entity.link("sim-pkce", Choice::ALLOW).await;

    // A rotation was killed after its first write, twenty minutes ago.
    let second = format!("{}-second", now() - 20 * 60);
    replace_ring(json!({ "current": second, "keys": { "first": key(1), &second: key(2) } }));
    let table = Table::of(&api.env);
    let said = rotate(&bundle, &["--reseal-only"]).await;
    assert!(said.contains("2 webhooks and 1 connections resealed"), "{said}");
    let texts = sealed_texts(&table, &ring(&bundle)).await;
    assert_eq!((sealed_by(&texts, "first"), sealed_by(&texts, &second)), (0, 5 + CANARY));

    let said = rotate(&bundle, &["--forget"]).await;
    assert!(said.contains("1 keys forgotten"), "{said}");
    let left = ring(&bundle);
    assert_eq!(left["keys"].as_object().expect("an object").keys().collect::<Vec<_>>(), [&second]);
    let delivery = entity.publish(json!({})).await;
    let delivery = entity.until_status(&delivery, &["delivered", "failed"]).await;
    assert_eq!(delivery["status"], "delivered", "{delivery:#}");
    let received = receiver.received("/?token=of-the-query").remove(0);
    assert_eq!(received.header("x-key"), "of-the-header");
    assert!(is_signed_by(&received, &hook.secret) && received.header("webhook-signature").contains(" v1a,"));
    assert_eq!(entity.disconnect("sim-pkce").expect(200).await.json()["providerAccess"], "revoked");
    assert!(bundle.stop().await.success());
}
