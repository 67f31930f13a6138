//! Publications that are repeated after the sweep may have passed their time, and deliveries that have no head yet.

use std::{sync::Arc, time::Duration};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{Agent, Behaviour, Bus, Entity, Receiver, Settings, Suite, announced};

/// The age from which a publication is late, and some time more.
const LATE: Duration = Duration::from_secs(11);
/// The duration of an exchange that is still running at a late repetition.
const SLOW: Duration = Duration::from_secs(12);

fn delivery(published: &Value) -> String {
    published["deliveries"][0]["deliveryIdentifier"].as_str().expect("one delivery").to_owned()
}

#[contract_test]
async fn a_late_repetition_opens_its_deliveries_and_makes_none_twice(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "late".to_owned()).await;
    let receiver = Receiver::start().await;
    let slow = receiver.on("/slow", [Behaviour::status(200).after(SLOW)]);
    entity.hook_with(json!({ "name": "slow", "eventUrl": slow, "eventList": ["booking.created"] })).await;
    let quick = receiver.on("/quick", [Behaviour::status(200)]);
    let quick =
        entity.hook_with(json!({ "name": "quick", "eventUrl": quick, "eventList": ["booking.cancelled"] })).await;
    let bus = Bus::of(&setup.api.env);
    let hand_over = async |id: &str, kind: &str, data: &Value| {
        let detail = json!({ "type": kind, "managingEntityIdentifier": entity.id, "data": data });
        let taken = bus.hand_over(Bus::event(id, &detail.to_string())).await.expect("taken");
        delivery(&taken["published"])
    };
    let publish = async || {
        let call = entity.post("/webhook/event").header("idempotency-key", "late");
        let answer = call.json(&json!({ "type": "booking.created", "data": {} })).send().await;
        delivery(&answer.json())
    };
    // The first announcement of the third is lost, so that it has no head at the repetition.
    let webhook = quick.id.clone();
    setup.services.swallow(1, move |call| announced(call).iter().any(|due| due.webhook == webhook));
    let lost = hand_over("lost", "booking.cancelled", &json!({})).await;
    let (first, under_way) = (publish().await, hand_over("under-way", "booking.created", &json!({})).await);
    sleep(LATE).await;
    assert_eq!(publish().await, first);
    assert_eq!(hand_over("under-way", "booking.created", &json!({})).await, under_way);
    assert_eq!(hand_over("lost", "booking.cancelled", &json!({})).await, lost);
    let random: Vec<String> = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let large = hand_over("large", "booking.cancelled", &json!({ "random": random })).await;
    for id in [first, under_way, lost, large] {
        assert_eq!(entity.until_status(&id, &["delivered"]).await["attemptCount"], 1);
    }
    assert_eq!((receiver.received("/slow").len(), receiver.received("/quick").len()), (2, 2));
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn an_agent_resends_a_delivery_whose_first_attempt_comes_later(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "1h,1h")).await;
    let entity = Entity::new(&api, "later".to_owned()).await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    assert_eq!(entity.delivery(&id).await["status"], "pending");
    let agent = Agent::of(&entity).await;
    agent.call("resend_delivery", json!({ "deliveryIdentifier": id })).await;
    assert_eq!(entity.until_status(&id, &["delivered"]).await["attemptCount"], 1);
    assert!(bundle.stop().await.success());
}
