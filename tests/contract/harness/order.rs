//! Ordered webhooks, and the deliveries that wait for the previous one of their subject.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ApiResponse, Behaviour, Entity, Hook, LONG, Receiver, Table, until};

/// A time after any test has ended.
pub const NEVER: &str = "2099-01-01T00:00:00.000Z";

/// A response that postpones a delivery for ten minutes, unless a person resends it.
pub fn later() -> Behaviour {
    Behaviour::answer(503, &[("Retry-After", "600")], "")
}

/// A webhook for these types that uses order by subject.
pub async fn ordered(entity: &Entity, url: &str, types: &[&str]) -> Hook {
    let body = json!({ "name": "ordered", "eventUrl": url, "eventList": types, "order": "subject" });
    entity.hook_with(body).await
}

/// A pull webhook for every event type that uses order by subject.
pub async fn ordered_feed(entity: &Entity) -> Hook {
    let body = json!({ "name": "feed", "delivery": "pull", "eventList": [], "order": "subject" });
    entity.hook_with(body).await
}

/// An event about a subject.
pub fn event(kind: &str, subject: &str) -> Value {
    json!({ "type": kind, "subject": subject, "data": {} })
}

/// Publishes an event about a subject; returns its deliveries by webhook.
pub async fn deliveries_about(entity: &Entity, kind: &str, subject: &str) -> BTreeMap<String, String> {
    deliveries(&entity.publish_event(&event(kind, subject)).await)
}

/// The deliveries of a published event, by webhook.
pub fn deliveries(published: &ApiResponse) -> BTreeMap<String, String> {
    let published = published.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so").iter();
    let text = |value: &Value| value.as_str().expect("openapi.yaml says so").to_owned();
    deliveries.map(|one| (text(&one["webhookIdentifier"]), text(&one["deliveryIdentifier"]))).collect()
}

/// Publishes an event about a subject to the only webhook; returns its delivery.
pub async fn about(entity: &Entity, subject: &str) -> String {
    let deliveries = deliveries_about(entity, "booking.created", subject).await;
    assert_eq!(deliveries.len(), 1, "one webhook, one delivery: {deliveries:?}");
    deliveries.into_values().next().expect("one")
}

/// Waits until the first of these deliveries is waiting for the second.
pub async fn until_held_by(entity: &Entity, id: &str, before: &str) -> Value {
    let is_held = |shown: &Value| shown["heldBy"] == before;
    let shown = entity.until_delivery(id, &format!("waits for {before}"), is_held).await;
    assert_eq!((&shown["status"], &shown["attemptCount"]), (&json!("pending"), &json!(0)), "{shown:#}");
    assert_eq!(shown["waitingFor"], "order", "{shown:#}");
    shown
}

/// Moves the dispatcher's next check of a held delivery to a time that is never reached. From now on, only the previous
/// delivery's end can wake the held delivery.
pub async fn without_looks(table: &Table, id: &str) {
    // While a dispatcher is checking the delivery, it has a lease, after which it gets another time. From the first
    // change on, it cannot be claimed.
    for attribute in ["claimableAt", "dueAt"] {
        let moved = async || table.set_of_head(id, attribute, NEVER).await.then_some(());
        until("no dispatcher looks at the delivery", LONG, moved).await;
    }
}

/// Publishes an event, and waits until its first attempt has failed. The receiver's next behaviour is [`later`].
pub async fn poisoned(entity: &Entity, subject: &str) -> String {
    let id = about(entity, subject).await;
    entity.until_status(&id, &["retrying"]).await;
    id
}

/// Resends a delivery.
pub async fn resend(entity: &Entity, id: &str) {
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
}

/// Waits until these deliveries have succeeded, and returns the deliveries of all requests to this path, in order.
pub async fn delivered(entity: &Entity, receiver: &Receiver, path: &str, ids: &[&str]) -> Vec<String> {
    for id in ids {
        let shown = entity.until_status(id, &["delivered", "failed", "cancelled"]).await;
        assert_eq!(shown["status"], "delivered", "{shown:#}");
        assert!(shown.get("heldBy").is_none() && shown.get("waitingFor").is_none(), "{shown:#}");
    }
    sent(receiver, path)
}

fn sent(receiver: &Receiver, path: &str) -> Vec<String> {
    receiver.received(path).iter().map(|request| request.header("service-delivery-id").to_owned()).collect()
}
