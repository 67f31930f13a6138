//! Changes of a pull webhook, between push and pull or to disabled, and its removal by its owner or because its feed is
//! not read. No delivery is lost or doubled.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::{
    harness::{
        Behaviour, Entity, LONG, LONG_AGO, Receiver, Settings, Suite, Table,
        feed::{SPARED, abandoned, confirm, id, pulled, read, read_some},
        invalid_values, until,
    },
    sweep::overdue,
    webhook_changes::violations,
};

#[contract_test]
async fn changing_between_push_and_pull_loses_and_doubles_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let hook = pulled(&entity).await;
    let at = format!("/webhook/{}", hook.id);
    let unread = entity.publish(json!({ "number": 1 })).await;
    entity.until_delivery(&unread, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    let answer = entity.call("PATCH", &at).json(&json!({ "delivery": "push" })).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&answer), ["body/eventUrl"]);
    entity.changed(&hook.id, json!({ "delivery": "push", "eventUrl": url })).await;
    let sent = entity.until_status(&unread, &["delivered"]).await;
    assert_eq!(sent["attempts"][0]["httpStatus"], 204);
    entity.post(&format!("{at}/feed/read")).refused(409, "webhook-not-pulled").await;

    // The webhook becomes a pull webhook again while a delivery is waiting for its retry.
    receiver.on("/", [Behaviour::answer(503, &[("Retry-After", "600")], "")]);
    let retrying = entity.publish(json!({ "number": 2 })).await;
    entity.until_status(&retrying, &["retrying"]).await;
    let changed = entity.changed(&hook.id, json!({ "delivery": "pull" })).await;
    assert!(changed.get("eventUrl").is_none() && changed["delivery"] == "pull", "{changed:#}");
    overdue(&suite.table(), &retrying, LONG_AGO).await;
    let found = read_some(&entity, &hook, json!({})).await;
    assert_eq!(id(&found[0]), retrying);
    confirm(&entity, &hook, &found).await;
    let delivered = entity.until_status(&retrying, &["delivered"]).await;
    assert_eq!(
        delivered["attemptCount"].as_u64(),
        Some(receiver.received("/").len() as u64),
        "1 by push before, 1 by pull"
    );
}

#[contract_test]
async fn a_reader_that_holds_a_delivery_may_answer_after_the_change(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let hook = pulled(&entity).await;
    for _ in 0..2 {
        entity.publish(json!({})).await;
    }
    let held = read_some(&entity, &hook, json!({ "limit": 1, "visibility": 3600 })).await;
    let abandoned = read_some(&entity, &hook, json!({ "limit": 1, "visibility": 10 })).await;
    entity.changed(&hook.id, json!({ "delivery": "push", "eventUrl": url })).await;
    assert_eq!(confirm(&entity, &hook, &held).await, ["confirmed"]);
    let sent = entity.until_status(id(&abandoned[0]), &["delivered"]).await;
    assert_eq!(sent["attemptCount"], 2, "{sent:#}");
    assert_eq!(sent["attempts"][1]["httpStatus"], 204);
    assert_eq!(receiver.received("/").len(), 1, "the confirmed one is not sent");
}

#[contract_test]
async fn unread_deliveries_of_a_removed_or_disabled_webhook_are_cancelled(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for change in ["remove", "disable"] {
        let hook = pulled(&entity).await;
        let at = format!("/webhook/{}", hook.id);
        let unread = entity.publish(json!({})).await;
        entity.until_delivery(&unread, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
        if change == "remove" {
            entity.call("DELETE", &at).expect(200).await;
            entity.post(&format!("{at}/feed/read")).refused(404, "webhook-not-found").await;
        } else {
            entity.changed(&hook.id, json!({ "enabled": false })).await;
            entity.post(&format!("{at}/feed/read")).refused(409, "webhook-disabled").await;
        }
        entity.until_status(&unread, &["cancelled"]).await;
        if change == "disable" {
            entity.call("DELETE", &at).expect(200).await;
        }
    }
}

/// The last attempt counts towards the schedule, but the cancellation does not wait for the next one.
#[contract_test]
async fn a_delivery_that_a_reader_holds_is_cancelled_soon_after_its_webhook_is_removed(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,1h");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "removed".to_owned()).await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    for _ in 0..SPARED {
        abandoned(&Table::of(&api.env), &entity, &hook).await;
    }
    read_some(&entity, &hook, json!({ "visibility": 10 })).await;
    entity.remove(&hook.id).expect(200).await;
    let cancelled = entity.until_status(&published, &["cancelled", "failed"]).await;
    assert_eq!((&cancelled["status"], &cancelled["attemptCount"]), (&json!("cancelled"), &json!(SPARED + 1)));
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_temporary_webhook_is_removed_when_its_feed_is_not_read(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({ "name": "laptop", "delivery": "pull", "temporary": true, "eventList": [] });
    let hook = entity.hook_with(body).await;
    assert_eq!(hook.json["temporary"], true);
    let to_push = json!({ "delivery": "push", "eventUrl": "https://hooks.example.com/" });
    assert_eq!(violations(&entity, &hook, &to_push).await, ["body/delivery"]);
    read(&entity, &hook, json!({})).await;
    // Simulate that an hour has passed.
    let table = suite.table();
    assert!(table.set(&format!("ENT#{}", entity.id), &format!("WHK#{}", hook.id), "readAt", LONG_AGO).await);
    for (pk, sk) in [(format!("JOB#{}", hook.id), "EXPIRE"), (format!("TURN#{}", entity.id), "JOBS")] {
        assert!(table.set(&pk, sk, "dueAt", LONG_AGO).await);
    }
    until("it is removed", LONG, async || {
        let list = entity.get("/webhook/list").expect(200).await.json();
        (list == json!([])).then_some(())
    })
    .await;
}
