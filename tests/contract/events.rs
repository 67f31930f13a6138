//! The catalogue of event types.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Entity, Receiver, Suite};

async fn catalogue(suite: &Suite) -> Vec<Value> {
    let list = suite.entity().await.get("/webhook/event/list").expect(200).await.json();
    list.as_array().expect("openapi.yaml says so").clone()
}

fn distinct<'a>(catalogue: &'a [Value], member: &str) -> HashSet<&'a str> {
    catalogue.iter().map(|entry| entry[member].as_str().expect("openapi.yaml says so")).collect()
}

#[contract_test]
async fn the_catalogue_is_complete_and_without_doubles(suite: Arc<Suite>) {
    let catalogue = catalogue(&suite).await;
    assert!(catalogue.len() >= 105, "only {} types", catalogue.len());
    for member in ["label", "value"] {
        assert_eq!(distinct(&catalogue, member).len(), catalogue.len(), "a {member} came twice");
        assert!(!distinct(&catalogue, member).contains(""), "a {member} is empty");
    }
}

#[contract_test]
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

/// A deployment can have additional types, but always has these.
#[contract_test]
async fn the_list_ends_with_the_types_that_only_the_service_publishes(suite: Arc<Suite>) {
    let catalogue = catalogue(&suite).await;
    let keys: Vec<_> = catalogue.iter().map(|entry| entry["value"].as_str().expect("a text")).collect();
    let is_own = |key: &str| key.starts_with("webhook.") || key.starts_with("payment.connection.");
    let first = keys.iter().position(|key| is_own(key)).expect("a type of the service");
    assert!(keys[first..].iter().all(|key| is_own(key)), "{keys:?}");
    assert_eq!(keys[first..].len(), 8, "{keys:?}");
}

#[contract_test]
async fn the_catalogue_is_the_same_for_every_entity_and_every_time(suite: Arc<Suite>) {
    assert_eq!(catalogue(&suite).await, catalogue(&suite).await);
}

#[contract_test]
async fn every_type_of_the_list_is_shown_with_a_schema_that_its_samples_match(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for listed in catalogue(&suite).await {
        let value = listed["value"].as_str().expect("openapi.yaml says so");
        let shown = entity.get(&format!("/webhook/event/type/{value}")).expect(200).await.json();
        assert_eq!((&shown["label"], &shown["value"]), (&listed["label"], &listed["value"]));
        let schema = jsonschema::draft202012::new(&shown["schema"]).expect(value);
        for sample in shown["samples"].as_array().expect("openapi.yaml says so") {
            assert!(schema.is_valid(sample), "{value}");
        }
    }
}

#[contract_test]
async fn an_unknown_type_is_not_found_and_the_answer_leads_to_the_list(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for value in ["booking.create", "booking.*", "BOOKING.CREATED", "x", "%00", "%F0%9F%8F%A8"] {
        let path = format!("/webhook/event/type/{value}");
        let problem = entity.get(&path).refused(404, "event-type-not-found").await;
        let detail = problem["detail"].as_str().expect("openapi.yaml says so");
        assert!(detail.contains(&entity.path("/webhook/event/list")), "{detail}");
    }
}

/// Subscribers can rely on the fact that only the service publishes operational events.
#[contract_test]
async fn every_type_except_operational_ones_can_be_published(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
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
        assert_eq!(
            (&violation["pointer"], &violation["code"]),
            (&json!("/type"), &json!("not-allowed")),
            "{problem:#}"
        );
        let message = violation["detail"].as_str().expect("openapi.yaml says so");
        assert!(message.contains("published only by the service"), "{message}");
    }
    // Webhooks may still subscribe to operational events.
    let wanting = json!({ "name": "own", "eventUrl": receiver.url("/"), "eventList": own });
    entity.hook_with(wanting).await;
    assert_eq!(own.len(), 8, "{own:?}");
}

/// The webhooks that receive events of this type, ordered by identifier.
async fn subscribers(entity: &Entity, kind: &str) -> Vec<String> {
    let published = entity.publish_of_type(kind, json!({})).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
    let webhook = |delivery: &Value| delivery["webhookIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    let mut webhooks: Vec<_> = deliveries.iter().map(webhook).collect();
    webhooks.sort_unstable();
    webhooks
}

#[contract_test]
async fn a_webhook_for_a_group_gets_its_types_and_no_others(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = async |list: Value| {
        let wanting = json!({ "name": "group", "eventUrl": receiver.url("/"), "eventList": list });
        entity.hook_with(wanting).await
    };
    let bookings = hook(json!(["booking.*", "booking.created", "payee.updated"])).await;
    let notes = hook(json!(["booking.note.*"])).await;
    assert_eq!(
        bookings.json["eventList"],
        json!(["booking.*", "booking.created", "payee.updated"]),
        "the list as the client sent it"
    );
    for (kind, expected) in [
        ("booking.created", vec![&bookings]),
        ("booking.note.added", vec![&bookings, &notes]),
        ("payee.updated", vec![&bookings]),
        ("payee.created", vec![]),
        ("inventory.booking_window.updated", vec![]),
    ] {
        let expected: Vec<_> = expected.iter().map(|hook| hook.id.clone()).collect();
        assert_eq!(subscribers(&entity, kind).await, expected, "{kind}");
    }
    entity.changed(&notes.id, json!({ "eventList": ["payee.*"] })).await;
    assert_eq!(entity.webhook(&notes.id).await["eventList"], json!(["payee.*"]));
    assert_eq!(subscribers(&entity, "payee.created").await, std::slice::from_ref(&notes.id));
    assert_eq!(subscribers(&entity, "booking.note.added").await, [bookings.id]);
}

#[contract_test]
async fn the_refusal_of_an_unknown_type_suggests_one_and_names_the_list(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let wanting = |kind: &str| json!({ "name": "x", "eventUrl": "https://hooks.example.com/", "eventList": [kind] });
    for (kind, meant) in [("booking.create", "booking.created"), ("bookings.*", "booking.*"), ("booking", "booking.*")]
    {
        let problem = entity.post("/webhook").json(&wanting(kind)).refused(400, "invalid-request").await;
        let detail = problem["detail"].as_str().expect("openapi.yaml says so");
        assert!(detail.starts_with("`eventList[0]`") && detail.contains(&format!("`{kind}`")), "{detail}");
        assert!(detail.contains(meant), "{detail}");
        let address = entity.path("/webhook/event/list");
        assert!(detail.contains(&address), "{detail}");
        entity.api().get(address).expect(401).await;
    }
    let problem = entity.post("/webhook").json(&wanting("*")).refused(400, "invalid-request").await;
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("leave the list empty")), "{problem:#}");
    let published = json!({ "type": "booking.create", "data": {} });
    let publishing = entity.post("/webhook/event").json(&published).refused(400, "invalid-request").await;
    let listing = entity.get("/webhook/delivery/list?type=booking.create").refused(400, "invalid-request").await;
    for problem in [publishing, listing] {
        let detail = problem["detail"].as_str().expect("openapi.yaml says so");
        assert!(detail.contains("`booking.create` is unknown (did you mean booking.created"), "{detail}");
        assert!(detail.contains(&entity.path("/webhook/event/list")), "{detail}");
    }
    // Groups are only for subscriptions: an event has a single type.
    for call in [
        entity.post("/webhook/event").json(&json!({ "type": "booking.*", "data": {} })),
        entity.get("/webhook/delivery/list?type=booking.*"),
    ] {
        let problem = call.refused(400, "invalid-request").await;
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("not of a group")), "{problem:#}");
    }
}
