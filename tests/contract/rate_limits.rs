//! The rate limit of a webhook: its attempts are spaced, further deliveries wait in line, and those of other webhooks
//! do not wait.

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    delivery_list::publish,
    feeds::{confirm, read_some},
    harness::{Behaviour, Entity, Hook, LONG, Moment, Receiver, Settings, Suite, now, time, until},
    pauses::{key, paused_in},
};

fn limited(url: &str, limit: u32) -> Value {
    json!({ "name": "limited", "eventUrl": url, "eventList": [], "maxAttemptsPerSecond": limit })
}

async fn change(entity: &Entity, hook: &Hook, members: Value) -> Value {
    entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&members).expect(200).await.json()
}

#[contract_test]
async fn attempts_are_spaced_and_other_webhooks_do_not_wait(suite: Arc<Suite>) {
    const EVENTS: usize = 20;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/limited", [Behaviour::status(503), Behaviour::status(200)]);
    let hook = entity.hook_with(limited(&url, 2)).await;
    assert_eq!(hook.json["maxAttemptsPerSecond"], 2);
    let other = receiver.on("/other", [Behaviour::status(200)]);
    entity.hook_with(json!({ "name": "other", "eventUrl": other, "eventList": ["booking.cancelled"] })).await;
    let mut deliveries = publish(&entity, "booking.created", EVENTS).await;
    deliveries.extend(publish(&entity, "booking.cancelled", 1).await);

    // In milliseconds.
    let (mut times, mut of_other) = (Vec::new(), Vec::new());
    for delivery in &deliveries {
        let shown = entity.until_status(delivery, &["delivered"]).await;
        let attempts = shown["attempts"].as_array().expect("openapi.yaml says so").iter();
        let whose = if shown["webhookIdentifier"] == hook.id.as_str() { &mut times } else { &mut of_other };
        whose.extend(attempts.map(|attempt| time(&attempt["attemptDate"]).as_millisecond()));
    }
    times.sort_unstable();
    // Two more attempts than `EVENTS`: a retry, since the first attempt fails, and the event for both webhooks.
    assert!(times.len() >= EVENTS + 2, "{times:?}");
    assert!(of_other[0] < times[EVENTS], "the line of one webhook held up another");
    for (number, window) in times.windows(11).enumerate() {
        // Eleven slots span five seconds. An attempt may use its slot two seconds late, and then begin late as well.
        let span = window[10] - window[0];
        assert!(span >= 2_000, "from attempt {number} on, 11 came within {span} ms");
    }
    // The slots span 10.5 s. At twice the rate they would span 5.25 s.
    let whole = times[times.len() - 1] - times[0];
    assert!(whole >= 8_000, "all came within {whole} ms");
}

#[contract_test]
async fn a_delivery_in_line_says_so_and_goes_when_the_limit_is_removed(suite: Arc<Suite>) {
    const EVENTS: usize = 120;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(limited(&receiver.on("/", [Behaviour::status(200)]), 1)).await;
    let deliveries = join_all((0..EVENTS).map(|_| entity.publish(json!({})))).await;
    let is_in_line = |shown: &Value| shown["waitingFor"] == "rate" || shown["status"] == "delivered";
    let mut shown = Vec::new();
    for delivery in &deliveries {
        shown.push(entity.until_delivery(delivery, "is in line or delivered", is_in_line).await);
    }
    let turns = shown.iter().filter(|shown| shown["waitingFor"] == "rate").map(|shown| &shown["nextAttemptDate"]);
    let mut turns: Vec<_> = turns.map(|date| date.as_str().expect("a time").to_owned()).collect();
    assert!(turns.len() > EVENTS / 3, "{}", turns.len());
    turns.sort();
    turns.dedup();
    assert!(turns.len() > EVENTS / 3, "each has another turn");

    let changed = change(&entity, &hook, json!({ "maxAttemptsPerSecond": null })).await;
    assert!(changed.get("maxAttemptsPerSecond").is_none(), "{changed:#}");
    // In line they would take two minutes.
    receiver.until("/", EVENTS).await;
    for delivery in &deliveries {
        assert_eq!(entity.until_status(delivery, &["delivered"]).await["attemptCount"], 1);
    }
}

#[contract_test]
async fn a_line_is_not_lost_with_its_workers(suite: Arc<Suite>) {
    const EVENTS: usize = 12;
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "limited".to_owned()).await;
    let receiver = Receiver::start().await;
    entity.hook_with(limited(&receiver.on("/", [Behaviour::status(200)]), 2)).await;
    let deliveries = join_all((0..EVENTS).map(|_| entity.publish(json!({})))).await;
    receiver.until("/", 3).await;
    bundle.cut_power().await;
    bundle.start_again(Settings::default()).await;
    for delivery in &deliveries {
        entity.until_status(delivery, &["delivered"]).await;
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_change_to_pull_while_an_attempt_waits_for_its_turn_sends_nothing(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "limited".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(limited(&receiver.on("/", [Behaviour::status(200)]), 1)).await;
    let line = format!("RATE#{}", hook.id);
    let mut slot = setup.table.hold("a slot is reserved", Moment::After, move |call| call.mentions(&line));
    let delivery = entity.publish(json!({})).await;
    slot.reached().await;
    change(&entity, &hook, json!({ "delivery": "pull" })).await;
    // The webhook that the dispatcher has read is too old by then.
    sleep(Duration::from_millis(500)).await;
    slot.release();
    let read = read_some(&entity, &hook, "").await;
    assert_eq!(read[0]["attemptNumber"], 1, "no attempt was made without an address: {read:#?}");
    assert_eq!(confirm(&entity, &hook, &read).await, ["confirmed"]);
    assert_eq!(entity.delivery(&delivery).await["attemptCount"], 1);
    assert!(receiver.received("/").is_empty());
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn the_probe_after_a_pause_does_not_wait_for_its_turn(suite: Arc<Suite>) {
    const HOUR: i64 = 60 * 60;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(limited(&receiver.on("/", [Behaviour::status(200)]), 1)).await;
    let first = entity.publish(json!({})).await;
    entity.until_status(&first, &["delivered"]).await;
    // A success that is counted later would end the pause.
    until("the attempt is counted", LONG, async || {
        let stats = entity.get(&format!("/webhook/{}/stats", hook.id)).expect(200).await.json();
        (stats["last24Hours"]["attempts"] == 1).then_some(())
    })
    .await;
    let table = suite.table();
    // Others wait in line for an hour, and the pause of the breaker is over.
    let line = format!("RATE#{}", hook.id);
    let mut line = table.scan().await.into_iter().find(|item| item["pk"]["S"] == line.as_str()).expect("its line");
    line["nextAt"] = json!({ "N": ((now() + HOUR) * 1_000_000).to_string() });
    table.put(line).await;
    paused_in(&table, &entity, &hook, 1).await;
    let (pk, sk) = key(&entity, &hook);
    let mut health = table.item(&pk, &sk).await.expect("it is paused");
    health["openUntil"] = json!({ "S": "2026-01-01T00:00:00.000Z" });
    table.put(health).await;

    let probe = entity.publish(json!({})).await;
    entity.until_status(&probe, &["delivered"]).await;
    until("the answer closes the breaker", LONG, async || {
        (entity.webhook(&hook.id).await["health"] == "healthy").then_some(())
    })
    .await;
    let next = entity.publish(json!({})).await;
    entity.until_delivery(&next, "is in line", |shown| shown["waitingFor"] == "rate").await;
}

#[contract_test]
async fn a_bad_limit_is_refused_and_a_pulled_webhook_has_none(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    for bad in [json!(0), json!(101), json!(1.5), json!("5"), json!(true)] {
        let body = json!({ "name": "n", "eventUrl": url, "eventList": [], "maxAttemptsPerSecond": bad });
        let refused = entity.post("/webhook").json(&body).expect(400).await.json();
        assert_eq!(refused["properties"]["violations"][0]["field"], "maxAttemptsPerSecond", "{bad}: {refused:#}");
    }
    let pulled = json!({ "name": "n", "delivery": "pull", "eventList": [], "maxAttemptsPerSecond": 5 });
    let refused = entity.post("/webhook").json(&pulled).expect(400).await.json();
    assert_eq!(refused["properties"]["violations"][0]["field"], "maxAttemptsPerSecond");

    let hook = entity.hook_with(limited(&url, 5)).await;
    let same = change(&entity, &hook, json!({ "name": "another" })).await;
    assert_eq!(same["maxAttemptsPerSecond"], 5, "a change without the member keeps it");
    let pulled = change(&entity, &hook, json!({ "delivery": "pull" })).await;
    assert!(pulled.get("maxAttemptsPerSecond").is_none(), "{pulled:#}");
}
