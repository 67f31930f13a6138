//! Removing a webhook, and how its deliveries end.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    delivery_list::hook_for,
    harness::{
        Behaviour, Entity, Gate, Hook, LONG, Receiver, Settings, Suite, Table, announced, counts::failures_counted,
        invalid_values, invocation, until,
    },
    sweep::{sweep, swept_by_hand, until_opens},
};

/// An event type whose webhooks get no events about other webhooks.
const BOOKINGS: &str = "booking.created";

/// A response that postpones the next attempt by hours, so that it cannot affect the test.
fn later() -> Behaviour {
    Behaviour::answer(503, &[("Retry-After", "36000")], "")
}

#[contract_test]
async fn a_removed_webhook_is_gone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let removed = entity.hook("http://127.0.0.1:9/").await;
    let kept = entity.hook("http://127.0.0.1:9/").await;
    let answer = entity.remove(&removed.id).expect(200).await.json();
    assert_eq!((&answer["id"], &answer["success"]), (&json!(removed.id), &json!(true)), "{answer:#}");
    entity.get(&format!("/webhook/{}", removed.id)).refused(404, "webhook-not-found").await;
    entity.remove(&removed.id).refused(404, "webhook-not-found").await;
    let listed = entity.get("/webhook/list").expect(200).await.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(listed[0]["id"], kept.id.as_str());
}

#[contract_test]
async fn a_removal_refuses_input_that_it_would_drop(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let problem = entity.remove(&hook.id).json(&json!({ "version": 3 })).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/version"]);
    entity.get(&format!("/webhook/{}", hook.id)).expect(200).await;
    entity.remove(&hook.id).json(&json!({})).expect(200).await;
}

#[contract_test]
async fn of_many_removals_at_once_one_is_made(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let answers = join_all((0..10).map(|_| entity.remove(&hook.id).answered())).await;
    let with = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((with(200), with(404)), (1, 9));
}

#[contract_test]
async fn a_removed_webhook_gets_no_more_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let removed = entity.hook(&receiver.on("/removed", [Behaviour::status(200)])).await;
    let first = entity.publish(json!({ "number": 1 })).await;
    entity.until_status(&first, &["delivered"]).await;
    entity.remove(&removed.id).expect(200).await;
    entity.hook(&receiver.on("/kept", [Behaviour::status(200)])).await;
    let second = entity.publish(json!({ "number": 2 })).await;
    entity.until_status(&second, &["delivered"]).await;
    assert_eq!((receiver.received("/removed").len(), receiver.received("/kept").len()), (1, 1));
    // Earlier deliveries can still be read.
    let delivery = entity.delivery(&first).await;
    assert_eq!((&delivery["status"], &delivery["webhookIdentifier"]), (&json!("delivered"), &json!(removed.id)));
}

#[contract_test]
async fn removing_a_webhook_cancels_its_open_deliveries_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let removed = entity.hook(&receiver.on("/removed", [Behaviour::status(500), later()])).await;
    let kept = entity.hook(&receiver.on("/kept", [later()])).await;
    let of = |published: &Value, webhook: &str| {
        let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
        let delivery = deliveries.iter().find(|delivery| delivery["webhookIdentifier"] == webhook);
        let delivery = delivery.expect("both webhooks subscribe to every type");
        delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned()
    };
    let published =
        join_all((0..20).map(|number| entity.publish_of_type("booking.created", json!({ "number": number })))).await;
    let published: Vec<Value> = published.iter().map(crate::harness::ApiResponse::json).collect();
    for event in &published {
        for webhook in [&removed, &kept] {
            let waits = "waits for hours";
            entity.until_delivery(&of(event, &webhook.id), waits, |delivery| delivery["lastHttpStatus"] == 503).await;
        }
    }
    // Attempts are counted shortly after they are recorded: there are 20, plus the first one's retry.
    let partition = format!("ENT#{}", entity.id);
    let health = format!("HLT#{}", removed.id);
    failures_counted(&suite.table(), &entity, &removed, 21).await;
    entity.remove(&removed.id).expect(200).await;
    for event in &published {
        let delivery = entity.until_status(&of(event, &removed.id), &["cancelled"]).await;
        assert!(delivery.get("nextAttemptDate").is_none(), "{delivery:#}");
        assert_eq!(entity.delivery(&of(event, &kept.id)).await["status"], "retrying");
    }
    for sort_key in [format!("WHK#{}", removed.id), health] {
        assert_eq!(suite.table().item(&partition, &sort_key).await, None, "{sort_key} is still there");
    }
}

#[contract_test]
async fn deliveries_published_while_a_webhook_is_removed_come_to_an_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200), Behaviour::status(500)])).await;
    let publications = join_all((0..40).map(|number| {
        let entity = entity.clone();
        async move { entity.publish_of_type("booking.created", json!({ "number": number })).await.json() }
    }));
    let (published, _) = tokio::join!(publications, entity.remove(&hook.id).expect(200));
    for delivery in published.iter().flat_map(|event| event["deliveries"].as_array().into_iter().flatten()) {
        let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
        entity.until_status(id, &["cancelled", "delivered", "failed"]).await;
    }
}

/// A webhook whose deliveries wait for hours, with a delivery for each of its entity's events.
async fn waiting(entity: &Entity, receiver: &Receiver, path: &str, events: usize) -> (Hook, Vec<String>) {
    let hook = hook_for(entity, BOOKINGS, &receiver.on(path, [later()])).await;
    let mut deliveries = Vec::new();
    for number in 0..events {
        deliveries.push(entity.publish(json!({ "number": number })).await);
    }
    for delivery in &deliveries {
        entity.until_delivery(delivery, "waits", |delivery| delivery["lastHttpStatus"] == 503).await;
    }
    (hook, deliveries)
}

#[contract_test]
async fn removing_and_recovering_read_no_deliveries_of_other_webhooks(suite: Arc<Suite>) {
    let (stage, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&stage.api, "removal".to_owned()).await;
    let receiver = Receiver::start().await;
    let (hook, deliveries) = waiting(&entity, &receiver, "/", 3).await;
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let recovered = entity.post(&format!("/webhook/{}/recover", hook.id)).json(&range).expect(202).await.json();
    assert_eq!((&recovered["failed"], &recovered["waiting"]), (&json!(0), &json!(3)), "{recovered}");
    for delivery in &deliveries {
        entity.until_delivery(delivery, "was attempted again", |delivery| delivery["attemptCount"] == 2).await;
    }
    entity.remove(&hook.id).expect(200).await;
    for delivery in &deliveries {
        entity.until_status(delivery, &["cancelled"]).await;
    }
    // These indexes contain an entity's other webhooks.
    for index in ["byEntity", "bySubject"] {
        let looked = stage.table.calls_mentioning(index);
        assert!(looked.is_empty(), "{looked:?}");
    }
    let looked = stage.table.calls_mentioning("byWebhook");
    assert!(!looked.is_empty() && looked.iter().all(|call| call.mentions(&hook.id)), "{looked:?}");
    assert!(stage.bundle.stop().await.success());
}

/// The next attempt finds that the webhook is gone.
#[contract_test]
async fn a_webhook_removed_during_its_first_attempt_leaves_a_cancelled_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(503).behind(&answers)])).await;
    let id = entity.publish(json!({})).await;
    receiver.until("/", 1).await;
    entity.remove(&hook.id).expect(200).await;
    answers.open();
    let cancelled = entity.until_status(&id, &["cancelled"]).await;
    assert_eq!((&cancelled["attemptCount"], &cancelled["lastHttpStatus"]), (&json!(1), &json!(503)), "{cancelled:#}");
    assert_eq!(cancelled["cancelReason"], "webhook-removed", "{cancelled:#}");
}

/// Before the sweep opens the delivery, nothing in the table marks it as due.
#[contract_test]
async fn a_removed_webhook_leaves_no_delivery_open_that_nothing_announced(suite: Arc<Suite>) {
    let (stage, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    let entity = Entity::new(&stage.api, "unannounced".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let webhook = hook.id.clone();
    stage.services.swallow(1, move |call| announced(call).iter().any(|due| due.webhook == webhook));
    let id = entity.publish(json!({})).await;
    entity.remove(&hook.id).expect(200).await;
    let shown = entity.delivery(&id).await;
    assert_eq!(shown["status"], "pending", "{shown:#}");
    until_opens(&shown).await;
    let cancelled = until("a sweep opens it", LONG, async || {
        sweep(&stage).await;
        Some(entity.delivery(&id).await).filter(|delivery| delivery["status"] != "pending")
    })
    .await;
    assert_eq!((&cancelled["status"], &cancelled["attemptCount"]), (&json!("cancelled"), &json!(0)), "{cancelled:#}");
    assert!(receiver.everything().is_empty());
    assert!(stage.bundle.stop().await.success());
}

async fn job(table: &Table, removed: &Hook) -> Option<Value> {
    table.item(&format!("JOB#{}", removed.id), "CANCEL").await
}

/// Each job's lease, if a worker holds the job.
fn leases(jobs: &[Option<Value>]) -> Vec<Option<&Value>> {
    jobs.iter().map(|job| job.as_ref()?.get("lease")).collect()
}

/// Completed jobs leave turns behind for a while. A single sweep deletes or skips all of them, no matter how many there
/// are.
#[contract_test]
async fn turns_without_a_job_do_not_stop_the_jobs_after_them(suite: Arc<Suite>) {
    // The interval is so long that only this test starts a sweep.
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("SWEEP_INTERVAL", "1h")).await;
    let entity = Entity::new(&api, "behind".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&api.env);
    let (hook, deliveries) = waiting(&entity, &receiver, "/", 1).await;
    let turns: Vec<_> = (0..30)
        .map(|number| {
            let long_ago = "2026-01-01T00:00:00.000Z";
            json!({
                "pk": { "S": format!("TURN#idle-{number}") }, "sk": { "S": "JOBS" }, "dueShard": { "S": "JOBS" },
                "dueAt": { "S": long_ago }, "idleSince": { "S": long_ago },
            })
        })
        .collect();
    table.put_all(turns.clone()).await;
    entity.remove(&hook.id).expect(200).await;
    // On a slow machine, the sweep that the bundle runs at startup may still hold turns, and a sweep may leave the job
    // to the next. Each finds all these turns.
    until("a sweep works on the job behind the turns", LONG, async || {
        table.put_all(turns.clone()).await;
        let swept = invocation(&api.env, "sweep-deliveries", "{}").send().await.expect("functions can be invoked");
        assert_eq!(swept.status(), 200);
        (entity.delivery(&deliveries[0]).await["status"] == "cancelled").then_some(())
    })
    .await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn many_removals_of_one_entity_take_no_more_than_its_turn(suite: Arc<Suite>) {
    const WEBHOOKS: usize = 20;
    const EVENTS: usize = 20;
    let busy = suite.entity().await;
    let other = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let (kept, deliveries) = waiting(&other, &receiver, "/other", 1).await;
    let url = receiver.on("/busy", [later()]);
    let hooks = join_all((0..WEBHOOKS).map(|_| hook_for(&busy, BOOKINGS, &url))).await;
    let events = (0..EVENTS).map(|number| busy.publish_of_type("booking.created", json!({ "number": number })));
    let events = join_all(events).await;
    let events: Vec<Value> = events.iter().map(crate::harness::ApiResponse::json).collect();
    let ids: Vec<&str> = events
        .iter()
        .flat_map(|event| event["deliveries"].as_array().into_iter().flatten())
        .map(|delivery| delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so"))
        .collect();
    assert_eq!(ids.len(), WEBHOOKS * EVENTS);
    for id in &ids {
        busy.until_delivery(id, "waits", |delivery| delivery["lastHttpStatus"] == 503).await;
    }
    let removals = join_all(hooks.iter().map(|hook| busy.remove(&hook.id).expect(200)));
    let cancelled = async {
        other.remove(&kept.id).expect(200).await;
        other.until_status(&deliveries[0], &["cancelled"]).await;
    };
    let look = async || join_all(hooks.iter().map(|hook| job(&table, hook))).await;
    let first_look = async {
        // A job remains for minutes after it was worked on. On a slow machine, the first job may be gone before the
        // last one begins.
        let mut worked_on = BTreeSet::new();
        while worked_on.len() < WEBHOOKS {
            until("another job of the busy entity is worked on", LONG, async || {
                let before = look().await;
                let jobs = look().await;
                // Each lease is new, so jobs that kept their leases between two checks were held at the same time.
                let both = leases(&before).into_iter().zip(leases(&jobs));
                let taken = both.filter(|(before, now)| now.is_some() && before == now).count();
                // There is one job, or two if one sweep begins while another ends.
                assert!(taken <= 2, "{taken} jobs of one entity run at once");
                let looked_at = jobs.iter().flatten().filter(|job| job["version"]["N"] != "1");
                let number = worked_on.len();
                worked_on.extend(looked_at.map(|job| job["pk"]["S"].to_string()));
                (worked_on.len() > number).then_some(())
            })
            .await;
        }
    };
    tokio::join!(removals, cancelled, first_look);
    for id in &ids {
        busy.until_status(id, &["cancelled"]).await;
    }
}
