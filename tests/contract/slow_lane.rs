//! The slow lane: slow webhooks' deliveries use a separate queue.

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use serde_json::json;

use crate::{
    harness::{Behaviour, Entity, LONG, LONG_AGO, Receiver, Settings, Suite, Table, announced, order::later, until},
    sweep::overdue,
};

const SLOW: &str = "SlowDeliveryQueue";

#[contract_test]
async fn a_webhook_that_was_slow_comes_back_by_itself(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let pk = format!("ENT#{}", entity.id);
    let sk = format!("WHK#{}", hook.id);
    // If a busy machine pauses for half a second, a dispatcher may see the response before it sees that the exchange is
    // slow. It then sets no mark, and the test tries another delivery.
    let marked = until("a mark", LONG, async || {
        receiver.on("/", [Behaviour::status(200).after(Duration::from_millis(1_500)), Behaviour::status(200)]);
        let slow = entity.publish(json!({})).await;
        entity.until_status(&slow, &["delivered"]).await;
        table.item(&pk, &sk).await.filter(|item| item.get("slowUntil").is_some())
    })
    .await;
    assert!(entity.listed(&hook).await.get("slowUntil").is_none(), "the owner does not see the mark");
    // A slow webhook still gets deliveries, and its exchanges do not remove a mark that has not expired.
    let mut fresh = marked.clone();
    fresh["slowUntil"]["S"] = "2099-01-01T00:00:00.000Z".into();
    table.put(fresh.clone()).await;
    let second = entity.publish(json!({})).await;
    entity.until_status(&second, &["delivered"]).await;
    assert_eq!(table.item(&pk, &sk).await.expect("it is there"), fresh);
    let mut over = marked;
    over["slowUntil"]["S"] = "2026-01-01T00:00:00.000Z".into();
    // On a busy machine, a fast exchange may become slow and mark the webhook again.
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
    // The queues that received a message for a delivery.
    let lanes = |id: &str| {
        let calls = setup.services.calls_mentioning(id);
        let announces = calls.iter().filter(|call| announced(call).iter().any(|due| due.delivery == id));
        let queues = announces.map(|call| call.body["QueueUrl"].as_str().expect("a text").rsplit('/').next());
        queues.map(|queue| queue.expect("a name").to_owned()).collect::<Vec<_>>()
    };
    // The delivery is announced by publishing, and again by the sweep. The sweep spends at most 200 ms looking up the
    // lane. On a slow machine, this may be too short: the message then uses the other lane, and the test tries another
    // delivery.
    let id = until("a delivery is announced twice in the slow lane alone", LONG, async || {
        receiver.on("/", [later(), Behaviour::status(200)]);
        let id = entity.publish(json!({})).await;
        entity.until_status(&id, &["retrying"]).await;
        overdue(&table, &id, LONG_AGO).await;
        entity.until_status(&id, &["delivered"]).await;
        let lanes = lanes(&id);
        (lanes.len() >= 2 && lanes.iter().all(|lane| lane == SLOW)).then_some(id)
    })
    .await;
    // Resending does not look up the lane: it announces the delivery in the quick one, and a dispatcher moves the
    // message.
    let before = lanes(&id).len();
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
    entity.until_delivery(&id, "is sent again", |delivery| delivery["attemptCount"] == 3).await;
    let lanes = lanes(&id).split_off(before);
    assert!(lanes[0] == "DeliveryQueue" && lanes[1..].iter().any(|lane| lane == SLOW), "{lanes:?}");
    assert!(setup.bundle.stop().await.success());
}
