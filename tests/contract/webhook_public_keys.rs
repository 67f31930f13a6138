//! Webhooks whose deliveries are also signed with Ed25519: receivers verify with a public key, before and after every
//! change. The tests use a different library from the service's to verify the signatures.

use std::{collections::HashSet, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use contract_test::contract_test;
use serde_json::{Map, Value, json};

use crate::{
    harness::{
        Behaviour, Entity, Hook, Received, Receiver, Suite, invalid_values, is_signed_by, now, python, secret_of, time,
    },
    webhook_changes::violations,
};

/// A webhook with this signature, for all event types.
async fn hook_with(entity: &Entity, url: &str, signature: &str) -> Hook {
    entity.hook_with(json!({ "name": "n", "eventUrl": url, "eventList": [], "signature": signature })).await
}

/// Publishes an event, and returns its only delivery.
async fn delivered(entity: &Entity, receiver: &Receiver) -> Received {
    let before = receiver.received("/").len();
    let id = entity.publish(json!({ "guest": "Zoë" })).await;
    entity.until_status(&id, &["delivered"]).await;
    receiver.until("/", before + 1).await.remove(before)
}

/// The public keys that a webhook or the response to a rotation shows.
fn keys_of(shown: &Value) -> Vec<String> {
    let keys = shown["publicKeys"].as_array().map(Vec::as_slice).unwrap_or_default();
    keys.iter().map(|key| key["key"].as_str().expect("openapi.yaml says so").to_owned()).collect()
}

/// The number of Ed25519 signatures on a request, and the number that each key verifies.
async fn verified(received: &Received, keys: &[&str]) -> (u64, Vec<u64>) {
    let headers: Map<String, Value> =
        received.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let body = BASE64_STANDARD.encode(&received.body);
    let requests: Vec<Value> = keys.iter().map(|key| json!({ "key": key, "headers": headers, "body": body })).collect();
    let counts = python("verify_public_key.py", &json!(requests)).await;
    let counts: Vec<[u64; 2]> = serde_json::from_value(counts).expect("pairs of counts");
    (counts[0][0], counts.iter().map(|[_, verified]| *verified).collect())
}

/// The versions of the signatures on a request, in order.
fn versions(received: &Received) -> Vec<&str> {
    let signatures = received.header("webhook-signature").split(' ');
    signatures.map(|signature| signature.split_once(',').expect("a version").0).collect()
}

#[contract_test]
async fn a_delivery_verifies_with_the_public_key_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let other = hook_with(&suite.entity().await, "http://127.0.0.1:9/", "ed25519").await;
    let receiver = Receiver::start().await;
    let hook = hook_with(&entity, &receiver.on("/", [Behaviour::status(200)]), "ed25519").await;
    let keys = keys_of(&hook.json);
    assert_eq!((keys.len(), &hook.json["signature"]), (1, &json!("ed25519")), "{}", hook.json);
    assert!(hook.json["publicKeys"][0].get("expiresDate").is_none(), "{}", hook.json);
    let received = delivered(&entity, &receiver).await;
    assert_eq!(versions(&received), ["v1", "v1a"]);
    assert!(is_signed_by(&received, &hook.secret));
    let foreign = keys_of(&other.json);
    assert_eq!(verified(&received, &[&keys[0], &foreign[0]]).await, (1, vec![1, 0]));
    // Unlike the secret, the key remains visible.
    for shown in [entity.webhook(&hook.id).await, entity.listed(&hook).await] {
        assert_eq!(keys_of(&shown), keys, "{shown:#}");
    }
}

#[contract_test]
async fn a_webhook_has_no_key_pair_unless_it_asks_for_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let plain = entity.hook(&url).await;
    assert!(plain.json["signature"] == "hmac" && plain.json.get("publicKeys").is_none(), "{}", plain.json);
    assert_eq!(versions(&delivered(&entity, &receiver).await), ["v1"]);
    let answer = entity.rotate(&plain.id).expect(200).await.json();
    assert!(answer.get("publicKeys").is_none(), "{answer}");
    let item = suite.table().item(&format!("ENT#{}", entity.id), &format!("WHK#{}", plain.id)).await;
    assert!(!item.expect("the webhook is stored").to_string().contains("keyPair"));
    for bad in [json!("Ed25519"), json!("v1a"), json!(["hmac"]), Value::Null] {
        let new = json!({ "name": "n", "eventUrl": url, "eventList": [], "signature": bad });
        assert_eq!(
            invalid_values(&entity.post("/webhook").json(&new).refused(400, "invalid-request").await),
            ["body/signature"]
        );
        assert_eq!(violations(&entity, &plain, &json!({ "signature": bad })).await, ["body/signature"], "{bad}");
    }
}

#[contract_test]
async fn a_rotation_replaces_the_key_pair_and_the_old_one_signs_on(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = hook_with(&entity, &receiver.on("/", [Behaviour::status(200)]), "ed25519").await;
    let old = keys_of(&hook.json).remove(0);
    let before = now();
    let answer = entity.rotate(&hook.id).expect(200).await;
    let keys = keys_of(&answer.json());
    assert_eq!((keys.len(), &keys[1]), (2, &old));
    assert_ne!(keys[0], old);
    let shown = entity.webhook(&hook.id).await;
    assert_eq!(shown["publicKeys"], answer.json()["publicKeys"]);
    assert_eq!(shown["publicKeys"][1]["expiresDate"], shown["previousSecretExpiresDate"]);
    let replaced = time(&shown["publicKeys"][1]["expiresDate"]).as_second() - 24 * 60 * 60;
    assert!((before..=now()).contains(&replaced), "{shown:#}");

    let received = delivered(&entity, &receiver).await;
    assert_eq!(versions(&received), ["v1", "v1a", "v1", "v1a"]);
    assert!(is_signed_by(&received, &hook.secret) && is_signed_by(&received, &secret_of(&answer)));
    assert_eq!(verified(&received, &[&keys[0], &old]).await, (2, vec![1, 1]));

    entity.end_previous_secret(&hook.id).expect(200).await;
    assert_eq!(keys_of(&entity.webhook(&hook.id).await), keys[..1]);
    let received = delivered(&entity, &receiver).await;
    assert_eq!(verified(&received, &[&keys[0], &old]).await, (1, vec![1, 0]));

    let at_once = json!({ "overlapSeconds": 0 });
    let last = keys_of(&entity.rotate(&hook.id).json(&at_once).expect(200).await.json());
    assert_eq!(last.len(), 1, "without an overlap the old key ends: {last:?}");
    let received = delivered(&entity, &receiver).await;
    assert_eq!(verified(&received, &[&last[0], &keys[0]]).await, (1, vec![1, 0]));
}

#[contract_test]
async fn a_change_of_the_signature_refuses_no_delivery_by_hmac(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // The secret from before the change keeps signing until it ends, and gets no key.
    let second = entity.new_secret(&hook.id).await;
    let mut seen = HashSet::new();
    for _ in 0..2 {
        let with = entity.changed(&hook.id, json!({ "signature": "ed25519" })).await;
        let key = keys_of(&with).remove(0);
        assert_eq!((keys_of(&with).len(), &with["signature"]), (1, &json!("ed25519")), "{with:#}");
        let received = delivered(&entity, &receiver).await;
        assert!(is_signed_by(&received, &hook.secret) && is_signed_by(&received, &second));
        assert_eq!(versions(&received), ["v1", "v1a", "v1"]);
        assert_eq!(verified(&received, &[&key]).await, (1, vec![1]));
        let again = entity.changed(&hook.id, json!({ "signature": "ed25519", "name": "other" })).await;
        assert_eq!(again["publicKeys"], with["publicKeys"], "the same choice changes no key");
        assert!(seen.insert(key), "each change makes a new key pair");

        let without = entity.changed(&hook.id, json!({ "signature": "hmac" })).await;
        assert!(without["signature"] == "hmac" && without.get("publicKeys").is_none(), "{without:#}");
        let received = delivered(&entity, &receiver).await;
        assert!(is_signed_by(&received, &hook.secret) && is_signed_by(&received, &second));
        assert_eq!(versions(&received), ["v1", "v1"]);
    }
    let item = suite.table().item(&format!("ENT#{}", entity.id), &format!("WHK#{}", hook.id)).await;
    assert!(!item.expect("the webhook is stored").to_string().contains("keyPair"), "no removed key is kept");
}

#[contract_test]
async fn a_rotation_and_a_change_at_once_lose_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let change = json!({ "signature": "ed25519" });
    let (rotated, _) = tokio::join!(entity.rotate(&hook.id).expect(200), entity.changed(&hook.id, change));
    let shown = entity.webhook(&hook.id).await;
    assert_eq!(shown["signature"], "ed25519", "{shown:#}");
    let received = delivered(&entity, &receiver).await;
    assert!(is_signed_by(&received, &hook.secret) && is_signed_by(&received, &secret_of(&rotated)));
    assert_eq!(verified(&received, &[&keys_of(&shown)[0]]).await.1, [1]);
}

#[contract_test]
async fn a_private_key_is_never_shown_or_stored_in_the_clear(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = hook_with(&entity, "http://127.0.0.1:9/", "ed25519").await;
    let answer = entity.rotate(&hook.id).expect(200).await;
    let texts = [hook.json.to_string(), answer.text(), entity.webhook(&hook.id).await.to_string()];
    assert!(texts.iter().chain([&suite.bundle().whole_logs()]).all(|text| !text.contains("whsk_")));
    let item = suite.table().item(&format!("ENT#{}", entity.id), &format!("WHK#{}", hook.id)).await;
    let item = item.expect("the webhook is stored");
    let pairs: Vec<&Value> =
        (0..2).map(|position| &item["signingSecrets"]["L"][position]["M"]["keyPair"]["M"]).collect();
    for pair in pairs {
        let members: Vec<&String> = pair.as_object().expect("a map").keys().collect();
        assert_eq!(members, ["public", "sealed"], "{pair}");
        let sealed = pair["sealed"]["S"].as_str().expect("a text");
        assert!(sealed.split_once('.').is_some_and(|(_, bytes)| bytes.len() > 70), "{sealed}");
    }
}
