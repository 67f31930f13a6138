//! A published event's data: sent byte for byte, and refused if it is invalid or too large.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{Application, Behaviour, Entity, Receiver, Suite, invalid_values, send_raw},
    publish::deliveries,
};

const ID: usize = "evt_00000000000000000000000000".len();

/// Publishes data in this form, and returns the delivered body.
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
        r#"{"noncharacter":"\uffff","escaped backslash":"\\ud800"}"#,
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
    let data = r#"{"huge":1e400,"a":1,"a":-0}"#;
    let body = format!(r#"{{"type":"booking.created","data":{data}}}"#);
    let answer = entity.post("/webhook/event").body("application/json", body).expect(202).await;
    let id = deliveries(&answer)[0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    let sent = String::from_utf8(receiver.until("/", 1).await.remove(0).body).expect("the body is UTF-8");
    // Write the request by hand, since the tests' client reads every response as JSON.
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
    // The request itself is the first level, as the event is in the delivery.
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
    // Brackets in strings are ordinary text.
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
        assert_eq!(invalid_values(&problem), ["body"], "{}", String::from_utf8_lossy(data));
    }
}

async fn violations(entity: &Entity, body: &str) -> Vec<String> {
    let call = entity.post("/webhook/event").body("application/json", body);
    invalid_values(&call.refused(400, "invalid-request").await)
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
        assert_eq!(violations(&entity, &format!(r#"{{"type":{kind},"data":{{}}}}"#)).await, ["body/type"], "{kind}");
    }
    assert_eq!(violations(&entity, r#"{"data":{}}"#).await, ["body/type"]);
}

#[contract_test]
async fn data_must_be_an_object(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for data in ["null", "[]", "[{}]", "1", "-0", r#""text""#, r#""""#, r#""{}""#, "true"] {
        assert_eq!(
            violations(&entity, &format!(r#"{{"type":"booking.created","data":{data}}}"#)).await,
            ["body/data"],
            "{data}"
        );
    }
    assert_eq!(violations(&entity, r#"{"type":"booking.created"}"#).await, ["body/data"]);
}

#[contract_test]
async fn every_violation_is_reported_at_once(suite: Arc<Suite>) {
    let mut fields = violations(&suite.entity().await, r#"{"type":"nonsense","daat":{},"id":"evt_1"}"#).await;
    fields.sort();
    assert_eq!(fields, ["body/daat", "body/data", "body/id", "body/type"]);
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
    // The limit counts bytes, not characters.
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
    // A request of the maximum size that contains a small event.
    let largest = body(1_024 * 1_024, r#"{"a":1}"#);
    entity.post("/webhook/event").body("application/json", largest).expect(202).await;
    assert!(receiver.until("/", 1).await.remove(0).body.len() < 300);
    let larger = body(1_024 * 1_024 + 1, r#"{"a":1}"#);
    let call = entity.post("/webhook/event").body("application/json", larger);
    assert_eq!(call.refused(413, "payload-too-large").await["properties"]["limitBytes"], 1_024 * 1_024);
    // White space in the data counts, too.
    let spaced = format!("{{{}}}", " ".repeat(256 * 1_024));
    let body = format!(r#"{{"type":"booking.created","data":{spaced}}}"#);
    let call = entity.post("/webhook/event").body("application/json", body);
    assert_eq!(call.refused(413, "payload-too-large").await["properties"]["limitBytes"], 256 * 1_024);
}

#[contract_test]
async fn an_unpaired_surrogate_is_refused_with_its_pointer(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (data, pointers) in [
        (r#"{"lone":"\ud800"}"#, &["body/data/lone"][..]),
        (
            r#"{"a/b":[{"reversed":"\udc00\ud800"},1,"half \uDBFFx"],"pair":"\ud83d\ude00"}"#,
            &["body/data/a~1b/0/reversed", "body/data/a~1b/2"],
        ),
        (r#"{"names":{"\udfff":1}}"#, &[r"body/data/names/\udfff"]),
    ] {
        let problem = refused(&entity, &format!(r#"{{"type":"booking.created","data":{data}}}"#)).await;
        assert_eq!(invalid_values(&problem), pointers, "{data}");
        let message = problem["properties"]["violations"][0]["detail"].as_str().expect("a text");
        assert!(message.contains("unpaired surrogate"), "{message}");
    }
    let subject = r#"{"type":"booking.created","subject":"B-\ud800","data":{}}"#;
    let problem = refused(&entity, subject).await;
    assert_eq!(invalid_values(&problem), ["body/subject"]);
    assert!(problem["properties"]["violations"][0].to_string().contains("unpaired surrogate"), "{problem:#}");
    let name = r#"{"type":"booking.created","data":{},"\ud800":1}"#;
    assert_eq!(invalid_values(&refused(&entity, name).await), ["body"]);
}

async fn refused(entity: &Entity, body: &str) -> Value {
    let call = entity.post("/webhook/event").body("application/json", body.to_owned());
    call.refused(400, "invalid-request").await
}
