//! An event with its deliveries: shown by itself, and as a filter on the list of deliveries.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    delivery_list::hook_for,
    harness::{Behaviour, Entity, LONG, Receiver, Suite, invalid_values, now, until},
};

fn text(value: &Value) -> String {
    value.as_str().expect("openapi.yaml says so").to_owned()
}

/// Publishes an event; returns its identifier and its deliveries.
async fn published(entity: &Entity, data: Value) -> (String, BTreeSet<String>) {
    let published = entity.publish_of_type("booking.created", data).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
    let deliveries = deliveries.iter().map(|delivery| text(&delivery["deliveryIdentifier"])).collect();
    (text(&published["eventIdentifier"]), deliveries)
}

async fn shown(entity: &Entity, event: &str) -> Value {
    entity.get(&format!("/webhook/event/{event}")).expect(200).await.json()
}

/// Waits until all of the event's deliveries have this state; returns the event.
async fn until_all(entity: &Entity, event: &str, status: &str) -> Value {
    until(&format!("all are {status}"), LONG, async || {
        let shown = shown(entity, event).await;
        let deliveries = shown["deliveries"].as_array().expect("openapi.yaml says so");
        deliveries.iter().all(|delivery| delivery["status"] == status).then_some(shown.clone())
    })
    .await
}

fn ids(deliveries: &Value) -> BTreeSet<String> {
    deliveries.as_array().expect("openapi.yaml says so").iter().map(|delivery| text(&delivery["id"])).collect()
}

#[contract_test]
async fn an_event_is_shown_as_it_was_published_with_its_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    for path in ["/one", "/two"] {
        hook_for(&entity, "booking.*", &receiver.on(path, [Behaviour::status(200)])).await;
    }
    hook_for(&entity, "payee.created", &receiver.on("/other", [Behaviour::status(200)])).await;
    let data = r#"{ "big": 123456789012345678901234567890.10, "u": "\u00e9é", "u": [] }"#;
    let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
    let call = entity.post("/webhook/event").body("application/json", body);
    let event = text(&call.expect(202).await.json()["eventIdentifier"]);
    let shown = until_all(&entity, &event, "delivered").await;
    assert_eq!(shown["id"], event);
    assert_eq!((&shown["type"], &shown["managingEntityIdentifier"]), (&json!("booking.created"), &json!(entity.id)));
    let answer = entity.get(&format!("/webhook/event/{event}")).expect(200).await.text();
    assert!(answer.contains(&format!(r#""data":{data}"#)), "byte for byte: {answer}");
    let deliveries = shown["deliveries"].as_array().expect("openapi.yaml says so");
    assert_eq!(deliveries.len(), 2);
    for delivery in deliveries {
        assert_eq!(delivery["createdDate"], shown["timestamp"]);
        let mut whole = entity.delivery(&text(&delivery["id"])).await;
        let members = whole.as_object_mut().expect("openapi.yaml says so");
        members.remove("attempts");
        members.remove("eventWarnings");
        let sent = members.remove("event").expect("openapi.yaml says so");
        assert_eq!((&sent["id"], &sent["timestamp"]), (&shown["id"], &shown["timestamp"]));
        assert_eq!(*delivery, whole);
    }
}

#[contract_test]
async fn events_of_the_same_moment_keep_their_deliveries_apart(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for _ in 0..3 {
        entity.hook("http://127.0.0.1:9/").await;
    }
    // Continue until some events are from the same millisecond.
    let began = Instant::now();
    let events = loop {
        let events = join_all((0..40).map(|number| published(&entity, json!({ "number": number })))).await;
        let times = events.iter().map(async |(event, _)| text(&shown(&entity, event).await["timestamp"]));
        let times: BTreeSet<_> = join_all(times).await.into_iter().collect();
        if times.len() < events.len() {
            break events;
        }
        assert!(began.elapsed() < LONG, "all are of different milliseconds: {times:?}");
    };
    for (event, deliveries) in &events {
        assert_eq!(ids(&shown(&entity, event).await["deliveries"]), *deliveries, "{event}");
        let listed = entity.get(&format!("/webhook/delivery/list?eventIdentifier={event}")).expect(200).await.json();
        assert_eq!(ids(&listed["items"]), *deliveries, "{event}");
        assert!(listed.get("nextCursor").is_none(), "{listed:#}");
    }
}

#[contract_test]
async fn deliveries_of_an_event_are_listed_in_pages_and_with_filters(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hooks = join_all((0..5).map(|_| entity.hook("http://127.0.0.1:9/"))).await;
    published(&entity, json!({})).await;
    let (event, deliveries) = published(&entity, json!({})).await;
    published(&entity, json!({})).await;
    let list = async |parameters: &str| {
        let query = format!("/webhook/delivery/list?eventIdentifier={event}{parameters}");
        entity.get(&query).expect(200).await.json()
    };
    let mut found = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = list(&format!("&limit=2{cursor}")).await;
        let items = ids(&page["items"]);
        assert!(items.len() <= 2 && found.is_disjoint(&items));
        found.extend(items);
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, deliveries);
    // The cursor is valid only for this list.
    let foreign = entity.get(&format!("/webhook/delivery/list?limit=2{cursor}"));
    foreign.refused(400, "invalid-cursor").await;
    let of_one = list(&format!("&webhookIdentifier={}", hooks[3].id)).await;
    assert_eq!(of_one["items"].as_array().map(Vec::len), Some(1), "{of_one:#}");
    let nothing = json!({ "items": [] });
    for other in ["&type=payee.created", "&status=delivered", "&createdUntil=2020-01-01T00:00:00Z"] {
        assert_eq!(list(other).await, nothing, "{other}");
    }
    let unknown = "/webhook/delivery/list?eventIdentifier=evt_00000000000000000000000000";
    assert_eq!(entity.get(unknown).expect(200).await.json(), nothing);
    for bad in ["", "nope", "dlv_00000000000000000000000000"] {
        let call = entity.get(&format!("/webhook/delivery/list?eventIdentifier={bad}"));
        assert_eq!(invalid_values(&call.refused(400, "invalid-request").await), ["query/eventIdentifier"], "{bad}");
    }
}

#[contract_test]
async fn a_delivery_of_a_removed_webhook_is_still_shown(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let (event, deliveries) = published(&entity, json!({})).await;
    until_all(&entity, &event, "delivered").await;
    entity.remove(&hook.id).expect(200).await;
    assert_eq!(ids(&shown(&entity, &event).await["deliveries"]), deliveries);
}

#[contract_test]
async fn an_event_that_is_not_the_entitys_or_not_kept_looks_missing(suite: Arc<Suite>) {
    let (entity, stranger) = (suite.entity().await, suite.entity().await);
    let missing = async |entity: &Entity, event: &str| {
        entity.get(&format!("/webhook/event/{event}")).refused(404, "event-not-found").await
    };
    let (unwanted, none) = published(&entity, json!({})).await;
    assert!(none.is_empty());
    let detail = text(&missing(&entity, &unwanted).await["detail"]);
    assert!(detail.contains("`kept: false`"), "{detail}");

    entity.hook("http://127.0.0.1:9/").await;
    let (event, _) = published(&entity, json!({})).await;
    shown(&entity, &event).await;
    assert_eq!(missing(&stranger, &event).await["detail"], missing(&entity, &unwanted).await["detail"]);
    let listed = stranger.get(&format!("/webhook/delivery/list?eventIdentifier={event}")).expect(200).await.json();
    assert_eq!(listed, json!({ "items": [] }));
    for event in ["evt_00000000000000000000000000", "evt_", "nothing", "EVT_00000000000000000000000000", "%00"] {
        missing(&entity, event).await;
    }
    // The table removes expired items only days later.
    let mut item = suite.table().event(&event).await.expect("it is kept");
    item["expiresAt"] = json!({ "N": now().to_string() });
    suite.table().put(item).await;
    missing(&entity, &event).await;
}

#[contract_test]
async fn deliveries_are_listed_by_several_statuses(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let later = Behaviour::answer(429, &[("Retry-After", "600")], "");
    let behaviours = [("delivered", Behaviour::status(200)), ("failed", Behaviour::status(410)), ("retrying", later)];
    for (status, behaviour) in behaviours {
        entity.hook(&receiver.on(&format!("/{status}"), [behaviour])).await;
    }
    let (event, all) = published(&entity, json!({})).await;
    for delivery in &all {
        entity.until_status(delivery, &["delivered", "failed", "retrying"]).await;
    }
    let statuses = async |query: &str| {
        let path = format!("/webhook/delivery/list?eventIdentifier={event}&{query}");
        let items = entity.get(&path).expect(200).await.json()["items"].clone();
        let items = items.as_array().expect("openapi.yaml says so");
        items.iter().map(|delivery| text(&delivery["status"])).collect::<BTreeSet<_>>()
    };
    for (query, expected) in [
        ("status=failed,retrying", vec!["failed", "retrying"]),
        ("status=failed%2Cretrying", vec!["failed", "retrying"]),
        ("status=failed&status=retrying", vec!["failed", "retrying"]),
        ("status=failed&status=failed", vec!["failed"]),
        ("status=delivered,pending,cancelled", vec!["delivered"]),
        ("status=pending,cancelled", vec![]),
        ("status=pending,delivered,retrying,failed,cancelled", vec!["delivered", "failed", "retrying"]),
    ] {
        assert_eq!(statuses(query).await, expected.into_iter().map(str::to_owned).collect(), "{query}");
    }
}
