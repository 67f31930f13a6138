//! Feeds: a pull webhook has no address; its subscriber reads deliveries, the oldest first, and confirms them. History
//! and states work as they do for any delivery.

use std::{sync::Arc, time::Duration};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::harness::{
    LONG, Suite,
    counts::counted,
    feed::{confirm, id, pulled, read, read_some},
    signature, stored, until,
};

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
    let mut confirmed = 1;
    let mut stats = counted(&entity, &hook, 1).await;
    if stats.is_none() {
        // A count was lost; the next one is not.
        confirmed += 1;
        entity.publish(json!({})).await;
        confirm(&entity, &hook, &read_some(&entity, &hook, json!({})).await).await;
        stats = counted(&entity, &hook, 1).await;
    }
    let stats = stats.expect("an attempt is counted");
    let attempts = &stats["last24Hours"]["attempts"];
    assert!(attempts.as_u64().is_some_and(|attempts| (1..=confirmed).contains(&attempts)), "{stats:#}");
    assert_eq!(&stats["last24Hours"]["succeeded"], attempts);
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
