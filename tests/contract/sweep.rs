//! The sweep goes on past what it cannot read, waits for no tenant whose part of the table is busy, and does not make a
//! crowded queue longer.

use std::sync::Arc;

use base::Time;
use contract_test::contract_test;
use serde_json::json;

use crate::harness::{AwsCall, Behaviour, Entity, LONG, Receiver, Settings, Suite, Table, invocation, now, until};

/// When the deliveries were due that a sweep finds first.
const LONG_AGO: &str = "2026-01-01T00:00:00.000Z";

/// So seldom that each sweep is a test's own.
fn swept_by_hand() -> Settings {
    Settings::default().with("SWEEP_INTERVAL", "1h")
}

#[contract_test]
async fn what_cannot_be_read_keeps_no_sweep_from_the_deliveries_behind_it(suite: Arc<Suite>) {
    /// As many as a sweep reads at once of a part of the index.
    const PAGE: usize = 200;
    let (stood, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&stood.api, "behind".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&stood.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // What publishing announces is lost.
    stood.services.swallow(1, |call| call.operation == "SendMessageBatch");
    let id = entity.publish(json!({})).await;
    let pk = format!("DLV#{id}");
    let sk = "HEAD";
    assert!(table.set(&pk, sk, "dueAt", "2026-01-02T00:00:00.000Z").await);
    let head = table.item(&pk, sk).await.expect("its head");
    let unreadable = (0..PAGE).map(|number| {
        let mut damaged = head.clone();
        // Of the same length, and of the same part of the index.
        damaged["pk"]["S"] = format!("{}{number:03}", &pk[..pk.len() - 3]).into();
        damaged["dueAt"]["S"] = LONG_AGO.into();
        // The index shows nothing of it.
        damaged["event"]["S"] = "no identifier".into();
        damaged
    });
    table.put_all(unreadable).await;
    let swept = invocation(&stood.api.env, "sweep-deliveries", "{}").send().await.expect("functions can be invoked");
    assert!(!swept.headers().contains_key("x-amz-function-error"), "{:?}", swept.text().await);
    entity.until_status(&id, &["delivered"]).await;
    let moved = table.item(&format!("{}000", &pk[..pk.len() - 3]), sk).await.expect("one of them");
    assert_ne!(moved["dueAt"]["S"], LONG_AGO, "the sweep has come to those before it");
    assert!(stood.bundle.stop().await.success());
}

/// A sweep once ended at the first error, so that the deliveries of a throttled entity, which stayed the oldest, kept it
/// from all others.
#[contract_test]
async fn an_entity_whose_deliveries_are_throttled_keeps_no_sweep_from_those_of_others(suite: Arc<Suite>) {
    /// More than a sweep reads at once of a part of the index.
    const BUSY: usize = 250;
    let (stood, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&stood.api.env);
    let [busy, quiet] = ["busy", "quiet"].map(|id| Entity::new(&stood.api, id.to_owned()));
    let busy = busy.await;
    let quiet = quiet.await;
    for (entity, path) in [(&busy, "/busy"), (&quiet, "/quiet")] {
        entity.hook(&receiver.on(path, [Behaviour::status(200)])).await;
    }
    // What publishing announces is lost.
    stood.services.swallow(2, |call| call.operation == "SendMessageBatch");
    let copied = busy.publish(json!({})).await;
    let waiting = quiet.publish(json!({})).await;
    let pk = format!("DLV#{copied}");
    let sk = "HEAD";
    let head = table.item(&pk, sk).await.expect("its head");
    let shard = head["dueShard"]["S"].as_str().expect("a text").to_owned();
    let waiting_key = format!("DLV#{waiting}");
    assert!(table.set(&waiting_key, sk, "dueShard", &shard).await);
    assert!(table.set(&waiting_key, sk, "dueAt", "2026-01-02T00:00:00.000Z").await);
    let prefix = pk[..pk.len() - 3].to_owned();
    let copies = (0..BUSY).map(|number| {
        let mut copy = head.clone();
        copy["pk"]["S"] = format!("{prefix}{number:03}").into();
        copy["dueAt"]["S"] = LONG_AGO.into();
        copy
    });
    table.put_all(copies).await;
    let throttled = move |call: &AwsCall| call.mentions(&prefix) && !call.mentions(&waiting_key);
    stood.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", throttled);
    let swept = invocation(&stood.api.env, "sweep-deliveries", "{}").send();
    let (swept, delivered) = tokio::join!(swept, quiet.until_status(&waiting, &["delivered"]));
    assert_eq!(delivered["attemptCount"], 1);
    let swept = swept.expect("functions can be invoked");
    assert!(swept.headers().contains_key("x-amz-function-error"), "the sweep reports the deliveries that it left");
    stood.bundle.cut_power().await;
}

/// The look-up is tried again by the client of the table after four seconds, and given up after ten.
#[contract_test]
async fn a_webhook_that_cannot_be_looked_up_soon_delays_no_announcement(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&stood.api, "busy".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&stood.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // Whatever announces it, no dispatcher hears of it, and looks up the webhook as well.
    let webhook = hook.id.clone();
    let announces = move |call: &AwsCall| call.operation == "SendMessageBatch" && call.mentions(&webhook);
    stood.services.swallow(usize::MAX, announces.clone());
    let id = entity.publish(json!({})).await;
    assert!(table.set(&format!("DLV#{id}"), "HEAD", "dueAt", LONG_AGO).await);
    let webhook = format!("WHK#{}", hook.id);
    let looks_up = move |call: &AwsCall| call.operation == "BatchGetItem" && call.mentions(&webhook);
    let look_ups = || stood.table.calls_mentioning(&hook.id).into_iter().filter(&looks_up).count();
    let before = look_ups();
    stood.table.delay(usize::MAX, LONG, looks_up.clone());
    let swept = tokio::spawn(invocation(&stood.api.env, "sweep-deliveries", "{}").send());
    until("the sweep has announced it", LONG, async || {
        let announced = stood.services.calls_mentioning(&hook.id).into_iter().filter(&announces).count();
        (announced == 2).then_some(())
    })
    .await;
    assert_eq!(look_ups() - before, 1, "it was given up before it was tried again");
    swept.abort();
    stood.bundle.cut_power().await;
}

#[contract_test]
async fn what_stands_in_a_crowded_queue_is_not_announced_again_and_what_was_never_announced_is(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&stood.api, "crowd".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&stood.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let sweep = async || {
        let swept = invocation(&stood.api.env, "sweep-deliveries", "{}").send().await;
        let swept = swept.expect("functions can be invoked");
        assert!(!swept.headers().contains_key("x-amz-function-error"), "{:?}", swept.text().await);
    };
    let announcements = |id: &str| {
        let announces = |call: &AwsCall| call.operation == "SendMessageBatch" && call.mentions(id);
        stood.services.calls_mentioning(id).into_iter().filter(announces).count()
    };
    let failed = entity.publish(json!({})).await;
    entity.until_status(&failed, &["failed"]).await;
    let crowd = json!({ "Attributes": { "ApproximateNumberOfMessages": "1000" } });
    stood.services.answer(usize::MAX, crowd, |call| call.operation == "GetQueueAttributes");

    // Its message stands far behind in the queue.
    stood.services.swallow(1, |call| call.operation == "SendMessageBatch");
    let stands = entity.publish(json!({})).await;
    let pk = format!("DLV#{stands}");
    let sk = "HEAD";
    assert!(table.set(&pk, sk, "dueAt", LONG_AGO).await);
    sweep().await;
    let moved = table.item(&pk, sk).await.expect("its head")["dueAt"]["S"].as_str().map(str::to_owned);
    assert!(moved > Some(Time::from_millis((now() + 120) * 1_000).to_string()), "{moved:?}");
    assert_eq!(announcements(&stands), 1, "by its publication alone");

    // A job makes deliveries due that have no message.
    receiver.on("/", [Behaviour::status(200)]);
    let since = json!({ "since": "2020-01-01T00:00:00Z" });
    entity.post(&format!("/webhook/{}/recover", hook.id)).json(&since).expect(202).await;
    sweep().await;
    entity.until_status(&failed, &["delivered"]).await;

    // So long after its message, that is lost.
    assert!(table.set(&pk, sk, "dueAt", LONG_AGO).await);
    sweep().await;
    entity.until_status(&stands, &["delivered"]).await;
    assert!(stood.bundle.stop().await.success());
}

/// The index does not mark a delivery before its first attempt fails, so that one that was older than an hour, and that no
/// dispatcher ever attempted, was once taken for delivered and left out.
#[contract_test]
async fn a_delivery_that_was_never_attempted_is_listed_as_pending_however_old(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&stood.api, "old".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&stood.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // The first sweep comes at the start.
    let shards = || stood.table.calls_mentioning("DUE#").len();
    until("the first sweep is over", LONG, async || (shards() >= 8).then_some(())).await;
    stood.services.swallow(1, move |call| call.operation == "SendMessageBatch" && call.mentions(&hook.id));
    let id = entity.publish(json!({})).await;
    let two_hours_ago = Time::from_millis((now() - 2 * 60 * 60) * 1_000);
    let pk = format!("DLV#{id}");
    let sk = "HEAD";
    assert!(table.set(&pk, sk, "createdKey", &format!("{two_hours_ago}#{id}")).await);
    assert!(table.set(&pk, sk, "dueAt", &two_hours_ago.to_string()).await);
    let listed = async |status: &str| {
        let listed = entity.get(&format!("/webhook/delivery/list?status={status}")).expect(200).await.json();
        listed["items"].as_array().expect("openapi.yaml says so").len()
    };
    assert_eq!((listed("pending").await, listed("delivered").await), (1, 0));
    let swept = invocation(&stood.api.env, "sweep-deliveries", "{}").send().await.expect("it can be invoked");
    assert!(!swept.headers().contains_key("x-amz-function-error"), "{:?}", swept.text().await);
    entity.until_status(&id, &["delivered"]).await;
    assert_eq!((listed("pending").await, listed("delivered").await), (0, 1));
    stood.bundle.cut_power().await;
}
