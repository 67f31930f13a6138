//! Replays: stored events that match a webhook but have no delivery to it are delivered, once each. For this purpose,
//! events that match no webhook are stored.

use std::sync::Arc;

use base::{SystemRandom, Time, ids::body_at, random::uuid};
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::{hook_for, ids, whole},
    erasing::erase,
    harness::{
        Behaviour, Call, Entity, Hook, LONG, Receiver, Settings, Suite, Table, invalid_values, is_limited, now, stored,
        until, window_start,
    },
};

/// The age of these tests' events: a replay leaves the newest events for later.
const AGE: i64 = 3_600;
/// A type that the first webhook in these tests does not subscribe to.
const UNWANTED: &str = "booking.created";

fn replay(entity: &Entity, hook: &Hook, request: &Value) -> Call {
    entity.post(&format!("/webhook/{}/replay", hook.id)).json(request)
}

/// A range that contains these tests' events.
fn range() -> Value {
    json!({ "createdFrom": "2020-01-01T00:00:00Z", "createdUntil": before(AGE / 2) })
}

/// The time that was this many seconds ago.
pub fn before(seconds: i64) -> String {
    Time::from_millis((now() - seconds) * 1_000).to_string()
}

fn dry(mut request: Value) -> Value {
    request["dryRun"] = true.into();
    request
}

/// Makes an event that has no deliveries an hour older; returns its new identifier.
pub async fn aged(table: &Table, event: &str) -> String {
    let mut item = table.event(event).await.expect("it is kept");
    let (pk, sk) = stored::event_key(event);
    let body = body_at(Time::from_millis((now() - AGE) * 1_000));
    let older = format!("evt_{body}{}", &event[4 + body.len()..]);
    item["sk"] = json!({ "S": older });
    table.put(item).await;
    table.remove(&pk, &sk).await;
    older
}

/// Publishes an event that matches no webhook, and makes it an hour older.
async fn unmatched(suite: &Suite, entity: &Entity, data: Value) -> String {
    let published = entity.publish_of_type(UNWANTED, data).await.json();
    assert_eq!((&published["kept"], &published["deliveries"]), (&json!(true), &json!([])), "{published:#}");
    aged(&suite.table(), published["eventIdentifier"].as_str().expect("openapi.yaml says so")).await
}

/// Waits until all of these events are in the index.
async fn until_counted(entity: &Entity, hook: &Hook, request: &Value, expected: u64) {
    let what = format!("{expected} events are to be replayed");
    until(&what, LONG, async || {
        forget_requests(entity).await;
        let counted = replay(entity, hook, &dry(request.clone())).expect(202).await.json();
        (counted["count"] == expected).then_some(())
    })
    .await;
}

/// Removes the count of requests in the current minute.
async fn forget_requests(entity: &Entity) {
    let minute = window_start(60);
    let counted = format!("ALLOWANCE#replays#{}", entity.id);
    Table::of(&entity.api().env).remove(&counted, &format!("{minute:010}")).await;
}

#[contract_test]
async fn a_new_webhook_gets_the_events_of_the_past(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook_for(&entity, "payee.created", &receiver.on("/other", [Behaviour::status(200)])).await;
    let mut events = Vec::new();
    for number in 0..3 {
        events.push(unmatched(&suite, &entity, json!({ "number": number })).await);
    }
    let hook = hook_for(&entity, UNWANTED, &receiver.on("/", [Behaviour::status(200)])).await;
    until_counted(&entity, &hook, &range(), 3).await;
    assert!(receiver.received("/").is_empty(), "a dry run only counts");

    let begun = replay(&entity, &hook, &range()).expect(202).await.json();
    assert_eq!((&begun["count"], &begun["dryRun"]), (&json!(3), &json!(false)), "{begun:#}");
    for request in receiver.until("/", 3).await {
        assert!(request.header("service-delivery-id").starts_with("dlv_"));
    }
    for event in &events {
        let shown = until("the delivery is final", LONG, async || {
            let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
            (shown["deliveries"][0]["status"] == "delivered").then_some(shown)
        })
        .await;
        let delivery = &shown["deliveries"][0];
        assert_eq!(delivery["webhookIdentifier"], hook.id.as_str(), "{shown:#}");
        assert_eq!(delivery["attemptCount"], 1, "{shown:#}");
    }
    let listed = until("the index has every delivery", LONG, async || {
        let listed = whole(&entity, &format!("webhookIdentifier={}", hook.id), 25).await;
        (listed.len() == 3).then_some(listed)
    })
    .await;
    assert_eq!(ids(&listed).len(), 3);
    assert!(receiver.received("/other").is_empty());
}

#[contract_test]
async fn a_repeated_replay_adds_no_second_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook_for(&entity, "payee.created", &receiver.on("/other", [Behaviour::status(200)])).await;
    let first = unmatched(&suite, &entity, json!({ "number": 1 })).await;
    let hook = hook_for(&entity, UNWANTED, &receiver.on("/", [Behaviour::status(200)])).await;
    let range = range();
    until_counted(&entity, &hook, &range, 1).await;
    for _ in 0..3 {
        replay(&entity, &hook, &range).expect(202).await;
    }
    receiver.until("/", 1).await;
    until_counted(&entity, &hook, &range, 0).await;
    let nothing = replay(&entity, &hook, &range).expect(202).await.json();
    assert!(nothing["message"].as_str().is_some_and(|said| said.contains("already has a delivery")), "{nothing:#}");

    // The job for the last requests may still be running; it starts over, since the webhook was changed.
    unmatched_again(&suite, &entity, &hook, &range).await;
    replay(&entity, &hook, &range).expect(202).await;
    receiver.until("/", 2).await;
    let shown = entity.get(&format!("/webhook/event/{first}")).expect(200).await.json();
    assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(1), "{shown:#}");
    assert_eq!(receiver.received("/").len(), 2);
}

/// Adds another event that the webhook did not get because it was disabled.
async fn unmatched_again(suite: &Suite, entity: &Entity, hook: &Hook, range: &Value) {
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    unmatched(suite, entity, json!({ "number": 2 })).await;
    replay(entity, hook, range).refused(409, "webhook-disabled").await;
    until_counted(entity, hook, range, 1).await;
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    until_counted(entity, hook, range, 1).await;
}

/// A replay up to the present waits a minute and a half for the last events in its range.
#[contract_test]
async fn a_webhook_has_one_replay_at_a_time(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = hook_for(&entity, UNWANTED, &receiver.on("/", [Behaviour::status(200)])).await;
    let begun = json!({ "createdFrom": "2026-01-01T00:00:00Z" });
    for _ in 0..2 {
        replay(&entity, &hook, &begun).expect(202).await;
    }
    let later = json!({ "createdFrom": "2026-01-02T00:00:00Z" });
    let shorter = json!({ "createdFrom": "2026-01-01T00:00:00Z", "createdUntil": before(0) });
    let other_types = json!({ "createdFrom": "2026-01-01T00:00:00Z", "types": ["booking.*"] });
    for other in [&later, &shorter, &other_types] {
        let problem = replay(&entity, &hook, other).refused(409, "replay-under-way").await;
        let detail = problem["detail"].as_str().expect("a Problem has one");
        assert!(detail.contains("from 2026-01-01T00:00:00.000Z until "), "{detail}");
    }
    replay(&entity, &hook, &dry(later.clone())).expect(202).await;
    let second = hook_for(&entity, UNWANTED, &receiver.on("/second", [Behaviour::status(200)])).await;
    replay(&entity, &second, &later).expect(202).await;
}

#[contract_test]
async fn a_count_ends_after_eight_mebibytes_of_bodies(suite: Arc<Suite>) {
    /// The number of events that are examined together.
    const AT_ONCE: u64 = 25;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook_for(&entity, "payee.created", &receiver.on("/other", [Behaviour::status(200)])).await;
    // The beginning of the data cannot be compressed, so the body is stored separately from the event.
    let random: String = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let text = format!("x{random}{}", "x".repeat(242_000));
    for _ in 0..=2 * AT_ONCE {
        entity.publish_of_type(UNWANTED, json!({ "text": text })).await;
    }
    let whole = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let all = hook_for(&entity, UNWANTED, &receiver.on("/", [Behaviour::status(200)])).await;
    until_counted(&entity, &all, &whole, 2 * AT_ONCE + 1).await;
    let filtered = json!({
        "name": "test", "eventUrl": receiver.on("/", [Behaviour::status(200)]), "eventList": ["booking.*"],
        "eventFilter": { "text": [{ "prefix": "x" }] },
    });
    let filtered = entity.hook_with(filtered).await;
    let counted = replay(&entity, &filtered, &dry(whole)).expect(202).await.json();
    let is_part = counted["count"].as_u64().is_some_and(|count| (AT_ONCE..=2 * AT_ONCE).contains(&count));
    assert!(is_part && counted["countIsExact"] == false, "{counted:#}");
}

#[contract_test]
async fn only_events_that_match_now_are_replayed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook_for(&entity, "payee.created", &receiver.on("/other", [Behaviour::status(200)])).await;
    let [wanted, cheap, erased] = [100, 1, 100].map(|total| json!({ "total": total }));
    let wanted = unmatched(&suite, &entity, wanted).await;
    unmatched(&suite, &entity, cheap).await;
    let erased = unmatched(&suite, &entity, erased).await;
    let hook = json!({
        "name": "test", "eventUrl": receiver.on("/", [Behaviour::status(200)]), "eventList": ["booking.*"],
        "eventFilter": { "total": [{ "numeric": [">=", 50] }] },
    });
    let hook = entity.hook_with(hook).await;
    until_counted(&entity, &hook, &range(), 2).await;
    erase(&entity, &erased).await;
    until_counted(&entity, &hook, &range(), 1).await;
    let mut other_types = range();
    other_types["types"] = json!(["booking.cancelled"]);
    until_counted(&entity, &hook, &other_types, 0).await;
    let mut same_types = range();
    same_types["types"] = json!(["booking.*"]);
    replay(&entity, &hook, &same_types).expect(202).await;
    let requests = receiver.until("/", 1).await;
    assert_eq!(requests[0].json()["data"]["total"], 100);
    let shown = entity.get(&format!("/webhook/event/{wanted}")).expect(200).await.json();
    assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(1), "{shown:#}");
    until_counted(&entity, &hook, &range(), 0).await;
    assert_eq!(receiver.received("/").len(), 1);
}

#[contract_test]
async fn a_pull_webhook_gets_replayed_events_in_its_feed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook_for(&entity, "payee.created", &receiver.on("/other", [Behaviour::status(200)])).await;
    unmatched(&suite, &entity, json!({ "number": 1 })).await;
    let hook = json!({ "name": "feed", "delivery": "pull", "eventList": [UNWANTED] });
    let hook = entity.hook_with(hook).await;
    until_counted(&entity, &hook, &range(), 1).await;
    replay(&entity, &hook, &range()).expect(202).await;
    until("the feed has the event", LONG, async || {
        let read = entity.post(&format!("/webhook/{}/feed/read", hook.id)).json(&json!({})).expect(200).await.json();
        read["items"].as_array().is_some_and(|items| items.len() == 1).then_some(())
    })
    .await;
}

#[contract_test]
async fn an_event_without_a_matching_webhook_is_listed_without_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let none = entity.publish_of_type(UNWANTED, json!({})).await.json();
    assert_eq!(none["kept"], false, "the entity has no webhook");
    hook_for(&entity, "payee.created", &receiver.on("/", [Behaviour::status(200)])).await;
    let kept = entity.publish_of_type(UNWANTED, json!({ "a": 1 })).await.json();
    assert_eq!((&kept["kept"], &kept["deliveries"]), (&json!(true), &json!([])));
    let id = kept["eventIdentifier"].as_str().expect("openapi.yaml says so");
    let shown = entity.get(&format!("/webhook/event/{id}")).expect(200).await.json();
    assert_eq!((&shown["data"], &shown["deliveries"]), (&json!({ "a": 1 }), &json!([])));
    let listed = until("the event is listed", LONG, async || {
        let page = entity.get("/webhook/event").expect(200).await.json();
        page["items"].as_array().is_some_and(|items| items.len() == 1).then_some(page)
    })
    .await;
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["deliveries"]), (&json!(id), &json!([])));
}

#[contract_test]
async fn an_operator_can_choose_not_to_keep_events_without_a_webhook(suite: Arc<Suite>) {
    let settings = Settings::default().with("KEEP_UNMATCHED_EVENTS", "false");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "unkept".to_owned()).await;
    let receiver = Receiver::start().await;
    hook_for(&entity, "payee.created", &receiver.on("/", [Behaviour::status(200)])).await;
    let published = entity.publish_of_type(UNWANTED, json!({})).await.json();
    assert_eq!(published["kept"], false, "{published:#}");
    let id = published["eventIdentifier"].as_str().expect("openapi.yaml says so");
    entity.get(&format!("/webhook/event/{id}")).refused(404, "event-not-found").await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_request_for_a_replay_is_checked_and_limited(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    for (request, pointers) in [
        (json!({}), &["body/createdFrom"][..]),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "types": ["nope"] }), &["body/types/0"]),
        (
            json!({ "createdFrom": "2026-01-02T00:00:00Z", "createdUntil": "2026-01-01T00:00:00Z" }),
            &["body/createdUntil"],
        ),
    ] {
        let problem = replay(&entity, &hook, &request).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), pointers, "{request}");
    }
    suite.table().count_as_used(&format!("replays#{}", entity.id), 60, 20).await;
    is_limited(&replay(&entity, &hook, &dry(range())).expect(429).await, "replays", 20, 60);
}
