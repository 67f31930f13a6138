//! Races and faults in dispatching: a webhook whose address changes, late responses, and deliveries that cannot be
//! sent.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use base::Time;
use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    harness::{
        AwsCall, Behaviour, Bus, Entity, Gate, Hook, LONG, LONG_AGO, Moment, Receiver, Settings, Suite, Table,
        counts::failures_counted, now, order, outcomes, until, until_a_round_counts,
    },
    sweep::overdue,
};

async fn change(entity: &Entity, hook: &Hook, change: Value) {
    entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&change).expect(200).await;
}

async fn until_health(entity: &Entity, hook: &Hook, health: &str) {
    until(&format!("the webhook is {health}"), LONG, async || {
        (entity.listed(hook).await["health"] == health).then_some(())
    })
    .await;
}

#[contract_test]
async fn a_webhook_that_has_moved_is_not_disabled_by_a_410_of_its_old_address(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    let hook = entity.hook(&receiver.on("/old", [Behaviour::status(410).behind(&answers)])).await;
    let id = entity.publish(json!({})).await;
    receiver.until("/old", 1).await;
    change(&entity, &hook, json!({ "eventUrl": receiver.on("/new", [Behaviour::status(204)]) })).await;
    answers.open();
    let delivery = entity.until_status(&id, &["failed", "delivered", "cancelled"]).await;
    assert_eq!((&delivery["status"], &delivery["lastHttpStatus"]), (&json!("failed"), &json!(410)));
    assert_eq!(entity.listed(&hook).await["enabled"], true);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    assert_eq!(receiver.received("/new").len(), 1);
}

#[contract_test]
async fn a_large_event_repeated_in_another_layout_is_sent_as_first_published(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let name = format!("{}-layout", entity.id);
    let event = |space: &str| {
        let data = format!(r#"{{"text":{space}"{}"}}"#, "x".repeat(20_000));
        let entity = &entity.id;
        Bus::event(
            &name,
            &format!(r#"{{"type":"booking.created","managingEntityIdentifier":"{entity}","data":{data}}}"#),
        )
    };
    let first = bus.hand_over(event("")).await.expect("taken");
    assert_eq!(bus.hand_over(event("   ")).await.expect("taken"), first);
    let id = first["published"]["deliveries"][0]["deliveryIdentifier"].as_str().expect("a text").to_owned();
    entity.until_status(&id, &["delivered"]).await;
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
    let received = receiver.until("/", 2).await;
    assert_eq!(received[0].body, received[1].body);
}

#[contract_test]
async fn a_failure_after_a_long_silence_disables_and_clears_nothing(suite: Arc<Suite>) {
    let has_an_attempt = |delivery: &Value| delivery["attemptCount"].as_u64() >= Some(1);
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    // The failures are twelve to six days old: they last longer than it takes to disable a webhook, but the streak has
    // ended.
    let day = 24 * 60 * 60;
    let at = |days: i64| Time::from_millis((now() + days * day) * 1_000).to_string();
    let since = at(-12);
    let pk = format!("ENT#{}", entity.id);
    let sk = format!("HLT#{}", hook.id);
    let old = json!({
        "pk": { "S": pk }, "sk": { "S": sk }, "failuresInRow": { "N": "100" }, "incompleteInRow": { "N": "0" },
        "failingSince": { "S": since }, "failing": { "BOOL": true }, "streakSince": { "S": since },
        "streakEnds": { "S": at(-1) }, "expiresAt": { "N": (now() + 2 * day).to_string() },
    });
    table.put(old).await;
    let id = entity.publish(json!({})).await;
    entity.until_delivery(&id, "has its first attempt", has_an_attempt).await;
    let counted = until("it is counted", LONG, async || {
        table.item(&pk, &sk).await.filter(|item| item["failuresInRow"]["N"] != "100")
    })
    .await;
    assert!(["101", "102", "103"].iter().any(|count| counted["failuresInRow"]["N"] == *count), "{counted:#}");
    let webhook = entity.listed(&hook).await;
    assert_eq!((&webhook["enabled"], &webhook["health"]), (&json!(true), &json!("failing")));
    assert_eq!(webhook["failingSince"], since, "no attempt has succeeded since");
    // An expired health item that the table has not removed yet.
    let expired = json!({
        "pk": { "S": pk }, "sk": { "S": sk }, "failuresInRow": { "N": "200" }, "incompleteInRow": { "N": "0" },
        "failingSince": { "S": at(-30) }, "failing": { "BOOL": true }, "streakSince": { "S": at(-30) },
        "streakEnds": { "S": at(-15) }, "expiresAt": { "N": (now() - 60).to_string() },
    });
    entity.until_status(&id, &["failed"]).await;
    failures_counted(&table, &entity, &hook, 103).await;
    table.put(expired).await;
    let id = entity.publish(json!({})).await;
    entity.until_delivery(&id, "has its first attempt", has_an_attempt).await;
    let counted = until("it is counted", LONG, async || {
        table.item(&pk, &sk).await.filter(|item| item["failuresInRow"]["N"] != "200")
    })
    .await;
    assert!(counted["failuresInRow"]["N"].as_str().is_some_and(|count| count.len() == 1), "{counted:#}");
}

/// The exchange of an attempt may take 15 s. A slower machine invalidates the round.
#[contract_test]
async fn a_slow_success_ends_the_failures_that_came_meanwhile(suite: Arc<Suite>) {
    for _ in 0..5 {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let answers = Gate::closed();
        let slow = Behaviour::status(200).behind(&answers);
        // The failed deliveries wait longer than the test lasts, so no other success ends the streak of failures.
        let hook = entity.hook(&receiver.on("/", [slow, order::later()])).await;
        let slow = entity.publish(json!({})).await;
        receiver.until("/", 1).await;
        join_all((0..10).map(|_| entity.publish(json!({})))).await;
        until_health(&entity, &hook, "failing").await;
        answers.open();
        let ended = entity.until_delivery(&slow, "its first attempt is over", |delivery| delivery["attemptCount"] != 0);
        // If the table does not accept a count in time, the count is lost as well.
        let healthy = tokio::time::timeout(LONG / 5, until_health(&entity, &hook, "healthy"));
        if ended.await["status"] == "delivered" && healthy.await.is_ok() {
            return;
        }
    }
    panic!("in each round the failures stayed after a success");
}

/// Damages a webhook's sealed values; returns the original item.
async fn damage(table: &Table, entity: &Entity, hook: &Hook) -> Value {
    let pk = format!("ENT#{}", entity.id);
    let sk = format!("WHK#{}", hook.id);
    let whole = table.item(&pk, &sk).await.expect("the webhook");
    let mut damaged = whole.clone();
    let sealed = &mut damaged["signingSecrets"]["L"][0]["M"]["sealed"]["S"];
    let text = sealed.as_str().expect("a sealed text");
    let (key, end) = text.split_at(text.len() - 8);
    *sealed = format!("{key}{}", end.chars().rev().collect::<String>()).into();
    table.put(damaged).await;
    whole
}

#[contract_test]
async fn a_delivery_whose_secret_cannot_be_opened_waits_and_is_sent_later(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "damaged".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let whole = damage(&table, &entity, &hook).await;
    let id = entity.publish(json!({})).await;
    let waits = |delivery: &Value| delivery["nextAttemptDate"].as_str() > delivery["createdDate"].as_str();
    let delivery = entity.until_delivery(&id, "is postponed", waits).await;
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("pending"), &json!(0)));
    table.put(whole).await;
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1));
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_delivery_whose_webhook_cannot_be_read_waits_and_is_sent_later(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = entity.hook(&receiver.on("/", [order::later(), Behaviour::status(204)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_delivery(&id, "has its first attempt", |delivery| delivery["attemptCount"] == 1).await;
    let whole = table.item(&format!("ENT#{}", entity.id), &format!("WHK#{}", hook.id)).await.expect("the webhook");
    let mut damaged = whole.clone();
    damaged["eventList"] = json!({ "S": "no list" });
    table.put(damaged).await;
    overdue(&table, &id, LONG_AGO).await;
    // Without the delay, the message would be received repeatedly and end in the dead-letter queue.
    let waits = |delivery: &Value| delivery["nextAttemptDate"].as_str() > Some(LONG_AGO);
    let delivery = entity.until_delivery(&id, "is postponed", waits).await;
    assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("retrying"), 1));
    table.put(whole).await;
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("delivered"), &json!(2)));
}

/// The table's client retries the write after four seconds and gives up after ten. Waiting for the write would delay
/// the attempt's record until after the lease.
#[contract_test]
async fn a_mark_of_slowness_that_cannot_be_written_delays_no_record(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "unmarked".to_owned()).await;
    let receiver = Receiver::start().await;
    let slow = Behaviour::status(200).after(Duration::from_millis(1_500));
    let hook = entity.hook(&receiver.on("/", [slow])).await;
    let marks = |call: &AwsCall| call.operation == "UpdateItem" && call.mentions("slowUntil");
    setup.table.delay(usize::MAX, LONG, marks);
    let mut deliveries = 0;
    // If a busy machine pauses for half a second, the dispatcher may see the response before it sees that the exchange
    // is slow. It then writes no mark, and the test tries another delivery.
    let tried = until("a mark is tried", LONG, async || {
        deliveries += 1;
        let id = entity.publish(json!({})).await;
        let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1));
        let tried = setup.table.calls_mentioning(&hook.id).into_iter().filter(marks).count();
        (tried > 0).then_some(tried)
    })
    .await;
    assert!(tried <= deliveries, "the dispatcher gives up before the first retry: {tried} for {deliveries} deliveries");
    setup.bundle.cut_power().await;
}

/// A 410 response only disables the webhook. It causes no background work, and at most one event per hour.
#[contract_test]
async fn a_410_costs_the_same_however_often_its_webhook_is_enabled_again(suite: Arc<Suite>) {
    const ROUNDS: usize = 5;
    const EVENTS: usize = 10;
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "gone".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = json!({ "name": "gone", "eventUrl": receiver.on("/", [Behaviour::status(410)]), "eventList": ["booking.created"] });
    let hook = entity.hook_with(hook).await;
    let mut answers = Vec::new();
    for _ in 0..ROUNDS {
        let published =
            (0..EVENTS).map(|number| entity.publish_of_type("booking.created", json!({ "number": number })));
        for published in join_all(published).await {
            // There are no deliveries if the webhook was disabled before the event was published.
            for delivery in published.json()["deliveries"].as_array().expect("openapi.yaml says so") {
                let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
                entity.until_status(id, &["failed", "cancelled"]).await;
            }
        }
        entity.until_gone(&hook).await;
        answers.push(receiver.received("/").len());
        change(&entity, &hook, json!({ "enabled": true })).await;
    }
    let calls = setup.table.calls_mentioning(&hook.id);
    let attempts = receiver.received("/").len();
    let transactions = calls.iter().filter(|call| call.operation == "TransactWriteItems").count();
    println!("{attempts} answers of 410, {transactions} transactions, {} calls", calls.len());
    assert!(attempts >= ROUNDS, "{attempts} attempts");
    // Each response causes at most two transactions, with and without the event; both may lose to another response.
    assert!(transactions <= 2 * attempts, "{transactions} transactions for {attempts} answers");
    let announcing =
        calls.iter().filter(|call| call.operation == "TransactWriteItems" && call.mentions("webhook.disabled"));
    let announcing = announcing.count();
    let bound = 1..=answers[0];
    assert!(bound.contains(&announcing), "only the answers until it is first disabled announce it: {announcing}");
    assert!(!calls.iter().any(|call| call.mentions("JOB#")), "no work in the background");
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_second_announcement_during_the_first_attempt_sends_nothing(suite: Arc<Suite>) {
    let spoiled = "the attempt timed out before the second announcement";
    until_a_round_counts(3, spoiled, async || is_announced_twice(&suite).await).await;
}

/// Announces a delivery again during its first attempt; returns whether the attempt lasted long enough, which it does
/// not on a slow machine.
async fn is_announced_twice(suite: &Suite) -> bool {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    let announced = receiver.on("/", [Behaviour::status(204).behind(&answers)]);
    let later = receiver.on("/later", [Behaviour::status(204)]);
    for (url, kind) in [(announced, "booking.created"), (later, "booking.cancelled")] {
        entity.hook_with(json!({ "name": kind, "eventUrl": url, "eventList": [kind] })).await;
    }
    let event = json!({ "type": "booking.created", "data": {} });
    let publish = async || {
        let call = entity.post("/webhook/event").header("idempotency-key", &entity.id).json(&event);
        let published = call.expect(202).await.json();
        published["deliveries"][0]["deliveryIdentifier"].as_str().expect("a text").to_owned()
    };
    let id = publish().await;
    receiver.until("/", 1).await;
    assert_eq!(publish().await, id, "the publication is repeated");
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
    // A later event has arrived, so the messages before it have been handled.
    entity.publish_of_type("booking.cancelled", json!({})).await;
    receiver.until("/later", 1).await;
    answers.open();
    let delivery = entity.until_status(&id, &["delivered"]).await;
    if delivery["attempts"][0]["errorCode"] == "timeout" {
        return false;
    }
    assert_eq!((&delivery["attemptCount"], receiver.received("/").len()), (&json!(1), 1));
    true
}

/// The words that identify claims: a delivery's first claim inserts its head, and later claims change it.
const CLAIM: &[&str] = &["'lease': ?", "SET lease=?"];

/// Whether a call writes any of these words to a delivery. The statement does not name the entity, but the test has a
/// bundle to itself.
fn writes_to_a_delivery(words: &'static [&'static str]) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static {
    move |call| {
        let text = call.body.to_string().replace("\\\"", "");
        text.contains("dlv_") && words.iter().any(|words| text.contains(words))
    }
}

/// Regression test: the dispatcher read the webhook before the claim and used this copy no matter how long the claim
/// took.
#[contract_test]
async fn a_webhook_removed_during_a_claim_gets_no_request(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "removed".to_owned()).await;
    let receiver = Receiver::start().await;
    let warm = entity.hook(&receiver.on("/warm", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    entity.remove(&warm.id).expect(200).await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let mut claim = setup.table.hold("the claim", Moment::Before, writes_to_a_delivery(CLAIM));
    let id = entity.publish(json!({})).await;
    claim.reached().await;
    // The webhook is read before the claim, and this copy is used for 250 ms.
    tokio::time::sleep(Duration::from_millis(300)).await;
    entity.remove(&hook.id).expect(200).await;
    claim.release();
    let delivery = entity.until_status(&id, &["cancelled", "delivered"]).await;
    assert_eq!(delivery["status"], "cancelled");
    assert_eq!(receiver.received("/").len(), 0);
    assert_eq!(outcomes(&delivery), 0, "{delivery:#}");
    assert!(setup.bundle.stop().await.success());
}

/// Regression test: the dispatcher gave up on a record after 1.3 s of throttling, so the event was sent again.
#[contract_test]
async fn a_throttled_write_does_not_repeat_an_answered_request(suite: Arc<Suite>) {
    /// Longer than the dispatcher waits before giving up on a claim or a transaction.
    const THROTTLED: Duration = Duration::from_secs(8);
    const LONG_THROTTLED: Duration = Duration::from_secs(20);
    const DISABLED: &str = "disabledReason";
    let large = || Behaviour::answer(200, &[], "x".repeat(4_096));
    let writes: [(&str, &'static [&'static str], Behaviour, &str); 5] = [
        ("claim", CLAIM, Behaviour::status(200), "delivered"),
        ("record", &["SET attemptCount=?"], Behaviour::status(200), "delivered"),
        ("large", &["attemptDate"], large(), "delivered"),
        ("gone", &["SET attemptCount=?"], Behaviour::status(410), "failed"),
        ("disabled", &[DISABLED], Behaviour::status(410), "failed"),
    ];
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let receiver = Receiver::start().await;
    // Test one write after the other, since a refused call may contain writes for several deliveries.
    for (name, words, answer, ends) in writes {
        let entity = Entity::new(&setup.api, format!("throttled-{name}")).await;
        let path = format!("/{name}");
        entity.hook(&receiver.on(&path, [answer, Behaviour::status(200)])).await;
        let ends_at = Instant::now() + if name == "record" { LONG_THROTTLED } else { THROTTLED };
        let is_meant = || {
            let writes = writes_to_a_delivery(words);
            move |call: &AwsCall| writes(call) || (words == [DISABLED] && call.mentions(DISABLED))
        };
        let tried = || setup.table.calls_mentioning("").into_iter().filter(is_meant()).count();
        let before = tried();
        let throttled = is_meant();
        setup.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", move |call| {
            Instant::now() < ends_at && throttled(call)
        });
        let id = entity.publish(json!({})).await;
        let delivery = entity.until_status(&id, &["delivered", "failed", "cancelled"]).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!(ends), 1), "{name}: {delivery:#}");
        assert_eq!(receiver.received(&path).len(), 1, "{name}");
        until("the write is tried", LONG, async || {
            if tried() == before && name == "disabled" {
                // The dispatcher gives up disabling a webhook after two seconds, and the next 410 disables it.
                receiver.on(&path, [Behaviour::status(410)]);
                let id = entity.publish(json!({})).await;
                entity.until_status(&id, &["failed"]).await;
            }
            (tried() > before).then_some(())
        })
        .await;
    }
    assert!(setup.bundle.stop().await.success());
}
