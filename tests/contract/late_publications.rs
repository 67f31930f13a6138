//! Publish requests that are repeated after the sweep may have passed their time, and deliveries that have no head yet.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{
    Agent, Behaviour, Bus, DueAttempt, Entity, Gate, Receiver, Settings, Suite, announced, outcomes,
    until_a_round_counts,
};

/// The age at which publishing counts as late, plus a margin.
const LATE: Duration = Duration::from_secs(11);
/// How long an exchange is delayed, so that it is still running when a late repeated request arrives. The service waits
/// 15 s for its response.
const BEGINS: Duration = Duration::from_secs(9);

fn delivery(published: &Value) -> String {
    published["deliveries"][0]["deliveryIdentifier"].as_str().expect("one delivery").to_owned()
}

#[contract_test]
async fn a_late_repetition_opens_its_deliveries_and_makes_none_twice(suite: Arc<Suite>) {
    let spoiled = "an exchange timed out before the last repetition";
    until_a_round_counts(3, spoiled, async || are_repeated_late(&suite).await).await;
}

/// Repeats publications while their first attempts are running; returns whether these lasted long enough, which they
/// do not on a slow machine.
async fn are_repeated_late(suite: &Suite) -> bool {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "late".to_owned()).await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    let slow = receiver.on("/slow", [Behaviour::status(200).behind(&answers)]);
    let slow = entity.hook_with(json!({ "name": "slow", "eventUrl": slow, "eventList": ["booking.created"] })).await;
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
        let answer = call.json(&json!({ "type": "booking.created", "data": {} })).answered().await;
        delivery(&answer.json())
    };
    // The third delivery's first announcement is lost, so the delivery has no head when the request is repeated.
    let webhook = quick.id.clone();
    setup.services.swallow(1, move |call| announced(call).iter().any(|due| due.webhook == webhook));
    let webhook = slow.id.clone();
    let known = Mutex::new(HashSet::new());
    setup.services.scatter(move |message| {
        let mut known = known.lock().expect("no holder panics");
        let of_slow = DueAttempt::all_in(message).into_iter().filter(|due| due.webhook == webhook);
        let first = of_slow.filter(|due| known.insert(due.delivery.clone())).count();
        vec![if first > 0 { BEGINS } else { Duration::ZERO }]
    });
    let lost = hand_over("lost", "booking.cancelled", &json!({})).await;
    let (first, under_way) = (publish().await, hand_over("under-way", "booking.created", &json!({})).await);
    sleep(LATE).await;
    receiver.until("/slow", 2).await;
    assert_eq!(publish().await, first);
    assert_eq!(hand_over("under-way", "booking.created", &json!({})).await, under_way);
    assert_eq!(hand_over("lost", "booking.cancelled", &json!({})).await, lost);
    let random: Vec<String> = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let large = hand_over("large", "booking.cancelled", &json!({ "random": random })).await;
    for id in [lost, large] {
        assert_eq!(outcomes(&entity.until_status(&id, &["delivered"]).await), 1);
    }
    // The messages for the other repetitions have already been handled.
    answers.open();
    for id in [first, under_way] {
        let delivery = entity.until_status(&id, &["delivered"]).await;
        if delivery["attempts"][0]["errorCode"] == "timeout" {
            return false;
        }
        assert_eq!(delivery["attemptCount"], 1, "{delivery:#}");
    }
    assert_eq!((receiver.received("/slow").len(), receiver.received("/quick").len()), (2, 2));
    assert!(setup.bundle.stop().await.success());
    true
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
    assert_eq!(outcomes(&entity.until_status(&id, &["delivered"]).await), 1);
    assert!(bundle.stop().await.success());
}
