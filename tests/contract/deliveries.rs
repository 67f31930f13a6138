//! Deliveries: the request, the record of attempts, the next attempt's time, and who has access.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use contract_test::contract_test;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{Behaviour, Gate, Received, Receiver, Suite, is_signed_by, now, outcomes, python, time};

#[contract_test]
async fn a_delivery_request_is_as_the_contract_says(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook?x=%20y", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({ "bookingIdentifier": "B-1" })).await;
    let received = receiver.until("/hook?x=%20y", 1).await.remove(0);
    let delivery = entity.until_status(&id, &["delivered"]).await;

    assert_eq!(received.method, "POST");
    assert_eq!(received.header("content-type"), "application/json");
    assert_eq!(received.header("host"), receiver.address.to_string());
    assert_eq!(received.header("service-delivery-id"), id);
    assert_eq!(received.header("service-version"), "2.0");
    assert!(!received.header("user-agent").is_empty());
    assert_eq!(received.header("accept-encoding").replace("identity", ""), "", "the service decodes no other encoding");
    let event = received.json();
    assert_eq!(received.header("webhook-id"), event["id"].as_str().expect("an identifier"));
    let signed: i64 = received.header("webhook-timestamp").parse().expect("whole seconds");
    let during = [&delivery["attempts"][0]["attemptDate"], &delivery["lastUpdate"]].map(|date| time(date).as_second());
    assert!((during[0]..=during[1]).contains(&signed), "signed at {signed}: {delivery:#}");
    assert!(is_signed_by(&received, &hook.secret));
    assert_eq!(received.header("webhook-signature").split(' ').count(), 1, "one live secret, one signature");

    let members: Vec<&str> = event.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(members.len(), 6, "{event}");
    assert_eq!((&event["type"], &event["subject"]), (&json!("booking.created"), &json!("B-1")));
    assert_eq!(event["managingEntityIdentifier"], entity.id.as_str());
    assert_eq!(event["data"], json!({ "bookingIdentifier": "B-1" }));
    assert_eq!(time(&event["timestamp"]), time(&delivery["createdDate"]));
    assert_eq!(delivery["event"], event);
}

#[contract_test]
async fn the_webhooks_own_headers_are_sent_along(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let headers = json!({ "X-Tenant": "demo; a=\"b\"", "Authorization": "Bearer of-the-receiver", "X-Empty": "" });
    entity.hook_with(json!({ "name": "x", "eventUrl": url, "eventList": [], "headers": headers })).await;
    entity.publish(json!({})).await;
    let received = receiver.until("/", 1).await.remove(0);
    for (name, value) in headers.as_object().expect("an object") {
        assert!(received.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)), "{name} is missing");
        assert_eq!(received.header(name), value.as_str().expect("text"));
    }
}

#[contract_test]
async fn a_signature_verifies_in_the_standard_library(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let other = entity.hook(&receiver.on("/other", [Behaviour::status(200)])).await;
    entity.publish_of_type("booking.created", json!({ "guest": "Zoë", "x": "\u{1F600}" })).await;
    let received = receiver.until("/", 1).await.remove(0);

    let request = |received: &Received, secret: &str| {
        let headers: serde_json::Map<String, Value> =
            received.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        json!({ "secret": secret, "headers": headers, "body": BASE64_STANDARD.encode(&received.body) })
    };
    let mut tampered_body = received.clone();
    let last = tampered_body.body.len() - 3;
    tampered_body.body[last] ^= 1;
    let with_header = |name: &str, value: String| {
        let mut tampered = received.clone();
        let headers = tampered.headers.iter_mut();
        headers.filter(|(given, _)| given.eq_ignore_ascii_case(name)).for_each(|(_, given)| *given = value.clone());
        tampered
    };
    let later = with_header("webhook-timestamp", (now() + 1).to_string());
    let renamed = with_header("webhook-id", "evt_another".to_owned());
    let requests = json!([
        request(&received, &hook.secret),
        request(&received, &other.secret),
        request(&tampered_body, &hook.secret),
        request(&later, &hook.secret),
        request(&renamed, &hook.secret),
    ]);
    let verdicts = python("verify_webhook.py", &requests).await;
    assert_eq!(verdicts[0], "valid");
    for verdict in &verdicts.as_array().expect("a list")[1..] {
        assert_eq!(*verdict, "No matching signature found");
    }
}

#[contract_test]
async fn a_delivery_that_succeeds_at_once_shows_one_attempt(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::answer(201, &[("Content-Type", "text/plain")], "thanks")]);
    let hook = entity.hook(&url).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivery["id"], id.as_str());
    assert_eq!(delivery["attemptCount"], 1);
    assert_eq!(delivery["lastHttpStatus"], 201);
    assert_eq!(delivery["ownerIdentifier"], entity.id.as_str());
    assert_eq!(delivery["type"], "booking.created");
    assert_eq!(delivery["url"], url);
    assert_eq!(delivery["webhookIdentifier"], hook.id.as_str());
    assert!(delivery.get("nextAttemptDate").is_none(), "{delivery:#}");
    let [attempt] = &delivery["attempts"].as_array().expect("openapi.yaml says so")[..] else {
        panic!("one attempt: {delivery:#}")
    };
    assert_eq!(attempt["attemptNumber"], 1);
    assert_eq!(attempt["httpStatus"], 201);
    assert_eq!(attempt["responseBody"], "thanks");
    assert!(attempt.get("error").is_none());
    assert!(attempt["durationMs"].as_u64().is_some_and(|duration| duration < 15_000), "{attempt}");
    assert!(time(&delivery["createdDate"]) <= time(&attempt["attemptDate"]));
    assert!(time(&attempt["attemptDate"]) <= time(&delivery["lastUpdate"]));
}

#[contract_test]
async fn a_delivery_before_its_first_attempt_is_pending(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answers = Gate::closed();
    entity.hook(&receiver.on("/", [Behaviour::status(200).behind(&answers)])).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.delivery(&id).await;
    assert_eq!(delivery["status"], "pending");
    assert_eq!(delivery["attemptCount"], 0);
    assert_eq!(delivery["attempts"], json!([]));
    assert_eq!(delivery["lastHttpStatus"], Value::Null);
    let request = receiver.until("/", 1).await.remove(0);
    sleep(Duration::from_secs(2)).await;
    let waited = request.at.elapsed().as_millis();
    answers.open();
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!(delivery["status"], "delivered");
    let duration = delivery["attempts"][0]["durationMs"].as_u64().expect("openapi.yaml says so");
    assert!(u128::from(duration) >= waited, "an answer after {waited} ms took {duration} ms");
}

#[contract_test]
async fn another_entitys_delivery_looks_missing(suite: Arc<Suite>) {
    let owner = suite.entity().await;
    let stranger = suite.entity().await;
    let receiver = Receiver::start().await;
    owner.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = owner.publish(json!({})).await;
    let other_id = owner.publish(json!({})).await;
    let missing = format!("dlv_{}", other_id[4..].chars().rev().collect::<String>());
    let mut answers = Vec::new();
    for id in [&id, &missing] {
        let answer = stranger.get(&format!("/webhook/delivery/{id}")).expect(404).await;
        let mut problem = answer.json();
        assert!(problem["type"].as_str().is_some_and(|url| url.ends_with("/problems/delivery-not-found")), "{problem}");
        problem["instance"].take();
        answers.push(problem);
    }
    assert_eq!(answers[0], answers[1]);
    owner.delivery(&id).await;
}

#[contract_test]
async fn an_identifier_that_cannot_exist_looks_missing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for id in [
        "x",
        "dlv_",
        "dlv_0",
        "evt_00000000000000000000000000",
        "DLV_00000000000000000000000000",
        "dlv_%00",
        "dlv_a%2Fb",
        "%F0%9F%98%80",
        &"x".repeat(3_000),
    ] {
        entity.get(&format!("/webhook/delivery/{id}")).refused(404, "delivery-not-found").await;
    }
}

#[contract_test]
async fn many_deliveries_each_arrive(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    for path in ["/one", "/two"] {
        entity.hook(&receiver.on(path, [Behaviour::status(200)])).await;
    }
    let publications: Vec<_> = (0..100)
        .map(|number| {
            let entity = entity.clone();
            tokio::spawn(
                async move { entity.publish_of_type("booking.created", json!({ "number": number })).await.json() },
            )
        })
        .collect();
    let mut deliveries = Vec::new();
    for publication in publications {
        let published = publication.await.expect("it did not panic");
        for delivery in published["deliveries"].as_array().expect("openapi.yaml says so") {
            deliveries.push(delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned());
        }
    }
    assert_eq!(deliveries.len(), 200);
    for id in &deliveries {
        let delivery = entity.until_status(id, &["delivered", "failed"]).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1), "{delivery:#}");
    }
    for path in ["/one", "/two"] {
        let received = receiver.received(path);
        let mut numbers: Vec<u64> =
            received.iter().filter_map(|received| received.json()["data"]["number"].as_u64()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>(), "{path}");
    }
}
