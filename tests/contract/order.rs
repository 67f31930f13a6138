//! Order by subject: an ordered webhook gets a subject's deliveries one at a time, in the order in which their events
//! were accepted. Each delivery waits until the previous one is final, and shows which one it is waiting for.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{
    Behaviour, Entity, Receiver, Settings, Suite, Table, announced, invalid_values,
    order::{about, delivered, deliveries_about, later, ordered, poisoned, resend, until_held_by, without_looks},
    stored,
};

#[contract_test]
async fn a_poisoned_subject_holds_up_only_itself_and_shows_that(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    let third = about(&entity, "A").await;
    let other = about(&entity, "B").await;
    let none = entity.publish(json!({})).await;
    until_held_by(&entity, &second, &first).await;
    let held = until_held_by(&entity, &third, &second).await;
    assert!(held.get("nextAttemptDate").is_none(), "its time is the end of the one before: {held:#}");
    let list = entity.get("/webhook/delivery/list?subject=A&status=pending").expect(200).await.json();
    let items = list["items"].as_array().expect("openapi.yaml says so");
    let held_by: Vec<_> = items.iter().map(|item| [&item["id"], &item["heldBy"]]).collect();
    assert_eq!(json!(held_by), json!([[third, second], [second, first]]));
    let before = delivered(&entity, &receiver, "/", &[&other, &none]).await;
    assert_eq!(before.len(), 3, "nothing else of the subject was sent: {before:?}");

    // When the first delivery finally succeeds, it wakes the others one after another.
    for id in [&second, &third] {
        without_looks(&suite.table(), id).await;
    }
    resend(&entity, &first).await;
    let all = delivered(&entity, &receiver, "/", &[&first, &second, &third]).await;
    assert_eq!(all[3..], [first, second, third]);
}

#[contract_test]
async fn a_webhook_without_order_is_not_held_up_by_an_ordered_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let ordered = ordered(&entity, &receiver.on("/ordered", [later()]), &[]).await;
    let other = entity.hook(&receiver.on("/other", [later(), Behaviour::status(200)])).await;
    let first = deliveries_about(&entity, "booking.created", "A").await;
    for id in first.values() {
        entity.until_status(id, &["retrying"]).await;
    }
    let second = deliveries_about(&entity, "booking.created", "A").await;
    until_held_by(&entity, &second[&ordered.id], &first[&ordered.id]).await;
    let shown = entity.until_status(&second[&other.id], &["delivered"]).await;
    assert!(shown.get("heldBy").is_none(), "{shown:#}");
}

#[contract_test]
async fn the_next_goes_when_the_one_before_succeeds_after_a_retry(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [Behaviour::status(500), Behaviour::status(200)]), &[]).await;
    let ids = [about(&entity, "A").await, about(&entity, "A").await, about(&entity, "A").await];
    let [first, second, third] = ids.each_ref().map(String::as_str);
    let all = delivered(&entity, &receiver, "/", &[first, second, third]).await;
    assert_eq!(all, [first, first, second, third]);
}

#[contract_test]
async fn the_next_goes_when_the_one_before_is_exhausted(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let fails = Behaviour::status(500);
    let script = [fails.clone(), fails.clone(), fails, Behaviour::status(200)];
    ordered(&entity, &receiver.on("/", script), &[]).await;
    let ids = [about(&entity, "A").await, about(&entity, "A").await, about(&entity, "A").await];
    let [first, second, third] = ids.each_ref().map(String::as_str);
    let all = delivered(&entity, &receiver, "/", &[second, third]).await;
    assert_eq!(all, [first, first, first, second, third]);
    assert_eq!(entity.delivery(first).await["status"], "failed");
    // A final delivery that is resent is sent immediately, out of order.
    resend(&entity, first).await;
    let all = delivered(&entity, &receiver, "/", &[first]).await;
    assert_eq!(all[5..], [first]);
}

#[contract_test]
async fn an_unreadable_event_does_not_hold_up_the_next_of_its_subject(suite: Arc<Suite>) {
    // The event is damaged before a sweep opens its delivery.
    let settings = Settings::default().with("SWEEP_INTERVAL", "1h");
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    let entity = Entity::new(&setup.api, "damaged".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = ordered(&entity, &receiver.on("/", [Behaviour::status(200)]), &[]).await;
    let webhook = hook.id.clone();
    setup.services.swallow(1, move |call| announced(call).iter().any(|due| due.webhook == webhook));
    let damaged = about(&entity, "A").await;
    let table = Table::of(&setup.api.env);
    let (pk, sk) = stored::event_key(&stored::event_of(&damaged));
    assert!(table.set(&pk, &sk, "firstAttempt", "damaged").await);
    let next = about(&entity, "A").await;
    entity.until_status(&next, &["delivered"]).await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn the_order_of_a_webhook_is_none_or_subject(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    assert_eq!(hook.json["order"], "none", "{:#}", hook.json);
    for order in [json!("type"), json!(""), json!(true)] {
        let body = json!({ "name": "n", "eventUrl": "http://127.0.0.1:9/", "eventList": [], "order": order });
        let problem = entity.post("/webhook").json(&body).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/order"], "{order}");
        let problem = entity.change(&hook.id, &json!({ "order": order })).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/order"], "{order}");
    }
}
