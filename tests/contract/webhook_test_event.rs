//! Test events: ordinary deliveries to a single webhook.

use std::sync::Arc;

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Entity, Hook, LONG, Receiver, Suite, invalid_values, is_signed_by, time, until};

/// Sends a test event to a webhook, and returns the delivery.
async fn tested(entity: &Entity, hook: &Hook) -> String {
    let answer = entity.test(&hook.id).expect(202).await.json();
    answer["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned()
}

fn of_expired_bookings(url: &str) -> Value {
    json!({ "name": "x", "eventUrl": url, "eventList": ["booking.expired"], "headers": { "X-Tenant": "demo" } })
}

#[contract_test]
async fn a_test_event_goes_to_this_webhook_alone_regardless_of_its_list(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(of_expired_bookings(&receiver.on("/tested", [Behaviour::status(204)]))).await;
    // This webhook subscribes to every type, so it would receive a published event.
    entity.hook(&receiver.on("/other", [Behaviour::status(200)])).await;
    let id = tested(&entity, &hook).await;
    let delivery = entity.until_status(&id, &["delivered"]).await;
    let received = receiver.until("/tested", 1).await.remove(0);
    assert!(is_signed_by(&received, &hook.secret));
    assert_eq!((received.header("service-delivery-id"), received.header("x-tenant")), (id.as_str(), "demo"));
    let event = received.json();
    assert_eq!(event["type"], "webhook.test");
    assert_eq!(event["managingEntityIdentifier"], entity.id.as_str());
    assert_eq!(event["data"]["webhookIdentifier"], hook.id.as_str());
    assert!(event["data"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    assert_eq!(delivery["event"], event);
    assert_eq!((&delivery["type"], &delivery["webhookIdentifier"]), (&json!("webhook.test"), &json!(hook.id)));
    assert_eq!((&delivery["attemptCount"], &delivery["lastHttpStatus"]), (&json!(1), &json!(204)));
    assert_eq!(delivery["test"], true);
    assert_eq!(time(&event["timestamp"]), time(&delivery["createdDate"]));
    // If the other webhook had been sent a test event, it would have arrived before this event.
    let published = entity.publish(json!({})).await;
    let published = entity.until_status(&published, &["delivered"]).await;
    assert_eq!(published.get("test"), None);
    assert_eq!((receiver.received("/tested").len(), receiver.received("/other").len()), (1, 1));
}

#[contract_test]
async fn a_test_event_that_fails_is_tried_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500), Behaviour::status(200)])).await;
    let delivery = entity.until_status(&tested(&entity, &hook).await, &["delivered", "failed"]).await;
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("delivered"), &json!(2)), "{delivery:#}");
    let received = receiver.received("/");
    assert_eq!(received[0].body, received[1].body);
}

#[contract_test]
async fn each_test_is_a_separate_event(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let (first, second) = tokio::join!(tested(&entity, &hook), tested(&entity, &hook));
    assert_ne!(first, second);
    let received = receiver.until("/", 2).await;
    assert_ne!(received[0].header("webhook-id"), received[1].header("webhook-id"));
}

#[contract_test]
async fn a_disabled_webhook_is_not_tested(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    let problem = entity.test(&hook.id).refused(409, "webhook-disabled").await;
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("Enable it first")), "{problem:#}");
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    let id = tested(&entity, &hook).await;
    entity.until_status(&id, &["delivered"]).await;
    assert_eq!(receiver.everything().len(), 1);
}

#[contract_test]
async fn a_test_needs_no_body(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    entity.test(&hook.id).json(&json!({})).expect(202).await;
    entity.test(&hook.id).body("application/json", "").expect(202).await;
    for body in [r#"{"type":"booking.create"}"#, r#"{"type":null}"#, r#"{"data":{}}"#, "[]", "null", "{"] {
        entity.test(&hook.id).body("application/json", body).refused(400, "invalid-request").await;
    }
    entity.test(&hook.id).body("text/plain", "{}").refused(415, "unsupported-media-type").await;
}

#[contract_test]
async fn the_sample_of_a_named_type_is_sent_and_says_that_it_is_a_test(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(of_expired_bookings(&receiver.on("/", [Behaviour::status(204)]))).await;
    let sent = entity.test(&hook.id).json(&json!({ "type": "booking.created" })).expect(202).await.json();
    let id = sent["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    let delivery = entity.until_status(id, &["delivered"]).await;
    let received = receiver.until("/", 1).await.remove(0);
    assert!(is_signed_by(&received, &hook.secret));
    let event = received.json();
    assert_eq!((&sent["eventIdentifier"], &delivery["eventIdentifier"]), (&event["id"], &event["id"]));
    assert_eq!((&event["type"], &event["test"]), (&json!("booking.created"), &json!(true)));
    assert_eq!((&delivery["event"], delivery.get("subject")), (&event, None), "people find no test by a booking");
    let shown = entity.get("/webhook/event/type/booking.created").expect(200).await.json();
    assert_eq!(event["data"], shown["samples"][0]);
    assert_eq!(delivery["test"], true);
    let listed = entity.get("/webhook/delivery/list?type=booking.created").expect(200).await.json();
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["test"]), (&json!(id), &json!(true)));
    let event = event["id"].as_str().expect("openapi.yaml says so");
    assert_eq!(entity.get(&format!("/webhook/event/{event}")).expect(200).await.json()["test"], true);
}

#[contract_test]
async fn own_data_of_a_type_are_sent_unchanged_and_marked_as_a_test(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(of_expired_bookings(&receiver.on("/", [Behaviour::status(204)]))).await;
    let data = r#"{ "total": 1.10, "bookingNumber": "B-7" }"#;
    let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
    let sent = entity.test(&hook.id).body("application/json", body).expect(202).await.json();
    let id = sent["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    let delivery = entity.until_status(id, &["delivered"]).await;
    let received = receiver.until("/", 1).await.remove(0);
    assert!(is_signed_by(&received, &hook.secret));
    let text = String::from_utf8_lossy(&received.body).into_owned();
    assert!(text.ends_with(&format!(r#""data":{data}}}"#)) && text.contains(r#""test":true"#), "{text}");
    assert_eq!((&delivery["test"], delivery.get("subject")), (&json!(true), None), "{delivery:#}");
    // A body that cannot be compressed is stored in a separate item, as for a published event.
    let large: String = (0..4_000).map(|_| uuid(&SystemRandom)).collect();
    let body = json!({ "type": "booking.created", "data": { "notes": large } });
    let sent = entity.test(&hook.id).json(&body).expect(202).await.json();
    let id = sent["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    entity.until_status(id, &["delivered"]).await;
    assert_eq!(receiver.until("/", 2).await.remove(1).json()["data"], body["data"]);
}

#[contract_test]
async fn own_data_are_checked_as_published_data_are(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let of_type = |kind: &str, data: &str| {
        let body = format!(r#"{{"type":"{kind}","data":{data}}}"#);
        let published = entity.post("/webhook/event").body("application/json", body.clone());
        (entity.test(&hook.id).body("application/json", body), published)
    };
    let (tested, published) = of_type("managing_entity.brand.removed", r#"{"brandIdentifier":4711}"#);
    let warnings = tested.header("idempotency-key", "odd").expect(202).await.json()["warnings"].clone();
    assert_eq!(warnings.as_array().map(Vec::len), Some(2), "{warnings:#}");
    assert_eq!(published.expect(202).await.json()["warnings"], warnings);
    let (again, _) = of_type("managing_entity.brand.removed", r#"{"brandIdentifier":4711}"#);
    assert_eq!(again.header("idempotency-key", "odd").expect(202).await.json()["warnings"], warnings);
    for data in ["[]", "null", "1", r#"{"a":"\ud800"}"#] {
        let (tested, published) = of_type("booking.created", data);
        let tested = invalid_values(&tested.refused(400, "invalid-request").await);
        assert_eq!(tested, invalid_values(&published.refused(400, "invalid-request").await), "{data}");
    }
    let (tested, _) = of_type("booking.created", &json!({ "x": "y".repeat(256 * 1_024) }).to_string());
    assert_eq!(tested.refused(413, "payload-too-large").await["properties"]["limitBytes"], 256 * 1_024);
    let (tested, _) = of_type("webhook.test", "{}");
    assert_eq!(invalid_values(&tested.refused(400, "invalid-request").await), ["body/data"]);
    let (operational, _) = of_type("webhook.failing", "{}");
    operational.expect(202).await;
}

/// An operational event does not affect the webhook's health and does not become a breaker's probe. A test event with
/// an operational event's sample does both.
#[contract_test]
async fn a_test_with_an_operational_sample_counts_like_any_test(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    for _ in 0..2 {
        let sent = entity.test(&hook.id).json(&json!({ "type": "webhook.failing" })).expect(202).await.json();
        let id = sent["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
        entity.until_status(id, &["failed"]).await;
    }
    until("the failures of the tests are counted", LONG, async || {
        (entity.listed(&hook).await["health"] == "failing").then_some(())
    })
    .await;
}
