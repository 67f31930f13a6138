//! Events of the service's own about webhooks: told once, to everybody who subscribes but the webhook that they are about,
//! and never for ever.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Behaviour, Entity, Hook, LONG, Receiver, Suite, tests, time, until};

tests![
    a_webhook_that_fails_is_told_of_once_until_it_succeeds,
    a_webhook_that_is_gone_is_told_of,
    a_delivery_that_fails_for_good_is_told_of,
    two_webhooks_that_fail_do_not_tell_of_each_other_for_ever,
];

/// Makes a webhook for some types of event.
async fn hook_for(entity: &Entity, url: &str, kinds: &[&str]) -> Hook {
    entity.hook_with(json!({ "name": format!("for {kinds:?}"), "eventUrl": url, "eventList": kinds })).await
}

/// The deliveries of an entity, as they stand in the table.
async fn heads(suite: &Suite, entity: &Entity) -> Vec<Value> {
    let of_entity = |item: &Value| item["sk"]["S"] == "HEAD" && item["ownerIdentifier"]["S"] == entity.id.as_str();
    suite.table().scan().await.into_iter().filter(of_entity).collect()
}

/// Waits until nothing of the entity's is due or to be told any more, and returns its deliveries.
async fn until_quiet(suite: &Suite, entity: &Entity) -> Vec<Value> {
    until("nothing is due any more", LONG, async || {
        let items = suite.table().scan().await;
        let of_entity = |item: &&Value| item["ownerIdentifier"]["S"] == entity.id.as_str();
        let due = items.iter().filter(of_entity).filter(|item| !item["dueShard"].is_null()).count();
        (due == 0).then_some(())
    })
    .await;
    heads(suite, entity).await
}

async fn a_webhook_that_fails_is_told_of_once_until_it_succeeds(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let failing = entity.hook(&receiver.on("/failing", [Behaviour::status(500)])).await;
    hook_for(&entity, &receiver.on("/told", [Behaviour::status(200)]), &["webhook.failing"]).await;
    let mut spells = Vec::new();
    for spell in 1..=2 {
        receiver.on("/failing", [Behaviour::status(500)]);
        // Three attempts each, and so more than five failures in a row.
        for _ in 0..3 {
            let id = entity.publish(json!({})).await;
            entity.until_status(&id, &["failed"]).await;
        }
        let event = receiver.until("/told", spell).await[spell - 1].json();
        assert_eq!(event["type"], "webhook.failing");
        let data = &event["data"];
        assert_eq!((&data["webhookIdentifier"], &data["name"]), (&json!(failing.id), &json!("test")), "{event:#}");
        assert!(data["failuresInRow"].as_u64() >= Some(5) && data["lastHttpStatus"] == 500, "{event:#}");
        assert!(data.get("lastError").is_none(), "{event:#}");
        assert!(time(&data["since"]) <= time(&event["timestamp"]), "{event:#}");
        spells.push(data["since"].clone());
        assert_eq!(entity.listed(&failing).await["health"], "failing");

        receiver.on("/failing", [Behaviour::status(200)]);
        let healing = entity.publish(json!({})).await;
        entity.until_status(&healing, &["delivered"]).await;
        until("the webhook is healthy", LONG, async || {
            (entity.listed(&failing).await["health"] == "healthy").then_some(())
        })
        .await;
    }
    until_quiet(&suite, &entity).await;
    assert_eq!(receiver.received("/told").len(), 2, "one event for each spell");
    assert_ne!(spells[0], spells[1]);
    let types: Vec<Value> =
        receiver.received("/failing").iter().map(|request| request.json()["type"].clone()).collect();
    assert!(types.iter().all(|kind| kind == "booking.created"), "it was told of itself: {types:?}");
}

async fn a_webhook_that_is_gone_is_told_of(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let gone = entity.hook(&receiver.on("/gone", [Behaviour::status(410)])).await;
    hook_for(&entity, &receiver.on("/told", [Behaviour::status(200)]), &["webhook.disabled"]).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    let event = receiver.until("/told", 1).await[0].json();
    let reason = "The endpoint answered 410 Gone.";
    assert_eq!(event["data"], json!({ "webhookIdentifier": gone.id, "name": "test", "reason": reason }));
    let listed = entity.listed(&gone).await;
    assert_eq!((&listed["enabled"], &listed["disabledReason"]), (&json!(false), &json!(reason)));
    until_quiet(&suite, &entity).await;
    assert_eq!((receiver.received("/told").len(), receiver.received("/gone").len()), (1, 1));
}

async fn a_delivery_that_fails_for_good_is_told_of(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let script = [Behaviour::status(500), Behaviour::status(404), Behaviour::close()];
    let failing = hook_for(&entity, &receiver.on("/failing", script), &["booking.created"]).await;
    hook_for(&entity, &receiver.on("/told", [Behaviour::status(200)]), &["webhook.delivery.exhausted"]).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_status(&id, &["failed"]).await;
    let event = receiver.until("/told", 1).await[0].json();
    assert_eq!(
        event["data"],
        json!({
            "deliveryIdentifier": id,
            "webhookIdentifier": failing.id,
            "eventIdentifier": delivery["event"]["id"],
            "type": "booking.created",
            "attemptCount": 3,
            "lastHttpStatus": null,
        })
    );
    until_quiet(&suite, &entity).await;
    assert_eq!(receiver.received("/told").len(), 1);
}

async fn two_webhooks_that_fail_do_not_tell_of_each_other_for_ever(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let one = entity.hook(&receiver.on("/one", [Behaviour::status(500)])).await;
    let two = entity.hook(&receiver.on("/two", [Behaviour::status(500)])).await;
    entity.publish_of_type("booking.created", json!({})).await;
    let heads = until_quiet(&suite, &entity).await;
    let mut told: Vec<(&str, &str, &str)> = heads
        .iter()
        .map(|head| {
            let text = |name: &str| head[name]["S"].as_str().expect("a head has it");
            (text("webhookIdentifier"), text("type"), text("status"))
        })
        .collect();
    told.sort_unstable();
    // Each gets the event, and hears of the other that it fails and that the event's delivery has failed for good.
    let mut expected: Vec<(&str, &str, &str)> = [&one, &two]
        .into_iter()
        .flat_map(|hook| {
            ["booking.created", "webhook.delivery.exhausted", "webhook.failing"]
                .map(|kind| (hook.id.as_str(), kind, "failed"))
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(told, expected);
}
