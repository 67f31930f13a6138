//! A webhook's diagnosis, as an agent receives it.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    agents_tools::{of, text},
    harness::{
        Agent, Behaviour, Hook, LONG, Receiver, Suite,
        feed::pulled,
        order::{later, ordered, until_held_by},
        until,
    },
    pauses::{is_put_off, paused_in},
};

fn causes(diagnosis: &Value) -> Vec<(String, u64)> {
    let findings = diagnosis["findings"].as_array().expect("a list").iter();
    findings.map(|finding| (text(&finding["cause"]), finding["failures"].as_u64().expect("a number"))).collect()
}

#[contract_test]
async fn a_failing_webhook_is_diagnosed_by_cause_and_recovered_once_fixed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    // Each delivery has three attempts.
    let answers = [401, 404, 401, 401, 404, 401];
    let url = receiver.on("/well", [Behaviour::status(204)]);
    let other_type = json!({ "name": "well", "eventUrl": url, "eventList": ["booking.expired"] });
    let healthy = entity.hook_with(other_type).await;
    let diagnosis = agent.call("diagnose_webhook", of(&healthy)).await;
    assert_eq!((causes(&diagnosis), &diagnosis["failures"]), (vec![], &json!([])));
    assert_eq!(diagnosis["recoverable"], json!({ "count": 0, "countIsExact": true }));

    let hook = entity.hook(&receiver.on("/", answers.map(Behaviour::status))).await;
    // Publish one at a time, so that each delivery goes through the whole script.
    let mut deliveries = Vec::new();
    for number in 0..2 {
        let delivery = entity.publish(json!({ "number": number })).await;
        entity.until_status(&delivery, &["failed"]).await;
        deliveries.insert(0, delivery);
    }
    let diagnosis = until("index and health have caught up", LONG, async || {
        let diagnosis = agent.call("diagnose_webhook", of(&hook)).await;
        // A count may be made twice.
        let failures = diagnosis["webhook"]["failuresInRow"].as_u64();
        let is_counted = diagnosis["recoverable"]["count"] == 2 && failures >= Some(6);
        is_counted.then_some(diagnosis)
    })
    .await;
    assert_eq!(causes(&diagnosis), [("refused".to_owned(), 2)], "{diagnosis:#}");
    let finding = &diagnosis["findings"][0];
    assert!(text(&finding["remedy"]).contains("signing secret") && text(&finding["meaning"]).contains("signature"));
    let failed: Vec<_> =
        diagnosis["failures"].as_array().expect("a list").iter().map(|failure| text(&failure["id"])).collect();
    assert_eq!(failed, deliveries, "newest first");
    assert_eq!(diagnosis["failures"][0]["lastAttempt"]["httpStatus"], 401);
    assert_eq!(diagnosis["failures"][0]["cause"], "refused");
    assert_eq!(diagnosis["webhook"]["deliveryState"], "failing");
    assert_eq!(diagnosis["stats"]["last24Hours"]["succeeded"], 0);
    let oldest = agent.call("show_delivery", json!({ "deliveryIdentifier": deliveries[1] })).await;
    assert_eq!(diagnosis["recoverable"]["oldestCreatedDate"], oldest["createdDate"], "a recovery can start there");

    receiver.on("/", [Behaviour::status(204)]);
    let since = &diagnosis["recoverable"]["oldestCreatedDate"];
    let outage = json!({ "webhookIdentifier": hook.id, "createdFrom": since, "include": "failed" });
    assert_eq!(agent.call("recover_deliveries", outage).await["failed"], 2);
    for delivery in &deliveries {
        entity.until_status(delivery, &["delivered"]).await;
    }
}

#[contract_test]
async fn a_webhook_that_is_held_up_is_diagnosed_before_its_failures(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(410)])).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["failed"]).await;
    entity.until_gone(&hook).await;
    let diagnosis = agent.call("diagnose_webhook", of(&hook)).await;
    let found: Vec<_> = causes(&diagnosis).into_iter().map(|(cause, _)| cause).collect();
    assert_eq!(found, ["disabled", "gone"], "{diagnosis:#}");
    assert_eq!(diagnosis["webhook"]["disabledReason"], "The endpoint answered 410 Gone.");

    // This webhook does not subscribe to `webhook.disabled`.
    let address = receiver.on("/silent", [Behaviour::close()]);
    let silent =
        entity.hook_with(json!({ "name": "silent", "eventUrl": address, "eventList": ["booking.created"] })).await;
    paused_in(&suite.table(), &entity, &silent, 1).await;
    let diagnosis = agent.call("diagnose_webhook", of(&silent)).await;
    assert_eq!(causes(&diagnosis), [("paused".to_owned(), 0)], "{diagnosis:#}");
    assert!(diagnosis["webhook"]["pausedUntil"].is_string());
    let waiting = entity.publish(json!({})).await;
    entity.until_delivery(&waiting, "waits for the breaker", is_put_off).await;
    let listed = agent.call("list_deliveries", of(&silent)).await;
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["waitingFor"]), (&json!(waiting), &json!("breaker")));
    let moved = receiver.on("/moved", [Behaviour::status(204)]);
    let moved = agent.call("change_webhook", json!({ "webhookIdentifier": silent.id, "eventUrl": moved })).await;
    assert_eq!(moved["deliveryState"], "active", "a new address clears the failures of the former one");
    assert!(causes(&agent.call("diagnose_webhook", of(&silent)).await).is_empty());
    entity.until_status(&waiting, &["delivered"]).await;
}

/// The detail of the finding with this cause, once the diagnosis includes it. The indexes may lag behind the table.
async fn detail(agent: &Agent, hook: &Hook, cause: &str, has: &str) -> String {
    until(&format!("the diagnosis says `{has}`"), LONG, async || {
        let diagnosis = agent.call("diagnose_webhook", of(hook)).await;
        let findings = diagnosis["findings"].as_array().expect("a list");
        let finding = findings.iter().find(|finding| finding["cause"] == cause)?;
        finding["detail"].as_str().filter(|detail| detail.contains(has)).map(str::to_owned)
    })
    .await
}

#[contract_test]
async fn a_filter_is_diagnosed_with_the_events_that_it_keeps_back(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let filter = json!({ "currency": ["EUR"] });
    let body = json!({ "name": "f", "eventUrl": url, "eventList": ["booking.created"], "eventFilter": filter });
    let hook = entity.hook_with(body).await;
    let event = |currency: &str| json!({ "type": "booking.created", "data": { "currency": currency } });
    let diagnosis = agent.call("diagnose_webhook", of(&hook)).await;
    assert_eq!(causes(&diagnosis), [("filtered".to_owned(), 0)], "{diagnosis:#}");
    assert!(text(&diagnosis["findings"][0]["detail"]).starts_with("No recent event"), "{diagnosis:#}");
    assert_eq!(diagnosis["webhook"]["eventFilter"]["untrusted"], filter.to_string());

    // No webhook matches events in other currencies, which are still stored.
    for currency in ["USD", "EUR", "USD", "GBP"] {
        entity.publish_event(&event(currency)).await;
    }
    detail(&agent, &hook, "filtered", "3 of the last 4 stored events of this webhook's types did not match the filter")
        .await;
}

#[contract_test]
async fn a_feed_without_a_reader_is_diagnosed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let agent = Agent::of(&entity).await;
    let hook = pulled(&entity).await;
    assert!(causes(&agent.call("diagnose_webhook", of(&hook)).await).is_empty(), "the feed is empty");
    let waiting = entity.publish(json!({})).await;
    entity.until_delivery(&waiting, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    detail(&agent, &hook, "unread", "The feed was never read").await;
    let shown = agent.call("show_webhook", of(&hook)).await;
    assert_eq!((&shown["delivery"], shown["oldestUnreadDate"].is_string()), (&json!("pull"), true), "{shown:#}");
}

#[contract_test]
async fn a_blocked_subject_is_diagnosed_with_the_delivery_that_blocks_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let hook = ordered(&entity, &receiver.on("/", [later()]), &[]).await;
    let about = async || {
        let event = json!({ "type": "booking.created", "subject": "A", "data": {} });
        text(&entity.publish_event(&event).await.json()["deliveries"][0]["deliveryIdentifier"])
    };
    let first = about().await;
    entity.until_status(&first, &["retrying"]).await;
    let second = about().await;
    until_held_by(&entity, &second, &first).await;
    detail(&agent, &hook, "held", &format!("`{second}` is waiting for `{first}`")).await;
    let shown = agent.call("show_delivery", json!({ "deliveryIdentifier": second })).await;
    assert_eq!(shown["heldBy"], first.as_str(), "{shown:#}");
    entity.post(&format!("/webhook/delivery/{second}/cancel")).expect(200).await;
    let listed = agent.call("list_deliveries", of(&hook)).await;
    assert_eq!(listed["items"][0]["cancelReason"], "owner", "{listed:#}");
}
