//! Recovery: all failed, cancelled and waiting deliveries in a range are sent in the background, once each, even if the
//! sweep is killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::{hook_for, publish},
    harness::{
        AwsCall, Behaviour, Bundle, Call, Entity, Hook, LONG, LONG_AGO, Receiver, Settings, Suite, Table,
        invalid_values, is_limited, now, stored, time, until, window_start,
    },
    sweep::{overdue, sweep_until_delivered, swept_by_hand, until_first_sweep},
};

fn one_attempt() -> Settings {
    Settings::default().with("RETRY_SCHEDULE", "0s")
}

fn recovery(entity: &Entity, hook: &Hook, range: &Value) -> Call {
    entity.post(&format!("/webhook/{}/recover", hook.id)).json(range)
}

/// Requests a recovery, bypassing the per-minute limit by removing the minute's count first.
async fn recover(entity: &Entity, hook: &Hook, range: &Value) -> u64 {
    let minute = window_start(60);
    let counted = format!("ALLOWANCE#recoveries#{}", entity.id);
    Table::of(&entity.api().env).remove(&counted, &format!("{minute:010}")).await;
    let answer = recovery(entity, hook, range).expect(202).await.json();
    answer["count"].as_u64().expect("openapi.yaml says so")
}

async fn count(entity: &Entity, hook: &Hook, status: &str) -> usize {
    let mut found = 0;
    let mut cursor = String::new();
    loop {
        let query = format!("limit=100&status={status}&webhookIdentifier={}{cursor}", hook.id);
        let page = entity.get(&format!("/webhook/delivery/list?{query}")).expect(200).await.json();
        found += page["items"].as_array().map(Vec::len).unwrap_or_default();
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// Waits until this many deliveries have this status; each change restarts the timeout.
async fn until_count(entity: &Entity, hook: &Hook, status: &str, expected: usize) {
    let mut last = count(entity, hook, status).await;
    while last != expected {
        last = until(&format!("{expected} deliveries are {status}, and not {last}"), LONG, async || {
            Some(count(entity, hook, status).await).filter(|count| *count != last)
        })
        .await;
    }
}

/// Recovers, and kills the sweep as soon as it works on the job. Polls the number left until it is zero; each change
/// restarts the timeout. Returns the numbers.
async fn recovered_despite_a_kill(bundle: &Bundle, entity: &Entity, hook: &Hook, range: &Value) -> Vec<u64> {
    let sweep = bundle.process("sweep-deliveries").await;
    let table = Table::of(&entity.api().env);
    let job = format!("JOB#{}", hook.id);
    let all = recover(entity, hook, range).await;
    // The table answers sooner than the API. If this test stalls, the work may be over, and the job removed.
    until("a sweep works on the job", LONG, async || {
        let job = table.item(&job, "RECOVER").await;
        job.is_none_or(|job| job["version"]["N"] != "1").then_some(())
    })
    .await;
    sweep.kill();
    let mut progress = vec![all];
    let mut left = all;
    while left > 0 {
        left = until(&format!("fewer than {left} are left"), LONG, async || {
            Some(recover(entity, hook, range).await).filter(|number| *number != left)
        })
        .await;
        progress.push(left);
    }
    progress
}

#[contract_test]
async fn thousands_are_recovered_once_each_although_the_work_is_killed(suite: Arc<Suite>) {
    const MANY: usize = 2_000;
    const FEW: usize = 50;
    let (bundle, api, _permit) = suite.other_bundle(one_attempt()).await;
    let entity = Entity::new(&api, "recover".to_owned()).await;
    let receiver = Receiver::start().await;
    let many = hook_for(&entity, "booking.created", &receiver.on("/many", [Behaviour::status(500)])).await;
    let few = hook_for(&entity, "booking.cancelled", &receiver.on("/few", [Behaviour::status(500)])).await;
    let deliveries = publish(&entity, "booking.created", MANY).await;
    publish(&entity, "booking.cancelled", FEW).await;
    until_count(&entity, &many, "failed", MANY).await;
    until_count(&entity, &few, "failed", FEW).await;
    receiver.on("/many", [Behaviour::status(200)]);
    receiver.on("/few", [Behaviour::status(200)]);

    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let progress = recovered_despite_a_kill(&bundle, &entity, &many, &range).await;
    println!("recovered {MANY}, killed in the middle, progress {progress:?}");
    assert_eq!(progress[0], MANY as u64);
    assert!(progress.is_sorted_by(|one, next| one >= next), "{progress:?}");
    until_count(&entity, &many, "delivered", MANY).await;
    let mut received = BTreeMap::<String, usize>::new();
    for request in receiver.received("/many") {
        *received.entry(request.header("service-delivery-id").to_owned()).or_default() += 1;
    }
    assert_eq!(received.len(), MANY);
    let other: BTreeMap<_, _> = received.iter().filter(|(_, times)| **times != 2).collect();
    assert!(other.is_empty(), "each is sent exactly once more: {other:?}");
    assert_eq!(received.into_keys().collect::<BTreeSet<_>>(), deliveries.iter().cloned().collect());

    // A second recovery adds no attempt; the other webhook's deliveries are unchanged.
    assert_eq!(recover(&entity, &many, &range).await, 0);
    let shown = entity.delivery(&deliveries[0]).await;
    assert_eq!(shown["attemptCount"], 2, "{shown:#}");
    assert_eq!(count(&entity, &few, "failed").await, FEW);
    assert_eq!(receiver.received("/few").len(), FEW);
    assert_eq!(receiver.received("/many").len(), 2 * MANY);
    assert!(bundle.stop().await.success());
}

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
async fn thousands_that_wait_are_recovered_once_each_despite_a_kill(suite: Arc<Suite>) {
    const MANY: usize = 1_500;
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "recover".to_owned()).await;
    let receiver = Receiver::start().await;
    let later = Behaviour::answer(429, &[("Retry-After", "36000")], "");
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [later])).await;
    publish(&entity, "booking.created", MANY).await;
    until_count(&entity, &hook, "retrying", MANY).await;
    receiver.on("/", [Behaviour::status(200)]);

    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z", "include": "waiting" });
    assert_eq!(recovered_despite_a_kill(&bundle, &entity, &hook, &range).await[0], MANY as u64);
    until_count(&entity, &hook, "delivered", MANY).await;
    let mut received = BTreeMap::<String, usize>::new();
    for request in receiver.received("/") {
        *received.entry(request.header("service-delivery-id").to_owned()).or_default() += 1;
    }
    let other: BTreeMap<_, _> = received.iter().filter(|(_, times)| **times != 2).collect();
    assert!(received.len() == MANY && other.is_empty(), "each is sent exactly once more: {other:?}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_delivery_that_cannot_be_read_keeps_no_recovery_from_its_end(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(one_attempt()).await;
    let entity = Entity::new(&api, "unreadable".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&api.env);
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [Behaviour::status(500)])).await;
    let deliveries = publish(&entity, "booking.created", 3).await;
    until_count(&entity, &hook, "failed", 3).await;
    let id = deliveries.first().expect("three");
    assert!(table.set_of_head(id, "createdDate", "no time").await);
    receiver.on("/", [Behaviour::status(200)]);
    recover(&entity, &hook, &json!({ "createdFrom": "2020-01-01T00:00:00Z" })).await;
    for id in deliveries.iter().skip(1) {
        entity.until_status(id, &["delivered"]).await;
    }
    let job = format!("JOB#{}", hook.id);
    until("the recovery is over", LONG, async || table.item(&job, "RECOVER").await.is_none().then_some(())).await;
    assert!(bundle.stop().await.success());
}

/// Regression test: after a rollback, a later release's job blocked its entity's other jobs.
#[contract_test]
async fn a_job_that_cannot_be_read_holds_up_no_other_of_its_entity(suite: Arc<Suite>) {
    let settings = swept_by_hand().with("RETRY_SCHEDULE", "0s");
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    until_first_sweep(&setup).await;
    let entity = Entity::new(&setup.api, "rolled-back".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let hook = hook_for(&entity, "booking.created", &receiver.on("/", [500, 200].map(Behaviour::status))).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    let job = |pk: &str, work: Value| {
        json!({
            "pk": { "S": pk }, "sk": { "S": "ARCHIVE" }, "entity": { "S": entity.id }, "version": { "N": "1" },
            "webhook": { "S": hook.id }, "dueShard": { "S": format!("JOBS#{}", entity.id) }, "dueAt": { "S": LONG_AGO },
            "expedited": { "M": {} }, "work": work,
        })
    };
    let unknown = job("JOB#later", json!({ "M": { "archive": { "M": { "to": { "S": "a-private-place" } } } } }));
    let malformed = job("JOB#malformed", json!({ "N": "5" }));
    table.put_all([unknown.clone(), malformed.clone()]).await;
    recovery(&entity, &hook, &json!({ "createdFrom": "2020-01-01T00:00:00Z" })).expect(202).await;
    let begun = now();
    sweep_until_delivered(&setup, &entity, &id).await;
    for mut before in [unknown, malformed] {
        let pk = before["pk"]["S"].as_str().expect("a text").to_owned();
        let after = table.item(&pk, "ARCHIVE").await.expect("it is kept");
        assert!(time(&after["dueAt"]["S"]).as_second() >= begun, "{after:#}");
        before["dueAt"] = after["dueAt"].clone();
        assert_eq!(after, before, "nothing else is changed");
        until("the log names the job", LONG, async || {
            let logs = setup.bundle.logs();
            let of_job = logs.lines().find(|line| line.contains("a job is postponed") && line.contains(&pk));
            of_job.map(|line| assert!(line.contains("ARCHIVE"), "{line}"))
        })
        .await;
    }
    assert!(!setup.bundle.logs().contains("a-private-place"), "the log has no content of jobs");
    assert!(setup.bundle.stop().await.success());
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

#[contract_test]
async fn every_bad_range_is_refused_with_its_field(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = hook_for(&entity, "booking.created", "http://127.0.0.1:9/").await;
    for (range, member) in [
        (json!({}), "createdFrom"),
        (json!({ "createdUntil": "2026-01-01T00:00:00Z" }), "createdFrom"),
        (json!({ "createdFrom": null }), "createdFrom"),
        (json!({ "createdFrom": 1_795_167_900 }), "createdFrom"),
        (json!({ "createdFrom": "yesterday" }), "createdFrom"),
        (json!({ "createdFrom": "2026-01-01" }), "createdFrom"),
        (json!({ "createdFrom": "2098-01-01T00:00:00Z" }), "createdFrom"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "createdUntil": "2026-01-01T00:00:00Z" }), "createdUntil"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "createdUntil": "2025-12-31T23:59:59.999Z" }), "createdUntil"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "createdUntil": "" }), "createdUntil"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "status": "failed" }), "status"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "include": "delivered" }), "include"),
        (json!({ "createdFrom": "2026-01-01T00:00:00Z", "include": null }), "include"),
    ] {
        let problem = recovery(&entity, &hook, &range).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), [format!("body/{member}")], "{range}");
    }
}

/// Without a limit, 71 recovery requests within 20 seconds caused 7 203 attempts.
#[contract_test]
async fn requests_for_attempts_are_limited_for_each_entity_and_minute(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let neighbour = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let hook = entity.hook(&url).await;
    let other = neighbour.hook(&url).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let first = recovery(&entity, &hook, &range).header("idempotency-key", "first").expect(202).await.json();
    // The test may begin in one minute and end in a later one.
    let begun = window_start(60);
    for (what, limit) in [("recoveries", 20), ("tests", 60), ("resends", 300)] {
        for minute in (0..5).map(|number| begun + 60 * number) {
            let item = json!({
                "pk": { "S": format!("ALLOWANCE#{what}#{}", entity.id) }, "sk": { "S": format!("{minute:010}") },
                "count": { "N": format!("{limit}") },
            });
            suite.table().put(item).await;
        }
    }
    let empty = |path: String| entity.post(&path).json(&json!({}));
    for (call, name, limit) in [
        (recovery(&entity, &hook, &range), "recoveries", 20),
        (empty(format!("/webhook/{}/resume", hook.id)), "recoveries", 20),
        (empty(format!("/webhook/{}/test", hook.id)), "tests", 60),
        (empty(format!("/webhook/delivery/{delivery}/resend")), "resends", 300),
    ] {
        let answer = call.expect(429).await;
        assert_eq!(answer.json()["kind"], "too-many-requests");
        assert!((1..=61).contains(&is_limited(&answer, name, limit, 60)), "{}", answer.exchange);
    }
    recovery(&entity, &hook, &json!({})).refused(400, "invalid-request").await;
    let again = recovery(&entity, &hook, &range).header("idempotency-key", "first").expect(202).await.json();
    assert_eq!(again, first, "a repetition causes no further attempts");
    recovery(&neighbour, &other, &range).expect(202).await;
    assert_eq!(receiver.received("/").len(), 1, "a refused request caused an attempt");
}

#[contract_test]
async fn missing_and_disabled_webhooks_are_not_recovered(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let stranger = suite.entity().await;
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let hook = hook_for(&entity, "booking.created", "http://127.0.0.1:9/").await;
    recovery(&stranger, &hook, &range).refused(404, "webhook-not-found").await;
    for id in ["whk_00000000000000000000000000", "x", "list"] {
        let call = entity.post(&format!("/webhook/{id}/recover")).json(&range);
        call.refused(404, "webhook-not-found").await;
    }
    // This is the path of a delivery, which does not support POST.
    entity.post("/webhook/delivery/recover").json(&range).refused(405, "method-not-allowed").await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    recovery(&entity, &hook, &range).refused(409, "webhook-disabled").await;
    entity.remove(&hook.id).expect(200).await;
    recovery(&entity, &hook, &range).refused(404, "webhook-not-found").await;
}
