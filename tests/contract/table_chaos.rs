//! A table under load: some calls are refused or slow; they are repeated, and no effect is lost or duplicated.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    harness::{
        AwsCall, Entity, Hook, LONG, Receiver, Settings, Suite, account,
        feed::{confirm, pulled, read, read_some},
        until,
    },
    queue_chaos::{SCHEDULE, complete, publish},
};
use contract_test::contract_test;
use serde_json::{Value, json};

/// Affects one in this many matching calls.
fn one_in(
    many: usize,
    meant: impl Fn(&AwsCall) -> bool + Send + Sync + 'static,
) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static {
    let calls = AtomicUsize::new(0);
    move |call| meant(call) && calls.fetch_add(1, Ordering::Relaxed) % many == many - 1
}

#[contract_test]
async fn a_table_that_refuses_and_dawdles_now_and_then_changes_nothing(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default().with("RETRY_SCHEDULE", SCHEDULE)).await;
    let entity = Entity::new(&setup.api, "busy".to_owned()).await;
    let receiver = Receiver::start().await;
    // Each kind of call has its own error code, so that no call is refused on every repetition.
    let kinds = ["BatchExecuteStatement", "BatchGetItem"];
    let codes = ["ProvisionedThroughputExceededException", "InternalServerError"];
    for (kind, code) in kinds.into_iter().zip(codes) {
        setup.table.refuse(usize::MAX, code, one_in(31, move |call| call.operation == kind));
    }
    let others = move |call: &AwsCall| !kinds.contains(&call.operation.as_str());
    setup.table.refuse(usize::MAX, "ThrottlingException", one_in(61, others));
    setup.table.delay(usize::MAX, Duration::from_millis(300), one_in(17, |_| true));
    let deliveries = publish(&entity, &receiver).await;
    complete(&account(&entity, &receiver, &deliveries, &[]).await);
    assert!(setup.bundle.stop().await.success());
}

/// More deliveries than one request to a feed handles at once.
const OF_FEED: usize = 20;

/// A feed's webhook, and its deliveries, which are published but not read.
async fn unread(entity: &Entity, count: usize) -> (Hook, Vec<String>) {
    let hook = pulled(entity).await;
    let mut published = Vec::new();
    for number in 0..count {
        published.push(entity.publish(json!({ "number": number })).await);
    }
    for delivery in &published {
        entity.until_delivery(delivery, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    }
    (hook, published)
}

/// While `on` is set, refuses the writes to a delivery that set this attribute.
fn throttled(on: &Arc<AtomicBool>, delivery: &str, attribute: &str) -> impl Fn(&AwsCall) -> bool + Send + Sync + use<> {
    let (on, delivery, attribute) = (on.clone(), delivery.to_owned(), format!("SET \\\"{attribute}\\\""));
    move |call| {
        let is_meant = call.operation == "BatchExecuteStatement" && call.mentions(&delivery);
        is_meant && call.mentions(&attribute) && on.load(Ordering::Relaxed)
    }
}

/// Waits until a webhook's statistics show this many attempts.
async fn until_counted(entity: &Entity, hook: &Hook, attempts: usize) {
    until(&format!("{attempts} attempts are counted"), LONG, async || {
        let stats = entity.get(&format!("/webhook/{}/stats", hook.id)).expect(200).await.json();
        (stats["last24Hours"]["attempts"] == attempts).then_some(())
    })
    .await;
}

/// Asserts that each delivery was confirmed on its first attempt.
async fn each_is_confirmed_once(entity: &Entity, deliveries: &[String]) {
    for delivery in deliveries {
        let shown = entity.delivery(delivery).await;
        assert_eq!((&shown["status"], &shown["attemptCount"]), (&json!("delivered"), &json!(1)), "{shown:#}");
    }
}

#[contract_test]
async fn answers_of_a_reader_that_were_recorded_count_although_one_fails(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "answering".to_owned()).await;
    let (hook, published) = unread(&entity, OF_FEED).await;
    let mut read = Vec::new();
    while read.len() < OF_FEED {
        read.extend(read_some(&entity, &hook, json!({ "limit": 100, "visibility": 600 })).await);
    }
    let is_on = Arc::new(AtomicBool::new(true));
    let last = read[OF_FEED - 1]["deliveryIdentifier"].as_str().expect("a text");
    setup.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", throttled(&is_on, last, "attemptCount"));
    let receipts: Vec<_> = read.iter().map(|delivery| &delivery["receipt"]).collect();
    let answers = entity.post(&format!("/webhook/{}/feed/ack", hook.id)).json(&json!({ "confirmed": receipts }));
    // The function itself responds in time. If it took more than 15 s, it would be stopped, and the response would be a
    // 500.
    answers.expect(503).await;
    let mut recorded = 0;
    for delivery in &published {
        recorded += usize::from(entity.delivery(delivery).await["status"] == "delivered");
    }
    assert!((1..OF_FEED).contains(&recorded), "{recorded} were recorded");
    until_counted(&entity, &hook, recorded).await;

    is_on.store(false, Ordering::Relaxed);
    let outcomes = confirm(&entity, &hook, &read).await;
    assert_eq!(outcomes, ["confirmed"; OF_FEED], "a repeated answer is the first");
    each_is_confirmed_once(&entity, &published).await;
    until_counted(&entity, &hook, OF_FEED).await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_throttled_delivery_keeps_no_other_from_the_reader_of_its_feed(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "reading".to_owned()).await;
    let (hook, published) = unread(&entity, OF_FEED).await;
    let is_on = Arc::new(AtomicBool::new(true));
    let last = &published[OF_FEED - 1];
    setup.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", throttled(&is_on, last, "handedOutAt"));
    let mut read = read_some(&entity, &hook, json!({ "limit": 100, "visibility": 600 })).await;
    let is_last = |delivery: &Value| delivery["deliveryIdentifier"] == last.as_str();
    assert!(!read.iter().any(is_last), "its claim was refused");

    is_on.store(false, Ordering::Relaxed);
    while read.len() < OF_FEED {
        read.extend(read_some(&entity, &hook, json!({ "limit": 100, "visibility": 600 })).await);
    }
    // A delivery that was given to a reader that did not see it would have an unconfirmed attempt after its visibility
    // timeout.
    assert!(read.iter().all(|delivery| delivery["attemptNumber"] == 1), "{read:#?}");
    assert_eq!(confirm(&entity, &hook, &read).await, ["confirmed"; OF_FEED]);
    each_is_confirmed_once(&entity, &published).await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_slow_table_gives_no_delivery_to_a_reader_without_a_response(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "slow".to_owned()).await;
    let (hook, published) = unread(&entity, 100).await;
    let is_on = Arc::new(AtomicBool::new(true));
    let slow = is_on.clone();
    // Together, the claims would take longer than the function may run.
    setup.table.delay(usize::MAX, Duration::from_secs(3), move |call| {
        call.mentions("handedOutAt") && slow.load(Ordering::Relaxed)
    });
    let mut read = read(&entity, &hook, json!({ "limit": 100, "visibility": 600 })).await;
    assert!((1..published.len()).contains(&read.len()), "{} were read", read.len());

    is_on.store(false, Ordering::Relaxed);
    while read.len() < published.len() {
        read.extend(read_some(&entity, &hook, json!({ "limit": 100, "visibility": 600 })).await);
    }
    assert!(read.iter().all(|delivery| delivery["attemptNumber"] == 1), "{read:#?}");
    assert!(setup.bundle.stop().await.success());
}
