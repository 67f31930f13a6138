//! How changes to a webhook affect its deliveries.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::json;

use crate::{
    harness::{Behaviour, LONG, LONG_AGO, Receiver, Suite, is_signed_by, order::later, until},
    sweep::overdue,
    webhook_changes::all_types,
};

#[contract_test]
async fn a_disabled_webhook_gets_no_event_until_it_is_enabled_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let disabled = entity.changed(&hook.id, json!({ "enabled": false })).await;
    assert!(disabled.get("disabledReason").is_none(), "its owner disabled it");
    assert_eq!((&disabled["deliveryState"], &disabled["disabledDate"]), (&json!("disabled"), &disabled["lastUpdate"]));
    let published = entity.publish_of_type("booking.created", json!({ "number": 1 })).await.json();
    assert_eq!(published["deliveries"], json!([]));
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    let second = entity.publish(json!({ "number": 2 })).await;
    entity.until_status(&second, &["delivered"]).await;
    let received = receiver.everything();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].json()["data"]["number"], 2);
}

#[contract_test]
async fn an_open_delivery_of_a_disabled_webhook_becomes_cancelled(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [later()])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    overdue(&suite.table(), &id, LONG_AGO).await;
    let delivery = entity.until_status(&id, &["cancelled"]).await;
    assert_eq!((&delivery["attemptCount"], &delivery["cancelReason"]), (&json!(1), &json!("webhook-disabled")));
    assert_eq!(receiver.everything().len(), 1);
}

#[contract_test]
async fn a_new_list_of_types_holds_from_the_next_event_on(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let told_of = async |kind: &str| {
        let published = entity.publish_of_type(kind, json!({})).await.json();
        published["deliveries"].as_array().is_some_and(|deliveries| deliveries.len() == 1)
    };
    assert!(told_of("booking.created").await && told_of("booking.expired").await);
    entity.changed(&hook.id, json!({ "eventList": ["booking.expired"] })).await;
    assert!(!told_of("booking.created").await && told_of("booking.expired").await);
    entity.changed(&hook.id, json!({ "eventList": [] })).await;
    assert!(told_of("booking.created").await);
}

#[contract_test]
async fn the_next_attempt_goes_to_the_new_address_with_the_new_headers(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let old = receiver.on("/old", [later()]);
    let new = receiver.on("/new", [Behaviour::status(200)]);
    let hook = entity.hook_with(all_types(&old)).await;
    let id = entity.publish(json!({ "x": 1 })).await;
    entity.until_status(&id, &["retrying"]).await;
    entity.changed(&hook.id, json!({ "eventUrl": new, "headers": { "X-New": "yes" } })).await;
    overdue(&suite.table(), &id, LONG_AGO).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("delivered"), &json!(2)), "{delivery:#}");
    assert_eq!(delivery["url"], old, "the address at creation");
    assert_eq!((receiver.received("/old").len(), receiver.received("/new").len()), (1, 1));
    let first = receiver.received("/old").remove(0);
    let second = receiver.received("/new").remove(0);
    assert_eq!(second.header("x-new"), "yes");
    assert_eq!(first.body, second.body);
    assert!(is_signed_by(&second, &hook.secret));
}

/// Regression test: each attempt was shown with the webhook's first URL, and with its current headers.
#[contract_test]
async fn each_attempt_shows_the_address_and_the_headers_that_it_was_sent_with(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let old = receiver.on("/old", [later()]);
    let new = receiver.on("/new?key=secret", [Behaviour::status(200)]);
    let before = json!({ "name": "test", "eventUrl": old, "eventList": [], "headers": { "X-Old": "yes" } });
    let hook = entity.hook_with(before).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    let after = json!({ "eventUrl": new, "headers": { "X-New": "yes", "Accept": "text/plain" } });
    entity.changed(&hook.id, after).await;
    overdue(&suite.table(), &id, LONG_AGO).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
    let urls: Vec<_> = attempts.iter().map(|attempt| attempt["url"].as_str().expect("an address")).collect();
    assert_eq!(urls, [old, new.replace("secret", "***")]);
    for (attempt, path) in attempts.iter().zip(["/old", "/new?key=secret"]) {
        let names = attempt["requestHeaders"].as_array().expect("openapi.yaml says so").iter();
        let shown: BTreeSet<_> = names.map(|name| name.as_str().expect("a text").to_owned()).collect();
        let request = receiver.received(path).remove(0);
        let sent: BTreeSet<_> = request.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        assert_eq!(shown, sent, "{path}");
    }
    assert_eq!(receiver.received("/new?key=secret").remove(0).header("accept"), "text/plain");
    assert_eq!(receiver.received("/old").remove(0).header("accept"), "*/*");
}

#[contract_test]
async fn enabling_again_takes_the_reason_and_the_failures_away(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    for _ in 0..2 {
        let id = entity.publish(json!({})).await;
        entity.until_status(&id, &["failed"]).await;
    }
    until("the webhook is failing", LONG, async || {
        (entity.webhook(&hook.id).await["health"] == "failing").then_some(())
    })
    .await;
    receiver.on("/", [Behaviour::status(410)]);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    entity.until_gone(&hook).await;
    // The failure is counted after the webhook is disabled; if it were counted after `enabled`, it would be a separate
    // failure.
    let disabled = until("the last failure is counted", LONG, async || {
        let webhook = entity.webhook(&hook.id).await;
        (webhook["lastHttpStatus"] == 410).then_some(webhook)
    })
    .await;
    assert_eq!(disabled["disabledReason"], "The endpoint answered 410 Gone.");
    assert_eq!((&disabled["deliveryState"], &disabled["health"]), (&json!("disabled"), &json!("failing")));
    assert_eq!(disabled["disabledDate"], disabled["lastUpdate"]);
    assert!(disabled["failuresInRow"].as_u64() >= Some(5) && disabled.get("failingSince").is_some(), "{disabled:#}");
    assert_eq!(disabled["version"], 2, "the service's change counts, too");

    // Other changes to a disabled webhook keep the reason, as does disabling it again.
    let renamed = entity.changed(&hook.id, json!({ "name": "renamed", "enabled": false })).await;
    assert_eq!(renamed["disabledDate"], disabled["disabledDate"]);
    assert_eq!((&renamed["disabledReason"], &renamed["health"]), (&disabled["disabledReason"], &json!("failing")));

    let enabled = entity.changed(&hook.id, json!({ "enabled": true, "version": renamed["version"] })).await;
    let of_failures = ["failuresInRow", "failingSince", "lastHttpStatus", "lastErrorCode", "lastErrorDetail"];
    for gone in ["disabledReason", "disabledDate"].into_iter().chain(of_failures) {
        assert!(enabled.get(gone).is_none(), "{enabled:#}");
    }
    assert_eq!(enabled["deliveryState"], "active");
    assert_eq!((&enabled["enabled"], &enabled["health"]), (&json!(true), &json!("healthy")), "{enabled:#}");
    receiver.on("/", [Behaviour::status(200)]);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
}
