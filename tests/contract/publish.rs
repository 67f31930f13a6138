//! Publishing: who gets an event, what the answer says, and what a repetition does.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::harness::{Answer, Behaviour, Entity, Receiver, Suite, tests};

tests![
    an_event_goes_to_exactly_the_webhooks_that_ask_for_it,
    an_event_without_subscribers_is_accepted,
    the_answer_names_the_event_and_each_delivery,
    data_are_sent_byte_for_byte,
    an_event_is_shown_as_it_is_sent,
    a_type_that_is_not_in_the_catalogue_is_a_violation,
    data_must_be_an_object,
    every_violation_is_reported_at_once,
    the_same_key_returns_the_first_answer_and_delivers_once,
    the_same_key_with_another_body_is_a_conflict,
    the_same_key_at_once_publishes_once,
    a_key_belongs_to_its_entity,
    a_webhook_made_later_does_not_get_what_was_published_before,
    a_key_of_a_wrong_form_is_a_violation,
    a_refused_request_does_not_use_up_its_key,
    an_event_may_have_256_kib_and_no_more,
    two_events_without_a_key_are_two_events,
];

const ID: usize = "evt_00000000000000000000000000".len();

fn deliveries(answer: &Answer) -> Vec<Value> {
    answer.json()["deliveries"].as_array().expect("openapi.yaml says so").clone()
}

fn webhooks(answer: &Answer) -> BTreeSet<String> {
    let webhook = |delivery: &Value| delivery["webhookIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    deliveries(answer).iter().map(webhook).collect()
}

/// Publishes with a key; the data tell requests apart.
async fn publish_with_key(entity: &Entity, key: &str, data: Value) -> Answer {
    let body = json!({ "type": "booking.created", "data": data });
    entity.post("/webhook/event").header("idempotency-key", key).json(&body).send().await
}

async fn an_event_goes_to_exactly_the_webhooks_that_ask_for_it(suite: Arc<Suite>) {
    let (entity, other, receiver) = (suite.entity().await, suite.entity().await, Receiver::start().await);
    let hook = async |entity: &Entity, path: &str, enabled: bool, events: Value| {
        let url = receiver.on(path, [Behaviour::status(200)]);
        entity.hook_with(json!({ "name": path, "eventUrl": url, "eventList": events, "enabled": enabled })).await.id
    };
    let every = hook(&entity, "/every", true, json!([])).await;
    let exact = hook(&entity, "/exact", true, json!(["booking.created"])).await;
    let among = hook(&entity, "/among", true, json!(["booking.cancelled", "booking.created"])).await;
    hook(&entity, "/not-asked", true, json!(["booking.cancelled"])).await;
    hook(&entity, "/disabled", false, json!([])).await;
    hook(&entity, "/disabled-exact", false, json!(["booking.created"])).await;
    hook(&other, "/other-entity", true, json!([])).await;

    let answer = entity.publish_of_type("booking.created", json!({})).await;
    assert_eq!(webhooks(&answer), BTreeSet::from([every.clone(), exact, among]));
    for path in ["/every", "/exact", "/among"] {
        receiver.until(path, 1).await;
    }
    // What came later must be all that comes: by then, anything that went astray would be here, too.
    let answer = entity.publish_of_type("payment.received", json!({})).await;
    assert_eq!(webhooks(&answer), BTreeSet::from([every]));
    receiver.until("/every", 2).await;
    for path in ["/not-asked", "/disabled", "/disabled-exact", "/other-entity"] {
        assert!(receiver.received(path).is_empty(), "{path} got what it did not ask for");
    }
    assert_eq!(receiver.everything().len(), 4);
}

async fn an_event_without_subscribers_is_accepted(suite: Arc<Suite>) {
    let answer = suite.entity().await.publish_of_type("booking.created", json!({})).await;
    assert_eq!(deliveries(&answer), Vec::<Value>::new());
}

async fn the_answer_names_the_event_and_each_delivery(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let answer = entity.publish_of_type("booking.created", json!({ "a": 1 })).await;
    let (event, delivery) = (answer.json()["eventIdentifier"].clone(), deliveries(&answer)[0].clone());
    assert_eq!(delivery["webhookIdentifier"], hook.id.as_str());
    let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    // It can be read at once, not only once it is made.
    let shown = entity.delivery(id).await;
    assert_eq!(shown["event"]["id"], event);
    assert_eq!(shown["webhookIdentifier"], hook.id.as_str());
    let received = receiver.until("/", 1).await.remove(0);
    assert_eq!(received.header("service-delivery-id"), id);
    assert_eq!(received.header("webhook-id"), event);
}

/// Publishes data as this text and returns the body that is delivered.
async fn delivered(entity: &Entity, receiver: &Receiver, data: &str) -> String {
    let count = receiver.everything().len();
    let body = format!(r#" {{ "data" : {data} , "type":"booking.created"}} "#);
    entity.post("/webhook/event").body("application/json", body).expect(202).await;
    let received = receiver.until("/", count + 1).await.remove(count);
    String::from_utf8(received.body).expect("what was text is text")
}

async fn data_are_sent_byte_for_byte(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    for data in [
        "{}",
        "{ }",
        "{\n\t\"z\" : 1 ,\r\n \"a\":2\n}",
        r#"{"big":123456789012345678901234567890,"precise":0.1000000000000000055511151231257827,"exponent":1E+400,"zero":-0.0}"#,
        r#"{"9007199254740993":9007199254740993,"1":1.0,"2":1.50,"3":1e2}"#,
        r#"{"escapes":"\u00e9\u00E9\/\"\\\b\f\n\r\t","plain":"é/😀","surrogates":"\ud83d\ude00","nul":"\u0000"}"#,
        r#"{"html":"<script>&amp;'</script>","separators":"\u2028","separators-plain":" "}"#,
        r#"{"b":{"d":1,"c":[[],{},[null,true,false]]},"a":"","":"empty name"}"#,
    ] {
        let sent = delivered(&entity, &receiver, data).await;
        assert!(sent.ends_with(&format!(r#""data":{data}}}"#)), "{data} was sent as {sent}");
    }
}

async fn an_event_is_shown_as_it_is_sent(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let data = r#"{ "big": 123456789012345678901234567890.10, "u": "\u00e9é" }"#;
    let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
    let answer = entity.post("/webhook/event").body("application/json", body).expect(202).await;
    let id = deliveries(&answer)[0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    let sent = receiver.until("/", 1).await.remove(0).body;
    let shown = entity.get(&format!("/webhook/delivery/{id}")).expect(200).await.text();
    let sent = String::from_utf8(sent).expect("what was text is text");
    assert!(shown.contains(&sent), "the very body that is sent is not in what is shown:\n{sent}\n{shown}");
}

async fn fields(entity: &Entity, body: &str) -> Vec<String> {
    let problem = entity.post("/webhook/event").body("application/json", body).refused(400, "invalid-request").await;
    let violations = problem["properties"]["violations"].as_array().expect("openapi.yaml says so");
    violations.iter().map(|violation| violation["field"].as_str().expect("openapi.yaml says so").to_owned()).collect()
}

async fn a_type_that_is_not_in_the_catalogue_is_a_violation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for kind in [
        r#""nonsense""#,
        r#""booking""#,
        r#""BOOKING.CREATED""#,
        r#""booking.created ""#,
        r#""booking.*""#,
        r#""""#,
        "null",
        "1",
        r#"["booking.created"]"#,
    ] {
        assert_eq!(fields(&entity, &format!(r#"{{"type":{kind},"data":{{}}}}"#)).await, ["type"], "{kind}");
    }
    assert_eq!(fields(&entity, r#"{"data":{}}"#).await, ["type"]);
}

async fn data_must_be_an_object(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for data in ["null", "[]", "1", r#""text""#, "true"] {
        assert_eq!(
            fields(&entity, &format!(r#"{{"type":"booking.created","data":{data}}}"#)).await,
            ["data"],
            "{data}"
        );
    }
    assert_eq!(fields(&entity, r#"{"type":"booking.created"}"#).await, ["data"]);
}

async fn every_violation_is_reported_at_once(suite: Arc<Suite>) {
    let mut fields = fields(&suite.entity().await, r#"{"type":"nonsense","daat":{},"id":"evt_1"}"#).await;
    fields.sort();
    assert_eq!(fields, ["daat", "data", "id", "type"]);
}

async fn the_same_key_returns_the_first_answer_and_delivers_once(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    assert_eq!(first.status, 202, "{}", first.exchange);
    let id = deliveries(&first)[0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    entity.until_status(&id, &["delivered"]).await;
    for _ in 0..3 {
        let again = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
        assert_eq!((again.status, again.json()), (202, first.json()), "{}", again.exchange);
    }
    // A later event has arrived: so would have the repetitions.
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(receiver.received("/").len(), 2);
    assert_eq!(entity.delivery(&id).await["attemptCount"], 1);
}

async fn the_same_key_with_another_body_is_a_conflict(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    assert_eq!(publish_with_key(&entity, "key", json!({ "a": 1 })).await.status, 202);
    for other in [json!({ "a": 2 }), json!({})] {
        let answer = publish_with_key(&entity, "key", other).await;
        assert_eq!(answer.status, 409, "{}", answer.exchange);
    }
    // Byte for byte: the same value written otherwise is another body.
    let spaced = r#"{ "type": "booking.created", "data": { "a": 1 } }"#;
    let call = entity.post("/webhook/event").header("idempotency-key", "key").body("application/json", spaced);
    call.refused(409, "idempotency-conflict").await;
    assert_eq!(publish_with_key(&entity, "another", json!({ "a": 2 })).await.status, 202);
}

async fn the_same_key_at_once_publishes_once(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let publications: Vec<_> = (0..20)
        .map(|_| {
            let entity = entity.clone();
            tokio::spawn(async move { publish_with_key(&entity, "key", json!({ "a": 1 })).await })
        })
        .collect();
    let mut answers = BTreeSet::new();
    for publication in publications {
        let answer = publication.await.expect("it did not panic");
        assert_eq!(answer.status, 202, "{}", answer.exchange);
        answers.insert(answer.json().to_string());
    }
    assert_eq!(answers.len(), 1, "the same key got different answers: {answers:#?}");
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    let first: Value = serde_json::from_str(answers.first().expect("one answer")).expect("JSON");
    let first = first["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    let delivery = entity.until_status(first, &["delivered"]).await;
    assert_eq!(delivery["attemptCount"], 1);
    assert_eq!(receiver.received("/").len(), 2, "one delivery for twenty publications of one key");
}

async fn a_key_belongs_to_its_entity(suite: Arc<Suite>) {
    let (one, other) = (suite.entity().await, suite.entity().await);
    let (first, second) = (
        publish_with_key(&one, "key", json!({ "a": 1 })).await,
        publish_with_key(&other, "key", json!({ "a": 2 })).await,
    );
    assert_eq!((first.status, second.status), (202, 202));
    assert_ne!(first.json()["eventIdentifier"], second.json()["eventIdentifier"]);
}

async fn a_webhook_made_later_does_not_get_what_was_published_before(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let again = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    assert_eq!(again.json(), first.json());
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(receiver.received("/").len(), 1);
}

async fn a_key_of_a_wrong_form_is_a_violation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({ "type": "booking.created", "data": {} });
    for key in [&b""[..], &[b'x'; 256], "schlüssel".as_bytes()] {
        let call = entity.post("/webhook/event").header("idempotency-key", key).json(&body);
        let problem = call.refused(400, "invalid-request").await;
        assert_eq!(problem["properties"]["violations"][0]["field"], "Idempotency-Key");
    }
    let longest = [b'x'; 255];
    entity.post("/webhook/event").header("idempotency-key", longest).json(&body).expect(202).await;
}

async fn a_refused_request_does_not_use_up_its_key(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let wrong = json!({ "type": "nonsense", "data": {} });
    entity.post("/webhook/event").header("idempotency-key", "key").json(&wrong).expect(400).await;
    assert_eq!(publish_with_key(&entity, "key", json!({})).await.status, 202);
}

async fn an_event_may_have_256_kib_and_no_more(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let timestamp = "2026-11-20T09:45:00.123Z".len();
    let around = format!(
        r#"{{"id":"","type":"booking.created","timestamp":"","managingEntityIdentifier":"{}","data":{{"x":""}}}}"#,
        entity.id
    );
    let room = 256 * 1_024 - around.len() - ID - timestamp;
    let largest = entity.publish(json!({ "x": "y".repeat(room) })).await;
    let received = receiver.until("/", 1).await.remove(0);
    assert_eq!(received.body.len(), 256 * 1_024, "the identifiers have another length than this test believes");
    entity.until_status(&largest, &["delivered"]).await;

    for more in [1, 45 * 1_024, 300 * 1_024] {
        let body = json!({ "type": "booking.created", "data": { "x": "y".repeat(room + more) } });
        let problem = entity.post("/webhook/event").json(&body).refused(413, "payload-too-large").await;
        assert_eq!(problem["properties"]["limitBytes"], 256 * 1_024);
    }
    // Bytes count, not characters.
    let body = json!({ "type": "booking.created", "data": { "x": "é".repeat(room / 2 + 1) } });
    entity.post("/webhook/event").json(&body).refused(413, "payload-too-large").await;
}

async fn two_events_without_a_key_are_two_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = entity.publish_of_type("booking.created", json!({})).await.json();
    let second = entity.publish_of_type("booking.created", json!({})).await.json();
    let (first, second) = (first["eventIdentifier"].as_str(), second["eventIdentifier"].as_str());
    assert!(first < second, "later identifiers sort later: {first:?}, {second:?}");
}
