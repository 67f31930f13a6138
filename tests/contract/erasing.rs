//! Erasing an event's content: none of it remains in the table, but recipients, times and outcomes are still shown. The
//! tests also cover `retentionDays`, which lets a publisher store one event for less time than others.

use std::sync::Arc;

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    cancel_delivery::is_never_due,
    harness::{
        Behaviour, Entity, Gate, Hook, LONG, Receiver, Settings, Suite, Table,
        feed::{abandoned, pulled, read, read_some},
        outcomes, stored, time, until, until_a_round_counts,
    },
};

/// The name of an entity's guest, which the event contains and the endpoint's responses repeat.
fn guest_of(entity: &Entity) -> String {
    format!("guest-of-{}-Marlene-Quint", entity.id)
}

const DAY: i64 = 24 * 60 * 60;

fn text(value: &Value) -> String {
    value.as_str().expect("openapi.yaml says so").to_owned()
}

/// Publishes an event about the guest; returns its identifier and its deliveries.
async fn published(entity: &Entity, members: Value) -> (String, Vec<String>) {
    let guest = guest_of(entity);
    let mut body = json!({ "type": "booking.created", "subject": guest, "data": { "guest": guest } });
    let all = body.as_object_mut().expect("it is an object");
    all.extend(members.as_object().expect("members of an object").clone());
    let published = entity.post("/webhook/event").json(&body).expect(202).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
    let deliveries = deliveries.iter().map(|delivery| text(&delivery["deliveryIdentifier"])).collect();
    (text(&published["eventIdentifier"]), deliveries)
}

fn content(event: &str) -> String {
    format!("/webhook/event/{event}/content")
}

/// Erases an event's content with that of its deliveries. On a slow machine, the request leaves some deliveries to a
/// job; repeating the request completes the erasure.
pub async fn erase(entity: &Entity, event: &str) -> Value {
    until("the content is erased", LONG, async || {
        let answer = entity.call("DELETE", &content(event)).answered().await;
        assert!([200, 202].contains(&answer.status), "{}", answer.exchange);
        (answer.status == 200).then(|| answer.json())
    })
    .await
}

/// Waits until a delivery is final; returns the delivery.
async fn ended(entity: &Entity, delivery: &str) -> Value {
    entity.until_status(delivery, &["delivered", "failed", "cancelled"]).await
}

/// The table's items that belong to an event or contain the guest's name.
pub async fn items_about(table: &Table, event: &str, guest: &str) -> Vec<Value> {
    let body = event.trim_start_matches("evt_");
    let body = &body[..body.len() - 2];
    let is_about = |item: &Value| {
        let all = item.to_string();
        all.contains(guest) || all.contains(body)
    };
    table.scan().await.into_iter().filter(is_about).collect()
}

/// The items among these that still have content.
pub fn left_in(items: &[Value], guest: &str) -> Vec<String> {
    let has_left = |item: &&Value| {
        let all = item.to_string();
        let names = ["content", "subject", "subjectKey", "warnings", "responseBody"];
        all.contains(guest) || names.iter().any(|name| all.contains(&format!("\"{name}\":")))
    };
    // An idempotency key's plan lists the nonconforming members for a day.
    let is_plan = |item: &&Value| item["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with("IDEMPOTENCY#"));
    items.iter().filter(|item| !is_plan(item)).filter(has_left).map(Value::to_string).collect()
}

async fn nothing_is_left(table: &Table, entity: &Entity, event: &str) {
    let guest = guest_of(entity);
    let items = items_about(table, event, &guest).await;
    assert!(!items.is_empty(), "the event itself stays");
    let left = left_in(&items, &guest);
    assert!(left.is_empty(), "{left:#?}");
}

#[contract_test]
async fn an_erased_event_leaves_who_when_and_outcome(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let guest = guest_of(&entity);
    let receiver = Receiver::start().await;
    let large = format!("{guest}{}", "x".repeat(3_900));
    for (path, answer) in [("/small", guest.clone()), ("/large", large)] {
        entity.hook(&receiver.on(path, [Behaviour::answer(200, &[], answer)])).await;
    }
    let (event, deliveries) = published(&entity, json!({})).await;
    let mut before = Vec::new();
    for delivery in &deliveries {
        before.push(ended(&entity, delivery).await);
    }
    let kept = items_about(&suite.table(), &event, &guest).await;
    assert!(left_in(&kept, &guest).len() >= 4, "event, two heads, and a large attempt: {kept:#?}");

    let erased = erase(&entity, &event).await;
    assert_eq!((&erased["id"], erased.get("success")), (&json!(event), None));
    nothing_is_left(&suite.table(), &entity, &event).await;

    let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
    assert_eq!((&shown["data"], &shown["erasedDate"]), (&json!({}), &erased["erasedDate"]));
    assert!(shown.get("subject").is_none() && shown["deliveries"].as_array().is_some_and(|all| all.len() == 2));
    for (delivery, before) in deliveries.iter().zip(before) {
        let after = entity.delivery(delivery).await;
        assert_eq!(after["erasedDate"], erased["erasedDate"]);
        for member in ["status", "attemptCount", "lastUpdate", "url", "webhookIdentifier", "type", "createdDate"] {
            assert_eq!(after[member], before[member], "{member}");
        }
        assert!(after.get("subject").is_none() && after.get("cancelReason").is_none(), "{after:#}");
        assert_eq!(after["event"]["data"], json!({}));
        let attempt = &after["attempts"][0];
        assert!(before["attempts"][0]["responseBody"].is_string() && attempt.get("responseBody").is_none());
        for member in ["attemptDate", "durationMs", "httpStatus", "url", "requestHeaders"] {
            assert_eq!(attempt[member], before["attempts"][0][member], "{member}");
        }
        let resent = entity.post(&format!("/webhook/delivery/{delivery}/resend"));
        let problem = resent.refused(409, "event-erased").await;
        assert_eq!(problem["properties"]["erasedDate"], erased["erasedDate"]);
    }
    let listed = entity.get(&format!("/webhook/delivery/list?subject={guest}")).expect(200).await.json();
    assert_eq!(listed["items"], json!([]), "it is no longer found by its subject");
    assert_eq!(erase(&entity, &event).await, erased, "a repetition gets the same answer");
}

#[contract_test]
async fn open_deliveries_of_an_erased_event_are_cancelled(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,1h")).await;
    let entity = Entity::new(&api, "open".to_owned()).await;
    let guest = guest_of(&entity);
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::answer(500, &[], guest.as_str())])).await;
    let (event, deliveries) = published(&entity, json!({})).await;
    let delivery = &deliveries[0];
    entity.until_status(delivery, &["retrying"]).await;
    erase(&entity, &event).await;
    let cancelled = entity.delivery(delivery).await;
    assert_eq!((&cancelled["status"], &cancelled["cancelReason"]), (&json!("cancelled"), &json!("erased")));
    assert!(cancelled.get("nextAttemptDate").is_none() && cancelled["attemptCount"] == 1, "{cancelled:#}");
    let table = Table::of(&api.env);
    nothing_is_left(&table, &entity, &event).await;

    let since = json!({ "createdFrom": "2026-01-01T00:00:00Z" });
    let recovery = entity.post(&format!("/webhook/{}/recover", hook.id)).json(&since).expect(202).await.json();
    assert_eq!(recovery["count"], 0, "{recovery:#}");
    entity.post(&format!("/webhook/delivery/{delivery}/resend")).refused(409, "event-erased").await;
    is_never_due(&table, delivery).await;
    assert_eq!(entity.delivery(delivery).await["status"], "cancelled");
    assert_eq!(receiver.received("/").len(), 1);
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_delivery_that_no_worker_has_claimed_is_never_sent_after_erasing(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "25s,1s")).await;
    let entity = Entity::new(&api, "unclaimed".to_owned()).await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let (event, deliveries) = published(&entity, json!({})).await;
    let table = Table::of(&api.env);
    assert_eq!(table.head(&deliveries[0]).await, None);
    erase(&entity, &event).await;
    assert_eq!(entity.delivery(&deliveries[0]).await["cancelReason"], "erased");
    // The sweep has opened a later delivery, and its message was due. The erased delivery's message was therefore due
    // earlier.
    let later = entity.publish(json!({})).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(entity.delivery(&deliveries[0]).await["status"], "cancelled");
    let [request] = &receiver.received("/")[..] else { panic!("one request") };
    assert_eq!(request.header("service-delivery-id"), later);
    nothing_is_left(&table, &entity, &event).await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn an_attempt_under_way_is_recorded_without_its_response(suite: Arc<Suite>) {
    let cases = [
        ("/delivered", 200, false, "delivered"),
        ("/large", 200, true, "delivered"),
        ("/failed", 500, false, "cancelled"),
        ("/failed-large", 500, true, "cancelled"),
    ];
    join_all(cases.map(async |case| {
        let spoiled = format!("the attempt of {} timed out before the erasure", case.0);
        until_a_round_counts(3, &spoiled, async || recorded_without_its_response(&suite, case).await).await;
    }))
    .await;
}

/// Erases an event during an attempt whose response repeats the guest's name; returns whether the attempt lasted long
/// enough, which it does not on a slow machine.
async fn recorded_without_its_response(suite: &Suite, (path, status, is_large, ends): (&str, u16, bool, &str)) -> bool {
    let entity = suite.entity().await;
    let guest = guest_of(&entity);
    let receiver = Receiver::start().await;
    let answer = if is_large { format!("{guest}{}", "x".repeat(3_900)) } else { guest };
    let answers = Gate::closed();
    entity.hook(&receiver.on(path, [Behaviour::answer(status, &[], answer).behind(&answers)])).await;
    let (event, deliveries) = published(&entity, json!({})).await;
    receiver.until(path, 1).await;
    erase(&entity, &event).await;
    answers.open();
    let delivery = ended(&entity, &deliveries[0]).await;
    if delivery["attempts"][0]["errorCode"] == "timeout" {
        return false;
    }
    assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!(ends), 1), "{path}");
    assert_eq!(delivery["attempts"][0]["httpStatus"], status, "{path}");
    let reason = (ends == "cancelled").then_some("erased");
    assert_eq!(delivery["cancelReason"].as_str(), reason, "{path}: {delivery:#}");
    nothing_is_left(&suite.table(), &entity, &event).await;
    is_never_due(&suite.table(), &deliveries[0]).await;
    assert_eq!(receiver.received(path).len(), 1, "{path}: no retry");
    true
}

#[contract_test]
async fn a_reader_that_does_not_answer_stays_in_the_history_after_erasing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    // The reader's visibility timeout ends either before or after the content is erased.
    for is_over in [true, false] {
        let (event, deliveries) = published(&entity, json!({})).await;
        if is_over {
            abandoned(&suite.table(), &entity, &hook).await;
        } else {
            read_some(&entity, &hook, json!({ "visibility": 10 })).await;
        }
        erase(&entity, &event).await;
        let delivery = ended(&entity, &deliveries[0]).await;
        let outcome = ["status", "cancelReason", "attemptCount", "lastErrorCode"].map(|name| delivery[name].clone());
        assert_eq!(outcome, [json!("cancelled"), json!("erased"), json!(1), json!("unconfirmed")], "{delivery:#}");
        assert!(read(&entity, &hook, json!({})).await.is_empty());
        nothing_is_left(&suite.table(), &entity, &event).await;
    }
}

/// Reports the first of these deliveries as failed; returns the result.
async fn reported(entity: &Entity, hook: &Hook, read: &[Value], reason: &str) -> Value {
    let body = json!({ "failed": [{ "receipt": read[0]["receipt"], "reason": reason }] });
    let answer = entity.post(&format!("/webhook/{}/feed/ack", hook.id)).json(&body).expect(200).await.json();
    assert_eq!(answer["items"][0]["outcome"], "failed", "{answer:#}");
    answer["items"][0].clone()
}

#[contract_test]
async fn the_reasons_of_readers_are_erased(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let guest = guest_of(&entity);
    let hook = pulled(&entity).await;
    // An attempt with the second reason does not fit into the head.
    for reason in [format!("{guest} has no room"), format!("{guest}{}", "\u{1f3e8}".repeat(400))] {
        let (event, deliveries) = published(&entity, json!({})).await;
        let first = reported(&entity, &hook, &read_some(&entity, &hook, json!({})).await, &reason).await;
        assert!(first.get("nextAttemptDate").is_some(), "{first:#}");
        assert!(entity.delivery(&deliveries[0]).await.to_string().contains(&guest));
        // The last failure is reported after the content is erased.
        let second = read_some(&entity, &hook, json!({})).await;
        erase(&entity, &event).await;
        let result = reported(&entity, &hook, &second, &reason).await;
        assert!(result.get("nextAttemptDate").is_none(), "it does not come again: {result:#}");
        let shown = entity.delivery(&deliveries[0]).await;
        assert_eq!((&shown["status"], &shown["attemptCount"]), (&json!("cancelled"), &json!(2)), "{shown:#}");
        assert!(!shown.to_string().contains(&guest), "{shown:#}");
        let error = shown["attempts"][0]["error"].as_str();
        assert!(error.is_some_and(|error| error.starts_with("reported: ")), "{shown:#}");
    }
    // The name is neither in the deliveries nor in the webhook's health, which has the reason for the last failure.
    let items = suite.table().scan().await;
    let left: Vec<_> = items.iter().filter(|item| item.to_string().contains(&guest)).collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[contract_test]
async fn a_repeated_publication_does_not_bring_erased_content_back(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let guest = guest_of(&entity);
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let random: Vec<String> = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let body = json!({ "type": "booking.created", "data": { "guest": guest, "random": random } });
    let publish = async || {
        let call = entity.post("/webhook/event").header("idempotency-key", "erased").json(&body);
        text(&call.expect(202).await.json()["eventIdentifier"])
    };
    let event = publish().await;
    ended(&entity, &stored::delivery_id(&event, 0)).await;
    let (pk, sk) = stored::body_key(&event);
    let stored_body = async || suite.table().item(&pk, &sk).await.expect("it stays");
    assert!(stored_body().await.get("content").is_some());
    erase(&entity, &event).await;
    assert!(stored_body().await.get("content").is_none());
    assert_eq!(publish().await, event);
    assert!(stored_body().await.get("content").is_none());
    nothing_is_left(&suite.table(), &entity, &event).await;
}

#[contract_test]
async fn only_its_owner_erases_an_event_that_is_kept(suite: Arc<Suite>) {
    let (entity, stranger) = (suite.entity().await, suite.entity().await);
    let guest = guest_of(&entity);
    entity.hook("http://127.0.0.1:9/").await;
    let (event, _) = published(&entity, json!({})).await;
    stranger.call("DELETE", &content(&event)).refused(404, "event-not-found").await;
    for other in ["evt_00000000000000000000000000", "nothing", "%00"] {
        entity.call("DELETE", &content(other)).refused(404, "event-not-found").await;
    }
    let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
    assert_eq!(shown["data"], json!({ "guest": guest }));
    let mut item = suite.table().event(&event).await.expect("it is kept");
    item["expiresAt"] = json!({ "N": "1" });
    suite.table().put(item).await;
    entity.call("DELETE", &content(&event)).refused(404, "event-not-found").await;
}

#[contract_test]
async fn a_large_event_is_erased_in_all_its_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let guest = guest_of(&entity);
    let receiver = Receiver::start().await;
    let address = receiver.on("/", [Behaviour::answer(200, &[], guest.as_str())]);
    for _ in 0..45 {
        entity.hook(&address).await;
    }
    let (event, deliveries) = published(&entity, json!({})).await;
    for delivery in &deliveries {
        ended(&entity, delivery).await;
    }
    let answer = entity.call("DELETE", &content(&event)).answered().await;
    assert!([200, 202].contains(&answer.status), "{}", answer.exchange);
    until("the rest is erased", LONG, async || {
        left_in(&items_about(&suite.table(), &event, &guest).await, &guest).is_empty().then_some(())
    })
    .await;
}

#[contract_test]
async fn an_event_is_kept_for_the_days_that_its_publisher_wants(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::answer(200, &[], "x".repeat(4_000))])).await;
    let (event, deliveries) = published(&entity, json!({ "retentionDays": 2 })).await;
    ended(&entity, &deliveries[0]).await;
    let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
    assert_eq!(shown["retentionDays"], 2);
    let expires = time(&shown["timestamp"]).as_second() + 2 * DAY;
    let is_kept = |item: &Value| item.get("expiresAt").is_some();
    let items = items_about(&suite.table(), &event, &event).await;
    let kept: Vec<_> = items.iter().filter(|item| is_kept(item)).collect();
    assert!(kept.len() >= 3, "event, head and attempt: {items:#?}");
    for item in kept {
        assert_eq!(item["expiresAt"]["N"], expires.to_string(), "{item:#}");
    }
    // The delivery's retention period is over, but the table has not removed it yet.
    let (pk, sk) = stored::head_key(&deliveries[0]);
    for key in [stored::event_key(&event), (pk, sk)] {
        let mut item = suite.table().item(&key.0, &key.1).await.expect("it is kept");
        item["expiresAt"] = json!({ "N": "1" });
        suite.table().put(item).await;
    }
    entity.get(&format!("/webhook/event/{event}")).refused(404, "event-not-found").await;
    entity.post(&format!("/webhook/delivery/{}/resend", deliveries[0])).refused(404, "delivery-not-found").await;
    let listed = entity.get("/webhook/delivery/list").expect(200).await.json();
    // The response to a publish request was lost, and repeating the request created a second event.
    let listed = listed["items"].as_array().expect("openapi.yaml says so");
    assert!(listed.iter().all(|item| item["id"] != deliveries[0].as_str()), "{listed:#?}");

    let (other, _) = published(&entity, json!({})).await;
    let shown = entity.get(&format!("/webhook/event/{other}")).expect(200).await.json();
    assert!(shown.get("retentionDays").is_none(), "{shown:#}");
    for bad in [json!(0), json!(91), json!(-1), json!(1.5), json!("2"), json!(null)] {
        let body = json!({ "type": "booking.created", "data": {}, "retentionDays": bad });
        let problem = entity.post("/webhook/event").json(&body).refused(400, "invalid-request").await;
        let violation = &problem["properties"]["violations"][0];
        assert_eq!(violation["pointer"], "/retentionDays", "{problem:#}");
        assert!(text(&violation["detail"]).contains("1 to 90"), "{problem:#}");
    }
}

/// Until its retention period is over, a delivery may be waiting for another one, for its slot or for a breaker.
#[contract_test]
async fn no_attempt_is_made_after_the_retention_of_an_event(suite: Arc<Suite>) {
    until("a dispatcher ends a delivery before the table removes it", LONG, async || ended_by_retention(&suite).await)
        .await;
}

/// Ends the retention of a waiting delivery. `None` if the table has removed it before a dispatcher saw it.
async fn ended_by_retention(suite: &Suite) -> Option<()> {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let later = Behaviour::answer(503, &[("Retry-After", "600")], "");
    entity.hook(&receiver.on("/", [later, Behaviour::status(200)])).await;
    let (_, deliveries) = published(&entity, json!({ "retentionDays": 1 })).await;
    entity.until_status(&deliveries[0], &["retrying"]).await;
    let mut head = suite.table().head(&deliveries[0]).await.expect("it waits");
    head["expiresAt"] = json!({ "N": "1" });
    for name in ["claimableAt", "nextAttemptDate", "dueAt"] {
        head[name] = json!({ "S": "2026-01-01T00:00:00.000Z" });
    }
    suite.table().put(head).await;
    let left = until("the dispatcher ends it", LONG, async || {
        let head = suite.table().head(&deliveries[0]).await;
        head.as_ref().is_none_or(|head| head["status"]["S"] == "cancelled").then_some(head)
    })
    .await;
    assert_eq!(receiver.received("/").len(), 1);
    left.map(drop)
}
