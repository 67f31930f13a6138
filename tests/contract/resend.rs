//! Sending a delivery again: a final delivery gets a fresh schedule, and a waiting one gets an extra attempt that
//! leaves its schedule unchanged.

use std::sync::Arc;

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    harness::{ApiResponse, Behaviour, Entity, Gate, LONG_AGO, Receiver, Settings, Suite, Table, now, stored, time},
    sweep::overdue,
};

async fn resend(entity: &Entity, id: &str) -> ApiResponse {
    entity.post(&format!("/webhook/delivery/{id}/resend")).answered().await
}

async fn resent(entity: &Entity, id: &str) -> Value {
    let answer = resend(entity, id).await;
    assert_eq!(answer.status, 202, "{}", answer.exchange);
    answer.json()
}

/// A response that asks for a retry after ten minutes, which no test waits for.
fn later() -> Behaviour {
    Behaviour::answer(429, &[("Retry-After", "600")], "")
}

#[contract_test]
async fn a_failed_delivery_gets_a_fresh_schedule_and_is_delivered(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    let failed = entity.until_status(&id, &["failed"]).await;
    assert_eq!(failed["attemptCount"], 3);

    let again = resent(&entity, &id).await;
    assert_eq!(again["status"], "pending");
    assert_eq!(again["attemptCount"], 3);
    assert_eq!(again["attempts"], failed["attempts"]);
    assert_eq!(again["event"], failed["event"]);
    assert_eq!(again["lastHttpStatus"], 500);
    assert_eq!(again["nextAttemptDate"], again["lastUpdate"]);
    assert!(time(&again["lastUpdate"]) >= time(&failed["lastUpdate"]));
    let failed = entity.until_delivery(&id, "has failed again", |delivery| delivery["attemptCount"] == 6).await;
    assert_eq!(failed["status"], "failed", "a fresh schedule has three attempts again");
    let numbers: Vec<&Value> =
        failed["attempts"].as_array().into_iter().flatten().map(|attempt| &attempt["attemptNumber"]).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);

    receiver.on("/", [Behaviour::status(200)]);
    resent(&entity, &id).await;
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivered["attemptCount"], 7);
    assert_eq!(receiver.received("/").len(), 7);
}

#[contract_test]
async fn a_delivered_delivery_is_sent_once_more_the_same(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({ "big": 1e300 })).await;
    entity.until_status(&id, &["delivered"]).await;
    assert_eq!(resent(&entity, &id).await["status"], "pending");
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivered["attemptCount"], 2);
    let received = receiver.received("/");
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, received[1].body);
    for header in ["webhook-id", "service-delivery-id"] {
        assert_eq!(received[0].header(header), received[1].header(header));
    }
}

#[contract_test]
async fn a_cancelled_delivery_is_sent_when_its_webhook_is_enabled_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [later()])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    // The retry finds that the webhook is disabled.
    overdue(&suite.table(), &id, LONG_AGO).await;
    let cancelled = entity.until_status(&id, &["cancelled", "failed", "delivered"]).await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    entity.post(&format!("/webhook/delivery/{id}/resend")).refused(409, "webhook-disabled").await;
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    receiver.on("/", [Behaviour::status(200)]);
    assert_eq!(resent(&entity, &id).await["status"], "pending");
    entity.until_status(&id, &["delivered"]).await;
}

#[contract_test]
async fn an_attempt_in_between_leaves_the_schedule_as_it_was(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [later(), Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    let first = entity.until_status(&id, &["retrying"]).await;
    let scheduled = time(&first["nextAttemptDate"]);

    let asked = resent(&entity, &id).await;
    assert_eq!(asked["status"], "retrying");
    assert!(time(&asked["nextAttemptDate"]) < scheduled);
    let second = entity.until_delivery(&id, "is attempted in between", |delivery| delivery["attemptCount"] == 2).await;
    assert!(time(&second["attempts"][1]["attemptDate"]) < scheduled, "the attempt came at once: {second:#}");
    assert_eq!(time(&second["nextAttemptDate"]), scheduled, "the schedule stays as it was");
    assert_eq!(second["status"], "retrying");

    // Resend once more: every request causes its own attempt.
    resent(&entity, &id).await;
    let third = entity.until_delivery(&id, "is attempted in between", |delivery| delivery["attemptCount"] == 3).await;
    assert_eq!(time(&third["nextAttemptDate"]), scheduled);

    // The rest of the schedule follows when the next attempt is due.
    overdue(&suite.table(), &id, LONG_AGO).await;
    let failed = entity.until_status(&id, &["failed", "delivered"]).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["attemptCount"], 5, "three of the schedule and two extra ones: {failed:#}");
    let dates: Vec<_> =
        failed["attempts"].as_array().into_iter().flatten().map(|attempt| time(&attempt["attemptDate"])).collect();
    assert!(dates[4].duration_since(dates[3]).as_millis() >= 1_000, "{dates:?}");
    assert_eq!(receiver.received("/").len(), 5);
}

#[contract_test]
async fn an_attempt_in_between_may_succeed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [later(), Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    resent(&entity, &id).await;
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivered["attemptCount"], 2);
    assert!(delivered.get("nextAttemptDate").is_none(), "{delivered:#}");
}

#[contract_test]
async fn of_twenty_requests_at_once_one_has_an_effect(suite: Arc<Suite>) {
    const ROUNDS: usize = 3;
    let failing = vec![Behaviour::status(500); 3];
    for (path, status, script) in [
        ("/waits", "retrying", vec![later()]),
        ("/failed", "failed", failing),
        ("/delivered", "delivered", vec![Behaviour::status(200)]),
    ] {
        let mut rounds = 1;
        while !has_one_effect(&suite, path, status, &script).await {
            assert!(rounds < ROUNDS, "{path}: in {ROUNDS} rounds, the attempt timed out before the last request");
            rounds += 1;
        }
    }
}

/// Resends a delivery with this status twenty times while the attempt is running; returns whether the attempt lasted
/// long enough, which it does not on a slow machine.
async fn has_one_effect(suite: &Suite, path: &str, status: &str, script: &[Behaviour]) -> bool {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    // The attempt is still under way when the last request comes.
    let answers = Gate::closed();
    let before = script.len();
    let script = [script, &[Behaviour::status(200).behind(&answers)]].concat();
    entity.hook(&receiver.on(path, script)).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &[status]).await;
    assert_eq!(receiver.received(path).len(), before);
    for answer in join_all((0..20).map(|_| resend(&entity, &id))).await {
        assert_eq!(answer.status, 202, "{}", answer.exchange);
        assert!(["pending", "retrying"].iter().any(|status| answer.json()["status"] == *status));
    }
    answers.open();
    let is_over = |delivery: &Value| delivery["attempts"][before].is_object();
    let again = entity.until_delivery(&id, "is attempted again", is_over).await;
    if again["attempts"][before]["errorCode"] == "timeout" {
        return false;
    }
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivered["attemptCount"], before + 1, "{delivered:#}");
    assert_eq!(receiver.received(path).len(), before + 1);
    true
}

#[contract_test]
async fn a_delivery_whose_attempt_is_under_way_is_left_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    entity.hook(&receiver.on("/", [Behaviour::status(200).behind(&answers)])).await;
    let id = entity.publish(json!({})).await;
    receiver.until("/", 1).await;
    let before = entity.delivery(&id).await;
    assert_eq!(resent(&entity, &id).await, before);
    answers.open();
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivered["attemptCount"], 1);
    assert_eq!(receiver.received("/").len(), 1);
}

#[contract_test]
async fn a_delivery_whose_webhook_was_removed_is_not_sent_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200), later()])).await;
    let delivered = entity.publish(json!({})).await;
    entity.until_status(&delivered, &["delivered"]).await;
    let open = entity.publish(json!({})).await;
    entity.until_status(&open, &["retrying"]).await;
    entity.remove(&hook.id).expect(200).await;
    for id in [&delivered, &open] {
        entity.post(&format!("/webhook/delivery/{id}/resend")).refused(409, "webhook-removed").await;
    }
    let cancelled = entity.until_status(&open, &["cancelled"]).await;
    assert_eq!(cancelled["attemptCount"], 1);
    assert!(cancelled.get("nextAttemptDate").is_none(), "{cancelled:#}");
    assert_eq!(entity.delivery(&delivered).await["status"], "delivered");
    entity.post(&format!("/webhook/delivery/{open}/resend")).refused(409, "webhook-removed").await;
    assert_eq!(receiver.received("/").len(), 2);
}

/// A successful delivery, and its head in the table.
async fn delivered(suite: &Suite, entity: &Entity, receiver: &Receiver) -> (String, Value) {
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    let head = suite.table().head(&id).await.expect("it is there");
    (id, head)
}

#[contract_test]
async fn a_delivery_with_a_hundred_attempts_is_not_sent_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let (id, mut head) = delivered(&suite, &entity, &receiver).await;
    head["attemptCount"]["N"] = "99".into();
    suite.table().put(head).await;
    resent(&entity, &id).await;
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivered["attemptCount"], 100, "the last permitted attempt: {delivered:#}");
    let problem = entity.post(&format!("/webhook/delivery/{id}/resend")).refused(409, "attempt-limit").await;
    assert_eq!(problem["properties"], json!({ "limitName": "attempts", "limit": 100 }));
    assert_eq!(receiver.received("/").len(), 2);
}

#[contract_test]
async fn a_delivery_past_its_retention_is_gone_before_its_removal(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let (id, mut head) = delivered(&suite, &entity, &receiver).await;
    head["expiresAt"]["N"] = (now() - 1).to_string().into();
    suite.table().put(head).await;
    entity.get(&format!("/webhook/delivery/{id}")).refused(404, "delivery-not-found").await;
    entity.post(&format!("/webhook/delivery/{id}/resend")).refused(404, "delivery-not-found").await;
    assert_eq!(receiver.received("/").len(), 1);
}

#[contract_test]
async fn a_resend_does_not_lengthen_the_retention(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let (id, before) = delivered(&suite, &entity, &receiver).await;
    resent(&entity, &id).await;
    entity.until_delivery(&id, "is sent again", |delivery| delivery["attemptCount"] == 2).await;
    let after = suite.table().head(&id).await.expect("it is there");
    assert_eq!(after["expiresAt"], before["expiresAt"]);
}

#[contract_test]
async fn a_delivery_that_no_worker_has_claimed_is_sent_at_once(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "10m,1s");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "resent".to_owned()).await;
    let receiver = Receiver::start().await;
    for (path, key) in [("/with-key", Some("now")), ("/without-key", None)] {
        let hook = entity.hook(&receiver.on(path, [Behaviour::status(200)])).await;
        let id = entity.publish(json!({})).await;
        assert_eq!(Table::of(&api.env).head(&id).await, None);
        let request = || entity.post(&format!("/webhook/delivery/{id}/resend"));
        match key {
            Some(key) => {
                for _ in 0..2 {
                    request().header("idempotency-key", key).expect(202).await;
                }
            }
            None => drop(request().expect(202).await),
        }
        let delivered = entity.until_status(&id, &["delivered"]).await;
        assert_eq!((&delivered["attemptCount"], receiver.received(path).len()), (&json!(1), 1), "{path}");
        entity.remove(&hook.id).expect(200).await;
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn missing_and_foreign_deliveries_are_not_found(suite: Arc<Suite>) {
    let owner = suite.entity().await;
    let stranger = suite.entity().await;
    let receiver = Receiver::start().await;
    owner.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = owner.publish(json!({})).await;
    owner.until_status(&id, &["delivered"]).await;
    for (entity, id) in [
        (&stranger, id.as_str()),
        (&owner, "dlv_00000000000000000000000000"),
        (&owner, "x"),
        (&owner, "evt_00000000000000000000000000"),
        (&owner, "list"),
        (&owner, "%00"),
    ] {
        entity.post(&format!("/webhook/delivery/{id}/resend")).refused(404, "delivery-not-found").await;
    }
    // Without its event, as after the retention period, a delivery no longer exists.
    let (pk, sk) = stored::event_key(&stored::event_of(&id));
    suite.table().remove(&pk, &sk).await;
    owner.post(&format!("/webhook/delivery/{id}/resend")).refused(404, "delivery-not-found").await;
    assert_eq!(receiver.received("/").len(), 1);
}

#[contract_test]
async fn a_resend_needs_no_body(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    let path = format!("/webhook/delivery/{id}/resend");
    entity.post(&path).json(&json!({ "now": true })).refused(400, "invalid-request").await;
    entity.post(&path).body("application/json", "[]").refused(400, "invalid-request").await;
    entity.post(&path).body("text/plain", "now").refused(415, "unsupported-media-type").await;
    assert_eq!(entity.delivery(&id).await["attemptCount"], 1);
    entity.post(&path).json(&json!({})).expect(202).await;
    entity.until_delivery(&id, "is sent again", |delivery| delivery["attemptCount"] == 2).await;
}
