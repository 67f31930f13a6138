//! Publishing: the webhooks that get an event, and the response.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{ApiResponse, Behaviour, Entity, Receiver, Suite};

pub fn deliveries(answer: &ApiResponse) -> Vec<Value> {
    answer.json()["deliveries"].as_array().expect("openapi.yaml says so").clone()
}

fn webhooks(answer: &ApiResponse) -> BTreeSet<String> {
    let webhook = |delivery: &Value| delivery["webhookIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    deliveries(answer).iter().map(webhook).collect()
}

/// Publishes with an idempotency key.
pub async fn publish_with_key(entity: &Entity, key: &str, data: Value) -> ApiResponse {
    let body = json!({ "type": "booking.created", "data": data });
    entity.post("/webhook/event").header("idempotency-key", key).json(&body).answered().await
}

#[contract_test]
async fn an_event_goes_to_exactly_the_webhooks_that_ask_for_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let other = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = async |entity: &Entity, path: &str, enabled: bool, events: Value| {
        let url = receiver.on(path, [Behaviour::status(200)]);
        entity.hook_with(json!({ "name": path, "eventUrl": url, "eventList": events, "enabled": enabled })).await.id
    };
    let every = hook(&entity, "/every", true, json!([])).await;
    let exact = hook(&entity, "/exact", true, json!(["booking.created"])).await;
    let among = hook(&entity, "/among", true, json!(["booking.cancelled", "booking.created"])).await;
    hook(&entity, "/not-asked", true, json!(["booking.cancelled"])).await;
    hook(&entity, "/disabled", false, json!([])).await;
    hook(&entity, "/disabled-exact", false, json!(["booking.created"])).await;
    hook(&other, "/other-entity", true, json!([])).await;

    let answer = entity.publish_of_type("booking.created", json!({})).await;
    assert_eq!(webhooks(&answer), BTreeSet::from([every.clone(), exact, among]));
    for path in ["/every", "/exact", "/among"] {
        receiver.until(path, 1).await;
    }
    // Only the later event may arrive: a misrouted delivery would have arrived by now.
    let answer = entity.publish_of_type("payment.received", json!({})).await;
    assert_eq!(webhooks(&answer), BTreeSet::from([every]));
    receiver.until("/every", 2).await;
    for path in ["/not-asked", "/disabled", "/disabled-exact", "/other-entity"] {
        assert!(receiver.received(path).is_empty(), "{path} got an event that it did not subscribe to");
    }
    assert_eq!(receiver.everything().len(), 4);
}

#[contract_test]
async fn an_event_without_subscribers_is_accepted(suite: Arc<Suite>) {
    let answer = suite.entity().await.publish_of_type("booking.created", json!({})).await;
    assert_eq!(deliveries(&answer), Vec::<Value>::new());
    assert_eq!(answer.json()["kept"], false, "the entity has no webhook");
}

#[contract_test]
async fn the_answer_names_the_event_and_each_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let answer = entity.publish_of_type("booking.created", json!({ "a": 1 })).await;
    let event = answer.json()["eventIdentifier"].clone();
    assert_eq!(answer.json()["kept"], true);
    let delivery = deliveries(&answer)[0].clone();
    assert_eq!(delivery["webhookIdentifier"], hook.id.as_str());
    let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    // The delivery can be read immediately.
    let shown = entity.delivery(id).await;
    assert_eq!(shown["event"]["id"], event);
    assert_eq!(shown["webhookIdentifier"], hook.id.as_str());
    let received = receiver.until("/", 1).await.remove(0);
    assert_eq!(received.header("service-delivery-id"), id);
    assert_eq!(received.header("webhook-id"), event);
}

#[contract_test]
async fn a_new_webhook_gets_no_earlier_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let again = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    assert_eq!(again.json(), first.json());
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(receiver.received("/").len(), 1);
}

#[contract_test]
async fn two_events_without_a_key_are_two_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = entity.publish_of_type("booking.created", json!({})).await.json();
    let second = entity.publish_of_type("booking.created", json!({})).await.json();
    let first = first["eventIdentifier"].as_str();
    let second = second["eventIdentifier"].as_str();
    assert!(first < second, "later identifiers sort later: {first:?}, {second:?}");
}
