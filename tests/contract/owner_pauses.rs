//! Owners' pauses: a webhook's deliveries are put on hold until its owner resumes it, or until a given time. No
//! delivery is lost, and only those that a person requests are sent in the meantime.

use std::sync::Arc;

use base::Time;
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::publish,
    harness::{
        Behaviour, Entity, Gate, Hook, Receiver, Suite, now,
        order::{about, ordered},
        outcomes, time,
    },
};

async fn pause(entity: &Entity, hook: &Hook, request: Value) -> Value {
    entity.post(&format!("/webhook/{}/pause", hook.id)).json(&request).expect(200).await.json()
}

async fn resume(entity: &Entity, hook: &Hook) -> Value {
    entity.post(&format!("/webhook/{}/resume", hook.id)).expect(200).await.json()
}

fn waits(delivery: &Value) -> bool {
    delivery["waitingFor"] == "pause"
}

/// A webhook's status: its state, who paused it, and whether the response includes the pause's start and end.
fn status(webhook: &Value) -> (&str, Option<&str>, bool, bool) {
    let has = |name: &str| webhook.get(name).is_some();
    let state = webhook["deliveryState"].as_str().expect("openapi.yaml says so");
    (state, webhook["pausedBy"].as_str(), has("pausedSince"), has("pausedUntil"))
}

const PAUSED: (&str, Option<&str>, bool, bool) = ("paused", Some("owner"), true, false);
const ACTIVE: (&str, Option<&str>, bool, bool) = ("active", None, false, false);

#[contract_test]
async fn deliveries_of_a_paused_webhook_wait_and_are_sent_once_when_it_is_resumed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let other = entity.hook(&receiver.on("/other", [Behaviour::status(200)])).await;
    let paused = pause(&entity, &hook, json!({})).await;
    assert_eq!(status(&paused), PAUSED, "{paused:#}");
    for shown in [entity.listed(&hook).await, entity.webhook(&hook.id).await] {
        assert_eq!(shown["pausedSince"], paused["pausedSince"], "{shown:#}");
    }
    assert_eq!(status(&entity.webhook(&other.id).await), ACTIVE, "another webhook is not paused");

    let mut waiting = Vec::new();
    for number in 0..3 {
        let event = json!({ "type": "booking.created", "data": { "number": number } });
        let published = entity.publish_event(&event).await.json();
        let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
        let of_hook = deliveries.iter().find(|one| one["webhookIdentifier"] == *hook.id).expect("a delivery");
        waiting.push(of_hook["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned());
    }
    for id in &waiting {
        let delivery = entity.until_delivery(id, "waits for the end of the pause", waits).await;
        assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("pending"), &json!(0)), "{delivery:#}");
        assert!(delivery.get("nextAttemptDate").is_none(), "{delivery:#}");
    }
    receiver.until("/other", 3).await;
    assert!(receiver.received("/").is_empty());

    let resumed = resume(&entity, &hook).await;
    assert_eq!(status(&resumed), ACTIVE, "{resumed:#}");
    for id in &waiting {
        let delivery = entity.until_status(id, &["delivered", "failed", "cancelled"]).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1), "{delivery:#}");
    }
    assert_eq!(receiver.received("/").len(), 3);
}

#[contract_test]
async fn a_pause_with_an_end_ends_by_itself(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let until = Time::from_millis((now() + 8) * 1_000);
    let paused = pause(&entity, &hook, json!({ "until": until })).await;
    assert_eq!(status(&paused), ("paused", Some("owner"), true, true), "{paused:#}");
    assert_eq!(paused["pausedUntil"], json!(until));
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!(delivery["attemptCount"], 1, "{delivery:#}");
    assert!(time(&delivery["attempts"][0]["attemptDate"]) >= time(&json!(until)), "{delivery:#}");
    assert_eq!(status(&entity.webhook(&hook.id).await), ACTIVE);
}

#[contract_test]
async fn a_second_pause_changes_the_end_and_not_the_beginning(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("https://hooks.example.com/").await;
    let first = pause(&entity, &hook, json!({ "until": "2100-01-01T00:00:00Z" })).await;
    let second = pause(&entity, &hook, json!({})).await;
    assert_eq!(status(&second), PAUSED, "{second:#}");
    assert_eq!(second["pausedSince"], first["pausedSince"]);
    assert_eq!(second["version"], first["version"], "a pause makes no change obsolete");
    assert_eq!(status(&resume(&entity, &hook).await), ACTIVE);
    assert_eq!(status(&resume(&entity, &hook).await), ACTIVE, "a webhook that is not paused stays unchanged");
}

#[contract_test]
async fn test_events_and_resends_are_sent_during_a_pause_and_do_not_end_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let delivered = entity.publish(json!({})).await;
    entity.until_status(&delivered, &["delivered"]).await;
    pause(&entity, &hook, json!({})).await;
    let waiting = entity.publish(json!({})).await;
    entity.until_delivery(&waiting, "waits for the end of the pause", waits).await;
    let asked = entity.test(&hook.id).expect(202).await.json();
    entity.until_status(asked["deliveryIdentifier"].as_str().expect("openapi.yaml says so"), &["delivered"]).await;
    entity.post(&format!("/webhook/delivery/{delivered}/resend")).expect(202).await;
    entity.until_delivery(&delivered, "is sent again", |shown| shown["attemptCount"] == 2).await;
    assert_eq!(status(&entity.webhook(&hook.id).await), PAUSED);
    entity.until_delivery(&waiting, "still waits", waits).await;
    // The waiting delivery is sent only if a person resends it.
    entity.post(&format!("/webhook/delivery/{waiting}/resend")).expect(202).await;
    entity.until_status(&waiting, &["delivered"]).await;
    assert_eq!(receiver.received("/").len(), 4);
}

#[contract_test]
async fn a_retry_that_becomes_due_during_a_pause_waits_for_its_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    let behaviours = [Behaviour::status(500).behind(&answers), Behaviour::status(200)];
    let hook = entity.hook(&receiver.on("/", behaviours)).await;
    let id = entity.publish(json!({})).await;
    receiver.until("/", 1).await;
    pause(&entity, &hook, json!({})).await;
    answers.open();
    let waiting = entity.until_delivery(&id, "waits for the end of the pause", waits).await;
    assert_eq!((&waiting["status"], outcomes(&waiting)), (&json!("retrying"), 1), "{waiting:#}");
    resume(&entity, &hook).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("delivered"), &json!(2)), "{delivery:#}");
}

#[contract_test]
async fn a_recovery_during_a_pause_sends_nothing_until_its_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    receiver.on("/", [Behaviour::status(200)]);
    pause(&entity, &hook, json!({})).await;
    let attempts = receiver.received("/").len();
    let range = json!({ "createdFrom": "2026-01-01T00:00:00.000Z" });
    entity.post(&format!("/webhook/{}/recover", hook.id)).json(&range).expect(202).await;
    entity.until_delivery(&id, "waits for the end of the pause", waits).await;
    assert_eq!(receiver.received("/").len(), attempts);
    resume(&entity, &hook).await;
    entity.until_status(&id, &["delivered"]).await;
}

#[contract_test]
async fn an_ordered_webhook_gets_its_events_in_order_after_a_pause(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = ordered(&entity, &receiver.on("/", [Behaviour::status(200)]), &[]).await;
    pause(&entity, &hook, json!({})).await;
    let mut published = Vec::new();
    for _ in 0..5 {
        published.push(about(&entity, "A").await);
    }
    for id in &published {
        entity.until_delivery(id, "waits for the end of the pause", waits).await;
    }
    resume(&entity, &hook).await;
    for id in &published {
        entity.until_status(id, &["delivered"]).await;
    }
    let received = receiver.received("/");
    let sent: Vec<_> = received.iter().map(|request| request.header("service-delivery-id")).collect();
    assert_eq!(sent, published);
}

#[contract_test]
async fn disabling_a_webhook_or_giving_it_a_feed_ends_its_pause(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("https://hooks.example.com/").await;
    pause(&entity, &hook, json!({})).await;
    let disabled = entity.changed(&hook.id, json!({ "enabled": false })).await;
    assert_eq!(status(&disabled), ("disabled", None, false, false), "{disabled:#}");
    assert_eq!(status(&entity.changed(&hook.id, json!({ "enabled": true })).await), ACTIVE);
    pause(&entity, &hook, json!({})).await;
    let waiting = entity.publish(json!({})).await;
    entity.until_delivery(&waiting, "waits for the end of the pause", waits).await;
    assert_eq!(status(&entity.changed(&hook.id, json!({ "name": "still paused" })).await), PAUSED);
    assert_eq!(status(&entity.changed(&hook.id, json!({ "delivery": "pull" })).await), ACTIVE);
    entity.until_delivery(&waiting, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
}

#[contract_test]
async fn only_an_enabled_push_webhook_is_paused_and_only_until_a_future_time(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("https://hooks.example.com/").await;
    let path = format!("/webhook/{}/pause", hook.id);
    for (body, member) in [
        (json!({ "until": "2026-01-01T00:00:00Z" }), "until"),
        (json!({ "until": "tomorrow" }), "until"),
        (json!({ "until": null }), "until"),
        (json!({ "for": 60 }), "for"),
    ] {
        let problem = entity.post(&path).json(&body).refused(400, "invalid-request").await;
        assert_eq!(problem["properties"]["violations"][0]["pointer"], format!("/{member}"), "{problem:#}");
    }
    assert_eq!(status(&entity.webhook(&hook.id).await), ACTIVE);
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    entity.post(&path).refused(409, "webhook-disabled").await;
    let pulled = entity.hook_with(json!({ "name": "feed", "delivery": "pull", "eventList": [] })).await;
    entity.post(&format!("/webhook/{}/pause", pulled.id)).refused(409, "webhook-pulled").await;
    let (stranger, missing) = (suite.entity().await, "whk_01m74zy5eva3kj3s4w04zg1hhc");
    for (entity, id) in [(&entity, missing), (&stranger, hook.id.as_str())] {
        entity.post(&format!("/webhook/{id}/pause")).refused(404, "webhook-not-found").await;
    }
}

/// The helper for lists publishes several events at a time; the entity has no other webhook.
#[contract_test]
async fn a_hundred_waiting_deliveries_are_sent_after_a_pause(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    pause(&entity, &hook, json!({})).await;
    let waiting = publish(&entity, "booking.created", 100).await;
    for id in &waiting {
        entity.until_delivery(id, "waits for the end of the pause", waits).await;
    }
    resume(&entity, &hook).await;
    for id in &waiting {
        entity.until_status(id, &["delivered"]).await;
    }
    assert_eq!(receiver.received("/").len(), 100);
}
