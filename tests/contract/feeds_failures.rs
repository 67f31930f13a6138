//! Failures in a feed: a reader reports that a delivery failed, or never confirms it. Each failure is an attempt, and
//! operational events announce them.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{
    Behaviour, Entity, Hook, LONG, Received, Receiver, Suite,
    feed::{SPARED, abandoned, answer, confirm, id, pulled, read, read_some},
    until,
};

fn body_of(request: &Received) -> Value {
    serde_json::from_slice(&request.body).expect("the body is JSON")
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
