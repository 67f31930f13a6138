//! The job of a recovery works in the background and sends each delivery once, even if the sweep is killed. Items that
//! cannot be read hold up no others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::{hook_for, publish},
    harness::{
        Behaviour, Bundle, Entity, Hook, LONG, LONG_AGO, Receiver, Settings, Suite, Table, now,
        recovery::{count, one_attempt, recover, recovery, until_count},
        time, until,
    },
    sweep::{sweep_until_delivered, swept_by_hand, until_first_sweep},
};

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
    assert!(!setup.bundle.whole_logs().contains("a-private-place"), "the log has no content of jobs");
    assert!(setup.bundle.stop().await.success());
}
