//! Order by subject after a change: when a delivery is cancelled, erased or resent, later ones wait for all that are
//! still before them. The tests also cover webhooks that are disabled, or are no longer ordered.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    erasing::erase,
    harness::{
        Behaviour, Gate, LONG, Receiver, Suite,
        order::{
            NEVER, about, delivered, deliveries, event, later, ordered, poisoned, resend, until_held_by, without_looks,
        },
        stored, until,
    },
};

#[contract_test]
async fn a_cancelled_delivery_lets_the_next_one_go(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    until_held_by(&entity, &second, &first).await;
    without_looks(&suite.table(), &second).await;
    entity.post(&format!("/webhook/delivery/{first}/cancel")).expect(200).await;
    assert_eq!(delivered(&entity, &receiver, "/", &[&second]).await, [first, second]);
}

#[contract_test]
async fn a_delivery_waits_for_all_before_it_when_one_between_is_cancelled_or_erased(suite: Arc<Suite>) {
    for is_erased in [false, true] {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
        let first = poisoned(&entity, "A").await;
        let event = entity.publish_event(&event("booking.created", "A")).await;
        let second = deliveries(&event).into_values().next().expect("one webhook, one delivery");
        let third = about(&entity, "A").await;
        let fourth = about(&entity, "A").await;
        until_held_by(&entity, &third, &second).await;
        until_held_by(&entity, &fourth, &third).await;
        if is_erased {
            let event = event.json()["eventIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
            erase(&entity, &event).await;
        } else {
            entity.post(&format!("/webhook/delivery/{second}/cancel")).expect(200).await;
        }
        until_held_by(&entity, &third, &first).await;
        // Cancelling the third delivery as well makes the fourth one wait for the first.
        entity.post(&format!("/webhook/delivery/{third}/cancel")).expect(200).await;
        until_held_by(&entity, &fourth, &first).await;
        without_looks(&suite.table(), &fourth).await;
        resend(&entity, &first).await;
        assert_eq!(
            delivered(&entity, &receiver, "/", &[&first, &fourth]).await,
            [first.clone(), first, fourth],
            "{is_erased}"
        );
    }
}

#[contract_test]
async fn an_erased_event_lets_the_next_one_go(suite: Arc<Suite>) {
    let table = suite.table();
    // The exchange of an attempt may take 15 s. A slower machine invalidates a round of the second kind.
    for is_under_way in [false, true, true, true] {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let answers = Gate::closed();
        let slow = Behaviour::status(500).behind(&answers);
        let behaviour = if is_under_way { slow } else { later() };
        ordered(&entity, &receiver.on("/", [behaviour, Behaviour::status(200)]), &[]).await;
        let first = about(&entity, "A").await;
        if is_under_way {
            receiver.until("/", 1).await;
        } else {
            entity.until_status(&first, &["retrying"]).await;
        }
        let second = about(&entity, "A").await;
        let is_seen = |shown: &Value| shown["heldBy"] == *first || shown["status"] == "delivered";
        let shown = entity.until_delivery(&second, "waits for the first one, or that is over", is_seen).await;
        if is_under_way && shown["status"] == "delivered" {
            continue;
        }
        assert_eq!(shown["waitingFor"], "order", "{shown:#}");
        without_looks(&table, &second).await;
        let event = stored::event_of(&first);
        erase(&entity, &event).await;
        if is_under_way {
            // The erasure makes the second delivery due, and a dispatcher finds that the first has not ended.
            let waits = until("the second one waits for the attempt, or that is over", LONG, async || {
                let head = table.head(&second).await?;
                if head["status"]["S"] == "delivered" {
                    return Some(false);
                }
                (head["heldBy"]["S"] == first.as_str() && head["dueAt"]["S"] != NEVER).then_some(true)
            })
            .await;
            if !waits {
                continue;
            }
            without_looks(&table, &second).await;
            answers.open();
        }
        assert_eq!(delivered(&entity, &receiver, "/", &[&second]).await, [first.clone(), second]);
        let shown = entity.delivery(&first).await;
        assert_eq!((&shown["status"], &shown["cancelReason"]), (&json!("cancelled"), &json!("erased")), "{shown:#}");
        if is_under_way {
            return;
        }
    }
    panic!("in each round the attempt was over before the event was erased");
}

#[contract_test]
async fn deliveries_go_at_once_when_their_webhook_is_not_ordered_any_more(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    assert_eq!(hook.json["order"], "subject");
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    let third = about(&entity, "A").await;
    until_held_by(&entity, &second, &first).await;
    until_held_by(&entity, &third, &second).await;
    let changed = entity.changed(&hook.id, json!({ "order": "none" })).await;
    assert_eq!(changed["order"], "none", "{changed:#}");
    delivered(&entity, &receiver, "/", &[&second, &third]).await;
    assert_eq!(entity.delivery(&first).await["status"], "retrying");
    // After the webhook becomes ordered again, only later events wait for each other.
    receiver.on("/", [later(), Behaviour::status(200)]);
    entity.changed(&hook.id, json!({ "order": "subject" })).await;
    let fourth = poisoned(&entity, "A").await;
    let fifth = about(&entity, "A").await;
    until_held_by(&entity, &fifth, &fourth).await;
}

#[contract_test]
async fn a_disabled_webhook_cancels_deliveries_that_wait_for_their_order(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    until_held_by(&entity, &second, &first).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    // The first delivery is waiting for its retry, which would find the webhook disabled.
    let shown = entity.until_status(&second, &["cancelled"]).await;
    assert!(shown.get("heldBy").is_none(), "{shown:#}");
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    // The first delivery is still open, waiting for its retry.
    let third = about(&entity, "A").await;
    until_held_by(&entity, &third, &first).await;
    resend(&entity, &first).await;
    let all = delivered(&entity, &receiver, "/", &[&first, &third]).await;
    assert_eq!(all, [first.clone(), first, third]);
}

#[contract_test]
async fn a_resend_of_a_delivery_that_waits_goes_at_once_and_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let second = about(&entity, "A").await;
    let third = about(&entity, "A").await;
    until_held_by(&entity, &third, &second).await;
    resend(&entity, &second).await;
    assert_eq!(delivered(&entity, &receiver, "/", &[&second]).await, [first.clone(), second.clone()]);
    // The delivery that was waiting for the cancelled one is still waiting for the first one, which wakes it when it
    // ends.
    until_held_by(&entity, &third, &first).await;
    without_looks(&suite.table(), &third).await;
    resend(&entity, &first).await;
    assert_eq!(delivered(&entity, &receiver, "/", &[&first, &third]).await, [first.clone(), second, first, third]);
}
