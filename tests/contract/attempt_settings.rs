//! The settings for a webhook's attempts: how long its endpoint may take to respond (`timeoutSeconds`), and how often a
//! failed attempt is retried (`retries`).

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{Behaviour, Entity, Hook, LONG_AGO, Receiver, Settings, Suite, Table},
    sweep::overdue,
    webhook_changes::violations,
};

fn with(url: &str, members: Value) -> Value {
    let mut webhook = json!({ "name": "n", "eventUrl": url, "eventList": [] });
    let members = members.as_object().expect("an object").clone();
    webhook.as_object_mut().expect("an object").extend(members);
    webhook
}

/// A webhook's timeout and retries, as the webhook shows them.
fn attempts_of(hook: &Value) -> [&Value; 2] {
    [&hook["timeoutSeconds"], &hook["retries"]]
}

/// Publishes an event, and returns its delivery to each webhook.
async fn published(entity: &Entity) -> Vec<Value> {
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    published["deliveries"].as_array().expect("openapi.yaml says so").clone()
}

fn delivery_to(deliveries: &[Value], hook: &Hook) -> String {
    let delivery = deliveries.iter().find(|delivery| delivery["webhookIdentifier"] == hook.id.as_str());
    delivery.expect("it subscribes to the event")["deliveryIdentifier"].as_str().expect("a text").to_owned()
}

#[contract_test]
async fn a_webhook_without_retries_makes_one_attempt_and_one_more_for_each_resend(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::answer(503, &[("Retry-After", "1")], ""), Behaviour::status(500)]);
    let hook = entity.hook_with(with(&url, json!({ "retries": "none" }))).await;
    assert_eq!(attempts_of(&hook.json), [&json!(15), &json!("none")]);
    let delivery = entity.publish(json!({})).await;
    let failed = entity.until_status(&delivery, &["failed", "retrying"]).await;
    assert_eq!((&failed["status"], &failed["attemptCount"]), (&json!("failed"), &json!(1)), "{failed:#}");
    assert!(failed.get("nextAttemptDate").is_none(), "{failed:#}");
    entity.post(&format!("/webhook/delivery/{delivery}/resend")).expect(202).await;
    let again = entity.until_delivery(&delivery, "has a second attempt", |shown| shown["attemptCount"] == 2).await;
    assert_eq!(again["status"], "failed", "{again:#}");
    assert_eq!(receiver.received("/").len(), 2);
}

#[contract_test]
async fn short_retries_end_within_an_hour_and_a_change_applies_to_the_next_failure(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,1s,2h");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "retries".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = async |path: &str, retries: &str| {
        // The second attempt comes when the test wants it: the change must lie between the two failures.
        let later = Behaviour::answer(503, &[("Retry-After", "600")], "");
        let script =
            if path == "/changed" { vec![later, Behaviour::status(500)] } else { vec![Behaviour::status(500)] };
        entity.hook_with(with(&receiver.on(path, script), json!({ "retries": retries }))).await
    };
    let short = hook("/short", "short").await;
    let default = hook("/default", "default").await;
    let changed = hook("/changed", "default").await;
    let deliveries = published(&entity).await;
    let delivery = delivery_to(&deliveries, &changed);
    entity.until_status(&delivery, &["retrying"]).await;
    entity.changed(&changed.id, json!({ "retries": "none" })).await;
    overdue(&Table::of(&api.env), &delivery, LONG_AGO).await;
    for (hook, status) in [(&short, "failed"), (&default, "retrying"), (&changed, "failed")] {
        let delivery = delivery_to(&deliveries, hook);
        let has_two = |shown: &Value| shown["attemptCount"] == 2;
        let shown = entity.until_delivery(&delivery, "has two attempts", has_two).await;
        assert_eq!(shown["status"], status, "{shown:#}");
    }
    assert!(bundle.stop().await.success());
}

/// The endpoint responds, but too late for one of its webhooks.
#[contract_test]
async fn an_endpoint_has_the_time_that_its_webhook_gives_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let late = || Behaviour::status(200).after(Duration::from_secs(10));
    let hasty = with(&receiver.on("/hasty", [late()]), json!({ "timeoutSeconds": 1, "retries": "none" }));
    let hasty = entity.hook_with(hasty).await;
    let patient = entity.hook_with(with(&receiver.on("/patient", [late()]), json!({ "timeoutSeconds": 15 }))).await;
    let deliveries = published(&entity).await;
    let failed = entity.until_status(&delivery_to(&deliveries, &hasty), &["failed", "delivered"]).await;
    assert_eq!((&failed["status"], &failed["lastErrorCode"]), (&json!("failed"), &json!("timeout")), "{failed:#}");
    let delivered = entity.until_status(&delivery_to(&deliveries, &patient), &["failed", "delivered"]).await;
    assert_eq!(delivered["status"], "delivered", "{delivered:#}");
}

#[contract_test]
async fn a_pull_webhook_has_neither_timeout_nor_retries_and_loses_them_by_a_change(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let hook = entity.hook_with(with(&url, json!({ "timeoutSeconds": 5, "retries": "short" }))).await;
    assert_eq!(attempts_of(&hook.json), [&json!(5), &json!("short")]);
    let to_pull = json!({ "delivery": "pull", "timeoutSeconds": 5, "retries": "none" });
    assert_eq!(violations(&entity, &hook, &to_pull).await, ["body/timeoutSeconds", "body/retries"]);
    let pulled = entity.changed(&hook.id, json!({ "delivery": "pull" })).await;
    assert!(pulled.get("timeoutSeconds").is_none() && pulled.get("retries").is_none(), "{pulled:#}");
    assert_eq!(violations(&entity, &hook, &json!({ "retries": "none" })).await, ["body/retries"]);
    let pushed = entity.changed(&hook.id, json!({ "delivery": "push", "eventUrl": url })).await;
    assert_eq!(attempts_of(&pushed), [&json!(15), &json!("default")]);
}

#[contract_test]
async fn a_bad_timeout_or_an_unknown_word_for_retries_is_a_violation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let bad = json!({ "timeoutSeconds": 16, "retries": "never" });
    assert_eq!(violations(&entity, &hook, &bad).await, ["body/retries", "body/timeoutSeconds"]);
    for member in ["timeoutSeconds", "retries"] {
        let null = json!({ member: null });
        assert_eq!(violations(&entity, &hook, &null).await, [format!("body/{member}")]);
    }
}
