//! Pull webhooks, and the requests of a reader of their feeds.

use serde_json::{Value, json};

use super::{ApiResponse, Call, Entity, Hook, LONG, LONG_AGO, Table, until};

/// The number of unanswered attempts that do not count towards the schedule.
pub const SPARED: usize = 5;

/// A new pull webhook.
pub async fn pulled(entity: &Entity) -> Hook {
    entity.hook_with(json!({ "name": "feed", "delivery": "pull", "eventList": [] })).await
}

/// A request that reads deliveries.
pub fn reading(entity: &Entity, hook: &Hook, request: &Value) -> Call {
    entity.post(&format!("/webhook/{}/feed/read", hook.id)).json(request)
}

/// The deliveries in a response.
pub fn items(response: &ApiResponse) -> Vec<Value> {
    response.json()["items"].as_array().expect("openapi.yaml says so").clone()
}

/// The identifier of a delivery in a response.
pub fn id(delivery: &Value) -> &str {
    delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so")
}

/// The deliveries that one request returns.
pub async fn read(entity: &Entity, hook: &Hook, request: Value) -> Vec<Value> {
    items(&reading(entity, hook, &request).expect(200).await)
}

/// Reads until the feed returns something. Each request waits only briefly, since it occupies an invocation while
/// waiting.
pub async fn read_some(entity: &Entity, hook: &Hook, mut request: Value) -> Vec<Value> {
    request["wait"] = 1.into();
    until("the feed has a delivery", LONG, async || {
        let found = read(entity, hook, request.clone()).await;
        (!found.is_empty()).then_some(found)
    })
    .await
}

/// The outcomes of the reader's answers.
pub async fn answer(entity: &Entity, hook: &Hook, body: Value) -> Vec<String> {
    let call = entity.post(&format!("/webhook/{}/feed/ack", hook.id)).json(&body);
    let results = call.expect(200).await.json()["items"].clone();
    let outcome = |result: &Value| result["outcome"].as_str().expect("openapi.yaml says so").to_owned();
    results.as_array().expect("openapi.yaml says so").iter().map(outcome).collect()
}

/// Confirms these deliveries; returns the outcomes.
pub async fn confirm(entity: &Entity, hook: &Hook, read: &[Value]) -> Vec<String> {
    let receipts: Vec<_> = read.iter().map(|delivery| &delivery["receipt"]).collect();
    answer(entity, hook, json!({ "confirmed": receipts })).await
}

/// Ends the visibility timeout of a delivery that a reader holds. The timeout must be long, so that no other reader
/// gets the delivery first.
pub async fn end_visibility(table: &Table, delivery: &str) {
    let mut head = table.head(delivery).await.expect("it is leased");
    head["claimableAt"] = json!({ "S": LONG_AGO });
    table.put(head).await;
}

/// Reads a delivery without confirming it, and ends its visibility timeout early.
pub async fn abandoned(table: &Table, entity: &Entity, hook: &Hook) {
    let read = read_some(entity, hook, json!({ "visibility": 3600 })).await;
    end_visibility(table, id(&read[0])).await;
}
