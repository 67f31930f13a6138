//! The slow lane: deliveries of slow webhooks use a separate queue.

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{AwsCall, Behaviour, Entity, LONG, Receiver, Settings, Suite, Table, announced, until};

#[contract_test]
async fn a_webhook_that_was_slow_comes_back_by_itself(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let slow = Behaviour::status(200).after(Duration::from_millis(1_500));
    let hook = entity.hook(&receiver.on("/", [slow, Behaviour::status(200)])).await;
    let pk = format!("ENT#{}", entity.id);
    let sk = format!("WHK#{}", hook.id);
    let first = entity.publish(json!({})).await;
    // The exchange is still running.
    let marked = until("a mark", Duration::from_secs(30), async || {
        table.item(&pk, &sk).await.filter(|item| item.get("slowUntil").is_some())
    })
    .await;
    assert!(entity.listed(&hook).await.get("slowUntil").is_none(), "the owner does not see the mark");
    entity.until_status(&first, &["delivered"]).await;
    // A slow webhook still gets deliveries, and fast exchanges do not remove the mark before it expires.
    let second = entity.publish(json!({})).await;
    entity.until_status(&second, &["delivered"]).await;
    assert_eq!(table.item(&pk, &sk).await.expect("it is there")["slowUntil"], marked["slowUntil"]);
    let mut over = marked;
    over["slowUntil"]["S"] = "2026-01-01T00:00:00.000Z".into();
    // On a busy machine an exchange may be slow, and marks the webhook again.
    until("a fast exchange", LONG, async || {
        table.put(over.clone()).await;
        let next = entity.publish(json!({})).await;
        let delivery = entity.until_status(&next, &["delivered"]).await;
        let is_fast = delivery["attempts"][0]["durationMs"].as_u64().is_some_and(|duration| duration < 1_000);
        is_fast.then_some(())
    })
    .await;
    assert_eq!(table.item(&pk, &sk).await.expect("it is there"), over, "a fast webhook costs no write");
}

#[contract_test]
async fn slow_webhooks_have_a_separate_lane(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "slow".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let table = Table::of(&setup.api.env);
    let pk = format!("ENT#{}", entity.id);
    let sk = format!("WHK#{}", hook.id);
    assert!(table.set(&pk, &sk, "slowUntil", "2099-01-01T00:00:00.000Z").await);
    // The first announcement is lost, so that the sweep opens the delivery and announces it as well.
    let webhook = hook.id.clone();
    setup.services.swallow(1, move |call| announced(call).iter().any(|due| due.webhook == webhook));
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    let lanes = || {
        let calls = setup.services.calls_mentioning(&hook.id);
        let announcements = calls.into_iter().filter(|call| call.operation == "SendMessageBatch");
        let queue = |call: AwsCall| Some(call.body["QueueUrl"].as_str()?.rsplit('/').next()?.to_owned());
        announcements.filter_map(queue).collect::<Vec<_>>()
    };
    assert_eq!(lanes(), ["SlowDeliveryQueue", "SlowDeliveryQueue"], "by publishing, and by the sweep");
    // Resending does not look up the lane: it announces in the fast one, and a dispatcher moves the message.
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
    receiver.until("/", 2).await;
    assert_eq!(lanes()[2..], ["DeliveryQueue", "SlowDeliveryQueue"], "by resending, and by the dispatcher");
    assert!(setup.bundle.stop().await.success());
}
