//! Publishing: the webhooks that get an event, the response, and repetitions.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{ApiResponse, Application, Behaviour, Entity, Receiver, Settings, Suite, now, send_raw},
    webhooks::fields,
};

const ID: usize = "evt_00000000000000000000000000".len();

fn deliveries(answer: &ApiResponse) -> Vec<Value> {
    answer.json()["deliveries"].as_array().expect("openapi.yaml says so").clone()
}

fn webhooks(answer: &ApiResponse) -> BTreeSet<String> {
    let webhook = |delivery: &Value| delivery["webhookIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    deliveries(answer).iter().map(webhook).collect()
}

/// Publishes with a key.
async fn publish_with_key(entity: &Entity, key: &str, data: Value) -> ApiResponse {
    let body = json!({ "type": "booking.created", "data": data });
    entity.post("/webhook/event").header("idempotency-key", key).json(&body).send().await
}

#[contract_test]
async fn an_event_goes_to_exactly_the_webhooks_that_ask_for_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let other = suite.entity().await;
    let receiver = Receiver::start().await;
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
    // Only the later event may arrive: a misrouted delivery would have arrived by then.
    let answer = entity.publish_of_type("payment.received", json!({})).await;
    assert_eq!(webhooks(&answer), BTreeSet::from([every]));
    receiver.until("/every", 2).await;
    for path in ["/not-asked", "/disabled", "/disabled-exact", "/other-entity"] {
        assert!(receiver.received(path).is_empty(), "{path} got an event that it did not subscribe to");
    }
    assert_eq!(receiver.everything().len(), 4);
}

#[contract_test]
async fn an_event_without_subscribers_is_accepted(suite: Arc<Suite>) {
    let answer = suite.entity().await.publish_of_type("booking.created", json!({})).await;
    assert_eq!(deliveries(&answer), Vec::<Value>::new());
}

#[contract_test]
async fn the_answer_names_the_event_and_each_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let answer = entity.publish_of_type("booking.created", json!({ "a": 1 })).await;
    let event = answer.json()["eventIdentifier"].clone();
    let delivery = deliveries(&answer)[0].clone();
    assert_eq!(delivery["webhookIdentifier"], hook.id.as_str());
    let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    // The delivery can be read at once.
    let shown = entity.delivery(id).await;
    assert_eq!(shown["event"]["id"], event);
    assert_eq!(shown["webhookIdentifier"], hook.id.as_str());
    let received = receiver.until("/", 1).await.remove(0);
    assert_eq!(received.header("service-delivery-id"), id);
    assert_eq!(received.header("webhook-id"), event);
}

/// Publishes data as this text and returns the delivered body.
async fn delivered(entity: &Entity, receiver: &Receiver, data: &str) -> String {
    let count = receiver.everything().len();
    let body = format!(r#" {{ "data" : {data} , "type":"booking.created"}} "#);
    entity.post("/webhook/event").body("application/json", body).expect(202).await;
    let received = receiver.until("/", count + 1).await.remove(count);
    String::from_utf8(received.body).expect("the body is UTF-8")
}

#[contract_test]
async fn data_are_sent_byte_for_byte(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let digits = "1234567890".repeat(40);
    let numbers = format!(r#"{{"big":{digits},"negative":-{digits},"precise":0.{digits},"exponent":1e-{digits}}}"#);
    for data in [
        "{}",
        "{ }",
        "{\n\t\"z\" : 1 ,\r\n \"a\":2\n}",
        "{\"edges\":\"\u{7f}\u{80}\u{85}\u{d7ff}\u{e000}\u{feff}\u{fffe}\u{ffff}\u{10ffff}\"}",
        &numbers,
        r#"{"zero":[0,-0,0.0,-0.0,0e0,-0E+0],"one":[1,1.0,1.00,1e0,1E0,10e-1],"huge":[1e400,-1e400,1e-400]}"#,
        r#"{"a":1,"b":2,"a":{"a":3,"a":4},"A":5,"\u0061":6}"#,
        r#"{"lone":"\ud800","reversed":"\udc00\ud800","half":"\uDBFFx","names":{"\udfff":1},"noncharacter":"\uffff"}"#,
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

#[contract_test]
async fn an_event_is_shown_as_it_is_sent(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let data = r#"{ "big": 123456789012345678901234567890.10, "u": "\u00e9é" }"#;
    let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
    let answer = entity.post("/webhook/event").body("application/json", body).expect(202).await;
    let id = deliveries(&answer)[0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    let sent = receiver.until("/", 1).await.remove(0).body;
    let shown = entity.get(&format!("/webhook/delivery/{id}")).expect(200).await.text();
    let sent = String::from_utf8(sent).expect("the body is UTF-8");
    assert!(shown.contains(&sent), "the shown delivery does not contain the sent body:\n{sent}\n{shown}");
}

#[contract_test]
async fn data_that_no_parser_agrees_on_are_shown_as_they_are_sent(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let token = suite.api.token(Application::Platform, "").await;
    let data = r#"{"huge":1e400,"lone":"\ud800","a":1,"a":-0}"#;
    let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
    let answer = entity.post("/webhook/event").body("application/json", body).expect(202).await;
    let id = deliveries(&answer)[0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    let sent = String::from_utf8(receiver.until("/", 1).await.remove(0).body).expect("the body is UTF-8");
    // A handwritten request, since the tests' client reads every response as JSON.
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
        entity.path(&format!("/webhook/delivery/{id}"))
    );
    let shown = send_raw(suite.bundle(), request.as_bytes()).await;
    assert!(sent.contains(data) && shown.contains(&sent), "{sent}\n{shown}");
}

#[contract_test]
async fn data_may_nest_as_deep_as_the_bound_and_no_deeper(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // The request is the first level, as the event is in the delivery.
    let objects = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
    let lists = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels - 2), "]".repeat(levels - 2));
    for data in [objects(100), lists(100)] {
        assert!(delivered(&entity, &receiver, &data).await.ends_with(&format!(r#""data":{data}}}"#)));
    }
    for data in [objects(101), lists(101), lists(100_000)] {
        let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
        let call = entity.post("/webhook/event").body("application/json", body);
        let problem = call.refused(400, "invalid-request").await;
        let detail = problem["detail"].as_str().expect("openapi.yaml says so");
        assert!(detail.contains("nested deeper than 100 levels"), "{detail}");
    }
    // Brackets in strings are text.
    let text = format!(r#"{{"a":"{}"}}"#, r#"[{\""#.repeat(1_000));
    assert!(delivered(&entity, &receiver, &text).await.contains(&text));
}

#[contract_test]
async fn a_body_that_is_not_json_is_refused_as_a_whole(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for data in [
        &b""[..],
        b"{",
        b"{}}",
        b"{'a':1}",
        b"{a:1}",
        br#"{"a":1,}"#,
        br#"{"a":[1,]}"#,
        br#"{"a":01}"#,
        br#"{"a":+1}"#,
        br#"{"a":.5}"#,
        br#"{"a":1.}"#,
        br#"{"a":1e}"#,
        br#"{"a":--1}"#,
        br#"{"a":0x1}"#,
        br#"{"a":NaN}"#,
        br#"{"a":Infinity}"#,
        br#"{"a":undefined}"#,
        br#"{"a":True}"#,
        br#"{"a":"\x41"}"#,
        br#"{"a":"\u12"}"#,
        br#"{"a":1/*comment*/}"#,
        b"{\"a\":\"\n\"}",
        b"{\"a\":\"\0\"}",
        b"{\"a\":\0}",
        b"\xef\xbb\xbf{}",
        b"{\"a\":\"\xff\"}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"{\"a\":\"\xc0\xaf\"}",
        b"{\"a\":\"\xf4\x90\x80\x80\"}",
    ] {
        let body = [&br#"{"type":"booking.created","data":"#[..], data, b"}"].concat();
        let problem =
            entity.post("/webhook/event").body("application/json", body).refused(400, "invalid-request").await;
        let field = &problem["properties"]["violations"][0]["field"];
        assert_eq!(field, "body", "{}", String::from_utf8_lossy(data));
    }
}

async fn violations(entity: &Entity, body: &str) -> Vec<String> {
    let call = entity.post("/webhook/event").body("application/json", body);
    fields(&call.refused(400, "invalid-request").await)
}

#[contract_test]
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
        assert_eq!(violations(&entity, &format!(r#"{{"type":{kind},"data":{{}}}}"#)).await, ["type"], "{kind}");
    }
    assert_eq!(violations(&entity, r#"{"data":{}}"#).await, ["type"]);
}

#[contract_test]
async fn data_must_be_an_object(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for data in ["null", "[]", "[{}]", "1", "-0", r#""text""#, r#""""#, r#""{}""#, "true"] {
        assert_eq!(
            violations(&entity, &format!(r#"{{"type":"booking.created","data":{data}}}"#)).await,
            ["data"],
            "{data}"
        );
    }
    assert_eq!(violations(&entity, r#"{"type":"booking.created"}"#).await, ["data"]);
}

#[contract_test]
async fn every_violation_is_reported_at_once(suite: Arc<Suite>) {
    let mut fields = violations(&suite.entity().await, r#"{"type":"nonsense","daat":{},"id":"evt_1"}"#).await;
    fields.sort();
    assert_eq!(fields, ["daat", "data", "id", "type"]);
}

#[contract_test]
async fn the_same_key_returns_the_first_answer_and_delivers_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    assert_eq!(first.status, 202, "{}", first.exchange);
    let id = deliveries(&first)[0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    entity.until_status(&id, &["delivered"]).await;
    for _ in 0..3 {
        let again = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
        assert_eq!((again.status, again.json()), (202, first.json()), "{}", again.exchange);
    }
    // A later event has arrived; repetitions would have arrived before.
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(receiver.received("/").len(), 2);
    assert_eq!(entity.delivery(&id).await["attemptCount"], 1);
}

#[contract_test]
async fn the_same_key_with_another_body_is_a_conflict(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    assert_eq!(publish_with_key(&entity, "key", json!({ "a": 1 })).await.status, 202);
    for other in [json!({ "a": 2 }), json!({})] {
        let answer = publish_with_key(&entity, "key", other).await;
        assert_eq!(answer.status, 409, "{}", answer.exchange);
    }
    // Bodies are compared byte for byte: the same value in another notation is another body.
    let spaced = r#"{ "type": "booking.created", "data": { "a": 1 } }"#;
    let call = entity.post("/webhook/event").header("idempotency-key", "key").body("application/json", spaced);
    call.refused(409, "idempotency-conflict").await;
    assert_eq!(publish_with_key(&entity, "another", json!({ "a": 2 })).await.status, 202);
}

#[contract_test]
async fn the_same_key_at_once_publishes_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let publications: Vec<_> = (0..50)
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
    assert_eq!(answers.len(), 1, "the same key got different responses: {answers:#?}");
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    let first: Value = serde_json::from_str(answers.first().expect("one answer")).expect("JSON");
    let first = first["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    let delivery = entity.until_status(first, &["delivered"]).await;
    assert_eq!(delivery["attemptCount"], 1);
    assert_eq!(receiver.received("/").len(), 2, "one delivery for fifty publications of one key");
}

#[contract_test]
async fn of_two_bodies_with_the_same_key_at_once_one_is_published(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let publications: Vec<_> = (0..20)
        .map(|number| {
            let entity = entity.clone();
            let data = json!({ "a": number % 2 });
            tokio::spawn(async move { (number % 2, publish_with_key(&entity, "key", data).await) })
        })
        .collect();
    let mut outcomes = [BTreeSet::new(), BTreeSet::new()];
    for publication in publications {
        let (body, answer) = publication.await.expect("it did not panic");
        let event = answer.json()["eventIdentifier"].as_str().map(str::to_owned);
        outcomes[body].insert((answer.status, event));
    }
    let [one, other] = outcomes.map(Vec::from_iter);
    let (published, refused) = if one[0].0 == 202 { (one, other) } else { (other, one) };
    assert!(published.len() == 1 && published[0].0 == 202, "{published:?}");
    assert_eq!(refused, [(409, None)]);
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    receiver.until("/", 2).await;
    assert_eq!(receiver.everything().len(), 2);
}

#[contract_test]
async fn a_key_whose_time_is_over_is_a_new_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await.json();
    // The table removes expired items with a delay; until then the item exists but does not count.
    let table = suite.table();
    let prefix = format!("IDEMPOTENCY#{}#", entity.id);
    let is_key = |item: &&Value| item["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with(&prefix));
    let mut item = table.scan().await.iter().find(is_key).expect("the key is stored").clone();
    let expires: i64 = item["expiresAt"]["N"].as_str().and_then(|at| at.parse().ok()).expect("a number of seconds");
    let lives = expires - now();
    assert!((86_300..=86_400).contains(&lives), "a key is stored for a day, not {lives} s");
    item["expiresAt"]["N"] = (now() - 1).to_string().into();
    table.put(item).await;

    let second = publish_with_key(&entity, "key", json!({ "a": 2 })).await;
    assert_eq!(second.status, 202, "{}", second.exchange);
    assert_ne!(second.json()["eventIdentifier"], first["eventIdentifier"]);
    // The new record replaces it.
    assert_eq!(publish_with_key(&entity, "key", json!({ "a": 2 })).await.json(), second.json());
    assert_eq!(publish_with_key(&entity, "key", json!({ "a": 1 })).await.status, 409);
}

#[contract_test]
async fn a_key_belongs_to_its_entity(suite: Arc<Suite>) {
    let one = suite.entity().await;
    let other = suite.entity().await;
    let first = publish_with_key(&one, "key", json!({ "a": 1 })).await;
    let second = publish_with_key(&other, "key", json!({ "a": 2 })).await;
    assert_eq!((first.status, second.status), (202, 202));
    assert_ne!(first.json()["eventIdentifier"], second.json()["eventIdentifier"]);
}

#[contract_test]
async fn a_new_webhook_gets_no_earlier_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let again = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    assert_eq!(again.json(), first.json());
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(receiver.received("/").len(), 1);
}

#[contract_test]
async fn a_webhook_removed_later_does_not_change_the_answer_to_a_key(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    receiver.until("/", 1).await;
    entity.remove(&hook.id).expect(200).await;
    let again = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    assert_eq!((again.status, again.json()), (202, first.json()));
    assert_eq!(receiver.everything().len(), 1);
}

#[contract_test]
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

#[contract_test]
async fn a_refused_request_does_not_use_up_its_key(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let wrong = json!({ "type": "nonsense", "data": {} });
    entity.post("/webhook/event").header("idempotency-key", "key").json(&wrong).expect(400).await;
    assert_eq!(publish_with_key(&entity, "key", json!({})).await.status, 202);
}

#[contract_test]
async fn an_event_may_have_256_kib_and_no_more(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let timestamp = "2026-11-20T09:45:00.123Z".len();
    let around = format!(
        r#"{{"id":"","type":"booking.created","timestamp":"","managingEntityIdentifier":"{}","data":{{"x":""}}}}"#,
        entity.id
    );
    let room = 256 * 1_024 - around.len() - ID - timestamp;
    let largest = entity.publish(json!({ "x": "y".repeat(room) })).await;
    let received = receiver.until("/", 1).await.remove(0);
    assert_eq!(received.body.len(), 256 * 1_024, "the identifiers do not have the length that this test assumes");
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

#[contract_test]
async fn space_around_the_data_does_not_count_for_the_event(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let body = |bytes: usize, data: &str| {
        let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
        format!("{}{body}", " ".repeat(bytes - body.len()))
    };
    // A request of the maximum size, with a small event.
    let largest = body(1_024 * 1_024, r#"{"a":1}"#);
    entity.post("/webhook/event").body("application/json", largest).expect(202).await;
    assert!(receiver.until("/", 1).await.remove(0).body.len() < 300);
    let larger = body(1_024 * 1_024 + 1, r#"{"a":1}"#);
    let call = entity.post("/webhook/event").body("application/json", larger);
    assert_eq!(call.refused(413, "payload-too-large").await["properties"]["limitBytes"], 1_024 * 1_024);
    // White space within the data counts.
    let spaced = format!("{{{}}}", " ".repeat(256 * 1_024));
    let body = format!(r#"{{"type":"booking.created","data":{spaced}}}"#);
    let call = entity.post("/webhook/event").body("application/json", body);
    assert_eq!(call.refused(413, "payload-too-large").await["properties"]["limitBytes"], 256 * 1_024);
}

#[contract_test]
async fn two_events_without_a_key_are_two_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = entity.publish_of_type("booking.created", json!({})).await.json();
    let second = entity.publish_of_type("booking.created", json!({})).await.json();
    let first = first["eventIdentifier"].as_str();
    let second = second["eventIdentifier"].as_str();
    assert!(first < second, "later identifiers sort later: {first:?}, {second:?}");
}

#[contract_test]
async fn data_that_do_not_conform_are_published_with_warnings(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let publish = async |key: &str, data: Value| {
        let body = json!({ "type": "managing_entity.brand.removed", "data": data });
        entity.post("/webhook/event").header("idempotency-key", key).json(&body).expect(202).await.json()
    };
    let data = json!({ "brandIdentifier": "BR-1", "removedAt": "2026-11-05T10:00:00Z", "more": 1 });
    let conforming = publish("conforming", data).await;
    assert_eq!(conforming.get("warnings"), None);
    let data = json!({ "brandIdentifier": 4711 });
    let odd = publish("odd", data.clone()).await;
    let warnings = odd["warnings"].as_array().expect("there are some");
    let pointers: BTreeSet<_> = warnings.iter().map(|warning| warning["pointer"].as_str().expect("a text")).collect();
    assert_eq!(pointers, ["", "/brandIdentifier"].into());
    assert!(!odd.to_string().contains("4711"), "a warning has no value: {odd:#}");
    assert_eq!(publish("odd", data).await, odd, "a repetition gets the same answer");
    for (published, count) in [(&conforming, None), (&odd, Some(2))] {
        let event = published["eventIdentifier"].as_str().expect("openapi.yaml says so");
        let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
        assert_eq!(shown["warnings"].as_array().map(Vec::len), count, "{shown:#}");
        let delivery = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
        let delivery = entity.delivery(delivery).await;
        assert_eq!(delivery["eventWarnings"].as_array().map(Vec::len), count, "{delivery:#}");
        assert_eq!(delivery["event"].get("warnings"), None);
    }
}

#[contract_test]
async fn a_strict_deployment_refuses_data_that_do_not_conform(suite: Arc<Suite>) {
    let (_bundle, api, _permit) = suite.other_bundle(Settings::default().with("EVENT_VALIDATION", "strict")).await;
    let entity = Entity::new(&api, "strict".to_owned()).await;
    let published = |data: Value| {
        let body = json!({ "type": "managing_entity.brand.removed", "data": data });
        entity.post("/webhook/event").json(&body)
    };
    let problem = published(json!({ "brandIdentifier": 4711 })).refused(400, "invalid-request").await;
    let mut fields = fields(&problem);
    fields.sort();
    assert_eq!(fields, ["data", "data/brandIdentifier"], "{problem:#}");
    let answer = published(json!({ "brandIdentifier": "BR-1", "removedAt": "2026-11-05T10:00:00Z" })).expect(202).await;
    assert_eq!(answer.json().get("warnings"), None);
}
