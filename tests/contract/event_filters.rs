//! Webhooks' filters on event data: setting, changing and removing them, their effect on publishing, and trying them on
//! past events.

use std::{collections::BTreeSet, sync::Arc};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::hook_for,
    harness::{Behaviour, Bus, Entity, Hook, LONG, Receiver, Suite, invalid_values, is_limited, until},
    replays::{aged, before},
};

/// A filter with numbers that a double cannot represent, as the service returns it.
const EXACT: &str = r#"{"bookingNumber":[1152921504606846977,{"numeric":[">=",10.50]}]}"#;

/// Creates a webhook with this filter for every event type.
async fn hook_with(entity: &Entity, url: &str, filter: Value) -> Hook {
    entity.hook_with(json!({ "name": "filtered", "eventUrl": url, "eventList": [], "eventFilter": filter })).await
}

/// Publishes an event, and returns its target webhooks.
async fn targets(entity: &Entity, kind: &str, data: &Value) -> Vec<String> {
    let published = entity.publish_of_type(kind, data.clone()).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
    deliveries.iter().map(|one| one["webhookIdentifier"].as_str().expect("openapi.yaml says so").to_owned()).collect()
}

async fn checked(entity: &Entity, request: Value) -> Value {
    entity.post("/webhook/event/filter/check").json(&request).expect(200).await.json()
}

#[contract_test]
async fn a_filter_is_shown_to_the_last_digit_and_null_removes_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = format!(
        r#"{{"name":"n","eventUrl":"https://hooks.example.com/","eventList":[],"eventFilter": {}}}"#,
        EXACT.replace(':', " : ")
    );
    let made = entity.post("/webhook").body("application/json", body).expect(201).await;
    assert!(made.text().contains(&format!(r#""eventFilter":{EXACT}"#)), "{}", made.exchange);
    let id = made.json()["id"].as_str().expect("openapi.yaml says so").to_owned();
    for path in [format!("/webhook/{id}"), "/webhook/list".to_owned()] {
        let shown = entity.get(&path).expect(200).await;
        assert!(shown.text().contains(&format!(r#""eventFilter":{EXACT}"#)), "{}", shown.exchange);
    }
    let renamed = entity.changed(&id, json!({ "name": "m" })).await;
    assert!(renamed["eventFilter"].is_object(), "another change keeps it: {renamed:#}");
    let other = json!({ "currency": ["EUR"] });
    assert_eq!(entity.changed(&id, json!({ "eventFilter": other })).await["eventFilter"], other);
    let removed = entity.changed(&id, json!({ "eventFilter": null })).await;
    assert_eq!((removed.get("eventFilter"), &removed["version"]), (None, &json!(4)));
    let plain = hook_with(&entity, "https://hooks.example.com/", Value::Null).await;
    assert_eq!(plain.json.get("eventFilter"), None);
}

#[contract_test]
async fn a_bad_filter_is_refused_with_the_pointer_of_each_fault(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("https://hooks.example.com/").await;
    for (filter, pointers) in [
        (json!([]), &["body/eventFilter"][..]),
        (json!({}), &["body/eventFilter"]),
        (json!("currency"), &["body/eventFilter"]),
        (json!({ "a": "EUR", "b": { "c": [] } }), &["body/eventFilter/a", "body/eventFilter/b/c"]),
        (
            json!({ "a": [{ "wildcard": "*" }, { "numeric": ["<"] }] }),
            &["body/eventFilter/a/0/wildcard", "body/eventFilter/a/1/numeric"],
        ),
        (json!({ "a": ["x".repeat(4_096)] }), &["body/eventFilter"]),
        (json!({ "a": vec![1; 101] }), &["body/eventFilter"]),
    ] {
        let change = json!({ "eventFilter": filter });
        assert_eq!(
            invalid_values(&entity.change(&hook.id, &change).refused(400, "invalid-request").await),
            pointers,
            "{filter}"
        );
        let new = json!({ "name": "n", "eventUrl": "https://a.example.com/", "eventList": [], "eventFilter": filter });
        assert_eq!(invalid_values(&entity.post("/webhook").json(&new).refused(400, "invalid-request").await), pointers);
        let check = entity.post("/webhook/event/filter/check").json(&change);
        assert_eq!(invalid_values(&check.refused(400, "invalid-request").await), pointers);
    }
    assert_eq!(entity.webhook(&hook.id).await["version"], 1);
}

#[contract_test]
async fn only_matching_events_are_delivered(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let filter = json!({ "currency": ["EUR"], "$or": [{ "total": [{ "numeric": [">", 100] }] }, { "vip": [true] }] });
    let filtered = hook_with(&entity, &receiver.on("/filtered", [Behaviour::status(204)]), filter).await;
    let every = entity.hook(&receiver.on("/every", [Behaviour::status(204)])).await;
    let mut matching = 0;
    for (data, matches) in [
        (json!({ "currency": "EUR", "total": 100.5 }), true),
        (json!({ "currency": "EUR", "total": "100.01" }), true),
        (json!({ "currency": ["USD", "EUR"], "vip": true }), true),
        (json!({ "currency": "EUR", "total": 100 }), false),
        (json!({ "currency": "USD", "total": 1_000 }), false),
        (json!({}), false),
    ] {
        let found = targets(&entity, "booking.created", &data).await;
        assert_eq!(found.contains(&filtered.id), matches, "{data}");
        assert!(found.contains(&every.id), "{data}");
        matching += usize::from(matches);
    }
    receiver.until("/every", 6).await;
    let received = receiver.until("/filtered", matching).await;
    assert!(received.iter().all(|request| request.json()["data"]["currency"] != "USD"));
    assert_eq!(receiver.received("/filtered").len(), matching);
    entity.changed(&filtered.id, json!({ "eventFilter": null })).await;
    assert_eq!(targets(&entity, "booking.created", &json!({})).await.len(), 2);
}

/// Each filter has a hundred numeric conditions, and none matches any of the sixty thousand strings in the data.
#[contract_test]
async fn dear_filters_and_a_large_event_take_limited_steps(suite: Arc<Suite>) {
    const HOOKS: usize = 12;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/", [Behaviour::status(204)]);
    let mut dear = BTreeSet::new();
    for hook in 0..HOOKS {
        let condition = |at: usize| json!({ "a": [{ "numeric": ["<", -((hook * 100 + at) as f64)] }] });
        let alternatives: Vec<_> = (0..100).map(condition).collect();
        dear.insert(hook_with(&entity, &address, json!({ "$or": alternatives })).await.id);
    }
    hook_with(&entity, &address, json!({ "currency": ["EUR"] })).await;
    let data = json!({ "currency": "USD", "a": vec!["1"; 60_000] });
    let published = entity.publish_of_type("booking.created", data).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so").iter();
    let delivered: BTreeSet<_> =
        deliveries.map(|one| one["webhookIdentifier"].as_str().expect("openapi.yaml says so").to_owned()).collect();
    assert_eq!(delivered, dear, "a filter that takes too many steps lets the event pass, and others are obeyed");
    let warning = &published["warnings"][0];
    assert_eq!(
        (&warning["in"], &warning["pointer"], &warning["code"]),
        (&json!("data"), &json!(""), &json!("too-long"))
    );
    let detail = warning["detail"].as_str().expect("openapi.yaml says so");
    assert!(detail.starts_with("has too many values for the filters of 12 webhook(s)"), "{detail}");
    let checked = checked(&entity, json!({ "eventFilter": { "currency": ["EUR"] } })).await;
    assert_eq!((&checked["eventsRead"], &checked["matchCount"]), (&json!(1), &json!(0)));
}

#[contract_test]
async fn events_of_the_bus_and_repetitions_obey_the_filter(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let bus = Bus::of(&suite.api.env);
    let hook = hook_with(&entity, "https://hooks.example.com/", json!({ "room": [{ "prefix": "2" }] })).await;
    for (room, count) in [("201", 1), ("301", 0)] {
        let detail = json!({
            "type": "booking.created", "managingEntityIdentifier": entity.id, "data": { "room": room },
        });
        let event = Bus::event(&format!("{}-{room}", entity.id), &detail.to_string());
        let answer = bus.hand_over(&event).await.expect("taken");
        assert_eq!(answer["published"]["deliveries"].as_array().map(Vec::len), Some(count), "{room}: {answer:#}");
    }
    // A repeated request follows its key's plan, which contains the targets.
    let body = json!({ "type": "booking.created", "data": { "room": "202" } });
    let publish = || entity.post("/webhook/event").header("idempotency-key", "room").json(&body).expect(202);
    let first = publish().await.json();
    entity.changed(&hook.id, json!({ "eventFilter": { "room": ["999"] } })).await;
    assert_eq!(publish().await.json(), first);
    assert_eq!(targets(&entity, "booking.created", &json!({ "room": "202" })).await, Vec::<String>::new());
}

#[contract_test]
async fn a_test_and_existing_deliveries_ignore_the_filter(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/", [Behaviour::status(410), Behaviour::status(204)]);
    let hook = hook_with(&entity, &address, json!({ "room": ["201"] })).await;
    let delivery = entity.publish(json!({ "room": "201" })).await;
    entity.until_status(&delivery, &["failed"]).await;
    entity.changed(&hook.id, json!({ "enabled": true, "eventFilter": { "room": ["999"] } })).await;
    entity.post(&format!("/webhook/delivery/{delivery}/resend")).expect(202).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let tested = entity.test(&hook.id).expect(202).await.json();
    let tested = tested["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    entity.until_status(tested, &["delivered"]).await;
}

#[contract_test]
async fn a_filter_is_tried_on_the_recent_events_of_the_entity(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    // The data cannot be compressed, so the body is stored separately from the event.
    let large: String = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let events = [
        ("booking.created", json!({ "bookingIdentifier": "B-1", "total": 10 })),
        ("booking.created", json!({ "bookingIdentifier": "B-2", "total": 100, "note": large })),
        ("booking.cancelled", json!({ "bookingIdentifier": "B-3", "total": 200 })),
        ("payment.received", json!({ "paymentIdentifier": "P-1" })),
    ];
    for (kind, data) in &events {
        entity.publish_of_type(kind, data.clone()).await;
    }
    let filter = json!({ "total": [{ "numeric": [">=", 100] }] });
    let request = json!({ "eventFilter": filter, "eventList": ["booking.*"] });
    let check = until("the index has every event", LONG, async || {
        let check = checked(&entity, request.clone()).await;
        (check["eventsRead"] == events.len()).then_some(check)
    })
    .await;
    let items: Vec<_> = check["items"].as_array().into_iter().flatten().collect();
    let shown: Vec<_> = items.iter().map(|item| (&item["subject"], &item["type"], &item["matches"])).collect();
    assert_eq!(
        shown,
        [
            (&json!("B-3"), &json!("booking.cancelled"), &json!(true)),
            (&json!("B-2"), &json!("booking.created"), &json!(true)),
            (&json!("B-1"), &json!("booking.created"), &json!(false)),
        ]
    );
    assert_eq!(check["matchCount"], 2);
    let id = items[0]["id"].as_str().expect("openapi.yaml says so");
    let event = entity.get(&format!("/webhook/event/{id}")).expect(200).await.json();
    assert_eq!(event["timestamp"], items[0]["timestamp"]);

    assert_eq!(check["countIsExact"], true);
    let every = checked(&entity, json!({ "eventFilter": { "total": [{ "exists": false }] }, "limit": 2 })).await;
    assert_eq!((&every["eventsRead"], &every["matchCount"]), (&json!(2), &json!(1)), "{every:#}");
    assert_eq!(every["countIsExact"], false);
    let stranger = suite.entity().await;
    let none = json!({ "eventsRead": 0, "matchCount": 0, "countIsExact": true, "items": [] });
    assert_eq!(checked(&stranger, request).await, none);
    for (request, pointers) in [
        (json!({}), &["body/eventFilter"][..]),
        (json!({ "eventFilter": null }), &["body/eventFilter"]),
        (json!({ "eventFilter": filter, "eventList": ["booking.create"] }), &["body/eventList/0"]),
        (json!({ "eventFilter": filter, "limit": 101 }), &["body/limit"]),
        (json!({ "eventFilter": filter, "createdFrom": "2999-01-01T00:00:00Z" }), &["body/createdFrom"]),
        (
            json!({
                "eventFilter": filter, "createdFrom": "2020-01-02T00:00:00Z", "createdUntil": "2020-01-01T00:00:00Z",
            }),
            &["body/createdUntil"],
        ),
    ] {
        let problem = entity.post("/webhook/event/filter/check").json(&request).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), pointers, "{request}");
    }
}

#[contract_test]
async fn a_filter_is_tried_on_a_period_and_on_rare_types_behind_others(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    // The entity has a webhook, so even events that match none are stored.
    hook_for(&entity, "payee.created", "https://hooks.example.com/").await;
    let publish = async |kind: &str| {
        let published = entity.publish_of_type(kind, json!({ "total": 100 })).await.json();
        published["eventIdentifier"].as_str().expect("openapi.yaml says so").to_owned()
    };
    let rare = aged(&suite.table(), &publish("booking.cancelled").await).await;
    for _ in 0..3 {
        publish("booking.created").await;
    }
    let check = async |mut request: Value| {
        request["eventFilter"] = json!({ "total": [100] });
        let checked = checked(&entity, request).await;
        let ids = checked["items"].as_array().expect("openapi.yaml says so").iter().map(|item| item["id"].clone());
        let ids: Vec<_> = ids.collect();
        assert_eq!(checked["matchCount"], ids.len(), "{checked:#}");
        (ids, checked["eventsRead"].clone(), checked["countIsExact"].clone())
    };
    until("the index has every event", LONG, async || {
        let (ids, ..) = check(json!({})).await;
        (ids.len() == 4 && ids[3] == rare.as_str()).then_some(())
    })
    .await;
    let rare = vec![json!(rare)];
    let found = check(json!({ "eventList": ["booking.cancelled"], "limit": 1 })).await;
    assert_eq!(found, (rare.clone(), json!(4), json!(true)), "it is found behind newer events of other types");
    let half = before(1_800);
    assert_eq!(check(json!({ "createdUntil": half })).await, (rare, json!(1), json!(true)));
    let (newest, read, is_exact) = check(json!({ "createdFrom": half })).await;
    assert_eq!((newest.len(), read, is_exact), (3, json!(3), json!(true)));
    let types = json!({ "eventList": ["booking.created"], "createdFrom": half, "limit": 2 });
    let (newest, _, is_exact) = check(types).await;
    assert_eq!((newest.len(), is_exact), (2, json!(false)));
}

/// Each trial may read a hundred events of 256 KiB.
#[contract_test]
async fn dry_runs_of_a_filter_are_limited_for_each_entity_and_minute(suite: Arc<Suite>) {
    let (entity, other) = (suite.entity().await, suite.entity().await);
    suite.table().count_as_used(&format!("filter-checks#{}", entity.id), 60, 60).await;
    let request = json!({ "eventFilter": { "total": [{ "exists": true }] } });
    let refused = entity.post("/webhook/event/filter/check").json(&request).expect(429).await;
    is_limited(&refused, "filter-checks", 60, 60);
    entity.post("/webhook/event/filter/check").json(&json!({})).refused(400, "invalid-request").await;
    assert_eq!(checked(&other, request).await["eventsRead"], 0);
}
