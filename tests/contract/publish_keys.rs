//! Publishing with an idempotency key: repeating a request returns the first response and publishes nothing.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{Behaviour, Receiver, Suite, invalid_values, now},
    publish::{deliveries, publish_with_key},
};

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
    // A later event has arrived; repetitions would have arrived before it.
    let later = entity.publish(json!({ "later": true })).await;
    entity.until_status(&later, &["delivered"]).await;
    assert_eq!(receiver.received("/").len(), 2);
    assert_eq!(entity.delivery(&id).await["attemptCount"], 1);
}

#[contract_test]
async fn the_same_key_with_another_body_is_a_conflict(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await;
    assert_eq!(first.status, 202, "{}", first.exchange);
    for other in [json!({ "a": 2 }), json!({})] {
        let answer = publish_with_key(&entity, "key", other).await;
        assert_eq!(answer.status, 409, "{}", answer.exchange);
    }
    // Bodies are compared by value, so the same value in another notation is the same body.
    let rewritten = r#"{ "data": { "a": 1.0 }, "type": "booking.cre\u0061ted" }"#;
    let call = entity.post("/webhook/event").header("idempotency-key", "key").body("application/json", rewritten);
    assert_eq!(call.expect(202).await.json(), first.json());
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
    let before = now();
    let first = publish_with_key(&entity, "key", json!({ "a": 1 })).await.json();
    // The table removes expired items with a delay; until then, they exist but do not count.
    let table = suite.table();
    let prefix = format!("IDEMPOTENCY#{}#", entity.id);
    let is_key = |item: &&Value| item["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with(&prefix));
    let mut item = table.scan().await.iter().find(is_key).expect("the key is stored").clone();
    let expires: i64 = item["expiresAt"]["N"].as_str().and_then(|at| at.parse().ok()).expect("a number of seconds");
    assert!((before..=now()).contains(&(expires - 24 * 60 * 60)), "a key is stored for a day: {item:#}");
    item["expiresAt"]["N"] = (now() - 1).to_string().into();
    table.put(item).await;

    let second = publish_with_key(&entity, "key", json!({ "a": 2 })).await;
    assert_eq!(second.status, 202, "{}", second.exchange);
    assert_ne!(second.json()["eventIdentifier"], first["eventIdentifier"]);
    // The new record replaces the expired one.
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
        assert_eq!(invalid_values(&problem), ["header/Idempotency-Key"]);
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
