//! A webhook's rate limit: its attempts are spaced out, further deliveries wait in line, and other webhooks' deliveries
//! do not wait.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    delivery_list::publish,
    harness::{
        Behaviour, Entity, Hook, LONG, Moment, Receiver, Settings, Suite, Table,
        counts::counted,
        feed::{confirm, read_some},
        now, outcomes, time, until,
    },
    pauses::{key, paused_in},
};

fn limited(url: &str, limit: u32) -> Value {
    json!({ "name": "limited", "eventUrl": url, "eventList": [], "maxAttemptsPerSecond": limit })
}

async fn change(entity: &Entity, hook: &Hook, members: Value) -> Value {
    entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&members).expect(200).await.json()
}

/// Sends a webhook its first event, then makes its line this many seconds long, as if others were waiting in it.
async fn with_line(table: &Table, entity: &Entity, hook: &Hook, seconds: i64) {
    let first = entity.publish(json!({})).await;
    entity.until_status(&first, &["delivered"]).await;
    let line = format!("RATE#{}", hook.id);
    let mut line = table.scan().await.into_iter().find(|item| item["pk"]["S"] == line.as_str()).expect("its line");
    line["nextAt"] = json!({ "N": ((now() + seconds) * 1_000_000).to_string() });
    table.put(line).await;
}

#[contract_test]
async fn attempts_of_a_webhook_are_spaced(suite: Arc<Suite>) {
    const EVENTS: usize = 20;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(503), Behaviour::status(200)]);
    let hook = entity.hook_with(limited(&url, 2)).await;
    assert_eq!(hook.json["maxAttemptsPerSecond"], 2);
    let millis = |value: &Value| time(value).as_millisecond();
    let (mut created, mut times) = (Vec::new(), Vec::new());
    for delivery in publish(&entity, "booking.created", EVENTS).await {
        let shown = entity.until_status(&delivery, &["delivered"]).await;
        created.push(millis(&shown["createdDate"]));
        let attempts = shown["attempts"].as_array().expect("openapi.yaml says so").iter();
        times.extend(attempts.map(|attempt| millis(&attempt["attemptDate"])));
    }
    times.sort_unstable();
    // There is one attempt more than `EVENTS`: a retry, since the first attempt fails. On a machine that stalls,
    // interrupted attempts are added.
    assert!(times.len() > EVENTS, "{times:?}");
    // No attempt comes before its slot, and the slots are half a second apart.
    let mut slot = created.into_iter().min().expect("some events");
    for at in &times {
        assert!(at + 50 >= slot, "an attempt came {} ms before its slot: {times:?}", slot - at);
        slot += 500;
    }
    for (number, window) in times.windows(11).enumerate() {
        // Eleven slots span five seconds. An attempt may use its slot two seconds late, and may begin even later; if a
        // machine stalls, several begin when the stall ends.
        let span = window[10] - window[0];
        assert!(span >= 1_000, "from attempt {number} on, 11 came within {span} ms");
    }
}

#[contract_test]
async fn a_delivery_in_line_says_so_and_goes_when_the_limit_is_removed(suite: Arc<Suite>) {
    const EVENTS: usize = 12;
    /// Longer than any test waits.
    const TEN_MINUTES: i64 = 10 * 60;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(limited(&receiver.on("/", [Behaviour::status(200)]), 1)).await;
    with_line(&suite.table(), &entity, &hook, TEN_MINUTES).await;
    let other = receiver.on("/other", [Behaviour::status(200)]);
    let other = entity.hook_with(json!({ "name": "other", "eventUrl": other, "eventList": [] })).await;
    let (mut in_line, mut of_other) = (Vec::new(), Vec::new());
    for delivery in publish(&entity, "booking.created", EVENTS).await {
        let shown = entity.delivery(&delivery).await;
        let whose = if shown["webhookIdentifier"] == other.id.as_str() { &mut of_other } else { &mut in_line };
        whose.push(delivery);
    }
    let mut turns = BTreeSet::new();
    for delivery in &in_line {
        let shown = entity.until_delivery(delivery, "is in line", |shown| shown["waitingFor"] == "rate").await;
        turns.insert(shown["nextAttemptDate"].as_str().expect("a time").to_owned());
    }
    assert_eq!((in_line.len(), turns.len()), (EVENTS, EVENTS), "each has another turn");
    // One webhook's line delays no other webhook.
    for delivery in &of_other {
        entity.until_status(delivery, &["delivered"]).await;
    }
    assert_eq!((of_other.len(), receiver.received("/").len()), (EVENTS, 1));

    let changed = change(&entity, &hook, json!({ "maxAttemptsPerSecond": null })).await;
    assert!(changed.get("maxAttemptsPerSecond").is_none(), "{changed:#}");
    for delivery in &in_line {
        assert_eq!(outcomes(&entity.until_status(delivery, &["delivered"]).await), 1);
    }
}

#[contract_test]
async fn a_change_to_pull_while_an_attempt_waits_for_its_turn_sends_nothing(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "limited".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(limited(&receiver.on("/", [Behaviour::status(200)]), 1)).await;
    // A held call fails after some seconds, and a function may take longer to start: this one is running by then.
    change(&entity, &hook, json!({ "name": "limited" })).await;
    let line = format!("RATE#{}", hook.id);
    let mut slot = setup.table.hold("a slot is reserved", Moment::After, move |call| call.mentions(&line));
    let delivery = entity.publish(json!({})).await;
    slot.reached().await;
    change(&entity, &hook, json!({ "delivery": "pull" })).await;
    // By then, the webhook state that the dispatcher has read is out of date, especially on a slow machine.
    sleep(Duration::from_millis(500)).await;
    slot.release();
    let read = read_some(&entity, &hook, json!({ "visibility": 600 })).await;
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
    // Others have an hour's wait in line, and the breaker's pause is over.
    let table = suite.table();
    with_line(&table, &entity, &hook, HOUR).await;
    // If a success were counted later, it would end the pause.
    counted(&entity, &hook, 1).await;
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
async fn a_test_event_does_not_wait_in_line(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook_with(limited(&receiver.on("/", [Behaviour::status(204)]), 1)).await;
    with_line(&suite.table(), &entity, &hook, 3600).await;
    let waits = entity.publish(json!({})).await;
    entity.until_delivery(&waits, "is in line", |shown| shown["waitingFor"] == "rate").await;
    let sent = entity.post(&format!("/webhook/{}/test", hook.id)).expect(202).await.json();
    let test = sent["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    entity.until_status(test, &["delivered"]).await;
    assert_eq!(entity.delivery(&waits).await["status"], "pending");
}

#[contract_test]
async fn a_bad_limit_is_refused_and_a_pulled_webhook_has_none(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    for bad in [json!(0), json!(101), json!(1.5), json!("5"), json!(true)] {
        let body = json!({ "name": "n", "eventUrl": url, "eventList": [], "maxAttemptsPerSecond": bad });
        let refused = entity.post("/webhook").json(&body).expect(400).await.json();
        assert_eq!(refused["properties"]["violations"][0]["pointer"], "/maxAttemptsPerSecond", "{bad}: {refused:#}");
    }
    let pulled = json!({ "name": "n", "delivery": "pull", "eventList": [], "maxAttemptsPerSecond": 5 });
    let refused = entity.post("/webhook").json(&pulled).expect(400).await.json();
    assert_eq!(refused["properties"]["violations"][0]["pointer"], "/maxAttemptsPerSecond");

    let hook = entity.hook_with(limited(&url, 5)).await;
    let same = change(&entity, &hook, json!({ "name": "another" })).await;
    assert_eq!(same["maxAttemptsPerSecond"], 5, "a change without the member keeps it");
    let pulled = change(&entity, &hook, json!({ "delivery": "pull" })).await;
    assert!(pulled.get("maxAttemptsPerSecond").is_none(), "{pulled:#}");
}
