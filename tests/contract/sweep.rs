//! The sweep continues after unreadable deliveries, does not wait for throttled tenants, and does not lengthen a
//! crowded queue.

use std::sync::Arc;

use base::Time;
use contract_test::contract_test;
use serde_json::json;

use crate::harness::{AwsCall, Behaviour, Entity, LONG, Receiver, Settings, Suite, Table, invocation, now, until};

/// Due time of the deliveries that a sweep finds first.
const LONG_AGO: &str = "2026-01-01T00:00:00.000Z";

/// An interval so long that only the tests start sweeps.
fn swept_by_hand() -> Settings {
    Settings::default().with("SWEEP_INTERVAL", "1h")
}

#[contract_test]
async fn unreadable_deliveries_do_not_stop_a_sweep(suite: Arc<Suite>) {
    /// Number of deliveries that a sweep reads of a part of the index in one query.
    const PAGE: usize = 200;
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&setup.api, "behind".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // The messages of publishing are lost.
    setup.services.swallow(1, |call| call.operation == "SendMessageBatch");
    let id = entity.publish(json!({})).await;
    let pk = format!("DLV#{id}");
    let sk = "HEAD";
    assert!(table.set(&pk, sk, "dueAt", "2026-01-02T00:00:00.000Z").await);
    let head = table.item(&pk, sk).await.expect("its head");
    let unreadable = (0..PAGE).map(|number| {
        let mut damaged = head.clone();
        // The same length, and the same part of the index.
        damaged["pk"]["S"] = format!("{}{number:03}", &pk[..pk.len() - 3]).into();
        damaged["dueAt"]["S"] = LONG_AGO.into();
        // The index does not show the change.
        damaged["event"]["S"] = "no identifier".into();
        damaged
    });
    table.put_all(unreadable).await;
    let swept = invocation(&setup.api.env, "sweep-deliveries", "{}").send().await.expect("functions can be invoked");
    assert!(!swept.headers().contains_key("x-amz-function-error"), "{:?}", swept.text().await);
    entity.until_status(&id, &["delivered"]).await;
    let moved = table.item(&format!("{}000", &pk[..pk.len() - 3]), sk).await.expect("one of them");
    assert_ne!(moved["dueAt"]["S"], LONG_AGO, "the sweep has moved the deliveries before it");
    assert!(setup.bundle.stop().await.success());
}

/// A sweep once ended at the first error, so that the deliveries of a throttled entity, the oldest, blocked all others.
#[contract_test]
async fn throttled_deliveries_of_one_entity_do_not_stop_a_sweep(suite: Arc<Suite>) {
    /// More deliveries than a sweep reads of a part of the index in one query.
    const BUSY: usize = 250;
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let [busy, quiet] = ["busy", "quiet"].map(|id| Entity::new(&setup.api, id.to_owned()));
    let busy = busy.await;
    let quiet = quiet.await;
    for (entity, path) in [(&busy, "/busy"), (&quiet, "/quiet")] {
        entity.hook(&receiver.on(path, [Behaviour::status(200)])).await;
    }
    // The messages of publishing are lost.
    setup.services.swallow(2, |call| call.operation == "SendMessageBatch");
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
    setup.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", throttled);
    let swept = invocation(&setup.api.env, "sweep-deliveries", "{}").send();
    let (swept, delivered) = tokio::join!(swept, quiet.until_status(&waiting, &["delivered"]));
    assert_eq!(delivered["attemptCount"], 1);
    let swept = swept.expect("functions can be invoked");
    assert!(swept.headers().contains_key("x-amz-function-error"), "the sweep reports the deliveries that it skipped");
    setup.bundle.cut_power().await;
}

/// The client of the table repeats the lookup after four seconds, and gives up after ten.
#[contract_test]
async fn a_webhook_that_cannot_be_looked_up_soon_delays_no_announcement(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&setup.api, "busy".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // Every announcement is lost, so that no dispatcher looks up the webhook, too.
    let webhook = hook.id.clone();
    let announces = move |call: &AwsCall| call.operation == "SendMessageBatch" && call.mentions(&webhook);
    setup.services.swallow(usize::MAX, announces.clone());
    let id = entity.publish(json!({})).await;
    assert!(table.set(&format!("DLV#{id}"), "HEAD", "dueAt", LONG_AGO).await);
    let webhook = format!("WHK#{}", hook.id);
    let looks_up = move |call: &AwsCall| call.operation == "BatchGetItem" && call.mentions(&webhook);
    let look_ups = || setup.table.calls_mentioning(&hook.id).into_iter().filter(&looks_up).count();
    let before = look_ups();
    setup.table.delay(usize::MAX, LONG, looks_up.clone());
    let swept = tokio::spawn(invocation(&setup.api.env, "sweep-deliveries", "{}").send());
    until("the sweep has announced it", LONG, async || {
        let announced = setup.services.calls_mentioning(&hook.id).into_iter().filter(&announces).count();
        (announced == 2).then_some(())
    })
    .await;
    assert_eq!(look_ups() - before, 1, "the sweep gave up before the repetition");
    swept.abort();
    setup.bundle.cut_power().await;
}

#[contract_test]
async fn a_sweep_announces_only_deliveries_that_have_no_message(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&setup.api, "crowd".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let sweep = async || {
        let swept = invocation(&setup.api.env, "sweep-deliveries", "{}").send().await;
        let swept = swept.expect("functions can be invoked");
        assert!(!swept.headers().contains_key("x-amz-function-error"), "{:?}", swept.text().await);
    };
    let announcements = |id: &str| {
        let announces = |call: &AwsCall| call.operation == "SendMessageBatch" && call.mentions(id);
        setup.services.calls_mentioning(id).into_iter().filter(announces).count()
    };
    let failed = entity.publish(json!({})).await;
    entity.until_status(&failed, &["failed"]).await;
    let crowd = json!({ "Attributes": { "ApproximateNumberOfMessages": "1000" } });
    setup.services.answer(usize::MAX, crowd, |call| call.operation == "GetQueueAttributes");

    // Its message is far back in the queue.
    setup.services.swallow(1, |call| call.operation == "SendMessageBatch");
    let stands = entity.publish(json!({})).await;
    let pk = format!("DLV#{stands}");
    let sk = "HEAD";
    assert!(table.set(&pk, sk, "dueAt", LONG_AGO).await);
    sweep().await;
    let moved = table.item(&pk, sk).await.expect("its head")["dueAt"]["S"].as_str().map(str::to_owned);
    assert!(moved > Some(Time::from_millis((now() + 120) * 1_000).to_string()), "{moved:?}");
    assert_eq!(announcements(&stands), 1, "only publishing announced it");

    // A job makes deliveries without messages due.
    receiver.on("/", [Behaviour::status(200)]);
    let since = json!({ "since": "2020-01-01T00:00:00Z" });
    entity.post(&format!("/webhook/{}/recover", hook.id)).json(&since).expect(202).await;
    sweep().await;
    entity.until_status(&failed, &["delivered"]).await;

    // So long after its announcement, the message counts as lost.
    assert!(table.set(&pk, sk, "dueAt", LONG_AGO).await);
    sweep().await;
    entity.until_status(&stands, &["delivered"]).await;
    assert!(setup.bundle.stop().await.success());
}

/// The index does not mark a delivery before its first attempt fails: a delivery without attempts was once taken for
/// delivered after an hour, and was missing from the list.
#[contract_test]
async fn a_delivery_that_was_never_attempted_is_listed_as_pending_however_old(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&setup.api, "old".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // The first sweep runs at the start.
    let shards = || setup.table.calls_mentioning("DUE#").len();
    until("the first sweep is over", LONG, async || (shards() >= 8).then_some(())).await;
    setup.services.swallow(1, move |call| call.operation == "SendMessageBatch" && call.mentions(&hook.id));
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
    let swept = invocation(&setup.api.env, "sweep-deliveries", "{}").send().await.expect("it can be invoked");
    assert!(!swept.headers().contains_key("x-amz-function-error"), "{:?}", swept.text().await);
    entity.until_status(&id, &["delivered"]).await;
    assert_eq!((listed("pending").await, listed("delivered").await), (0, 1));
    setup.bundle.cut_power().await;
}
