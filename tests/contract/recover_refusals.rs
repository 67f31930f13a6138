//! Recoveries that are refused: invalid ranges, webhooks that are missing or disabled, and more requests for attempts
//! than an entity may send in a minute.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::{
    delivery_list::hook_for,
    harness::{Behaviour, Receiver, Suite, invalid_values, is_limited, recovery::recovery},
};

#[contract_test]
async fn every_bad_range_is_refused_with_its_field(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = hook_for(&entity, "booking.created", "http://127.0.0.1:9/").await;
    for (range, member) in [
        (json!({}), "createdFrom"),
        (json!({ "createdUntil": "2026-01-01T00:00:00Z" }), "createdFrom"),
        (json!({ "createdFrom": null }), "createdFrom"),
        (json!({ "createdFrom": 1_795_167_900 }), "createdFrom"),
        (json!({ "createdFrom": "yesterday" }), "createdFrom"),
        (json!({ "createdFrom": "2026-01-01" }), "createdFrom"),
        (json!({ "createdFrom": "2098-01-01T00:00:00Z" }), "createdFrom"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "createdUntil": "2026-01-01T00:00:00Z" }), "createdUntil"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "createdUntil": "2025-12-31T23:59:59.999Z" }), "createdUntil"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "createdUntil": "" }), "createdUntil"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "status": "failed" }), "status"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "include": "delivered" }), "include"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "include": null }), "include"),
    ] {
        let problem = recovery(&entity, &hook, &range).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), [format!("body/{member}")], "{range}");
    }
}

/// Without a limit, 71 recovery requests within 20 seconds caused 7 203 attempts.
#[contract_test]
async fn requests_for_attempts_are_limited_for_each_entity_and_minute(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let neighbour = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let hook = entity.hook(&url).await;
    let other = neighbour.hook(&url).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let first = recovery(&entity, &hook, &range).header("idempotency-key", "first").expect(202).await.json();
    for (what, limit) in [("recoveries", 20), ("tests", 60), ("resends", 300)] {
        suite.table().count_as_used(&format!("{what}#{}", entity.id), 60, limit).await;
    }
    let empty = |path: String| entity.post(&path).json(&json!({}));
    for (call, name, limit) in [
        (recovery(&entity, &hook, &range), "recoveries", 20),
        (empty(format!("/webhook/{}/resume", hook.id)), "recoveries", 20),
        (empty(format!("/webhook/{}/test", hook.id)), "tests", 60),
        (empty(format!("/webhook/delivery/{delivery}/resend")), "resends", 300),
    ] {
        let answer = call.expect(429).await;
        assert_eq!(answer.json()["kind"], "too-many-requests");
        assert!((1..=61).contains(&is_limited(&answer, name, limit, 60)), "{}", answer.exchange);
    }
    recovery(&entity, &hook, &json!({})).refused(400, "invalid-request").await;
    let again = recovery(&entity, &hook, &range).header("idempotency-key", "first").expect(202).await.json();
    assert_eq!(again, first, "a repetition causes no further attempts");
    recovery(&neighbour, &other, &range).expect(202).await;
    assert_eq!(receiver.received("/").len(), 1, "a refused request caused an attempt");
}

#[contract_test]
async fn missing_and_disabled_webhooks_are_not_recovered(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let stranger = suite.entity().await;
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let hook = hook_for(&entity, "booking.created", "http://127.0.0.1:9/").await;
    recovery(&stranger, &hook, &range).refused(404, "webhook-not-found").await;
    for id in ["whk_00000000000000000000000000", "x", "list"] {
        let call = entity.post(&format!("/webhook/{id}/recover")).json(&range);
        call.refused(404, "webhook-not-found").await;
    }
    // This is the path of a delivery, which does not support POST.
    entity.post("/webhook/delivery/recover").json(&range).refused(405, "method-not-allowed").await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    recovery(&entity, &hook, &range).refused(409, "webhook-disabled").await;
    entity.remove(&hook.id).expect(200).await;
    recovery(&entity, &hook, &range).refused(404, "webhook-not-found").await;
}
