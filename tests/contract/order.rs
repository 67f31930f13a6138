//! Order by subject: an ordered webhook gets a subject's deliveries one at a time, in the order in which their events
//! were accepted. Each delivery waits until the previous one is final, and shows which one it is waiting for.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    erasing::erase,
    harness::{
        ApiResponse, AwsCall, Behaviour, Entity, Gate, Hook, LONG, Receiver, Settings, Suite, Table, announced,
        feed::{answer, confirm, read, read_some},
        invalid_values, stored, until, window_start,
    },
};

/// A time after any test has ended.
const NEVER: &str = "2099-01-01T00:00:00.000Z";

/// In these tests, readers hold a delivery for ten minutes, longer than any test waits.
fn held() -> Value {
    json!({ "visibility": 600 })
}

/// A response that postpones a delivery for ten minutes, unless a person resends it.
pub fn later() -> Behaviour {
    Behaviour::answer(503, &[("Retry-After", "600")], "")
}

/// A webhook for these types that uses order by subject.
pub async fn ordered(entity: &Entity, url: &str, types: &[&str]) -> Hook {
    let body = json!({ "name": "ordered", "eventUrl": url, "eventList": types, "order": "subject" });
    entity.hook_with(body).await
}

async fn ordered_feed(entity: &Entity) -> Hook {
    let body = json!({ "name": "feed", "delivery": "pull", "eventList": [], "order": "subject" });
    entity.hook_with(body).await
}

fn event(kind: &str, subject: &str) -> Value {
    json!({ "type": kind, "subject": subject, "data": {} })
}

/// Publishes an event about a subject; returns its deliveries by webhook.
async fn deliveries_about(entity: &Entity, kind: &str, subject: &str) -> BTreeMap<String, String> {
    deliveries(&entity.publish_event(&event(kind, subject)).await)
}

fn deliveries(published: &ApiResponse) -> BTreeMap<String, String> {
    let published = published.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so").iter();
    let text = |value: &Value| value.as_str().expect("openapi.yaml says so").to_owned();
    deliveries.map(|one| (text(&one["webhookIdentifier"]), text(&one["deliveryIdentifier"]))).collect()
}

/// Publishes an event about a subject to the only webhook; returns its delivery.
pub async fn about(entity: &Entity, subject: &str) -> String {
    let deliveries = deliveries_about(entity, "booking.created", subject).await;
    assert_eq!(deliveries.len(), 1, "one webhook, one delivery: {deliveries:?}");
    deliveries.into_values().next().expect("one")
}

/// Waits until the first of these deliveries is waiting for the second.
pub async fn until_held_by(entity: &Entity, id: &str, before: &str) -> Value {
    let is_held = |shown: &Value| shown["heldBy"] == before;
    let shown = entity.until_delivery(id, &format!("waits for {before}"), is_held).await;
    assert_eq!((&shown["status"], &shown["attemptCount"]), (&json!("pending"), &json!(0)), "{shown:#}");
    assert_eq!(shown["waitingFor"], "order", "{shown:#}");
    shown
}

/// Moves the dispatcher's next check of a held delivery to a time that is never reached. From now on, only the previous
/// delivery's end can wake the held delivery.
async fn without_looks(table: &Table, id: &str) {
    // While a dispatcher is checking the delivery, it has a lease, after which it gets another time. From the first
    // change on, it cannot be claimed.
    for attribute in ["claimableAt", "dueAt"] {
        let moved = async || table.set_of_head(id, attribute, NEVER).await.then_some(());
        until("no dispatcher looks at the delivery", LONG, moved).await;
    }
}

/// Publishes an event, and waits until its first attempt has failed. The receiver's next behaviour is [`later`].
async fn poisoned(entity: &Entity, subject: &str) -> String {
    let id = about(entity, subject).await;
    entity.until_status(&id, &["retrying"]).await;
    id
}

pub async fn resend(entity: &Entity, id: &str) {
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
}

/// Waits until these deliveries have succeeded, and returns the deliveries of all requests to this path, in order.
async fn delivered(entity: &Entity, receiver: &Receiver, path: &str, ids: &[&str]) -> Vec<String> {
    for id in ids {
        let shown = entity.until_status(id, &["delivered", "failed", "cancelled"]).await;
        assert_eq!(shown["status"], "delivered", "{shown:#}");
        assert!(shown.get("heldBy").is_none() && shown.get("waitingFor").is_none(), "{shown:#}");
    }
    sent(receiver, path)
}

fn sent(receiver: &Receiver, path: &str) -> Vec<String> {
    receiver.received(path).iter().map(|request| request.header("service-delivery-id").to_owned()).collect()
}

#[contract_test]
async fn a_poisoned_subject_holds_up_only_itself_and_shows_that(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    let third = about(&entity, "A").await;
    let other = about(&entity, "B").await;
    let none = entity.publish(json!({})).await;
    until_held_by(&entity, &second, &first).await;
    let held = until_held_by(&entity, &third, &second).await;
    assert!(held.get("nextAttemptDate").is_none(), "its time is the end of the one before: {held:#}");
    let list = entity.get("/webhook/delivery/list?subject=A&status=pending").expect(200).await.json();
    let items = list["items"].as_array().expect("openapi.yaml says so");
    let held_by: Vec<_> = items.iter().map(|item| [&item["id"], &item["heldBy"]]).collect();
    assert_eq!(json!(held_by), json!([[third, second], [second, first]]));
    let before = delivered(&entity, &receiver, "/", &[&other, &none]).await;
    assert_eq!(before.len(), 3, "nothing else of the subject was sent: {before:?}");

    // When the first delivery finally succeeds, it wakes the others one after another.
    for id in [&second, &third] {
        without_looks(&suite.table(), id).await;
    }
    resend(&entity, &first).await;
    let all = delivered(&entity, &receiver, "/", &[&first, &second, &third]).await;
    assert_eq!(all[3..], [first, second, third]);
}

#[contract_test]
async fn a_cancelled_delivery_lets_the_next_one_go(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    until_held_by(&entity, &second, &first).await;
    without_looks(&suite.table(), &second).await;
    entity.post(&format!("/webhook/delivery/{first}/cancel")).expect(200).await;
    assert_eq!(delivered(&entity, &receiver, "/", &[&second]).await, [first, second]);
}

#[contract_test]
async fn a_delivery_waits_for_all_before_it_when_one_between_is_cancelled_or_erased(suite: Arc<Suite>) {
    for is_erased in [false, true] {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
        let first = poisoned(&entity, "A").await;
        let event = entity.publish_event(&event("booking.created", "A")).await;
        let second = deliveries(&event).into_values().next().expect("one webhook, one delivery");
        let third = about(&entity, "A").await;
        let fourth = about(&entity, "A").await;
        until_held_by(&entity, &third, &second).await;
        until_held_by(&entity, &fourth, &third).await;
        if is_erased {
            let event = event.json()["eventIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
            erase(&entity, &event).await;
        } else {
            entity.post(&format!("/webhook/delivery/{second}/cancel")).expect(200).await;
        }
        until_held_by(&entity, &third, &first).await;
        // Cancelling the third delivery as well makes the fourth one wait for the first.
        entity.post(&format!("/webhook/delivery/{third}/cancel")).expect(200).await;
        until_held_by(&entity, &fourth, &first).await;
        without_looks(&suite.table(), &fourth).await;
        resend(&entity, &first).await;
        assert_eq!(
            delivered(&entity, &receiver, "/", &[&first, &fourth]).await,
            [first.clone(), first, fourth],
            "{is_erased}"
        );
    }
}

#[contract_test]
async fn a_pulled_delivery_waits_for_all_before_it_when_one_between_is_cancelled(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = ordered_feed(&entity).await;
    let [first, second, third] = [about(&entity, "A").await, about(&entity, "A").await, about(&entity, "A").await];
    until_held_by(&entity, &second, &first).await;
    until_held_by(&entity, &third, &second).await;
    entity.post(&format!("/webhook/delivery/{second}/cancel")).expect(200).await;
    until_held_by(&entity, &third, &first).await;
    for expected in [first, third] {
        let page = read_some(&entity, &hook, held()).await;
        assert_eq!((page.len(), &page[0]["deliveryIdentifier"]), (1, &json!(expected)));
        confirm(&entity, &hook, &page).await;
    }
}

#[contract_test]
async fn every_ordered_webhook_of_an_event_knows_its_next_delivery(suite: Arc<Suite>) {
    // The number of webhooks is more than a transaction has room for.
    const WEBHOOKS: usize = 101;
    let entity = suite.entity().await;
    for _ in 0..WEBHOOKS {
        ordered_feed(&entity).await;
    }
    let first = deliveries_about(&entity, "booking.created", "A").await;
    let second = deliveries_about(&entity, "booking.created", "A").await;
    assert_eq!(first.len(), WEBHOOKS);
    for (webhook, delivery) in &first {
        let next = suite.table().item(&format!("DLV#{delivery}"), "NEXT").await.expect("the next of its line");
        assert_eq!(next["next"]["S"], second[webhook].as_str());
    }
}

#[contract_test]
async fn an_erased_event_lets_the_next_one_go(suite: Arc<Suite>) {
    let table = suite.table();
    // The exchange of an attempt may take 15 s. A slower machine invalidates a round of the second kind.
    for is_under_way in [false, true, true, true] {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let answers = Gate::closed();
        let slow = Behaviour::status(500).behind(&answers);
        let behaviour = if is_under_way { slow } else { later() };
        ordered(&entity, &receiver.on("/", [behaviour, Behaviour::status(200)]), &[]).await;
        let first = about(&entity, "A").await;
        if is_under_way {
            receiver.until("/", 1).await;
        } else {
            entity.until_status(&first, &["retrying"]).await;
        }
        let second = about(&entity, "A").await;
        let is_seen = |shown: &Value| shown["heldBy"] == *first || shown["status"] == "delivered";
        let shown = entity.until_delivery(&second, "waits for the first one, or that is over", is_seen).await;
        if is_under_way && shown["status"] == "delivered" {
            continue;
        }
        assert_eq!(shown["waitingFor"], "order", "{shown:#}");
        without_looks(&table, &second).await;
        let event = stored::event_of(&first);
        erase(&entity, &event).await;
        if is_under_way {
            // The erasure makes the second delivery due, and a dispatcher finds that the first has not ended.
            let waits = until("the second one waits for the attempt, or that is over", LONG, async || {
                let head = table.head(&second).await?;
                if head["status"]["S"] == "delivered" {
                    return Some(false);
                }
                (head["heldBy"]["S"] == first.as_str() && head["dueAt"]["S"] != NEVER).then_some(true)
            })
            .await;
            if !waits {
                continue;
            }
            without_looks(&table, &second).await;
            answers.open();
        }
        assert_eq!(delivered(&entity, &receiver, "/", &[&second]).await, [first.clone(), second]);
        let shown = entity.delivery(&first).await;
        assert_eq!((&shown["status"], &shown["cancelReason"]), (&json!("cancelled"), &json!("erased")), "{shown:#}");
        if is_under_way {
            return;
        }
    }
    panic!("in each round the attempt was over before the event was erased");
}

#[contract_test]
async fn a_webhook_without_order_is_not_held_up_by_an_ordered_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let ordered = ordered(&entity, &receiver.on("/ordered", [later()]), &[]).await;
    let other = entity.hook(&receiver.on("/other", [later(), Behaviour::status(200)])).await;
    let first = deliveries_about(&entity, "booking.created", "A").await;
    for id in first.values() {
        entity.until_status(id, &["retrying"]).await;
    }
    let second = deliveries_about(&entity, "booking.created", "A").await;
    until_held_by(&entity, &second[&ordered.id], &first[&ordered.id]).await;
    let shown = entity.until_status(&second[&other.id], &["delivered"]).await;
    assert!(shown.get("heldBy").is_none(), "{shown:#}");
}

#[contract_test]
async fn the_next_goes_when_the_one_before_succeeds_after_a_retry(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [Behaviour::status(500), Behaviour::status(200)]), &[]).await;
    let ids = [about(&entity, "A").await, about(&entity, "A").await, about(&entity, "A").await];
    let [first, second, third] = ids.each_ref().map(String::as_str);
    let all = delivered(&entity, &receiver, "/", &[first, second, third]).await;
    assert_eq!(all, [first, first, second, third]);
}

#[contract_test]
async fn the_next_goes_when_the_one_before_is_exhausted(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let fails = Behaviour::status(500);
    let script = [fails.clone(), fails.clone(), fails, Behaviour::status(200)];
    ordered(&entity, &receiver.on("/", script), &[]).await;
    let ids = [about(&entity, "A").await, about(&entity, "A").await, about(&entity, "A").await];
    let [first, second, third] = ids.each_ref().map(String::as_str);
    let all = delivered(&entity, &receiver, "/", &[second, third]).await;
    assert_eq!(all, [first, first, first, second, third]);
    assert_eq!(entity.delivery(first).await["status"], "failed");
    // A final delivery that is resent is sent immediately, out of order.
    resend(&entity, first).await;
    let all = delivered(&entity, &receiver, "/", &[first]).await;
    assert_eq!(all[5..], [first]);
}

#[contract_test]
async fn a_burst_of_one_subject_arrives_in_the_order_of_publication(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [Behaviour::status(200)]), &[]).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(about(&entity, "A").await);
    }
    let all: Vec<_> = ids.iter().map(String::as_str).collect();
    assert_eq!(delivered(&entity, &receiver, "/", &all).await, ids);
}

#[contract_test]
async fn concurrent_publications_of_a_subject_never_overlap(suite: Arc<Suite>) {
    /// How long the endpoint takes to handle a request.
    const WORKS: Duration = Duration::from_millis(150);
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [Behaviour::status(200).after(WORKS)]), &[]).await;
    let publish = async |number: usize| {
        let subject = ["A", "B"][number % 2];
        // Concurrent publish requests about the same subject conflict, so a client may have to repeat one.
        let answer = until("a publication is acknowledged", LONG, async || {
            let call = entity.post("/webhook/event").header("idempotency-key", format!("key-{number}"));
            call.json(&event("booking.created", subject)).attempt().await.ok().filter(|answer| answer.status == 202)
        });
        (subject, deliveries(&answer.await).into_values().next().expect("one webhook"))
    };
    let published = join_all((0..16).map(publish)).await;
    let ids: Vec<_> = published.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(delivered(&entity, &receiver, "/", &ids).await.len(), 16, "each is sent once");
    let received = receiver.received("/");
    for subject in ["A", "B"] {
        let is_about = |id: &str| published.iter().any(|(about, other)| *about == subject && other == id);
        let of_subject: Vec<_> =
            received.iter().filter(|request| is_about(request.header("service-delivery-id"))).collect();
        assert_eq!(of_subject.len(), 8);
        for pair in of_subject.windows(2) {
            let between = pair[1].at - pair[0].at;
            assert!(between >= WORKS, "two requests about {subject} came within {between:?}");
        }
    }
}

/// A waiting publish request occupies an invocation, and all of an account's functions share invocations.
#[contract_test]
async fn publications_of_a_hot_subject_that_must_not_wait_are_refused_soon(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let (entity, other) =
        (Entity::new(&setup.api, "hot-1".to_owned()).await, Entity::new(&setup.api, "other-1".to_owned()).await);
    for entity in [&entity, &other] {
        ordered_feed(entity).await;
    }
    // Calls fail as if others kept moving the line.
    let moves_a_line = |call: &AwsCall| {
        call.operation == "TransactWriteItems" && (call.mentions("LINE#hot-1") || call.mentions("LINE#other-1"))
    };
    setup.table.refuse(usize::MAX, "TransactionConflictException", moves_a_line);
    // Use up the allowance for ten minutes, in ten-second windows.
    let begun = window_start(10);
    let used_up = (0..60).map(|window| {
        let sk = format!("{:010}", begun + window * 10);
        json!({ "pk": { "S": "ALLOWANCE#line-waits#hot-1" }, "sk": { "S": sk }, "count": { "N": "200" } })
    });
    Table::of(&setup.api.env).put_all(used_up).await;
    // A publish request's calls: `true` if it asks to wait, `false` if it tries to move the line.
    let calls_of = async |entity: &Entity| {
        let line = format!("LINE#{}", entity.id);
        let waits = format!("ALLOWANCE#line-waits#{}", entity.id);
        let calls = || {
            let calls = setup.table.calls_mentioning(&entity.id).into_iter();
            let moves_the_line = |call: &AwsCall| call.operation == "TransactWriteItems" && call.mentions(&line);
            let calls = calls.filter(|call| call.mentions(&waits) || moves_the_line(call));
            calls.map(|call| call.mentions(&waits)).collect::<Vec<_>>()
        };
        let before = calls().len();
        let call = entity.post("/webhook/event").json(&event("booking.created", "A"));
        call.refused(503, "service-unavailable").await;
        calls().split_off(before)
    };
    // On a machine that stalls, a request may have no time left when it has asked to wait, and a call may arrive after
    // its request has given it up. Then another request shows more.
    until("a request waits", LONG, async || {
        let calls = calls_of(&other).await;
        let asked = calls.iter().position(|asks| *asks)?;
        calls[asked..].contains(&false).then_some(())
    })
    .await;
    until("a request that must not wait is refused", LONG, async || {
        (calls_of(&entity).await.last() == Some(&true)).then_some(())
    })
    .await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn an_unreadable_event_does_not_hold_up_the_next_of_its_subject(suite: Arc<Suite>) {
    // The event is damaged before a sweep opens its delivery.
    let settings = Settings::default().with("SWEEP_INTERVAL", "1h");
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    let entity = Entity::new(&setup.api, "damaged".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = ordered(&entity, &receiver.on("/", [Behaviour::status(200)]), &[]).await;
    let webhook = hook.id.clone();
    setup.services.swallow(1, move |call| announced(call).iter().any(|due| due.webhook == webhook));
    let damaged = about(&entity, "A").await;
    let table = Table::of(&setup.api.env);
    let (pk, sk) = stored::event_key(&stored::event_of(&damaged));
    assert!(table.set(&pk, &sk, "firstAttempt", "damaged").await);
    let next = about(&entity, "A").await;
    entity.until_status(&next, &["delivered"]).await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_repeated_key_gives_its_delivery_no_second_link(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let publish = async || {
        let call = entity.post("/webhook/event").header("idempotency-key", "second");
        let answer = call.json(&event("booking.created", "A")).expect(202).await;
        deliveries(&answer).into_values().next().expect("one webhook")
    };
    let second = publish().await;
    assert_eq!(publish().await, second);
    until_held_by(&entity, &second, &first).await;
    let third = about(&entity, "A").await;
    until_held_by(&entity, &third, &second).await;
    // An event that is published again after the next one keeps its position.
    assert_eq!(publish().await, second);
    let fourth = about(&entity, "A").await;
    until_held_by(&entity, &fourth, &third).await;
    until_held_by(&entity, &second, &first).await;
    resend(&entity, &first).await;
    let all = delivered(&entity, &receiver, "/", &[&first, &second, &third, &fourth]).await;
    assert_eq!(all[1..], [first, second, third, fourth]);
}

#[contract_test]
async fn events_that_a_webhook_does_not_want_are_no_part_of_its_order(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let created = ordered(&entity, &receiver.on("/created", [later()]), &["booking.created"]).await;
    let all = ordered(&entity, &receiver.on("/all", [later()]), &[]).await;
    let first = deliveries_about(&entity, "booking.created", "A").await;
    for id in first.values() {
        entity.until_status(id, &["retrying"]).await;
    }
    let second = deliveries_about(&entity, "booking.cancelled", "A").await;
    assert_eq!(second.keys().collect::<Vec<_>>(), [&all.id]);
    let third = deliveries_about(&entity, "booking.created", "A").await;
    until_held_by(&entity, &second[&all.id], &first[&all.id]).await;
    until_held_by(&entity, &third[&all.id], &second[&all.id]).await;
    until_held_by(&entity, &third[&created.id], &first[&created.id]).await;
}

#[contract_test]
async fn a_feed_gives_one_delivery_of_a_subject_at_a_time(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = ordered_feed(&entity).await;
    let mut expected = BTreeMap::<_, Vec<_>>::new();
    for subject in ["A", "A", "B", "A", "B"] {
        expected.entry(subject.to_owned()).or_default().push(about(&entity, subject).await);
    }
    until_held_by(&entity, &expected["A"][1], &expected["A"][0]).await;
    until_held_by(&entity, &expected["A"][2], &expected["A"][1]).await;
    let text = |value: &Value| value.as_str().expect("openapi.yaml says so").to_owned();
    let subject = |delivery: &Value| {
        let body: Value = serde_json::from_str(delivery["body"].as_str().expect("a text")).expect("JSON");
        text(&body["subject"])
    };
    let mut got = BTreeMap::<_, Vec<_>>::new();
    let mut is_first = true;
    while got.values().map(Vec::len).sum::<usize>() < 5 {
        let page = read_some(&entity, &hook, held()).await;
        for delivery in &page {
            got.entry(subject(delivery)).or_default().push(text(&delivery["deliveryIdentifier"]));
        }
        // The reader holds these deliveries, so it gets nothing else about their subjects.
        if std::mem::take(&mut is_first) {
            for ids in expected.values() {
                until_held_by(&entity, &ids[1], &ids[0]).await;
            }
            let subjects: Vec<_> = page.iter().map(subject).collect();
            let more = read(&entity, &hook, held()).await;
            assert!(more.iter().all(|delivery| !subjects.contains(&subject(delivery))), "{more:#?}");
            for delivery in &more {
                got.entry(subject(delivery)).or_default().push(text(&delivery["deliveryIdentifier"]));
            }
            if !more.is_empty() {
                confirm(&entity, &hook, &more).await;
            }
        }
        assert!(confirm(&entity, &hook, &page).await.iter().all(|outcome| outcome == "confirmed"));
    }
    assert_eq!(got, expected);
}

#[contract_test]
async fn a_failure_in_a_feed_holds_up_its_subject(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = ordered_feed(&entity).await;
    let ids = [about(&entity, "A").await, about(&entity, "A").await];
    let mut got = Vec::new();
    // The first delivery fails after the three attempts in its schedule, and the second one follows.
    for _ in 0..3 {
        let page = read_some(&entity, &hook, held()).await;
        got.extend(page.iter().map(|delivery| delivery["deliveryIdentifier"].clone()));
        let failure = json!({ "failed": [{ "receipt": page[0]["receipt"], "reason": "the room is unknown" }] });
        assert_eq!(answer(&entity, &hook, failure).await, ["failed"]);
    }
    let page = read_some(&entity, &hook, held()).await;
    got.extend(page.iter().map(|delivery| delivery["deliveryIdentifier"].clone()));
    assert_eq!(confirm(&entity, &hook, &page).await, ["confirmed"]);
    assert_eq!(got, [&ids[0], &ids[0], &ids[0], &ids[1]].map(|id| json!(id)));
    assert_eq!(entity.delivery(&ids[0]).await["status"], "failed");
}

#[contract_test]
async fn deliveries_go_at_once_when_their_webhook_is_not_ordered_any_more(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    assert_eq!(hook.json["order"], "subject");
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    let third = about(&entity, "A").await;
    until_held_by(&entity, &second, &first).await;
    until_held_by(&entity, &third, &second).await;
    let changed = entity.changed(&hook.id, json!({ "order": "none" })).await;
    assert_eq!(changed["order"], "none", "{changed:#}");
    delivered(&entity, &receiver, "/", &[&second, &third]).await;
    assert_eq!(entity.delivery(&first).await["status"], "retrying");
    // After the webhook becomes ordered again, only later events wait for each other.
    receiver.on("/", [later(), Behaviour::status(200)]);
    entity.changed(&hook.id, json!({ "order": "subject" })).await;
    let fourth = poisoned(&entity, "A").await;
    let fifth = about(&entity, "A").await;
    until_held_by(&entity, &fifth, &fourth).await;
}

#[contract_test]
async fn a_disabled_webhook_cancels_deliveries_that_wait_for_their_order(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    until_held_by(&entity, &second, &first).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    // The first delivery is waiting for its retry, which would find the webhook disabled.
    let shown = entity.until_status(&second, &["cancelled"]).await;
    assert!(shown.get("heldBy").is_none(), "{shown:#}");
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    // The first delivery is still open, waiting for its retry.
    let third = about(&entity, "A").await;
    until_held_by(&entity, &third, &first).await;
    resend(&entity, &first).await;
    let all = delivered(&entity, &receiver, "/", &[&first, &third]).await;
    assert_eq!(all, [first.clone(), first, third]);
}

#[contract_test]
async fn a_resend_of_a_delivery_that_waits_goes_at_once_and_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    let third = about(&entity, "A").await;
    until_held_by(&entity, &third, &second).await;
    resend(&entity, &second).await;
    assert_eq!(delivered(&entity, &receiver, "/", &[&second]).await, [first.clone(), second.clone()]);
    // The delivery that was waiting for the cancelled one is still waiting for the first one, which wakes it when it
    // ends.
    until_held_by(&entity, &third, &first).await;
    without_looks(&suite.table(), &third).await;
    resend(&entity, &first).await;
    assert_eq!(delivered(&entity, &receiver, "/", &[&first, &third]).await, [first.clone(), second, first, third]);
}

#[contract_test]
async fn the_order_of_a_webhook_is_none_or_subject(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    assert_eq!(hook.json["order"], "none", "{:#}", hook.json);
    for order in [json!("type"), json!(""), json!(true)] {
        let body = json!({ "name": "n", "eventUrl": "http://127.0.0.1:9/", "eventList": [], "order": order });
        let problem = entity.post("/webhook").json(&body).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/order"], "{order}");
        let problem = entity.change(&hook.id, &json!({ "order": order })).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/order"], "{order}");
    }
}
