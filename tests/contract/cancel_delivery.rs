//! Cancelling one delivery: an open delivery ends with a single write. An attempt in progress is not stopped, and a
//! final delivery does not change.

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    harness::{
        Behaviour, Call, Entity, Gate, LONG, Receiver, Settings, Suite, Table,
        feed::{confirm, end_visibility, pulled, read, read_some},
        now, stored, time, until,
    },
    pauses::{is_put_off, paused_in},
};

fn cancel(entity: &Entity, id: &str) -> Call {
    entity.post(&format!("/webhook/delivery/{id}/cancel"))
}

/// Cancels an open delivery, and returns it.
async fn cancelled(entity: &Entity, id: &str) -> Value {
    let cancelled = cancel(entity, id).expect(200).await.json();
    assert_eq!((&cancelled["status"], &cancelled["cancelReason"]), (&json!("cancelled"), &json!("owner")));
    assert!(cancelled.get("nextAttemptDate").is_none() && cancelled.get("waitingFor").is_none(), "{cancelled:#}");
    assert_eq!(entity.delivery(id).await, cancelled, "the response shows the delivery");
    assert_eq!(cancel(entity, id).expect(200).await.json(), cancelled, "a repetition changes nothing");
    cancelled
}

async fn resend(entity: &Entity, id: &str) {
    let resent = entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await.json();
    assert!(resent["status"] == "pending" && resent.get("cancelReason").is_none(), "{resent:#}");
}

/// The number of requests that an endpoint received for a delivery.
fn requests_of(receiver: &Receiver, id: &str) -> usize {
    receiver.received("/").iter().filter(|request| request.header("service-delivery-id") == id).count()
}

/// Asserts that a delivery has no time at which the sweep would announce it or a worker could claim it.
pub(crate) async fn is_never_due(table: &Table, id: &str) {
    let head = table.head(id).await.expect("it is there");
    assert!(head.get("dueAt").is_none() && head.get("claimableAt").is_none(), "{head:#}");
}

/// A response that asks for a ten-minute wait and does not fit into a delivery's head.
fn later() -> Behaviour {
    Behaviour::answer(429, &[("Retry-After", "600")], "x".repeat(3_900))
}

#[contract_test]
async fn a_delivery_that_no_worker_has_claimed_is_never_sent(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "25s,1s")).await;
    let entity = Entity::new(&api, "cancelled".to_owned()).await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    assert_eq!(Table::of(&api.env).head(&id).await, None);
    let before = cancelled(&entity, &id).await;
    assert_eq!(before["attemptCount"], 0);
    // The sweep has opened a later delivery, and its message was due. The cancelled delivery's message was therefore
    // due earlier.
    let later = entity.publish(json!({})).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(entity.delivery(&id).await, before);
    assert_eq!(requests_of(&receiver, &id), 0);
    resend(&entity, &id).await;
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert!(delivered["attemptCount"] == 1 && delivered.get("cancelReason").is_none(), "{delivered:#}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_waiting_delivery_is_cancelled_and_only_a_resend_brings_it_back(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [later(), Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    let waiting = entity.until_status(&id, &["retrying"]).await;
    let ended = cancelled(&entity, &id).await;
    assert_eq!((&ended["attempts"], &ended["event"]), (&waiting["attempts"], &waiting["event"]));
    assert!(time(&ended["lastUpdate"]) >= time(&waiting["lastUpdate"]), "{ended:#}");
    for query in ["status=cancelled".to_owned(), format!("status=cancelled&webhookIdentifier={}", hook.id)] {
        let list = || async {
            let list = entity.get(&format!("/webhook/delivery/list?{query}")).expect(200).await.json();
            list["items"].as_array().is_some_and(|items| items.len() == 1).then_some(list)
        };
        let list = until("the list has it", LONG, async || list().await).await;
        assert_eq!((&list["items"][0]["id"], &list["items"][0]["cancelReason"]), (&json!(id), &json!("owner")));
    }
    let range = json!({ "createdFrom": "2026-01-01T00:00:00Z" });
    let recovery = entity.post(&format!("/webhook/{}/recover", hook.id)).json(&range).expect(202).await.json();
    assert_eq!(recovery["count"], 0, "{recovery:#}");
    is_never_due(&suite.table(), &id).await;
    assert_eq!(entity.delivery(&id).await, ended);
    assert_eq!(receiver.received("/").len(), 1);

    resend(&entity, &id).await;
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert!(delivered["attemptCount"] == 2 && delivered.get("cancelReason").is_none(), "{delivered:#}");
}

#[contract_test]
async fn a_delivery_that_waits_for_a_breaker_stays_cancelled_at_its_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let table = suite.table();
    paused_in(&table, &entity, &hook, 6).await;
    let unwanted = entity.publish(json!({ "number": 1 })).await;
    let wanted = entity.publish(json!({ "number": 2 })).await;
    for id in [&unwanted, &wanted] {
        entity.until_delivery(id, "waits for the breaker", is_put_off).await;
    }
    let ended = cancelled(&entity, &unwanted).await;
    entity.post(&format!("/webhook/{}/resume", hook.id)).expect(200).await;
    entity.until_status(&wanted, &["delivered"]).await;
    let job = format!("JOB#{}", hook.id);
    until("the end of the job", LONG, async || table.item(&job, "RECOVER").await.is_none().then_some(())).await;
    is_never_due(&table, &unwanted).await;
    assert_eq!(entity.delivery(&unwanted).await, ended);
    assert_eq!(receiver.received("/").len(), 1);
}

#[contract_test]
async fn a_cancelled_delivery_leaves_its_feed_unless_a_reader_holds_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let id = entity.publish(json!({})).await;
    entity.until_delivery(&id, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    cancelled(&entity, &id).await;
    assert!(read(&entity, &hook, json!({ "wait": 2 })).await.is_empty());
    resend(&entity, &id).await;
    let held = read_some(&entity, &hook, json!({ "visibility": 3600 })).await;
    let before = entity.delivery(&id).await;
    let problem = cancel(&entity, &id).refused(409, "attempt-under-way").await;
    assert_eq!(problem["properties"]["attemptEndsBy"], held[0]["visibleFrom"]);
    assert_eq!(entity.delivery(&id).await, before);

    // After the visibility timeout, the missing answer counts as an attempt, and a late answer no longer counts.
    end_visibility(&suite.table(), &id).await;
    until("the missing answer is recorded", LONG, async || {
        (cancel(&entity, &id).answered().await.status == 200).then_some(())
    })
    .await;
    let shown = cancelled(&entity, &id).await;
    assert_eq!((&shown["attemptCount"], &shown["lastErrorCode"]), (&json!(1), &json!("unconfirmed")), "{shown:#}");
    assert_eq!(confirm(&entity, &hook, &held).await, ["expired"]);
    resend(&entity, &id).await;
    let again = read_some(&entity, &hook, json!({})).await;
    assert_eq!(again[0]["attemptNumber"], 2);
    assert_eq!(confirm(&entity, &hook, &again).await, ["confirmed"]);
    let problem = cancel(&entity, &id).refused(409, "delivery-final").await;
    assert_eq!(problem["properties"]["status"], "delivered");
}

#[contract_test]
async fn an_attempt_that_is_under_way_is_not_stopped(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    entity.hook(&receiver.on("/", [Behaviour::status(200).behind(&answers)])).await;
    let id = entity.publish(json!({})).await;
    receiver.until("/", 1).await;
    let before = entity.delivery(&id).await;
    let problem = cancel(&entity, &id).refused(409, "attempt-under-way").await;
    assert!(time(&problem["properties"]["attemptEndsBy"]).as_second() > now(), "{problem:#}");
    assert_eq!(entity.delivery(&id).await, before);
    answers.open();
    let delivered = entity.until_status(&id, &["delivered"]).await;
    let problem = cancel(&entity, &id).refused(409, "delivery-final").await;
    assert_eq!(problem["properties"]["status"], "delivered");
    assert_eq!(entity.delivery(&id).await, delivered);
}

#[contract_test]
async fn a_final_delivery_stays_as_it_is(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let failed = entity.publish(json!({})).await;
    let shown = entity.until_status(&failed, &["failed"]).await;
    let problem = cancel(&entity, &failed).refused(409, "delivery-final").await;
    assert_eq!(problem["properties"]["status"], "failed");
    assert_eq!(entity.delivery(&failed).await, shown);

    receiver.on("/", [later()]);
    let waiting = entity.publish(json!({})).await;
    entity.until_status(&waiting, &["retrying"]).await;
    entity.remove(&hook.id).expect(200).await;
    let shown = entity.until_status(&waiting, &["cancelled"]).await;
    assert_eq!(cancel(&entity, &waiting).expect(200).await.json(), shown, "the removal of its webhook cancelled it");
    assert_eq!(shown["cancelReason"], "webhook-removed", "{shown:#}");
}

#[contract_test]
async fn of_a_cancellation_and_a_dispatch_at_once_one_wins(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let both = join_all((0..30).map(async |number| {
        let id = entity.publish(json!({ "number": number })).await;
        // The cancellations range from before the claim until after the record.
        sleep(Duration::from_millis(number * 2)).await;
        let answer = cancel(&entity, &id).answered().await;
        (id, answer)
    }));
    let both = both.await;
    let is_cancelled = |status: u16| status == 200;
    for (id, answer) in &both {
        assert!([200, 409].contains(&answer.status), "{}", answer.exchange);
        let ends = if is_cancelled(answer.status) { "cancelled" } else { "delivered" };
        let ended = entity.until_status(id, &["cancelled", "delivered"]).await;
        assert_eq!(ended["status"], ends, "{}", answer.exchange);
    }
    // A later delivery was sent, so any other message would have been handled by now.
    let later = entity.publish(json!({})).await;
    entity.until_status(&later, &["delivered"]).await;
    for (id, answer) in &both {
        let requests = requests_of(&receiver, id);
        assert_eq!(requests, usize::from(!is_cancelled(answer.status)), "{id}: {}", answer.exchange);
    }
}

#[contract_test]
async fn twenty_cancellations_at_once_have_one_effect(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [later()])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    let answers = join_all((0..20).map(|_| cancel(&entity, &id).expect(200))).await;
    let shown = entity.delivery(&id).await;
    for answer in answers {
        assert_eq!(answer.json(), shown);
    }
}

#[contract_test]
async fn missing_and_foreign_deliveries_cannot_be_cancelled(suite: Arc<Suite>) {
    let owner = suite.entity().await;
    let stranger = suite.entity().await;
    let receiver = Receiver::start().await;
    owner.hook(&receiver.on("/", [later()])).await;
    let id = owner.publish(json!({})).await;
    let waiting = owner.until_status(&id, &["retrying"]).await;
    for (entity, id) in [
        (&stranger, id.as_str()),
        (&owner, "dlv_00000000000000000000000000"),
        (&owner, "x"),
        (&owner, "evt_00000000000000000000000000"),
        (&owner, "list"),
        (&owner, "%00"),
    ] {
        cancel(entity, id).refused(404, "delivery-not-found").await;
    }
    cancel(&owner, &id).json(&json!({ "now": true })).refused(400, "invalid-request").await;
    cancel(&owner, &id).body("text/plain", "now").refused(415, "unsupported-media-type").await;
    assert_eq!(owner.delivery(&id).await, waiting);
    // Without its event, as after the retention period, a delivery no longer exists.
    let (pk, sk) = stored::event_key(&stored::event_of(&id));
    suite.table().remove(&pk, &sk).await;
    cancel(&owner, &id).refused(404, "delivery-not-found").await;
}
