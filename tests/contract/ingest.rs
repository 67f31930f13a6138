//! Events from the platform's services over EventBridge: they are published like events over HTTP, and invalid ones are
//! put on a queue with the reason.

use std::{collections::BTreeSet, process::Stdio, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::{Behaviour, Bus, Entity, Receiver, Suite, aws_variables, free_port, is_signed_by, local};

fn detail(entity: &Entity, data: &str) -> String {
    format!(r#"{{"type":"booking.created","managingEntityIdentifier":"{}","data":{data}}}"#, entity.id)
}

/// A unique identifier for an event.
fn id(entity: &Entity, name: &str) -> String {
    format!("{}-{name}", entity.id)
}

fn deliveries(answer: &Value) -> Vec<String> {
    let deliveries = answer["published"]["deliveries"].as_array().expect("it is published").clone();
    let identifier = |delivery: &Value| delivery["deliveryIdentifier"].as_str().expect("a text").to_owned();
    deliveries.iter().map(identifier).collect()
}

#[contract_test]
async fn an_event_of_the_bus_arrives_signed_at_its_entitys_webhooks(suite: Arc<Suite>) {
    let (entity, other, receiver) = (suite.entity().await, suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let not_asked = receiver.on("/not-asked", [Behaviour::status(204)]);
    entity.hook_with(json!({ "name": "other", "eventUrl": not_asked, "eventList": ["booking.cancelled"] })).await;
    other.hook(&receiver.on("/other", [Behaviour::status(204)])).await;

    let bus = Bus::of(&suite.api.env);
    let answer = bus.hand_over(Bus::event(&id(&entity, "1"), &detail(&entity, r#"{"a":1}"#))).await.expect("taken");
    let delivery = deliveries(&answer);
    let shown = entity.until_status(&delivery[0], &["delivered"]).await;
    assert_eq!((delivery.len(), &shown["attemptCount"]), (1, &json!(1)));
    let received = receiver.until("/", 1).await.remove(0);
    assert!(is_signed_by(&received, &hook.secret));
    assert_eq!(received.header("webhook-id"), answer["published"]["eventIdentifier"]);
    let event = received.json();
    assert_eq!(event["managingEntityIdentifier"], entity.id.as_str());
    assert_eq!((&event["type"], &event["data"]), (&json!("booking.created"), &json!({ "a": 1 })));
    assert_eq!(receiver.everything().len(), 1);
}

#[contract_test]
async fn a_repeated_event_of_the_bus_creates_nothing_new(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let event = Bus::event(&id(&entity, "1"), &detail(&entity, r#"{"a":1}"#));
    let first = bus.hand_over(&event).await.expect("taken");
    entity.until_status(&deliveries(&first)[0], &["delivered"]).await;
    // A webhook created in between does not get a delivery either.
    entity.hook(&receiver.on("/later", [Behaviour::status(204)])).await;
    // EventBridge marks an event that is replayed from an archive, but it is still the same event.
    let replayed = event.replacen('{', r#"{"replay-name":"again","#, 1);
    for again in [&event, &replayed] {
        assert_eq!(bus.hand_over(again).await.expect("taken"), first);
    }
    // A later event has arrived, so any repetitions would have arrived by now.
    let later = bus.hand_over(Bus::event(&id(&entity, "2"), &detail(&entity, "{}"))).await.expect("taken");
    for delivery in deliveries(&later) {
        entity.until_status(&delivery, &["delivered"]).await;
    }
    assert_eq!((receiver.received("/").len(), receiver.received("/later").len()), (2, 1));
    assert_eq!(entity.delivery(&deliveries(&first)[0]).await["attemptCount"], 1);
    // The event's delivery exists, although its webhook is gone.
    entity.remove(&hook.id).expect(200).await;
    assert_eq!(bus.hand_over(&event).await.expect("taken"), first);
}

#[contract_test]
async fn events_of_the_bus_about_a_subject_arrive_one_after_another(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    let url = receiver.on("/", [Behaviour::answer(503, &[("Retry-After", "600")], ""), Behaviour::status(204)]);
    entity.hook_with(json!({ "name": "ordered", "eventUrl": url, "eventList": [], "order": "subject" })).await;
    let publish = async |name: &str| {
        let event = Bus::event(&id(&entity, name), &detail(&entity, r#"{"bookingNumber":"B-1001"}"#));
        deliveries(&bus.hand_over(event).await.expect("taken")).remove(0)
    };
    let first = publish("1").await;
    entity.until_status(&first, &["retrying"]).await;
    let second = publish("2").await;
    entity.until_delivery(&second, "is held", |shown| shown["heldBy"] == first.as_str()).await;
    entity.post(&format!("/webhook/delivery/{first}/resend")).expect(202).await;
    entity.until_status(&second, &["delivered"]).await;
    assert_eq!(entity.delivery(&first).await["status"], "delivered");
}

#[contract_test]
async fn an_event_of_the_bus_that_comes_twenty_times_at_once_is_published_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let event = Bus::event(&id(&entity, "1"), &detail(&entity, r#"{"a":1}"#));
    let handovers: Vec<_> = (0..20)
        .map(|_| {
            let bus = bus.clone();
            let event = event.clone();
            tokio::spawn(async move { bus.hand_over(event).await.expect("taken") })
        })
        .collect();
    let mut answers = BTreeSet::new();
    for handover in handovers {
        answers.insert(handover.await.expect("it did not panic").to_string());
    }
    assert_eq!(answers.len(), 1, "the same event got different answers: {answers:#?}");
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    let first: Value = serde_json::from_str(answers.first().expect("one answer")).expect("JSON");
    let delivery = entity.until_status(&deliveries(&first)[0], &["delivered"]).await;
    assert_eq!(delivery["attemptCount"], 1);
    assert_eq!(receiver.received("/").len(), 2, "one delivery for twenty times the same event");
}

#[contract_test]
async fn a_bus_event_and_an_idempotency_key_of_the_same_name_are_two_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let bus = Bus::of(&suite.api.env);
    let answer = bus.hand_over(Bus::event("same", &detail(&entity, "{}"))).await.expect("taken");
    for key in ["same", "bus:same"] {
        let body = json!({ "type": "booking.created", "data": { "other": key } });
        let over_http = entity.post("/webhook/event").header("idempotency-key", key).json(&body).expect(202).await;
        assert_ne!(over_http.json()["eventIdentifier"], answer["published"]["eventIdentifier"]);
    }
}

#[contract_test]
async fn data_of_the_bus_are_sent_byte_for_byte(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let digits = "1234567890".repeat(40);
    for (number, data) in [
        "{ }".to_owned(),
        "{\n\t\"z\" : 1 ,\r\n \"a\":2\n}".to_owned(),
        format!(r#"{{"big":{digits},"precise":0.{digits},"exponent":1e400,"zero":-0,"one":[1.0,1,1E0]}}"#),
        r#"{"a":1,"b":2,"a":3,"":4}"#.to_owned(),
        "{\"escapes\":\"\\u00e9\\/\\ud83d\\ude00\\u0000\",\"plain\":\"é😀\u{ffff}\u{7f}\u{feff}\"}".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let spaced =
            format!(r#" {{ "data" : {data} , "managingEntityIdentifier":"{}","type" :"booking.created"}} "#, entity.id);
        let event = Bus::event(&id(&entity, &number.to_string()), &spaced);
        bus.hand_over(event).await.expect("taken");
        let received = receiver.until("/", number + 1).await.remove(number);
        let sent = String::from_utf8(received.body).expect("the body is text");
        assert!(sent.ends_with(&format!(r#""data":{data}}}"#)), "{data} was sent as {sent}");
    }
}

#[contract_test]
async fn an_invalid_bus_event_is_rejected_with_the_reason_and_not_retried(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let bus = Bus::of(&suite.api.env);
    let with = |kind: &str, owner: &str, data: &str, more: &str| {
        format!(r#"{{"type":{kind},"managingEntityIdentifier":{owner},"data":{data}{more}}}"#)
    };
    let kind = r#""booking.created""#;
    let owner = format!(r#""{}""#, entity.id);
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let details = [
        (with(r#""nothing.happened""#, &owner, "{}", ""), &["body/detail/type"][..]),
        // Only the service itself may publish these types.
        (with(r#""webhook.disabled""#, &owner, "{}", ""), &["body/detail/type"]),
        (with(r#""payment.connection.broken""#, &owner, "{}", ""), &["body/detail/type"]),
        (with(kind, r#""two words""#, "{}", ""), &["body/detail/managingEntityIdentifier"]),
        (with(kind, r#""""#, "{}", ""), &["body/detail/managingEntityIdentifier"]),
        (with(kind, "null", "{}", ""), &["body/detail/managingEntityIdentifier"]),
        (with(kind, &owner, "[]", ""), &["body/detail/data"]),
        (with(kind, &owner, r#""{}""#, ""), &["body/detail/data"]),
        (with(kind, &owner, "null", ""), &["body/detail/data"]),
        (with(kind, &owner, "{}", r#","dat":{}"#), &["body/detail/dat"]),
        (
            with(kind, &owner, r#"{"a":["\ud800"]}"#, r#","subject":"\ud800""#),
            &["body/detail/data/a/0", "body/detail/subject"],
        ),
        (with(kind, &owner, "{}", r#","type":"booking.created""#), &["body/detail/type"]),
        (with(kind, &owner, &nested(100), ""), &["body/detail"]),
        ("{}".to_owned(), &["body/detail/managingEntityIdentifier", "body/detail/type", "body/detail/data"]),
        (format!("[{}]", with(kind, &owner, "{}", "")), &["body/detail"]),
        (r#""text""#.to_owned(), &["body/detail"]),
    ];
    for (number, (detail, fields)) in details.iter().enumerate() {
        let id = id(&entity, &format!("bad-{number}"));
        let event = Bus::event(&id, detail);
        let answer = bus.hand_over(&event).await.expect("it succeeds, or Lambda would retry");
        assert_eq!(answer["rejected"]["reason"], "invalid-request", "{detail}");
        let rejected = bus.until_rejected(&format!("\"{id}\"")).await;
        assert_eq!(rejected.body, event, "byte for byte");
        assert_eq!(rejected.attributes["reason"], "invalid-request");
        assert_eq!(rejected.invalid_values(), *fields, "{detail}");
        let violations: Value = serde_json::from_str(&rejected.attributes["violations"]).expect("JSON");
        assert_eq!(answer["rejected"]["violations"], violations);
    }
    let deepest = with(kind, &owner, &nested(99), "");
    assert_eq!(deliveries(&bus.hand_over(Bus::event(&id(&entity, "deep"), &deepest)).await.expect("taken")).len(), 0);

    for (name, event, field) in [
        ("no-id", format!(r#"{{"detail":{}}}"#, with(kind, &owner, r#"{"is":"no-id"}"#, "")), "body/id"),
        ("no-detail", format!(r#"{{"id":"{}"}}"#, id(&entity, "no-detail")), "body/detail"),
    ] {
        bus.hand_over(&event).await.expect("it succeeds, or Lambda would retry");
        let of_entity = bus.rejected(&entity.id).await;
        let rejected = of_entity.iter().find(|rejected| rejected.body == event);
        let rejected = rejected.unwrap_or_else(|| panic!("{name} is not there: {of_entity:#?}"));
        assert_eq!(rejected.invalid_values(), [field]);
    }
}

#[contract_test]
async fn an_identifier_that_comes_with_another_content_is_rejected(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let id = id(&entity, "1");
    let first = bus.hand_over(Bus::event(&id, &detail(&entity, r#"{"a":1}"#))).await.expect("taken");
    let other = Bus::event(&id, &detail(&entity, r#"{"a":2}"#));
    let answer = bus.hand_over(&other).await.expect("it succeeds, or Lambda would retry");
    assert_eq!(answer["rejected"]["reason"], "idempotency-conflict");
    let rejected = bus.until_rejected(&id).await;
    assert_eq!((rejected.body.as_str(), rejected.invalid_values()), (other.as_str(), vec!["body/id".to_owned()]));
    entity.until_status(&deliveries(&first)[0], &["delivered"]).await;
    assert_eq!(receiver.everything().len(), 1);
}

#[contract_test]
async fn an_event_of_the_bus_may_be_as_large_as_any_other_and_no_larger(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let data = |bytes: usize| detail(&entity, &format!(r#"{{"x":"{}"}}"#, "y".repeat(bytes)));
    let smallest = bus.hand_over(Bus::event(&id(&entity, "smallest"), &data(0))).await.expect("taken");
    entity.until_status(&deliveries(&smallest)[0], &["delivered"]).await;
    let room = 256 * 1_024 - receiver.until("/", 1).await[0].body.len();

    let largest = bus.hand_over(Bus::event(&id(&entity, "largest"), &data(room))).await.expect("taken");
    entity.until_status(&deliveries(&largest)[0], &["delivered"]).await;
    assert_eq!(receiver.until("/", 2).await[1].body.len(), 256 * 1_024);
    let id = id(&entity, "larger");
    let larger = data(room + 1);
    let answer = bus.hand_over(Bus::event(&id, &larger)).await.expect("it succeeds");
    assert_eq!(answer["rejected"]["reason"], "payload-too-large");
    let rejected = bus.until_rejected(&id).await;
    assert_eq!((rejected.body, rejected.attributes.get("changed")), (Bus::event(&id, &larger), None));
}

#[contract_test]
async fn a_rejected_event_that_was_changed_for_the_queue_says_how(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let bus = Bus::of(&suite.api.env);
    let huge = id(&entity, "huge");
    let event = Bus::event(&huge, &detail(&entity, &format!(r#"{{"x":"{}"}}"#, "é".repeat(600 * 1_024))));
    bus.hand_over(&event).await.expect("it succeeds");
    let rejected = bus.until_rejected(&huge).await;
    assert_eq!(rejected.attributes["reason"], "payload-too-large");
    assert!(event.starts_with(&rejected.body) && rejected.body.len() > 1_000_000, "{}", rejected.body.len());
    let said = &rejected.attributes["changed"];
    assert!(said.contains(&format!("{} of {} bytes", rejected.body.len(), event.len())), "{said}");

    let strange = id(&entity, "strange");
    bus.hand_over(Bus::event(&strange, &detail(&entity, "[\"\u{ffff}\"]"))).await.expect("it succeeds");
    let rejected = bus.until_rejected(&strange).await;
    assert!(rejected.body.contains(r#"["\uffff"]"#), "{}", rejected.body);
    assert!(rejected.attributes["changed"].contains("U+FFFF"));
}

/// Passes an event, as Lambda would, to a function that cannot reach the service whose address this variable contains.
/// Returns the error that the function reports, after which Lambda would retry.
async fn hand_over_without(suite: &Suite, service: &str, event: &str) -> String {
    let lambda = Receiver::start().await;
    let invocation = [
        ("Lambda-Runtime-Aws-Request-Id", "first"),
        ("Lambda-Runtime-Deadline-Ms", "4102444800000"),
        ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:ingest-event"),
    ];
    let next = [Behaviour::answer(200, &invocation, event), Behaviour::hang()];
    lambda.on("/2018-06-01/runtime/invocation/next", next);
    let error = "/2018-06-01/runtime/invocation/first/error";
    lambda.on(error, [Behaviour::status(202)]);
    let env = suite.bundle().service_env();
    let queue = |name: &str| format!("{}/000000000000/{name}", env["SERVICES_ENDPOINT"]);
    let _function = Command::new(local().expect("the bundle runs").with_file_name("functions"))
        .arg0("ingest-event")
        .env_clear()
        .env("AWS_LAMBDA_RUNTIME_API", lambda.address.to_string())
        .env("AWS_LAMBDA_FUNCTION_NAME", "ingest-event")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
        .envs(aws_variables(&env))
        .env("AWS_ENDPOINT_URL_DYNAMODB", &env["DYNAMODB_ENDPOINT"])
        .env("AWS_ENDPOINT_URL_SQS", &env["SERVICES_ENDPOINT"])
        .env(service, format!("http://127.0.0.1:{}", free_port()))
        .env("QUEUE_URL", queue("DeliveryQueue"))
        .env("SLOW_QUEUE_URL", queue("SlowDeliveryQueue"))
        .env("REJECTED_EVENTS_URL", queue("RejectedEvents"))
        .envs(["TABLE_NAME", "BASE_URL", "AUTH_URL", "ENVIRONMENT"].map(|name| (name, &env[name])))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it can be run");
    String::from_utf8(lambda.until(error, 1).await.remove(0).body).expect("text")
}

#[contract_test]
async fn an_event_that_meets_an_outage_of_the_table_is_tried_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let bus = Bus::of(&suite.api.env);
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let event = Bus::event(&id(&entity, "1"), &detail(&entity, r#"{"not":"for logs"}"#));
    let error = hand_over_without(&suite, "AWS_ENDPOINT_URL_DYNAMODB", &event).await;
    assert!(
        error.contains("a DynamoDB request for an event from the bus failed") && !error.contains("for logs"),
        "{error}"
    );
    assert!(bus.rejected(&id(&entity, "1")).await.is_empty(), "an outage is not the sender's fault");

    // Lambda retries. If it gives up, the event comes back from the queue inside Lambda's record.
    let answer = bus.hand_over(&event).await.expect("the table is back");
    let record = json!({ "version": "1.0", "requestContext": { "condition": "RetriesExhausted" } }).to_string();
    let record = record.replacen('{', &format!(r#"{{"requestPayload": {event}, "#), 1);
    assert_eq!(bus.hand_over(record).await.expect("the table is back"), answer);
    entity.until_status(&deliveries(&answer)[0], &["delivered"]).await;
    assert_eq!(receiver.everything().len(), 1);
}

#[contract_test]
async fn an_event_that_can_be_neither_published_nor_rejected_is_tried_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let bus = Bus::of(&suite.api.env);
    let event = Bus::event(&id(&entity, "1"), r#"{"not":"for logs"}"#);
    let error = hand_over_without(&suite, "AWS_ENDPOINT_URL_SQS", &event).await;
    assert!(error.contains("neither published nor rejected") && !error.contains("for logs"), "{error}");
    bus.hand_over(&event).await.expect("the queue is back");
    assert_eq!(bus.until_rejected(&id(&entity, "1")).await.body, event);
}
