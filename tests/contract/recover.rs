//! Recovery: the failed, cancelled and waiting deliveries in a range are sent again. Its response says how many these
//! are, or why there are none.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::{hook_for, publish},
    harness::{
        AwsCall, Behaviour, Entity, LONG, LONG_AGO, Receiver, Settings, Suite, now,
        recovery::{count, one_attempt, recover, recovery, until_count},
        stored, until,
    },
    sweep::overdue,
};

#[contract_test]
async fn a_range_holds_its_beginning_and_not_its_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [Behaviour::status(500)])).await;
    let mut deliveries = Vec::new();
    for _ in 0..4 {
        let id = entity.publish(json!({})).await;
        let shown = entity.delivery(&id).await;
        deliveries.push((id, shown["createdDate"].as_str().expect("openapi.yaml says so").to_owned()));
    }
    until_count(&entity, &hook, "failed", 4).await;
    receiver.on("/", [Behaviour::status(200)]);
    // A delivery outside the range is not counted, and remains unchanged.
    assert_eq!(
        recover(&entity, &hook, &json!({ "createdFrom": "2020-01-01T00:00:00Z", "createdUntil": deliveries[0].1 }))
            .await,
        0
    );
    let future = json!({ "createdFrom": "2098-01-01T00:00:00Z", "createdUntil": "2099-01-01T00:00:00Z" });
    let nothing = recovery(&entity, &hook, &future).expect(202).await.json();
    assert_eq!(
        (&nothing["count"], &nothing["message"]),
        (&json!(0), &json!("The range is in the future, so it has no deliveries yet."))
    );
    assert_eq!(
        recover(&entity, &hook, &json!({ "createdFrom": deliveries[1].1, "createdUntil": deliveries[2].1 })).await,
        1
    );
    entity.until_status(&deliveries[1].0, &["delivered"]).await;
    assert_eq!(count(&entity, &hook, "failed").await, 3);
    assert_eq!(recover(&entity, &hook, &json!({ "createdFrom": deliveries[2].1 })).await, 2);
    for (id, _) in &deliveries[2..] {
        entity.until_status(id, &["delivered"]).await;
    }
    assert_eq!(entity.delivery(&deliveries[0].0).await["status"], "failed");
    let first = json!({ "createdFrom": deliveries[0].1, "createdUntil": "2099-01-01T00:00:00Z" });
    assert_eq!(recover(&entity, &hook, &first).await, 1);
    entity.until_status(&deliveries[0].0, &["delivered"]).await;
    until("no delivery is left", LONG, async || (recover(&entity, &hook, &first).await == 0).then_some(())).await;
}

#[contract_test]
async fn failed_deliveries_alone_are_recovered_when_no_others_are_included(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let later = Behaviour::answer(429, &[("Retry-After", "600")], "");
    let failing = vec![Behaviour::status(500); 3];
    let script = [vec![Behaviour::status(200), later], failing].concat();
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", script)).await;
    let mut ids = Vec::new();
    for status in ["delivered", "retrying", "failed"] {
        let id = entity.publish(json!({})).await;
        entity.until_status(&id, &[status]).await;
        ids.push(id);
    }
    receiver.on("/", [Behaviour::status(200)]);
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z", "include": "failed" });
    let answer = recovery(&entity, &hook, &range).expect(202).await.json();
    assert_eq!(answer, json!({ "count": 1, "countIsExact": true, "failed": 1, "waiting": 0 }));
    let recovered = entity.until_status(&ids[2], &["delivered"]).await;
    assert_eq!(recovered["attemptCount"], 4);
    assert_eq!(entity.delivery(&ids[0]).await["attemptCount"], 1);
    assert_eq!(entity.delivery(&ids[1]).await["status"], "retrying");

    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z", "include": "waiting" });
    let answer = recovery(&entity, &hook, &range).expect(202).await.json();
    assert_eq!(answer, json!({ "count": 1, "countIsExact": true, "failed": 0, "waiting": 1 }));
    assert_eq!(entity.until_status(&ids[1], &["delivered"]).await["attemptCount"], 2);
    assert_eq!(receiver.received("/").len(), 7);
}

/// An outage of several hours, compressed into seconds: the endpoint does not respond, the schedule has long waits, and
/// the breaker is open.
#[contract_test]
async fn after_an_outage_waiting_deliveries_are_delivered_at_once(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,1h,1h").with("BREAKER_THRESHOLD", "3");
    let settings = settings.with("BREAKER_OPEN", "10m");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "outage".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [Behaviour::close()])).await;
    let mut ids = publish(&entity, "booking.created", 3).await;
    for id in &ids {
        entity.until_delivery(id, "waits for its schedule", |delivery| delivery["waitingFor"] == "schedule").await;
    }
    until("the webhook is paused", LONG, async || {
        (entity.webhook(&hook.id).await["deliveryState"] == "paused").then_some(())
    })
    .await;
    ids.extend(publish(&entity, "booking.created", 2).await);
    for id in &ids[3..] {
        entity.until_delivery(id, "waits for the breaker", |delivery| delivery["waitingFor"] == "breaker").await;
    }
    assert_eq!(count(&entity, &hook, "failed").await, 0, "no delivery has failed yet");

    receiver.on("/", [Behaviour::status(200)]);
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let answer = recovery(&entity, &hook, &range).expect(202).await.json();
    assert_eq!(answer, json!({ "count": 5, "countIsExact": true, "failed": 0, "waiting": 5 }));
    for (number, id) in ids.iter().enumerate() {
        let delivered = entity.until_status(id, &["delivered"]).await;
        assert_eq!(delivered["attemptCount"], if number < 3 { 2 } else { 1 }, "{delivered:#}");
    }
    until("nothing is left", LONG, async || (recover(&entity, &hook, &range).await == 0).then_some(())).await;
    assert_eq!(receiver.received("/").len(), 8);
    // An attempt is counted after it is recorded.
    until("the webhook is healthy", LONG, async || {
        (entity.webhook(&hook.id).await["deliveryState"] == "active").then_some(())
    })
    .await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_waiting_delivery_that_fails_again_keeps_its_schedule(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let later = Behaviour::answer(429, &[("Retry-After", "600")], "");
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [later, Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    let waiting = entity.until_status(&id, &["retrying"]).await;
    assert_eq!(recover(&entity, &hook, &json!({ "createdFrom": "2020-01-01T00:00:00Z" })).await, 1);
    let again = entity.until_delivery(&id, "is attempted in between", |delivery| delivery["attemptCount"] == 2).await;
    assert_eq!((&again["status"], &again["waitingFor"]), (&json!("retrying"), &json!("schedule")), "{again:#}");
    assert_eq!(again["nextAttemptDate"], waiting["nextAttemptDate"]);
}

#[contract_test]
async fn a_recovery_of_nothing_says_why(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let later = Behaviour::answer(429, &[("Retry-After", "600")], "");
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [later])).await;
    let said = async |range: Value| {
        let answer = recovery(&entity, &hook, &range).expect(202).await.json();
        assert_eq!((&answer["count"], &answer["failed"], &answer["waiting"]), (&json!(0), &json!(0), &json!(0)));
        answer["message"].as_str().expect("an empty recovery gives the reason").to_owned()
    };
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z", "createdUntil": "2020-01-02T00:00:00Z" });
    let message = said(range).await;
    assert!(
        message.contains("until 2020-01-02T00:00:00.000Z, none has failed") && message.contains("to wait"),
        "{message}"
    );
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    let message = said(json!({ "createdFrom": "2020-01-01T00:00:00Z", "include": "failed" })).await;
    assert!(message.contains("`\"include\": \"waiting\"`"), "{message}");
    assert_eq!(entity.delivery(&id).await["attemptCount"], 1);
}

/// Regression test: right after a failure, a recovery had no effect, because the index lags behind the table.
#[contract_test]
async fn a_recent_failure_is_recovered_before_the_index_shows_it(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(one_attempt()).await;
    let entity = Entity::new(&setup.api, "lag".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [500, 200].map(Behaviour::status))).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    let shows_nothing = json!({ "Count": 0, "ScannedCount": 0 });
    let group = format!("RECOVERABLE#{}", hook.id);
    let counts = move |call: &AwsCall| call.operation == "Query" && call.mentions("COUNT") && call.mentions(&group);
    setup.table.answer(1, shows_nothing, counts);
    let answer = recovery(&entity, &hook, &json!({ "createdFrom": "2020-01-01T00:00:00Z" })).expect(202).await.json();
    assert_eq!(answer["count"], 0, "the index showed no delivery");
    let message = answer["message"].as_str().expect("an empty recovery gives the reason");
    assert!(message.contains("may not be counted yet"), "{message}");
    let delivery = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivery["attemptCount"], 2, "{delivery:#}");
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn deliveries_cancelled_by_disabling_are_recovered_after_enabling(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let later = Behaviour::answer(429, &[("Retry-After", "600")], "");
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [later])).await;
    let mut ids = publish(&entity, "booking.created", 3).await;
    for id in &ids {
        entity.until_status(id, &["retrying"]).await;
    }
    receiver.on("/", [Behaviour::status(410)]);
    // If the table is slow, the service gives up disabling the webhook, and the next 410 disables it.
    while entity.webhook(&hook.id).await["enabled"] != false {
        let gone = entity.publish(json!({})).await;
        entity.until_status(&gone, &["failed"]).await;
        ids.push(gone);
    }
    // The next attempts of these deliveries find the webhook disabled.
    for id in &ids[..3] {
        overdue(&suite.table(), id, LONG_AGO).await;
    }
    for id in &ids[..3] {
        entity.until_status(id, &["cancelled"]).await;
    }

    receiver.on("/", [Behaviour::status(200)]);
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    recovery(&entity, &hook, &range).refused(409, "webhook-disabled").await;
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    let all = u64::try_from(ids.len()).expect("few");
    until("all are listed as final", LONG, async || (recover(&entity, &hook, &range).await == all).then_some(())).await;
    for id in &ids {
        let delivered = entity.until_status(id, &["delivered"]).await;
        assert_eq!(delivered["attemptCount"], 2, "{delivered:#}");
    }
    until("nothing is left", LONG, async || (recover(&entity, &hook, &range).await == 0).then_some(())).await;
}

#[contract_test]
async fn exhausted_and_expired_deliveries_are_not_recovered(suite: Arc<Suite>) {
    const DAY: i64 = 24 * 60 * 60;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [Behaviour::status(500)])).await;
    let ids = publish(&entity, "booking.created", 2).await;
    until_count(&entity, &hook, "failed", 2).await;
    let mut head = table.head(&ids[0]).await.expect("it is there");
    head["attemptCount"] = json!({ "N": "99" });
    table.put(head).await;
    // This head belongs to a delivery from 91 days ago that the table has not removed yet.
    let expired = stored::delivery_id(&stored::event_id((now() - 91 * DAY) * 1_000, 0), 0);
    let (pk, sk) = stored::head_key(&expired);
    let mut head = table.head(&ids[1]).await.expect("it is there");
    for (name, value) in [("pk", &pk), ("sk", &sk), ("id", &expired)] {
        head[name] = json!({ "S": value });
    }
    table.put(head.clone()).await;
    entity.post(&format!("/webhook/delivery/{}/resend", ids[0])).expect(202).await;
    let over = |delivery: &Value| delivery["attemptCount"].as_u64() >= Some(100) && delivery["status"] == "failed";
    entity.until_delivery(&ids[0], "has had all attempts", over).await;
    receiver.on("/", [Behaviour::status(200)]);
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    assert_eq!(recover(&entity, &hook, &range).await, 1);
    entity.until_status(&ids[1], &["delivered"]).await;
    until("nothing is left", LONG, async || (recover(&entity, &hook, &range).await == 0).then_some(())).await;
    assert_eq!(entity.delivery(&ids[0]).await["status"], "failed");
    assert_eq!(table.head(&expired).await, Some(head));
}

/// The table removes a delivery only days after its retention period, which may be shorter for some events.
#[contract_test]
async fn the_number_that_is_left_ends_at_0_although_some_have_expired(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [Behaviour::status(500)])).await;
    let ids = publish(&entity, "booking.created", 2).await;
    until_count(&entity, &hook, "failed", 2).await;
    let mut head = suite.table().head(&ids[0]).await.expect("it is there");
    head["expiresAt"] = json!({ "N": "1" });
    suite.table().put(head).await;
    receiver.on("/", [Behaviour::status(200)]);
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    recover(&entity, &hook, &range).await;
    entity.until_status(&ids[1], &["delivered"]).await;
    until("nothing is left", LONG, async || (recover(&entity, &hook, &range).await == 0).then_some(())).await;
}
