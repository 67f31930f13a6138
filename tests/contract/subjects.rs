//! An event's subject, such as a booking's number: the publisher names it, or the data contains it, and people use it
//! to find events and deliveries.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::hook_for,
    harness::{Agent, Behaviour, Bus, Entity, Receiver, Settings, Suite, invalid_values},
};

fn text(value: &Value) -> String {
    value.as_str().expect("openapi.yaml says so").to_owned()
}

/// Publishes an event; returns its identifier and its deliveries.
async fn published(entity: &Entity, body: &Value) -> (String, BTreeSet<String>) {
    let published = entity.post("/webhook/event").json(body).expect(202).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
    (text(&published["eventIdentifier"]), deliveries.iter().map(|one| text(&one["deliveryIdentifier"])).collect())
}

async fn listed(entity: &Entity, filters: &str) -> BTreeSet<String> {
    let listed = entity.get(&format!("/webhook/delivery/list?{filters}")).expect(200).await.json();
    assert!(listed.get("nextCursor").is_none(), "{filters}: {listed:#}");
    listed["items"].as_array().expect("openapi.yaml says so").iter().map(|item| text(&item["id"])).collect()
}

#[contract_test]
async fn events_and_deliveries_are_found_by_a_subject_given_or_derived(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let hook = entity.hook(&receiver.on("/one", [Behaviour::status(200)])).await;
    hook_for(&entity, "booking.created", &receiver.on("/two", [Behaviour::status(200)])).await;
    let event = |subject: Option<&str>, data: Value| match subject {
        Some(subject) => json!({ "type": "booking.created", "subject": subject, "data": data }),
        None => json!({ "type": "booking.created", "data": data }),
    };
    let given = published(&entity, &event(Some("B-1001"), json!({}))).await;
    let derived = published(&entity, &event(None, json!({ "guest": "x", "bookingNumber": "B-1001" }))).await;
    let by_number = published(&entity, &event(None, json!({ "bookingNumber": 1_001 }))).await;
    let renamed = published(&entity, &event(Some("Zimmer 7; ü"), json!({ "bookingNumber": "B-1001" }))).await;
    let none = published(&entity, &event(None, json!({ "note": "B-1001" }))).await;
    let other_type = json!({ "type": "booking.cancelled", "subject": "B-1001", "data": {} });
    let other_type = published(&entity, &other_type).await;
    let all: BTreeSet<String> = [&given, &derived, &by_number, &renamed, &none, &other_type]
        .into_iter()
        .flat_map(|(_, deliveries)| deliveries.clone())
        .collect();
    assert_eq!(all.len(), 11);
    for delivery in &all {
        entity.until_status(delivery, &["delivered"]).await;
    }

    let of = |events: &[&(String, BTreeSet<String>)]| {
        events.iter().flat_map(|(_, deliveries)| deliveries.clone()).collect::<BTreeSet<_>>()
    };
    for (filters, expected) in [
        ("subject=B-1001", of(&[&given, &derived, &other_type])),
        ("subject=B-1001&type=booking.created", of(&[&given, &derived])),
        ("subject=B-1001&status=delivered", of(&[&given, &derived, &other_type])),
        ("subject=B-1001&status=failed", of(&[])),
        ("subject=B-1001&lastHttpStatus=200&createdFrom=2020-01-01T00:00:00Z", of(&[&given, &derived, &other_type])),
        (&format!("subject=B-1001&eventIdentifier={}", derived.0), of(&[&derived])),
        (&format!("subject=B-1001&eventIdentifier={}", none.0), of(&[])),
        ("subject=1001", of(&[&by_number])),
        ("subject=Zimmer%207%3B%20%C3%BC", of(&[&renamed])),
        ("subject=B-100", of(&[])),
        ("subject=b-1001", of(&[])),
        ("", all),
    ] {
        assert_eq!(listed(&entity, filters).await, expected, "{filters}");
    }
    let of_one = listed(&entity, &format!("subject=B-1001&webhookIdentifier={}", hook.id)).await;
    assert_eq!(of_one.len(), 3, "one of each event");
    assert!(of_one.is_subset(&of(&[&given, &derived, &other_type])), "{of_one:?}");
    for (arguments, expected) in [
        (json!({ "subject": "B-1001" }), vec![&other_type, &derived, &given]),
        (json!({ "subject": "B-1001", "type": "booking.created" }), vec![&derived, &given]),
        (json!({ "subject": "1001" }), vec![&by_number]),
        (json!({ "subject": "B-100" }), vec![]),
    ] {
        let events = agent.call("list_events", arguments.clone()).await["items"].clone();
        let events = events.as_array().expect("the schema says so");
        let found: Vec<_> = events.iter().map(|event| text(&event["id"])).collect();
        assert_eq!(found, expected.iter().map(|(event, _)| event.clone()).collect::<Vec<_>>(), "{arguments}");
        assert!(events.iter().all(|event| event["subject"]["untrusted"] == arguments["subject"]), "{events:#?}");
        let of_filter = |(name, value): (&String, &Value)| format!("{name}={}", text(value));
        let query: Vec<_> = arguments.as_object().expect("an object").iter().map(of_filter).collect();
        let by_api = entity.get(&format!("/webhook/event?{}", query.join("&"))).expect(200).await.json();
        let by_api = by_api["items"].as_array().expect("openapi.yaml says so");
        assert_eq!(by_api.iter().map(|event| text(&event["id"])).collect::<Vec<_>>(), found, "{arguments}");
        let deliveries = agent.call("list_deliveries", arguments.clone()).await["items"].clone();
        let deliveries = deliveries.as_array().expect("the schema says so");
        assert_eq!(deliveries.iter().map(|delivery| text(&delivery["id"])).collect::<BTreeSet<_>>(), of(&expected));
    }
    let stranger = suite.entity().await;
    assert_eq!(listed(&stranger, "subject=B-1001").await, BTreeSet::new());
}

#[contract_test]
async fn a_subject_given_or_derived_is_shown_everywhere_and_sent(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let bodies = [
        (json!({ "type": "booking.created", "subject": "B-1", "data": { "bookingNumber": "B-2" } }), Some("B-1")),
        (json!({ "type": "booking.created", "data": { "bookingNumber": "B-2" } }), Some("B-2")),
        (json!({ "type": "booking.created", "data": {} }), None),
    ];
    for (number, (body, subject)) in bodies.into_iter().enumerate() {
        let (event, deliveries) = published(&entity, &body).await;
        let sent = String::from_utf8(receiver.until("/", number + 1).await.remove(number).body).expect("text");
        let named = format!(r#""type":"booking.created","subject":"{}","timestamp""#, subject.unwrap_or_default());
        let is_sent = subject.is_some();
        assert_eq!((sent.contains(&named), sent.contains(r#""subject""#)), (is_sent, is_sent), "{sent}");
        let id = deliveries.first().expect("one webhook");
        let shown = entity.until_status(id, &["delivered"]).await;
        assert_eq!(shown["subject"].as_str(), subject, "{shown:#}");
        assert_eq!(shown["event"]["subject"].as_str(), subject, "{shown:#}");
        assert_eq!(shown["eventIdentifier"], event, "{shown:#}");
        let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
        assert_eq!(shown["subject"].as_str(), subject, "{shown:#}");
        assert_eq!(shown["deliveries"][0]["subject"].as_str(), subject, "{shown:#}");
        let listed = entity.get(&format!("/webhook/delivery/list?eventIdentifier={event}")).expect(200).await.json();
        assert_eq!(listed["items"][0]["subject"].as_str(), subject, "{listed:#}");
        assert_eq!(listed["items"][0]["eventIdentifier"], event, "{listed:#}");
    }
}

#[contract_test]
async fn a_subject_is_a_short_text_without_control_characters(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let event = |subject: &Value| json!({ "type": "booking.created", "subject": subject, "data": {} });
    let bad = [json!(""), json!("x".repeat(257)), json!("a\u{7}b"), json!("a\nb"), json!(1_001), json!(["B-1001"])];
    for (number, subject) in bad.iter().enumerate() {
        let problem = entity.post("/webhook/event").json(&event(subject)).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/subject"], "{subject}");
        let mut detail = event(subject);
        detail["managingEntityIdentifier"] = json!(entity.id);
        let handed = Bus::event(&format!("{}-{number}", entity.id), &detail.to_string());
        let answer = bus.hand_over(&handed).await.expect("it succeeds, or Lambda would retry");
        assert_eq!(answer["rejected"]["reason"], "invalid-request", "{subject}: {answer:#}");
        let rejected = bus.until_rejected(&format!("\"{}-{number}\"", entity.id)).await;
        assert_eq!(rejected.invalid_values(), ["body/detail/subject"], "{subject}");
    }
    // The limit counts characters, not bytes.
    let longest = "ü".repeat(256);
    let (_, deliveries) = published(&entity, &event(&json!(longest))).await;
    assert_eq!(listed(&entity, &format!("subject={}", "%C3%BC".repeat(256))).await, deliveries);
    // A string in the data that is not a valid subject is ignored, and the event is accepted.
    for data in [json!({ "bookingNumber": "" }), json!({ "bookingNumber": "x".repeat(257) })] {
        let (_, deliveries) = published(&entity, &json!({ "type": "booking.created", "data": data })).await;
        let shown = entity.delivery(deliveries.first().expect("one webhook")).await;
        assert!(shown.get("subject").is_none(), "{shown:#}");
    }
}

#[contract_test]
async fn an_event_of_the_bus_has_a_subject_like_any_other(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let details = [
        json!({ "subject": "B-1", "data": {} }),
        json!({ "data": { "reservationIdentifier": "B-1", "propertyIdentifier": "p-1" } }),
    ];
    let mut expected = BTreeSet::new();
    for (number, mut detail) in details.into_iter().enumerate() {
        detail["type"] = json!("booking.created");
        detail["managingEntityIdentifier"] = json!(entity.id);
        let event = Bus::event(&format!("{}-{number}", entity.id), &detail.to_string());
        let answer = bus.hand_over(&event).await.expect("taken");
        expected.insert(text(&answer["published"]["deliveries"][0]["deliveryIdentifier"]));
    }
    assert_eq!(listed(&entity, "subject=B-1").await, expected);
}

#[contract_test]
async fn a_deployment_chooses_the_members_that_name_subjects(suite: Arc<Suite>) {
    let settings = Settings::default().with("SUBJECT_MEMBERS", "roomIdentifier,bookingNumber");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "rooms".to_owned()).await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    for (data, subject) in [
        (json!({ "bookingNumber": "B-1", "roomIdentifier": "7" }), Some("7")),
        (json!({ "bookingNumber": "B-1", "roomIdentifier": null }), Some("B-1")),
        // The member that holds the type's subject.
        (json!({ "bookingIdentifier": "B-1" }), Some("B-1")),
        (json!({ "confirmationNumber": "B-1" }), None),
    ] {
        let (_, deliveries) = published(&entity, &json!({ "type": "booking.created", "data": data })).await;
        let shown = entity.delivery(deliveries.first().expect("one webhook")).await;
        assert_eq!(shown["subject"].as_str(), subject, "{shown:#}");
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn the_texts_of_one_number_are_one_subject(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let publish = async |number: &str| {
        let body = format!(r#"{{"type":"booking.created","data":{{"bookingNumber":{number}}}}}"#);
        let published = entity.post("/webhook/event").body("application/json", body).expect(202).await.json();
        text(&published["deliveries"][0]["deliveryIdentifier"])
    };
    let mut expected = BTreeSet::new();
    for number in ["20417", "20417.0", "20417.00", "2.0417E4"] {
        expected.insert(publish(number).await);
    }
    let beyond = publish("9007199254740993.0").await;
    assert_eq!(listed(&entity, "subject=20417").await, expected);
    assert_eq!(listed(&entity, "subject=20417.0").await, BTreeSet::new());
    assert_eq!(listed(&entity, "subject=9007199254740993.0").await, BTreeSet::from([beyond]), "as it was published");
}
