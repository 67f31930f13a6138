//! The sweep opens deliveries that nothing has announced, continues after unreadable ones, does not wait for throttled
//! tenants, and does not lengthen a crowded queue.

use std::sync::Arc;

use base::Time;
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{
    AwsCall, Behaviour, Entity, Interposed, LONG, LONG_AGO, Receiver, Settings, Suite, Table, announced, invocation,
    now, outcomes, stored, time, until,
};

/// A due time after `LONG_AGO` that has also passed.
const LATER: &str = "2026-01-02T00:00:00.000Z";
/// The number of characters at the end of an identifier that differ between copies.
const END: usize = 4;

/// Settings with an interval so long that only the tests start sweeps.
pub fn swept_by_hand() -> Settings {
    Settings::default().with("SWEEP_INTERVAL", "1h")
}

/// A response that postpones the next attempt by hours, which no message announces.
fn later() -> Behaviour {
    Behaviour::answer(503, &[("Retry-After", "36000")], "")
}

/// Runs one sweep, which must succeed.
pub async fn sweep(setup: &Interposed) {
    let swept = invocation(&setup.api.env, "sweep-deliveries", "{}").send().await.expect("functions can be invoked");
    assert!(!swept.headers().contains_key("x-amz-function-error"), "{:?}", swept.text().await);
}

/// Sweeps until a delivery is delivered. On a slow machine, a sweep leaves some of its work to the next one.
pub async fn sweep_until_delivered(setup: &Interposed, entity: &Entity, id: &str) {
    until("a sweep sends the delivery", LONG, async || {
        sweep(setup).await;
        (entity.delivery(id).await["status"] == "delivered").then_some(())
    })
    .await;
}

/// Waits until an event is old enough for the sweep to open its deliveries.
pub async fn until_opens(delivery: &Value) {
    /// The age at which the sweep opens deliveries, plus a second, since the time is in whole seconds.
    const OPENS_AFTER: i64 = 21;
    let created = time(&delivery["createdDate"]).as_second();
    until("the event is old enough", LONG, async || (now() > created + OPENS_AFTER).then_some(())).await;
}

/// Waits for the sweep that the bundle runs at startup.
pub async fn until_first_sweep(setup: &Interposed) {
    let shards = || setup.table.calls_mentioning("DUE#").len();
    until("the first sweep is over", LONG, async || (shards() >= 8).then_some(())).await;
}

/// Publishes an event whose delivery is waiting for its second attempt.
async fn waiting(entity: &Entity) -> String {
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    id
}

/// Makes a waiting delivery due since this time, as if the message for its attempt had been lost; returns its head.
/// This way, a test need neither wait for a pause to end nor be ready before it ends.
pub async fn overdue(table: &Table, id: &str, since: &str) -> Value {
    let mut head = table.head(id).await.expect("it was attempted");
    for name in ["nextAttemptDate", "claimableAt", "dueAt"] {
        head[name] = json!({ "S": since });
    }
    head["dueShard"] = json!({ "S": "DUE#0" });
    head["sweeps"] = json!({ "N": "0" });
    table.put(head.clone()).await;
    head
}

/// A copy of a head, for another delivery. The identifiers of up to 1 000 copies begin like the original's.
fn copy(head: &Value, number: usize) -> Value {
    let original = head["id"]["S"].as_str().expect("a text");
    let (beginning, end) = original.split_at(original.len() - END);
    // No copy has the original's identifier.
    let mark = if end.starts_with('z') { 'y' } else { 'z' };
    let id = format!("{beginning}{mark}{number:03}");
    let (pk, sk) = stored::head_key(&id);
    let mut copy = head.clone();
    for (name, value) in [("pk", pk), ("sk", sk), ("id", id)] {
        copy[name] = json!({ "S": value });
    }
    copy
}

#[contract_test]
async fn unreadable_deliveries_do_not_stop_a_sweep(suite: Arc<Suite>) {
    /// The number of deliveries that a sweep reads from one part of the index in one query.
    const PAGE: usize = 200;
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&setup.api, "behind".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    entity.hook(&receiver.on("/", [later(), Behaviour::status(200)])).await;
    let id = waiting(&entity).await;
    let head = overdue(&table, &id, LATER).await;
    let unreadable = (0..PAGE).map(|number| {
        let mut damaged = copy(&head, number);
        damaged["dueAt"]["S"] = LONG_AGO.into();
        // The index does not contain this change.
        damaged["url"] = json!({ "N": "1" });
        damaged
    });
    table.put_all(unreadable).await;
    sweep(&setup).await;
    entity.until_status(&id, &["delivered"]).await;
    let first = copy(&head, 0);
    let moved = table.head(first["id"]["S"].as_str().expect("a text")).await.expect("one of them");
    assert_ne!(moved["dueAt"]["S"], LONG_AGO, "the sweep has moved the deliveries before it");
    assert!(setup.bundle.stop().await.success());
}

/// Regression test: a sweep ended at the first error, so that a throttled entity's deliveries, being the oldest,
/// blocked all others.
#[contract_test]
async fn throttled_deliveries_of_one_entity_do_not_stop_a_sweep(suite: Arc<Suite>) {
    /// More deliveries than a sweep reads from one part of the index in one query.
    const BUSY: usize = 250;
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    until_first_sweep(&setup).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let [busy, quiet] = ["busy", "quiet"].map(|id| Entity::new(&setup.api, id.to_owned()));
    let busy = busy.await;
    let quiet = quiet.await;
    for (entity, path) in [(&busy, "/busy"), (&quiet, "/quiet")] {
        entity.hook(&receiver.on(path, [later(), Behaviour::status(200)])).await;
    }
    let copied = waiting(&busy).await;
    let waiting = waiting(&quiet).await;
    let head = overdue(&table, &copied, LONG_AGO).await;
    overdue(&table, &waiting, LATER).await;
    table.put_all((0..BUSY).map(|number| copy(&head, number))).await;
    let prefix = copied[..copied.len() - END].to_owned();
    let other = waiting.clone();
    // A query on the index names the last delivery on the previous page, but reads another partition.
    let throttled = move |call: &AwsCall| call.operation != "Query" && call.mentions(&prefix) && !call.mentions(&other);
    setup.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", throttled);
    let swept = invocation(&setup.api.env, "sweep-deliveries", "{}").send();
    let (swept, delivered) = tokio::join!(swept, quiet.until_status(&waiting, &["delivered"]));
    assert_eq!(delivered["attemptCount"], 2);
    let swept = swept.expect("functions can be invoked");
    assert!(swept.headers().contains_key("x-amz-function-error"), "the sweep reports the deliveries that it skipped");
    setup.bundle.cut_power().await;
}

/// The table's client repeats the lookup after four seconds and gives up after ten.
#[contract_test]
async fn a_webhook_that_cannot_be_looked_up_soon_delays_no_announcement(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    until_first_sweep(&setup).await;
    let entity = Entity::new(&setup.api, "busy".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let hook = entity.hook(&receiver.on("/", [later()])).await;
    let id = waiting(&entity).await;
    overdue(&table, &id, LONG_AGO).await;
    // All further announcements are lost, so that no dispatcher looks up the webhook as well.
    let webhook = hook.id.clone();
    let announces = move |call: &AwsCall| announced(call).iter().any(|due| due.webhook == webhook);
    setup.services.swallow(usize::MAX, announces.clone());
    let announcements = || setup.services.calls_mentioning(&hook.id).into_iter().filter(&announces).count();
    assert_eq!(announcements(), 1, "only publishing announced it");
    let webhook = format!("WHK#{}", hook.id);
    let looks_up = move |call: &AwsCall| call.operation == "BatchGetItem" && call.mentions(&webhook);
    let look_ups = || setup.table.calls_mentioning(&hook.id).into_iter().filter(&looks_up).count();
    let before = look_ups();
    assert!(before > 0, "the dispatcher has looked it up in the same way");
    setup.table.delay(usize::MAX, LONG, looks_up.clone());
    let swept = tokio::spawn(invocation(&setup.api.env, "sweep-deliveries", "{}").send());
    until("the sweep has announced it", LONG, async || (announcements() == 2).then_some(())).await;
    // On a busy machine, the 200 ms may be over before the lookup is sent.
    assert!(look_ups() - before <= 1, "the sweep gave up before the repetition");
    swept.abort();
    setup.bundle.cut_power().await;
}

#[contract_test]
async fn a_sweep_announces_only_deliveries_that_have_no_message(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    until_first_sweep(&setup).await;
    let entity = Entity::new(&setup.api, "crowd".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let announcements = |id: &str| {
        let announces = |call: &AwsCall| announced(call).iter().any(|due| due.delivery == id);
        setup.services.calls_mentioning(id).into_iter().filter(announces).count()
    };
    let failed = entity.publish(json!({})).await;
    entity.until_status(&failed, &["failed"]).await;
    let crowd = json!({ "Attributes": { "ApproximateNumberOfMessages": "1000" } });
    setup.services.answer(usize::MAX, crowd, |call| call.operation == "GetQueueAttributes");

    // The message for the second attempt is far back in the queue.
    receiver.on("/", [later()]);
    let stands = waiting(&entity).await;
    overdue(&table, &stands, LONG_AGO).await;
    let before = now();
    sweep(&setup).await;
    let moved = table.head(&stands).await.expect("its head")["dueAt"]["S"].as_str().map(str::to_owned);
    assert!(moved > Some(Time::from_millis((before + 120) * 1_000).to_string()), "{moved:?}");
    assert_eq!(announcements(&stands), 1, "only publishing announced it");

    // A job makes deliveries due that have no messages.
    receiver.on("/", [Behaviour::status(200)]);
    let failures = json!({ "createdFrom": "2020-01-01T00:00:00Z", "include": "failed" });
    entity.post(&format!("/webhook/{}/recover", hook.id)).json(&failures).expect(202).await;
    sweep_until_delivered(&setup, &entity, &failed).await;

    // This long after its announcement, the message counts as lost.
    assert!(table.set_of_head(&stands, "dueAt", LONG_AGO).await);
    sweep(&setup).await;
    entity.until_status(&stands, &["delivered"]).await;
    assert!(setup.bundle.stop().await.success());
}

/// Regression test: after an hour, a delivery without attempts counted as delivered and was missing from the list.
#[contract_test]
async fn a_delivery_that_nothing_announced_is_pending_and_then_delivered(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&setup.api, "unannounced".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    until_first_sweep(&setup).await;
    // Both messages are lost: the one from publishing, and the one from the sweep that opens the delivery.
    let webhook = hook.id.clone();
    setup.services.swallow(2, move |call| announced(call).iter().any(|due| due.webhook == webhook));
    let id = entity.publish(json!({ "bookingNumber": "B-1" })).await;
    let shown = entity.delivery(&id).await;
    assert_eq!((&shown["status"], &shown["attemptCount"]), (&json!("pending"), &json!(0)), "{shown:#}");
    assert_eq!((&shown["attempts"], &shown["lastHttpStatus"]), (&json!([]), &Value::Null), "{shown:#}");
    assert_eq!((&shown["webhookIdentifier"], &shown["subject"]), (&json!(hook.id), &json!("B-1")), "{shown:#}");
    assert_eq!(shown["lastUpdate"], shown["createdDate"], "{shown:#}");
    assert_eq!(shown["event"]["data"], json!({ "bookingNumber": "B-1" }));
    let lists = async || {
        let mut found = Vec::new();
        for filters in ["status=pending", &format!("webhookIdentifier={}&status=pending", hook.id), "status=delivered"]
        {
            let listed = entity.get(&format!("/webhook/delivery/list?{filters}")).expect(200).await.json();
            found.push(listed["items"].as_array().expect("openapi.yaml says so").len());
        }
        found
    };
    assert_eq!(table.head(&id).await, None, "no worker has claimed it, and no sweep has opened it");
    assert_eq!(lists().await, [1, 1, 0], "it is among the new events");

    until_opens(&shown).await;
    let opened = until("a sweep opens it", LONG, async || {
        sweep(&setup).await;
        table.head(&id).await
    })
    .await;
    assert_eq!((&opened["createdDate"]["S"], &opened["attemptCount"]["N"]), (&shown["createdDate"], &json!("0")));
    assert_eq!(lists().await, [1, 1, 0], "it is in the index");
    assert!(table.set_of_head(&id, "dueAt", LONG_AGO).await);
    let delivered = until("a sweep announces it", LONG, async || {
        sweep(&setup).await;
        Some(entity.delivery(&id).await).filter(|delivery| delivery["status"] != "pending")
    })
    .await;
    assert_eq!((&delivered["status"], outcomes(&delivered)), (&json!("delivered"), 1), "{delivered:#}");
    assert_eq!(lists().await, [0, 0, 1]);
    assert_eq!(receiver.everything().len(), 1);
    setup.bundle.cut_power().await;
}
