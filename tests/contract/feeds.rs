//! Feeds: a pull webhook has no address; its subscriber reads deliveries, and confirms them or reports why they failed.
//! History, states, resends and recoveries work as they do for any delivery.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{
    harness::{
        ApiResponse, Application, Behaviour, Call, Entity, Hook, LONG, Received, Receiver, Settings, Suite, Table,
        invalid_values, is_limited, now, signature, stored, time, until,
    },
    idempotency::asked::{is_first, is_replayed},
    sweep::{LONG_AGO, overdue},
    webhook_changes::violations,
};

/// A new pull webhook.
pub(crate) async fn pulled(entity: &Entity) -> Hook {
    entity.hook_with(json!({ "name": "feed", "delivery": "pull", "eventList": [] })).await
}

/// A request that reads deliveries.
pub(crate) fn reading(entity: &Entity, hook: &Hook, request: &Value) -> Call {
    entity.post(&format!("/webhook/{}/feed/read", hook.id)).json(request)
}

/// The deliveries in a response.
pub(crate) fn items(response: &ApiResponse) -> Vec<Value> {
    response.json()["items"].as_array().expect("openapi.yaml says so").clone()
}

/// The deliveries that one request returns.
pub(crate) async fn read(entity: &Entity, hook: &Hook, request: Value) -> Vec<Value> {
    items(&reading(entity, hook, &request).expect(200).await)
}

/// Reads until the feed returns something. Each request waits only briefly, since it occupies an invocation while
/// waiting.
pub(crate) async fn read_some(entity: &Entity, hook: &Hook, mut request: Value) -> Vec<Value> {
    request["wait"] = 1.into();
    until("the feed has a delivery", LONG, async || {
        let found = read(entity, hook, request.clone()).await;
        (!found.is_empty()).then_some(found)
    })
    .await
}

/// The outcomes of the reader's answers.
pub(crate) async fn answer(entity: &Entity, hook: &Hook, body: Value) -> Vec<String> {
    let call = entity.post(&format!("/webhook/{}/feed/ack", hook.id)).json(&body);
    let results = call.expect(200).await.json()["items"].clone();
    let outcome = |result: &Value| result["outcome"].as_str().expect("openapi.yaml says so").to_owned();
    results.as_array().expect("openapi.yaml says so").iter().map(outcome).collect()
}

pub(crate) async fn confirm(entity: &Entity, hook: &Hook, read: &[Value]) -> Vec<String> {
    let receipts: Vec<_> = read.iter().map(|delivery| &delivery["receipt"]).collect();
    answer(entity, hook, json!({ "confirmed": receipts })).await
}

fn body_of(request: &Received) -> Value {
    serde_json::from_slice(&request.body).expect("the body is JSON")
}

fn id(delivery: &Value) -> &str {
    delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so")
}

#[contract_test]
async fn a_delivery_is_read_as_it_would_be_sent_and_confirmed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    assert!(hook.json.get("eventUrl").is_none() && hook.json["delivery"] == "pull", "{}", hook.json);
    let published = entity.publish(json!({ "bookingIdentifier": "B-1001", "price": 10.50 })).await;
    let [delivery] = &read_some(&entity, &hook, json!({})).await[..] else { panic!("one delivery") };
    assert_eq!(id(delivery), published);
    let header = |name: &str| delivery["headers"][name].as_str().expect("a header").to_owned();
    let body = delivery["body"].as_str().expect("a text");
    let signed = signature(&hook.secret, &header("webhook-id"), &header("webhook-timestamp"), body.as_bytes());
    assert_eq!(header("webhook-signature"), signed);
    assert_eq!(header("service-delivery-id"), published);
    let shown = entity.delivery(&published).await;
    assert_eq!(serde_json::from_str::<Value>(body).expect("JSON"), shown["event"]);
    assert_eq!((&shown["status"], &shown["attemptCount"]), (&json!("pending"), &json!(0)));
    assert!(shown.get("url").is_none() && shown.get("nextAttemptDate").is_some(), "{shown:#}");

    assert_eq!(confirm(&entity, &hook, std::slice::from_ref(delivery)).await, ["confirmed"]);
    let shown = entity.delivery(&published).await;
    assert_eq!(shown["status"], "delivered");
    let [attempt] = &shown["attempts"].as_array().expect("a list")[..] else { panic!("one attempt: {shown:#}") };
    assert_eq!((&attempt["confirmed"], &attempt["httpStatus"]), (&json!(true), &Value::Null));
    assert!(attempt.get("error").is_none() && attempt.get("url").is_none(), "{attempt:#}");
    assert_eq!(
        confirm(&entity, &hook, std::slice::from_ref(delivery)).await,
        ["confirmed"],
        "a repeated answer is the first"
    );
    assert_eq!(entity.delivery(&published).await["attemptCount"], 1);
    assert!(read(&entity, &hook, json!({})).await.is_empty());
    let stats = until("the attempt is counted", LONG, async || {
        let stats = entity.get(&format!("/webhook/{}/stats", hook.id)).expect(200).await.json();
        (stats["last24Hours"]["attempts"] == 1).then_some(stats)
    });
    assert_eq!(stats.await["last24Hours"]["succeeded"], 1);
}

/// A response can be lost while its deliveries are held.
#[contract_test]
async fn a_repeated_read_gives_the_same_deliveries_while_their_leases_last(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    for number in 1..=2 {
        entity.publish(json!({ "number": number })).await;
    }
    let request = json!({ "limit": 1, "wait": 1, "visibility": 3600 });
    let keyed = |request: &Value| reading(&entity, &hook, request).header("idempotency-key", "key");
    // A response without deliveries does not use up the key.
    let first = until("the feed has a delivery", LONG, async || {
        let answer = keyed(&request).expect(200).await;
        (!items(&answer).is_empty()).then_some(answer)
    })
    .await;
    assert!(is_first(&first), "{}", first.exchange);
    let given = items(&first).remove(0);
    let again = keyed(&request).expect(200).await;
    assert!(is_replayed(&again), "{}", again.exchange);
    assert_eq!((first.header("cache-control"), again.header("cache-control")), ("no-store", "no-store"));
    let repeated = items(&again);
    assert_eq!(repeated.len(), 1, "{repeated:#?}");
    for member in ["deliveryIdentifier", "attemptNumber", "receipt", "visibleFrom", "body"] {
        assert_eq!(repeated[0][member], given[member], "{member}");
    }
    keyed(&json!({ "limit": 2, "wait": 1, "visibility": 3600 })).refused(409, "idempotency-conflict").await;
    let other = read_some(&entity, &hook, json!({ "visibility": 3600 })).await;
    assert!(other.len() == 1 && id(&other[0]) != id(&given), "{other:#?}");
    assert_eq!(confirm(&entity, &hook, &other).await, ["confirmed"]);

    // The leases expire, and with them the key's batch.
    let table = suite.table();
    let prefix = format!("IDEMPOTENCY#{}#", entity.id);
    let is_batch =
        |item: &Value| item["sk"]["S"] == "BATCH" && item["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with(&prefix));
    let mut records: Vec<_> = table.scan().await.into_iter().filter(is_batch).collect();
    assert_eq!(records.len(), 1, "{records:#?}");
    let mut record = records.remove(0);
    let ends = record["expiresAt"]["N"].as_str().and_then(|text| text.parse().ok());
    assert_eq!(ends, Some(time(&given["visibleFrom"]).as_second()));
    record["expiresAt"] = json!({ "N": "1" });
    table.put(record).await;
    end_visibility(&table, id(&given)).await;
    let next = until("the delivery comes again", LONG, async || {
        let answer = keyed(&request).expect(200).await;
        (!items(&answer).is_empty()).then_some(answer)
    })
    .await;
    assert!(is_first(&next), "{}", next.exchange);
    let next = items(&next);
    assert_eq!((id(&next[0]), &next[0]["attemptNumber"]), (id(&given), &json!(2)));
    assert_eq!(confirm(&entity, &hook, &next).await, ["confirmed"]);

    // An answered delivery is not returned again.
    let answered = keyed(&request).expect(200).await;
    assert!(is_replayed(&answered) && items(&answered).is_empty(), "{}", answered.exchange);
    assert_eq!(entity.delivery(id(&given)).await["attemptCount"], 2);
}

#[contract_test]
async fn of_several_readers_with_one_key_all_get_the_same_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    for number in 1..=4 {
        let published = entity.publish(json!({ "number": number })).await;
        entity.until_delivery(&published, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    }
    let request = json!({ "limit": 2, "visibility": 3600 });
    let read_at_once = async || {
        let keyed = || reading(&entity, &hook, &request).header("idempotency-key", "key").expect(200);
        let answers = join_all((0..5).map(|_| keyed())).await;
        let pages: Vec<_> = answers.iter().map(items).filter(|page| !page.is_empty()).collect();
        (pages.len() == answers.len()).then_some(pages)
    };
    let pages = until("the feed has deliveries", LONG, read_at_once).await;
    let receipts = |page: &[Value]| page.iter().map(|item| item["receipt"].clone()).collect::<Vec<_>>();
    for page in &pages {
        assert_eq!(receipts(page), receipts(&pages[0]));
    }
}

#[contract_test]
async fn a_reader_may_hold_its_deliveries_for_longer(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    let held = read_some(&entity, &hook, json!({ "visibility": 60 })).await;
    let receipts = json!([held[0]["receipt"]]);
    let extended = async |entity: &Entity, hook: &Hook, visibility: i64| {
        let body = json!({ "receipts": receipts, "visibility": visibility });
        items(&entity.post(&format!("/webhook/{}/feed/extend", hook.id)).json(&body).expect(200).await).remove(0)
    };
    for visibility in [3_600, 600] {
        let began = now();
        let result = extended(&entity, &hook, visibility).await;
        assert_eq!((&result["outcome"], id(&result)), (&json!("extended"), published.as_str()));
        assert_eq!(result["receipt"], receipts[0]);
        let ends = time(&result["visibleFrom"]).as_second();
        assert!((began + visibility..=now() + visibility).contains(&ends), "{result:#}");
        let head = suite.table().head(&published).await.expect("it is leased");
        assert_eq!(head["claimableAt"]["S"], result["visibleFrom"]);
    }
    assert!(read(&entity, &hook, json!({})).await.is_empty(), "a reader holds it");

    // A receipt from another webhook is invalid here, and changes nothing.
    let other = pulled(&entity).await;
    let before = suite.table().head(&published).await;
    let foreign = extended(&entity, &other, 60).await;
    assert!(foreign["outcome"] == "expired" && foreign.get("visibleFrom").is_none(), "{foreign:#}");
    assert_eq!(suite.table().head(&published).await, before);
    let stranger = suite.entity().await;
    let body = json!({ "receipts": receipts, "visibility": 60 });
    let call = stranger.post(&format!("/webhook/{}/feed/extend", hook.id)).json(&body);
    call.refused(404, "webhook-not-found").await;

    assert_eq!(confirm(&entity, &hook, &held).await, ["confirmed"]);
    assert_eq!(extended(&entity, &hook, 60).await["outcome"], "expired", "it is answered");
    assert_eq!(entity.delivery(&published).await["attemptCount"], 1);
}

#[contract_test]
async fn an_unread_delivery_says_that_it_waits_for_a_reader(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let before = entity.get(&format!("/webhook/{}", hook.id)).expect(200).await.json();
    assert!(before.get("oldestUnreadDate").is_none() && before.get("lastReadDate").is_none(), "{before:#}");
    let published = entity.publish(json!({})).await;
    let waiting =
        entity.until_delivery(&published, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    assert!(waiting.get("nextAttemptDate").is_none(), "{waiting:#}");
    let shown = entity.get(&format!("/webhook/{}", hook.id)).expect(200).await.json();
    assert_eq!(shown["oldestUnreadDate"], waiting["createdDate"]);
    let query = format!("/webhook/delivery/list?webhookIdentifier={}&status=pending", hook.id);
    let list = entity.get(&query).expect(200).await.json();
    assert_eq!(list["items"][0]["id"], published.as_str());
    confirm(&entity, &hook, &read_some(&entity, &hook, json!({})).await).await;
    let shown = entity.get(&format!("/webhook/{}", hook.id)).expect(200).await.json();
    assert!(shown.get("lastReadDate").is_some() && shown.get("oldestUnreadDate").is_none(), "{shown:#}");
}

#[contract_test]
async fn a_reported_failure_is_an_attempt_and_comes_again_by_schedule(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    for attempt in 1..=3 {
        let [delivery] = &read_some(&entity, &hook, json!({})).await[..] else { panic!("one delivery") };
        assert_eq!(delivery["attemptNumber"], attempt);
        let failure = json!({ "failed": [{ "receipt": delivery["receipt"], "reason": "the room is unknown" }] });
        assert_eq!(answer(&entity, &hook, failure.clone()).await, ["failed"]);
        assert_eq!(answer(&entity, &hook, failure).await, ["failed"], "a repeated answer is the first");
    }
    let failed = entity.delivery(&published).await;
    assert_eq!((&failed["status"], &failed["lastErrorCode"]), (&json!("failed"), &json!("reported")), "{failed:#}");
    let last = &failed["attempts"][2];
    let error = ["error", "errorCode", "errorDetail"].map(|name| last[name].clone());
    assert_eq!(error, ["reported: the room is unknown", "reported", "the room is unknown"], "{last:#}");
    assert_eq!(failed["attemptCount"], 3);
    let list = entity.get("/webhook/delivery/list?status=failed&lastErrorCode=reported").expect(200).await.json();
    assert_eq!(list["items"][0]["id"], published.as_str());

    // A resend returns the delivery to the feed.
    entity.post(&format!("/webhook/delivery/{published}/resend")).expect(202).await;
    let again = read_some(&entity, &hook, json!({})).await;
    assert_eq!(again[0]["attemptNumber"], 4);
    assert_eq!(confirm(&entity, &hook, &again).await, ["confirmed"]);
    assert_eq!(entity.delivery(&published).await["status"], "delivered");
}

#[contract_test]
async fn an_unconfirmed_delivery_comes_again_and_its_receipt_expires(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    let began = now();
    let first = read_some(&entity, &hook, json!({ "visibility": 3600 })).await;
    let ends = time(&first[0]["visibleFrom"]).as_second();
    assert!((began + 3_600..=now() + 3_600).contains(&ends), "{first:#?}");
    assert!(read(&entity, &hook, json!({})).await.is_empty(), "a reader holds it");
    end_visibility(&suite.table(), &published).await;
    let second = read_some(&entity, &hook, json!({})).await;
    assert_eq!((id(&second[0]), &second[0]["attemptNumber"]), (published.as_str(), &json!(2)));
    assert_eq!(confirm(&entity, &hook, &first).await, ["expired"]);
    assert_eq!(confirm(&entity, &hook, &second).await, ["confirmed"]);
    let shown = entity.delivery(&published).await;
    assert!(
        shown["attempts"][0]["error"].as_str().is_some_and(|error| error.starts_with("unconfirmed: ")),
        "{shown:#}"
    );
    assert_eq!(shown["attempts"][1]["confirmed"], true);
}

/// The number of unanswered attempts that do not count towards the schedule.
const SPARED: usize = 5;

/// Ends the visibility timeout of a delivery that a reader holds. The timeout must be long, so that no other reader
/// gets the delivery first.
pub(crate) async fn end_visibility(table: &Table, delivery: &str) {
    let mut head = table.head(delivery).await.expect("it is leased");
    head["claimableAt"] = json!({ "S": LONG_AGO });
    table.put(head).await;
}

/// Reads a delivery without confirming it, and ends its visibility timeout early.
pub(crate) async fn abandoned(table: &Table, entity: &Entity, hook: &Hook) {
    let read = read_some(entity, hook, json!({ "visibility": 3600 })).await;
    end_visibility(table, id(&read[0])).await;
}

/// Reports the feed's next delivery as failed.
async fn reported(entity: &Entity, hook: &Hook) {
    let read = read_some(entity, hook, json!({ "limit": 1 })).await;
    let failure = json!({ "failed": [{ "receipt": read[0]["receipt"], "reason": "x".repeat(500) }] });
    assert_eq!(answer(entity, hook, failure).await, ["failed"]);
}

/// An entity with a feed, and a webhook that receives the operational events about the feed.
async fn watched(suite: &Suite, receiver: &Receiver, path: &str) -> (Entity, Hook) {
    let entity = suite.entity().await;
    let listener = receiver.on(path, [Behaviour::status(204)]);
    let kinds = ["webhook.failing", "webhook.delivery.exhausted"];
    entity.hook_with(json!({ "name": "listener", "eventUrl": listener, "eventList": kinds })).await;
    let body = json!({ "name": "feed", "delivery": "pull", "eventList": ["booking.created"] });
    let hook = entity.hook_with(body).await;
    (entity, hook)
}

/// Waits until the listening webhook has received an event of this type.
async fn until_announced(receiver: &Receiver, path: &str, kind: &str) {
    until(&format!("{kind} is announced"), LONG, async || {
        receiver.received(path).iter().any(|one| body_of(one)["type"] == kind).then_some(())
    })
    .await;
}

/// Five failures in a row in a feed; the last one is either unconfirmed or reported.
async fn five_failures(suite: &Suite, entity: &Entity, hook: &Hook, last_is_unconfirmed: bool) {
    let first = entity.publish(json!({})).await;
    for _ in 0..3 {
        reported(entity, hook).await;
    }
    assert_eq!(entity.delivery(&first).await["status"], "failed");
    entity.publish(json!({})).await;
    reported(entity, hook).await;
    if last_is_unconfirmed {
        abandoned(&suite.table(), entity, hook).await;
        assert_eq!(read_some(entity, hook, json!({})).await[0]["attemptNumber"], 3);
    } else {
        reported(entity, hook).await;
    }
}

/// If the table stalls for seconds, an attempt's count is lost, and the event with it. The next webhook then shows the
/// event.
#[contract_test]
async fn the_fifth_failure_in_a_row_of_a_feed_is_announced(suite: Arc<Suite>) {
    const WEBHOOKS: u32 = 10;
    let receiver = Receiver::start().await;
    for (kind, last_is_unconfirmed) in [("unconfirmed", true), ("reported", false)] {
        for number in 1.. {
            let path = format!("/{kind}/{number}");
            let (entity, hook) = watched(&suite, &receiver, &path).await;
            five_failures(&suite, &entity, &hook, last_is_unconfirmed).await;
            let announced = until_announced(&receiver, &path, "webhook.failing");
            if timeout(LONG / WEBHOOKS, announced).await.is_ok() {
                break;
            }
            assert!(number < WEBHOOKS, "the failures of {WEBHOOKS} webhooks were not announced");
        }
    }
}

#[contract_test]
async fn a_delivery_that_no_reader_confirms_fails_and_is_announced(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let (entity, hook) = watched(&suite, &receiver, "/").await;
    let published = entity.publish(json!({})).await;
    for _ in 0..2 {
        reported(&entity, &hook).await;
    }
    for _ in 0..=SPARED {
        abandoned(&suite.table(), &entity, &hook).await;
    }
    until("the last attempt is recorded", LONG, async || {
        assert!(read(&entity, &hook, json!({})).await.is_empty());
        (entity.delivery(&published).await["status"] == "failed").then_some(())
    })
    .await;
    let failed = entity.delivery(&published).await;
    assert_eq!((&failed["lastErrorCode"], &failed["attemptCount"]), (&json!("unconfirmed"), &json!(8)), "{failed:#}");
    until_announced(&receiver, "/", "webhook.delivery.exhausted").await;
}

/// When a read notices that the last attempt has ended, it puts the subject's next delivery into the feed.
#[contract_test]
async fn the_next_of_a_subject_follows_one_that_no_reader_confirms(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({ "name": "feed", "delivery": "pull", "eventList": [], "order": "subject" });
    let hook = entity.hook_with(body).await;
    let data = json!({ "bookingNumber": "B-1001" });
    let first = entity.publish(data.clone()).await;
    let second = entity.publish(data).await;
    entity.until_delivery(&second, "is held", |shown| shown["heldBy"] == first.as_str()).await;
    for _ in 0..2 {
        reported(&entity, &hook).await;
    }
    for _ in 0..=SPARED {
        abandoned(&suite.table(), &entity, &hook).await;
    }
    assert_eq!(id(&read_some(&entity, &hook, json!({})).await[0]), second);
    assert_eq!(entity.delivery(&first).await["status"], "failed");
}

/// The last attempt counts towards the schedule, but the cancellation does not wait for the next one.
#[contract_test]
async fn a_delivery_that_a_reader_holds_is_cancelled_soon_after_its_webhook_is_removed(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,1h");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "removed".to_owned()).await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    for _ in 0..SPARED {
        abandoned(&Table::of(&api.env), &entity, &hook).await;
    }
    read_some(&entity, &hook, json!({ "visibility": 10 })).await;
    entity.remove(&hook.id).expect(200).await;
    let cancelled = entity.until_status(&published, &["cancelled", "failed"]).await;
    assert_eq!((&cancelled["status"], &cancelled["attemptCount"]), (&json!("cancelled"), &json!(SPARED + 1)));
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_late_answer_counts_while_no_other_reader_has_the_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    let held = read_some(&entity, &hook, json!({ "visibility": 3600 })).await;
    end_visibility(&suite.table(), &published).await;
    assert_eq!(confirm(&entity, &hook, &held).await, ["confirmed"]);
    assert_eq!(entity.delivery(&published).await["attemptCount"], 1);
}

#[contract_test]
async fn concurrent_readers_never_hold_the_same_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published: BTreeSet<_> =
        join_all((0..60).map(|number| entity.publish(json!({ "number": number })))).await.into_iter().collect();
    let got = Mutex::new(Vec::new());
    let reader = async || {
        while got.lock().expect("no reader panics").len() < published.len() {
            let found = read(&entity, &hook, json!({ "limit": 7, "wait": 2 })).await;
            if !found.is_empty() {
                assert!(confirm(&entity, &hook, &found).await.iter().all(|outcome| outcome == "confirmed"));
            }
            got.lock().expect("no reader panics").extend(found.iter().map(|delivery| id(delivery).to_owned()));
        }
    };
    timeout(LONG, join_all((0..4).map(|_| reader()))).await.expect("the feed has all deliveries");
    let got = got.into_inner().expect("no reader panics");
    assert_eq!(got.len(), 60, "none twice");
    assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), published);
}

#[contract_test]
async fn a_feed_gives_the_oldest_first_and_waits_for_the_next(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let mut published = Vec::new();
    for number in 0..5 {
        published.push(entity.publish(json!({ "number": number })).await);
    }
    // The deliveries may enter the feed in a different order.
    for delivery in &published {
        entity.until_delivery(delivery, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    }
    let mut got = Vec::new();
    while got.len() < 5 {
        let found = read_some(&entity, &hook, json!({ "limit": 2 })).await;
        assert!(found.len() <= 2);
        got.extend(found.iter().map(|delivery| id(delivery).to_owned()));
        confirm(&entity, &hook, &found).await;
    }
    assert_eq!(got, published);
    // A busy machine may exceed a reader's longest wait, but a reader that always waits for its full time never
    // succeeds.
    until("a reader that waits gets the next one before the end of its time", LONG, async || {
        let began = Instant::now();
        let waiting = async {
            let found = read(&entity, &hook, json!({ "wait": 10 })).await;
            (found, began.elapsed() < Duration::from_secs(10))
        };
        let publishing = async {
            sleep(Duration::from_secs(1)).await;
            entity.publish(json!({})).await
        };
        let ((mut found, is_early), published) = tokio::join!(waiting, publishing);
        if found.is_empty() {
            found = read_some(&entity, &hook, json!({})).await;
        }
        assert_eq!(found.iter().map(id).collect::<Vec<_>>(), [published]);
        confirm(&entity, &hook, &found).await;
        is_early.then_some(())
    })
    .await;
}

/// The table removes a delivery only days after its retention period.
#[contract_test]
async fn expired_deliveries_hide_no_later_one_from_readers(suite: Arc<Suite>) {
    /// The number of deliveries that a request returns by default.
    const MANY: usize = 10;
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    for _ in 0..MANY {
        let expired = entity.publish(json!({})).await;
        entity.until_delivery(&expired, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
        let mut head = suite.table().head(&expired).await.expect("it is in the feed");
        head["expiresAt"] = json!({ "N": "1" });
        suite.table().put(head).await;
    }
    let kept = entity.publish(json!({})).await;
    let found = read_some(&entity, &hook, json!({})).await;
    assert_eq!(found.iter().map(id).collect::<Vec<_>>(), [kept.as_str()]);
    let shown = entity.get(&format!("/webhook/{}", hook.id)).expect(200).await.json();
    assert_eq!(shown["oldestUnreadDate"], entity.delivery(&kept).await["createdDate"], "{shown:#}");
}

/// A delivery's event may be damaged.
#[contract_test]
async fn a_delivery_that_cannot_be_read_holds_up_no_other_of_its_feed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let table = suite.table();
    // A body that cannot be compressed is stored in a separate item.
    let large: String = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let published = entity.publish_of_type("booking.created", json!({ "notes": large })).await.json();
    let event = published["eventIdentifier"].as_str().expect("a text");
    let damaged = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("a text");
    let good = entity.publish(json!({})).await;
    for delivery in [damaged, good.as_str()] {
        entity.until_delivery(delivery, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    }
    table.remove(&format!("EVT#{event}"), "BODY").await;
    assert_eq!(id(&read_some(&entity, &hook, json!({ "limit": 1 })).await[0]), good);
    // Keep dispatchers from examining the delivery during other tests.
    for (pk, sk) in [stored::event_key(event), stored::head_key(damaged)] {
        table.remove(&pk, &sk).await;
    }
}

/// A waiting request occupies an invocation, and all of an account's functions share invocations.
#[contract_test]
async fn an_entity_that_has_begun_its_waits_is_refused_before_it_waits(suite: Arc<Suite>) {
    let (entity, other) = (suite.entity().await, suite.entity().await);
    let (hook, of_other) = (pulled(&entity).await, pulled(&other).await);
    // Make it look as if the entity had started all its waits, in every window of this test.
    let begun = now() - now() % 10;
    let used_up = (0..120).map(|window| {
        let (pk, sk) = (format!("ALLOWANCE#feed-waits#{}", entity.id), format!("{:010}", begun + window * 10));
        json!({ "pk": { "S": pk }, "sk": { "S": sk }, "count": { "N": "200" }, "expiresAt": { "N": "4000000000" } })
    });
    suite.table().put_all(used_up).await;
    // On a busy machine, one response may take long, but a request that waits first always takes long.
    until("a request is refused before it waits", LONG, async || {
        let asked = Instant::now();
        let refused = reading(&entity, &hook, &json!({ "wait": 10 })).expect(429).await;
        is_limited(&refused, "feed-waits", 200, 10);
        (asked.elapsed() < Duration::from_secs(10)).then_some(())
    })
    .await;
    assert!(read(&entity, &hook, json!({})).await.is_empty(), "a request that does not wait is accepted");
    assert!(read(&other, &of_other, json!({ "wait": 1 })).await.is_empty(), "the other entity waits");
    let published = entity.publish(json!({})).await;
    entity.until_delivery(&published, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    assert_eq!(id(&read(&entity, &hook, json!({ "wait": 10 })).await[0]), published, "nothing has to wait");
}

#[contract_test]
async fn changing_between_push_and_pull_loses_and_doubles_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let hook = pulled(&entity).await;
    let at = format!("/webhook/{}", hook.id);
    let unread = entity.publish(json!({ "number": 1 })).await;
    entity.until_delivery(&unread, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    let answer = entity.call("PATCH", &at).json(&json!({ "delivery": "push" })).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&answer), ["body/eventUrl"]);
    entity.changed(&hook.id, json!({ "delivery": "push", "eventUrl": url })).await;
    let sent = entity.until_status(&unread, &["delivered"]).await;
    assert_eq!(sent["attempts"][0]["httpStatus"], 204);
    entity.post(&format!("{at}/feed/read")).refused(409, "webhook-not-pulled").await;

    // The webhook becomes a pull webhook again while a delivery is waiting for its retry.
    receiver.on("/", [Behaviour::answer(503, &[("Retry-After", "600")], "")]);
    let retrying = entity.publish(json!({ "number": 2 })).await;
    entity.until_status(&retrying, &["retrying"]).await;
    let changed = entity.changed(&hook.id, json!({ "delivery": "pull" })).await;
    assert!(changed.get("eventUrl").is_none() && changed["delivery"] == "pull", "{changed:#}");
    overdue(&suite.table(), &retrying, LONG_AGO).await;
    let found = read_some(&entity, &hook, json!({})).await;
    assert_eq!(id(&found[0]), retrying);
    confirm(&entity, &hook, &found).await;
    let delivered = entity.until_status(&retrying, &["delivered"]).await;
    assert_eq!(
        delivered["attemptCount"].as_u64(),
        Some(receiver.received("/").len() as u64),
        "1 by push before, 1 by pull"
    );
}

#[contract_test]
async fn a_reader_that_holds_a_delivery_may_answer_after_the_change(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let hook = pulled(&entity).await;
    for _ in 0..2 {
        entity.publish(json!({})).await;
    }
    let held = read_some(&entity, &hook, json!({ "limit": 1, "visibility": 3600 })).await;
    let abandoned = read_some(&entity, &hook, json!({ "limit": 1, "visibility": 10 })).await;
    entity.changed(&hook.id, json!({ "delivery": "push", "eventUrl": url })).await;
    assert_eq!(confirm(&entity, &hook, &held).await, ["confirmed"]);
    let sent = entity.until_status(id(&abandoned[0]), &["delivered"]).await;
    assert_eq!(sent["attemptCount"], 2, "{sent:#}");
    assert_eq!(sent["attempts"][1]["httpStatus"], 204);
    assert_eq!(receiver.received("/").len(), 1, "the confirmed one is not sent");
}

#[contract_test]
async fn unread_deliveries_of_a_removed_or_disabled_webhook_are_cancelled(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for change in ["remove", "disable"] {
        let hook = pulled(&entity).await;
        let at = format!("/webhook/{}", hook.id);
        let unread = entity.publish(json!({})).await;
        entity.until_delivery(&unread, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
        if change == "remove" {
            entity.call("DELETE", &at).expect(200).await;
            entity.post(&format!("{at}/feed/read")).refused(404, "webhook-not-found").await;
        } else {
            entity.changed(&hook.id, json!({ "enabled": false })).await;
            entity.post(&format!("{at}/feed/read")).refused(409, "webhook-disabled").await;
        }
        entity.until_status(&unread, &["cancelled"]).await;
        if change == "disable" {
            entity.call("DELETE", &at).expect(200).await;
        }
    }
}

#[contract_test]
async fn a_feed_refuses_what_it_does_not_know(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let at = format!("/webhook/{}/feed", hook.id);
    for (name, bad) in
        [("limit", 0), ("limit", 101), ("wait", 11), ("visibility", 9), ("visibility", 3601), ("more", 1)]
    {
        let problem = reading(&entity, &hook, &json!({ name: bad })).refused(400, "invalid-request").await;
        assert_eq!(problem["properties"]["violations"].as_array().map(Vec::len), Some(1), "{problem:#}");
    }
    for body in [json!({}), json!({ "receipts": ["x"], "visibility": 60 }), json!({ "receipts": [], "visibility": 1 })]
    {
        entity.post(&format!("{at}/extend")).json(&body).refused(400, "invalid-request").await;
    }
    for body in [json!({}), json!({ "confirmed": ["x"] }), json!({ "failed": [{ "receipt": "x" }] })] {
        entity.post(&format!("{at}/ack")).json(&body).refused(400, "invalid-request").await;
    }
    for body in [
        json!({ "name": "n", "delivery": "pull", "eventUrl": "https://hooks.example.com/", "eventList": [] }),
        json!({ "name": "n", "delivery": "pull", "eventList": [], "headers": { "X-Key": "k" } }),
        json!({ "name": "n", "delivery": "mail", "eventList": [] }),
        json!({ "name": "n", "eventUrl": "https://hooks.example.com/", "eventList": [], "temporary": true }),
    ] {
        entity.post("/webhook").json(&body).refused(400, "invalid-request").await;
    }
    // A receipt from another webhook is invalid here, and reveals nothing about its delivery.
    let other = pulled(&entity).await;
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    assert_eq!(published["deliveries"].as_array().map(Vec::len), Some(2));
    let read = read_some(&entity, &other, json!({})).await;
    assert_eq!(confirm(&entity, &hook, &read).await, ["expired"]);
    let stranger = suite.entity().await;
    let receipt = json!({ "confirmed": [read[0]["receipt"]] });
    stranger.post(&format!("{at}/ack")).json(&receipt).refused(404, "webhook-not-found").await;
    assert_eq!(confirm(&entity, &other, &read).await, ["confirmed"]);
}

#[contract_test]
async fn a_temporary_webhook_is_removed_when_its_feed_is_not_read(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({ "name": "laptop", "delivery": "pull", "temporary": true, "eventList": [] });
    let hook = entity.hook_with(body).await;
    assert_eq!(hook.json["temporary"], true);
    let to_push = json!({ "delivery": "push", "eventUrl": "https://hooks.example.com/" });
    assert_eq!(violations(&entity, &hook, &to_push).await, ["body/delivery"]);
    read(&entity, &hook, json!({})).await;
    // Simulate that an hour has passed.
    let table = suite.table();
    assert!(table.set(&format!("ENT#{}", entity.id), &format!("WHK#{}", hook.id), "readAt", LONG_AGO).await);
    for (pk, sk) in [(format!("JOB#{}", hook.id), "EXPIRE"), (format!("TURN#{}", entity.id), "JOBS")] {
        assert!(table.set(&pk, sk, "dueAt", LONG_AGO).await);
    }
    until("it is removed", LONG, async || {
        let list = entity.get("/webhook/list").expect(200).await.json();
        (list == json!([])).then_some(())
    })
    .await;
}

/// A busy machine may not manage this within a reader's longest wait, but a reader that does not see a resend never
/// does.
#[contract_test]
async fn a_resent_delivery_reaches_a_reader_that_already_waits(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,40s,40s");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "waits".to_owned()).await;
    let hook = pulled(&entity).await;
    // When the reader begins, the delivery is waiting for its next attempt, or is still held by its first reader.
    for is_held in [false, true] {
        until("a waiting reader soon gets a resent delivery", LONG, async || {
            resent_soon(&entity, &hook, is_held).await.then_some(())
        })
        .await;
    }
    assert!(bundle.stop().await.success());
}

/// Resends a delivery while a reader waits; returns whether the reader got it soon afterwards.
async fn resent_soon(entity: &Entity, hook: &Hook, is_held: bool) -> bool {
    /// One second, with a margin for a slow machine.
    const SOON: Duration = Duration::from_secs(4);
    let published = entity.publish(json!({ "isHeld": is_held })).await;
    let first = read_some(entity, hook, json!({ "visibility": 60 })).await;
    assert_eq!(first.iter().map(id).collect::<Vec<_>>(), [&published]);
    let failure = json!({ "failed": [{ "receipt": first[0]["receipt"], "reason": "busy" }] });
    let report = async || assert_eq!(answer(entity, hook, failure.clone()).await, ["failed"]);
    if !is_held {
        report().await;
    }
    let resending = async {
        sleep(Duration::from_secs(2)).await;
        if is_held {
            report().await;
        }
        entity.post(&format!("/webhook/delivery/{published}/resend")).once().expect(202).await;
        Instant::now()
    };
    let reading = async { (read(entity, hook, json!({ "wait": 10 })).await, Instant::now()) };
    let ((mut found, arrived), resent) = tokio::join!(reading, resending);
    let is_soon = !found.is_empty() && arrived.saturating_duration_since(resent) < SOON;
    if found.is_empty() {
        found = read_some(entity, hook, json!({})).await;
    }
    assert_eq!(found.iter().map(id).collect::<Vec<_>>(), [&published]);
    assert_eq!(confirm(entity, hook, &found).await, ["confirmed"]);
    assert_eq!(entity.delivery(&published).await["status"], "delivered");
    is_soon
}

#[contract_test]
async fn a_reason_with_an_unpaired_surrogate_is_refused_with_its_path(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    entity.publish(json!({})).await;
    let found = read_some(&entity, &hook, json!({})).await;
    let body = format!(r#"{{"failed":[{{"receipt":{},"reason":"HTTP \ud800"}}]}}"#, found[0]["receipt"]);
    let call = entity.post(&format!("/webhook/{}/feed/ack", hook.id)).body("application/json", body);
    let problem = call.refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/failed/0/reason"]);
    assert!(problem["properties"]["violations"][0].to_string().contains("unpaired surrogate"), "{problem:#}");
    assert_eq!(confirm(&entity, &hook, &found).await, ["confirmed"]);
}

/// As happens when a waiting browser or program is closed. A busy machine may notice the end of a connection only after
/// it has given the delivery to it, but a machine that does not look at connections always does.
#[contract_test]
async fn a_reader_that_has_closed_its_connection_gets_nothing(suite: Arc<Suite>) {
    until("only a reader that waits gets the delivery", LONG, async || {
        (attempts_after_closed_readers(&suite).await? == 1).then_some(())
    })
    .await;
}

/// The number of attempts that it takes to read a delivery after two readers have closed their connections; `None` if
/// these did not wait.
async fn attempts_after_closed_readers(suite: &Suite) -> Option<u64> {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let token = suite.api.token(Application::Platform, "").await;
    let path = entity.path(&format!("/webhook/{}/feed/read", hook.id));
    let body = r#"{"wait":10,"visibility":10}"#;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..2 {
        let mut waiting = TcpStream::connect(("127.0.0.1", suite.bundle().port)).await.expect("the bundle listens");
        waiting.write_all(request.as_bytes()).await.expect("sent");
        let early = timeout(Duration::from_secs(2), waiting.read_u8()).await;
        if early.is_ok() {
            return None;
        }
    }
    // Let the gateway notice that the connections have ended.
    sleep(Duration::from_millis(500)).await;
    let published = entity.publish(json!({})).await;
    let found = read_some(&entity, &hook, json!({})).await;
    assert_eq!(id(&found[0]), published);
    assert_eq!(confirm(&entity, &hook, &found).await, ["confirmed"]);
    let delivered = entity.until_status(&published, &["delivered"]).await;
    delivered["attemptCount"].as_u64()
}
