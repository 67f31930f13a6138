//! The catalogue of event types.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use serde_json::{Value, json};

use crate::harness::{Receiver, Suite, tests};

tests![
    the_catalogue_is_complete_and_without_doubles,
    the_catalogue_covers_every_area,
    the_catalogue_is_the_same_for_every_entity_and_every_time,
    every_type_of_the_catalogue_can_be_published_but_the_services_own,
];

async fn catalogue(suite: &Suite) -> Vec<Value> {
    let list = suite.entity().await.get("/webhook/event/list").expect(200).await.json();
    list.as_array().expect("openapi.yaml says so").clone()
}

fn distinct<'a>(catalogue: &'a [Value], member: &str) -> HashSet<&'a str> {
    catalogue.iter().map(|entry| entry[member].as_str().expect("openapi.yaml says so")).collect()
}

async fn the_catalogue_is_complete_and_without_doubles(suite: Arc<Suite>) {
    let catalogue = catalogue(&suite).await;
    assert!(catalogue.len() >= 105, "only {} types", catalogue.len());
    for member in ["label", "value"] {
        assert_eq!(distinct(&catalogue, member).len(), catalogue.len(), "a {member} came twice");
        assert!(!distinct(&catalogue, member).contains(""), "a {member} is empty");
    }
}

async fn the_catalogue_covers_every_area(suite: Arc<Suite>) {
    let catalogue = catalogue(&suite).await;
    let areas: HashSet<&str> =
        distinct(&catalogue, "value").into_iter().filter_map(|value| value.split('.').next()).collect();
    for area in [
        "account",
        "inventory",
        "booking",
        "marketing",
        "content",
        "analytics",
        "integrations",
        "payment",
        "accounting",
        "mcp",
        "webhook",
    ] {
        assert!(areas.contains(area), "there is no type of the area {area}");
    }
}

async fn the_catalogue_is_the_same_for_every_entity_and_every_time(suite: Arc<Suite>) {
    assert_eq!(catalogue(&suite).await, catalogue(&suite).await);
}

/// Subscribers trust that these say what the service itself has seen or done.
async fn every_type_of_the_catalogue_can_be_published_but_the_services_own(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let mut own = BTreeSet::new();
    for kind in distinct(&catalogue(&suite).await, "value") {
        if !(kind.starts_with("webhook.") || kind.starts_with("payment.connection.")) {
            entity.publish_of_type(kind, json!({})).await;
            continue;
        }
        own.insert(kind.to_owned());
        let forged = json!({ "type": kind, "data": { "webhookIdentifier": "whk_00000000000000000000000000" } });
        let problem = entity.post("/webhook/event").json(&forged).refused(400, "invalid-request").await;
        let violation = &problem["properties"]["violations"][0];
        assert_eq!(violation["field"], "type", "{problem:#}");
        let message = violation["message"].as_str().expect("openapi.yaml says so");
        assert!(message.contains("only the service itself publishes"), "{message}");
    }
    // Webhooks may subscribe to them all the same.
    let wanting = json!({ "name": "own", "eventUrl": receiver.url("/"), "eventList": own });
    entity.hook_with(wanting).await;
    assert_eq!(own.len(), 7, "{own:?}");
}
