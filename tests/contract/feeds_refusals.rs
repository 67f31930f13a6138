//! Requests to a feed that are refused: wrong values, unknown receipts, and other webhooks' receipts.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{
    Suite,
    feed::{confirm, pulled, read_some, reading},
    invalid_values,
};

#[contract_test]
async fn a_feed_refuses_what_it_does_not_know(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let at = format!("/webhook/{}/feed", hook.id);
    for (name, bad) in
        [("limit", 0), ("limit", 101), ("wait", 11), ("visibility", 9), ("visibility", 3601), ("more", 1)]
    {
        let problem = reading(&entity, &hook, &json!({ name: bad })).refused(400, "invalid-request").await;
        assert_eq!(problem["properties"]["violations"].as_array().map(Vec::len), Some(1), "{problem:#}");
    }
    for body in [json!({}), json!({ "receipts": ["x"], "visibility": 60 }), json!({ "receipts": [], "visibility": 1 })]
    {
        entity.post(&format!("{at}/extend")).json(&body).refused(400, "invalid-request").await;
    }
    for body in [json!({}), json!({ "confirmed": ["x"] }), json!({ "failed": [{ "receipt": "x" }] })] {
        entity.post(&format!("{at}/ack")).json(&body).refused(400, "invalid-request").await;
    }
    for body in [
        json!({ "name": "n", "delivery": "pull", "eventUrl": "https://hooks.example.com/", "eventList": [] }),
        json!({ "name": "n", "delivery": "pull", "eventList": [], "headers": { "X-Key": "k" } }),
        json!({ "name": "n", "delivery": "mail", "eventList": [] }),
        json!({ "name": "n", "eventUrl": "https://hooks.example.com/", "eventList": [], "temporary": true }),
    ] {
        entity.post("/webhook").json(&body).refused(400, "invalid-request").await;
    }
    // A receipt from another webhook is invalid here, and reveals nothing about its delivery.
    let other = pulled(&entity).await;
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    assert_eq!(published["deliveries"].as_array().map(Vec::len), Some(2));
    let read = read_some(&entity, &other, json!({})).await;
    assert_eq!(confirm(&entity, &hook, &read).await, ["expired"]);
    let stranger = suite.entity().await;
    let receipt = json!({ "confirmed": [read[0]["receipt"]] });
    stranger.post(&format!("{at}/ack")).json(&receipt).refused(404, "webhook-not-found").await;
    assert_eq!(confirm(&entity, &other, &read).await, ["confirmed"]);
}

#[contract_test]
async fn a_failure_is_an_object(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    entity.publish(json!({})).await;
    let read = read_some(&entity, &hook, json!({})).await;
    let body = json!({ "failed": [[read[0]["receipt"], "a reason"]] });
    let call = entity.post(&format!("/webhook/{}/feed/ack", hook.id)).json(&body);
    let problem = call.refused(400, "invalid-request").await;
    let violation = &problem["properties"]["violations"][0];
    assert_eq!((&violation["pointer"], &violation["code"]), (&json!("/failed/0"), &json!("invalid-type")));
}

#[contract_test]
async fn a_reason_with_an_unpaired_surrogate_is_refused_with_its_path(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    entity.publish(json!({})).await;
    let found = read_some(&entity, &hook, json!({})).await;
    let body = format!(r#"{{"failed":[{{"receipt":{},"reason":"HTTP \ud800"}}]}}"#, found[0]["receipt"]);
    let call = entity.post(&format!("/webhook/{}/feed/ack", hook.id)).body("application/json", body);
    let problem = call.refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/failed/0/reason"]);
    assert!(problem["properties"]["violations"][0].to_string().contains("unpaired surrogate"), "{problem:#}");
    assert_eq!(confirm(&entity, &hook, &found).await, ["confirmed"]);
}
