//! Operational events about webhooks: published once, to every subscribed webhook except the one that they concern, and
//! never in an endless loop.

use std::{collections::BTreeSet, sync::Arc};

use base::Time;
use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    harness::{Behaviour, Entity, Hook, LONG, LONG_AGO, Receiver, Suite, now, outcomes, stored, time, until},
    pauses::{key, paused_in},
    sweep::overdue,
};

/// Creates a webhook for some event types.
async fn hook_for(entity: &Entity, url: &str, kinds: &[&str]) -> Hook {
    entity.hook_with(json!({ "name": format!("for {kinds:?}"), "eventUrl": url, "eventList": kinds })).await
}

/// Waits until none of the entity's events is in the outbox and every delivery is final; returns the deliveries' heads.
async fn until_quiet(suite: &Suite, entity: &Entity) -> Vec<Value> {
    until("nothing is due any more", LONG, async || {
        // A scan misses an event that leaves the outbox during the scan; the next scan finds it.
        quiet(suite, entity).await?;
        quiet(suite, entity).await
    })
    .await
}

/// The heads of the entity's deliveries, if this scan finds none open.
async fn quiet(suite: &Suite, entity: &Entity) -> Option<Vec<Value>> {
    let mut items = suite.table().scan().await;
    items.retain(|item| item["ownerIdentifier"]["S"] == entity.id.as_str());
    let heads: Vec<_> = items.iter().filter(|item| stored::is_head(item)).collect();
    let ids: BTreeSet<&str> = heads.iter().filter_map(|head| head["sk"]["S"].as_str()).collect();
    let mut deliveries = items.iter().filter(|item| stored::is_event(item)).flat_map(|event| {
        let id = event["sk"]["S"].as_str().expect("a text");
        let targets = event["targets"]["L"].as_array().expect("a list").len();
        (0..targets).map(move |ordinal| stored::delivery_id(id, ordinal))
    });
    let is_quiet = deliveries.all(|delivery| ids.contains(delivery.as_str()))
        && heads.iter().all(|head| head.get("claimableAt").is_none())
        && items.iter().all(|item| item["dueShard"].is_null());
    is_quiet.then(|| heads.into_iter().cloned().collect())
}

#[contract_test]
async fn a_failing_webhook_is_announced_once_an_hour_while_it_fails(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let failing = entity.hook(&receiver.on("/failing", [Behaviour::status(500)])).await;
    hook_for(&entity, &receiver.on("/listener", [Behaviour::status(200)]), &["webhook.failing"]).await;
    let pk = format!("ENT#{}", entity.id);
    let sk = format!("HLT#{}", failing.id);
    fails(&entity, &failing).await;
    let first = announced(&failing, &receiver.until("/listener", 1).await[0].json());
    assert!(suite.table().item(&pk, &sk).await.is_some_and(|health| health["tellAfter"].is_null()));

    receiver.on("/failing", [Behaviour::status(200)]);
    let healing = entity.publish(json!({})).await;
    entity.until_status(&healing, &["delivered"]).await;
    until_health(&entity, &failing, "healthy").await;

    // The next failure streak begins within the hour, so it is recorded but not announced yet.
    receiver.on("/failing", [Behaviour::status(500)]);
    fails(&entity, &failing).await;
    until_quiet(&suite, &entity).await;
    assert_eq!(receiver.received("/listener").len(), 1, "two failure streaks within an hour are announced once");

    // The hour is over, and the webhook is still failing.
    let past = "2026-01-01T00:00:00.000Z";
    // In this order: a failure counted between the two changes would set the time of the next announcement again.
    suite.table().remove(&format!("ANNOUNCED#ENT#{}", entity.id), "webhook.failing").await;
    assert!(suite.table().set(&pk, &sk, "tellAfter", past).await, "the item has the time of the next announcement");
    fails(&entity, &failing).await;
    let second = announced(&failing, &receiver.until("/listener", 2).await[1].json());
    assert!(time(&second["since"]) > time(&first["since"]), "{first:#} {second:#}");
    fails(&entity, &failing).await;
    until_quiet(&suite, &entity).await;
    assert_eq!(receiver.received("/listener").len(), 2, "a failure streak is announced once");
    let types: Vec<Value> =
        receiver.received("/failing").iter().map(|request| request.json()["type"].clone()).collect();
    assert!(types.iter().all(|kind| kind == "booking.created"), "the webhook received events about itself: {types:?}");
}

/// Makes two deliveries fail, which causes more than five failed attempts in a row.
async fn fails(entity: &Entity, hook: &Hook) {
    for _ in 0..2 {
        let id = entity.publish(json!({})).await;
        entity.until_status(&id, &["failed"]).await;
    }
    until_health(entity, hook, "failing").await;
}

async fn until_health(entity: &Entity, hook: &Hook, health: &str) {
    until(&format!("the webhook is {health}"), LONG, async || {
        (entity.listed(hook).await["health"] == health).then_some(())
    })
    .await;
}

fn announced(failing: &Hook, event: &Value) -> Value {
    assert_eq!(event["type"], "webhook.failing");
    let data = &event["data"];
    assert_eq!((&data["webhookIdentifier"], &data["name"]), (&json!(failing.id), &json!("test")), "{event:#}");
    assert!(data["failuresInRow"].as_u64() >= Some(5) && data["lastHttpStatus"] == 500, "{event:#}");
    for absent in ["lastError", "lastErrorCode", "lastErrorDetail"] {
        assert!(data.get(absent).is_none(), "{event:#}");
    }
    assert!(time(&data["since"]) <= time(&event["timestamp"]), "{event:#}");
    let mut listed = data.clone();
    listed.as_object_mut().expect("the data is an object").remove("webhooks");
    assert_eq!(data["webhooks"], json!([listed]), "{event:#}");
    data.clone()
}

/// Every webhook subscribes to every event. If each failing webhook were announced to all others, the number of events
/// would grow quadratically with the number of webhooks.
#[contract_test]
async fn many_failing_webhooks_cause_events_in_proportion_to_their_number(suite: Arc<Suite>) {
    const HOOKS: usize = 24;
    const EVENTS: usize = 2;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let mut hooks = Vec::new();
    for number in 0..HOOKS {
        hooks.push(entity.hook(&receiver.on(&format!("/{number}"), [Behaviour::status(500)])).await);
    }
    for _ in 0..EVENTS {
        entity.publish_of_type("booking.created", json!({})).await;
    }
    // The attempts are counted after they are recorded.
    until("every other webhook is to be announced after the hour", LONG, async || {
        let mut announced_later = 0;
        for hook in &hooks {
            let health = suite.table().item(&format!("ENT#{}", entity.id), &format!("HLT#{}", hook.id)).await?;
            announced_later += usize::from(!health["tellAfter"].is_null());
        }
        (announced_later == HOOKS - 1).then_some(())
    })
    .await;
    let heads = until_quiet(&suite, &entity).await;
    let deliveries_of = |kind: &str| heads.iter().filter(|head| head["type"]["S"] == kind).count();
    assert_eq!(deliveries_of("booking.created"), EVENTS * HOOKS);
    let failing = deliveries_of("webhook.failing");
    assert!((1..HOOKS).contains(&failing), "one event lists all failing webhooks, but {failing} were sent");
    // The test may begin in one hour on the clock and end in the next.
    let exhausted = deliveries_of("webhook.delivery.exhausted");
    assert!(exhausted <= 2 * 10 * (HOOKS - 1), "{exhausted} deliveries of webhook.delivery.exhausted");
}

#[contract_test]
async fn a_webhook_that_is_gone_is_announced(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let gone = entity.hook(&receiver.on("/gone", [Behaviour::status(410)])).await;
    hook_for(&entity, &receiver.on("/listener", [Behaviour::status(200)]), &["webhook.disabled"]).await;
    let listed = entity.until_gone(&gone).await;
    let event = receiver.until("/listener", 1).await[0].json();
    let reason = "The endpoint answered 410 Gone.";
    assert_eq!(event["data"], json!({ "webhookIdentifier": gone.id, "name": "test", "reason": reason }));
    assert_eq!(listed["disabledReason"], reason);
    until_quiet(&suite, &entity).await;
    assert_eq!(receiver.received("/listener").len(), 1);
}

#[contract_test]
async fn a_delivery_that_fails_for_good_is_announced(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let script = [Behaviour::status(500), Behaviour::status(404), Behaviour::close()];
    let failing = hook_for(&entity, &receiver.on("/failing", script), &["booking.created"]).await;
    hook_for(&entity, &receiver.on("/listener", [Behaviour::status(200)]), &["webhook.delivery.exhausted"]).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_status(&id, &["failed"]).await;
    let event = receiver.until("/listener", 1).await[0].json();
    assert_eq!(
        event["data"],
        json!({
            "deliveryIdentifier": id,
            "webhookIdentifier": failing.id,
            "eventIdentifier": delivery["event"]["id"],
            "type": "booking.created",
            "attemptCount": delivery["attempts"].as_array().expect("openapi.yaml says so").len(),
            "lastHttpStatus": null,
        })
    );
    assert_eq!(outcomes(&delivery), 3);
    until_quiet(&suite, &entity).await;
    assert_eq!(receiver.received("/listener").len(), 1);
}

#[contract_test]
async fn two_failing_webhooks_do_not_announce_each_other_without_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let one = entity.hook(&receiver.on("/one", [Behaviour::status(500)])).await;
    let two = entity.hook(&receiver.on("/two", [Behaviour::status(500)])).await;
    for _ in 0..2 {
        entity.publish_of_type("booking.created", json!({})).await;
    }
    // The attempts are counted after they are recorded.
    for hook in [&one, &two] {
        until_health(&entity, hook, "failing").await;
    }
    let heads = until_quiet(&suite, &entity).await;
    let mut sent: Vec<(&str, &str, &str)> = heads
        .iter()
        .map(|head| {
            let text = |name: &str| head[name]["S"].as_str().expect("a head has this attribute");
            (text("webhookIdentifier"), text("type"), text("status"))
        })
        .collect();
    sent.sort_unstable();
    // One webhook gets the hour's only event, which is about the other.
    let failing = sent.iter().position(|(_, kind, _)| *kind == "webhook.failing").expect("one is announced");
    let (informed, _, status) = sent.remove(failing);
    assert!([&one, &two].iter().any(|hook| hook.id == informed) && status == "failed");
    // Each webhook gets the events, plus one about the other's exhausted delivery.
    let mut expected: Vec<(&str, &str, &str)> = [&one, &two]
        .into_iter()
        .flat_map(|hook| {
            ["booking.created", "booking.created", "webhook.delivery.exhausted"]
                .map(|kind| (hook.id.as_str(), kind, "failed"))
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(sent, expected);
}

#[contract_test]
async fn many_deliveries_that_fail_at_once_are_announced_once_and_all_recorded(suite: Arc<Suite>) {
    const EVENTS: usize = 40;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook_for(&entity, &receiver.on("/failing", [Behaviour::status(500)]), &["booking.created"]).await;
    hook_for(&entity, &receiver.on("/listener", [Behaviour::status(200)]), &["webhook.delivery.exhausted"]).await;
    let mut attempts = 0;
    for id in join_all((0..EVENTS).map(|_| entity.publish(json!({})))).await {
        let delivery = entity.until_status(&id, &["failed"]).await;
        assert_eq!(outcomes(&delivery), 3, "{delivery:#}");
        attempts += delivery["attempts"].as_array().expect("openapi.yaml says so").len();
    }
    until_quiet(&suite, &entity).await;
    // The endpoint may or may not have received the request of an interrupted attempt.
    let received = receiver.received("/failing").len();
    assert!((3 * EVENTS..=attempts).contains(&received), "{received} requests, {attempts} attempts");
    assert_eq!(receiver.received("/listener").len(), 1);
}

#[contract_test]
async fn a_webhook_gone_twice_in_an_hour_is_disabled_twice_and_announced_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let gone = hook_for(&entity, &receiver.on("/gone", [Behaviour::status(410)]), &["booking.created"]).await;
    hook_for(&entity, &receiver.on("/listener", [Behaviour::status(200)]), &["webhook.disabled"]).await;
    for _ in 0..2 {
        let listed = entity.until_gone(&gone).await;
        assert_eq!(listed["disabledReason"], "The endpoint answered 410 Gone.");
        entity.changed(&gone.id, json!({ "enabled": true })).await;
    }
    until_quiet(&suite, &entity).await;
    assert_eq!(receiver.received("/listener").len(), 1);
}

async fn disable_another(entity: &Entity, receiver: &Receiver) {
    let gone = receiver.on("/gone", [Behaviour::status(410)]);
    let gone = hook_for(entity, &gone, &["booking.created"]).await;
    entity.until_gone(&gone).await;
}

#[contract_test]
async fn attempts_of_operational_events_change_no_health_and_set_off_no_event(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let listener = hook_for(&entity, &receiver.on("/listener", [Behaviour::status(500)]), &["webhook.disabled"]).await;
    let gone_too = receiver.on("/gone-too", [Behaviour::status(410)]);
    let gone_too = hook_for(&entity, &gone_too, &["webhook.disabled"]).await;
    let all = ["webhook.failing", "webhook.disabled", "webhook.delivery.exhausted"];
    hook_for(&entity, &receiver.on("/all", [Behaviour::status(200)]), &all).await;
    let mut events = 0;
    // Responding to an operational event with 410 disables the webhook; if the table is slow, the next 410 does.
    while events == 0 || entity.listed(&gone_too).await["enabled"] != false {
        disable_another(&entity, &receiver).await;
        events += 1;
        receiver.until("/listener", 3 * events).await;
        until_quiet(&suite, &entity).await;
    }
    let health = suite.table().item(&format!("ENT#{}", entity.id), &format!("HLT#{}", listener.id)).await;
    assert_eq!((receiver.received("/listener").len(), health), (3 * events, None));
    // An attempt that was interrupted on a stalled machine is repeated.
    let all: BTreeSet<_> = receiver.received("/all").iter().map(|one| one.header("webhook-id").to_owned()).collect();
    assert_eq!(all.len(), events, "an operational event caused another");
}

#[contract_test]
async fn an_operational_event_waits_for_an_open_breaker_and_is_not_its_probe(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let listener = hook_for(&entity, &receiver.on("/listener", [Behaviour::status(200)]), &["webhook.disabled"]).await;
    let table = suite.table();
    // The webhook gets no other event, so no attempt would ever close the breaker.
    let end = paused_in(&table, &entity, &listener, 1).await;
    disable_another(&entity, &receiver).await;
    let waiting = until("the event waits for the breaker", LONG, async || {
        let mut items = table.scan().await;
        items.retain(|item| stored::is_head(item) && item["webhookIdentifier"]["S"] == *listener.id);
        let head = items.pop()?;
        // A worker's lease would be shorter than this.
        (head["claimableAt"]["S"].as_str()? >= end.as_str()).then_some(head)
    })
    .await;
    assert!(receiver.received("/listener").is_empty());

    // The pause is over.
    let (pk, sk) = key(&entity, &listener);
    let mut open = table.item(&pk, &sk).await.expect("it is still open");
    open["openUntil"] = json!({ "S": LONG_AGO });
    table.put(open.clone()).await;
    overdue(&table, waiting["sk"]["S"].as_str().expect("a text"), LONG_AGO).await;
    receiver.until("/listener", 1).await;
    until_quiet(&suite, &entity).await;
    assert_eq!(table.item(&pk, &sk).await.as_ref(), Some(&open), "the attempt's outcome does not count");
    assert_eq!(entity.listed(&listener).await["health"], "open");
}

/// Ten webhooks subscribe to every event, their endpoints repeatedly fail five times and recover, and there are six
/// events. Regression test: this caused an endless loop of requests, since operational events caused each other.
#[contract_test]
async fn ten_webhooks_that_fail_and_recover_cost_their_neighbours_nothing(suite: Arc<Suite>) {
    const HOOKS: usize = 10;
    const EVENTS: usize = 6;
    const FAILURES: usize = 5;
    let entity = suite.entity().await;
    let neighbour = suite.entity().await;
    let receiver = Receiver::start().await;
    for number in 0..HOOKS {
        let spell = (0..=FAILURES).map(|attempt| Behaviour::status(if attempt < FAILURES { 500 } else { 200 }));
        let script: Vec<_> = spell.cycle().take(6_000).collect();
        entity.hook(&receiver.on(&format!("/{number}"), script)).await;
    }
    let gone = receiver.on("/neighbour-gone", [Behaviour::status(410)]);
    let gone = hook_for(&neighbour, &gone, &["booking.created"]).await;
    let listener = receiver.on("/neighbour-listener", [Behaviour::status(200)]);
    hook_for(&neighbour, &listener, &["webhook.disabled"]).await;

    join_all((0..EVENTS).map(|_| entity.publish_of_type("booking.created", json!({})))).await;
    let to_hooks = || receiver.everything().iter().filter(|request| !request.path.starts_with("/neighbour")).count();
    until("the endpoints have failed", LONG, async || (to_hooks() >= HOOKS * EVENTS * 2).then_some(())).await;
    neighbour.until_gone(&gone).await;
    until("the neighbour is sent its event", LONG, async || receiver.received("/neighbour-listener").pop()).await;

    // Each event goes to every webhook except the one that it concerns, and each delivery has three attempts. An
    // endless loop would exceed any number.
    let bound = |events: usize| 3 * (HOOKS * EVENTS + events * (HOOKS - 1));
    let heads = until("nothing is due any more", LONG, async || {
        assert!(to_hooks() <= bound(1 + 2 * HOOKS), "{} requests so far, and more follow", to_hooks());
        quiet(&suite, &entity).await?;
        quiet(&suite, &entity).await
    })
    .await;
    println!("ten webhooks that fail and recover, and six events: {} requests", to_hooks());
    let mut events = BTreeSet::new();
    for head in heads.iter().filter(|head| head["type"]["S"] != "booking.created") {
        events.insert((head["type"]["S"].to_string(), head["pk"]["S"].to_string()));
    }
    assert!(!events.is_empty(), "the webhooks get events about each other");
    for (kind, most) in [("webhook.failing", 1), ("webhook.delivery.exhausted", HOOKS), ("webhook.disabled", HOOKS)] {
        let count = events.iter().filter(|(other, _)| other.contains(kind)).count();
        assert!(count <= most, "{count} events of the type {kind}");
    }
    let bound = bound(events.len());
    assert!(to_hooks() <= bound, "{} requests, but at most {bound} are expected", to_hooks());
}

#[contract_test]
async fn unreadable_events_in_the_outbox_hold_up_none_behind_them(suite: Arc<Suite>) {
    /// The number of unreadable events, which is more than one read returns.
    const UNREADABLE: i64 = 40;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook_for(&entity, &receiver.on("/listener", [Behaviour::status(200)]), &["payment.connection.broken"]).await;
    let event = |number: i64| format!("evt_01m7w5gmev{}{number:02}00", "0".repeat(12));
    for number in 0..=UNREADABLE {
        let kind = if number < UNREADABLE { "nothing.happened" } else { "payment.connection.broken" };
        let at = Time::from_millis((now() - 60 + number) * 1_000).to_string();
        let item = json!({
            "pk": { "S": format!("OUTBOX#{}", event(number)) },
            "sk": { "S": "EVENT" },
            "dueShard": { "S": "OUTBOX#0" },
            "dueAt": { "S": at },
            "event": { "S": event(number) },
            "type": { "S": kind },
            "ownerIdentifier": { "S": entity.id },
            "timestamp": { "S": at },
            "data": { "S": r#"{"provider":"stripe"}"# },
        });
        suite.table().put(item).await;
    }
    let listener = receiver.until("/listener", 1).await;
    assert_eq!(
        (listener[0].header("webhook-id"), &listener[0].json()["data"]),
        (&*event(UNREADABLE), &json!({ "provider": "stripe" }))
    );
    for number in 0..=UNREADABLE {
        let pk = format!("OUTBOX#{}", event(number));
        let left = number < UNREADABLE;
        until("published events are removed", LONG, async || {
            (suite.table().item(&pk, "EVENT").await.is_some() == left).then_some(())
        })
        .await;
        suite.table().remove(&pk, "EVENT").await;
    }
}
