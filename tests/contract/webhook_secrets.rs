//! Replacing a webhook's signing secret: the old one and the new one both sign for a day.

use std::{collections::HashSet, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::future::join_all;
use serde_json::{Map, Value, json};

use crate::harness::{
    ApiResponse, Behaviour, Entity, Received, Receiver, Suite, is_signed_by, now, python, secret_of, tests, time,
};

tests![
    a_new_secret_signs_at_once_and_the_old_one_signs_beside_it,
    both_signatures_verify_in_the_standard_library,
    a_secret_is_shown_once_and_never_again,
    a_new_secret_changes_when_the_webhook_was_changed_and_not_its_version,
    at_most_five_secrets_sign_at_once,
    of_twenty_rotations_at_once_as_many_are_made_as_there_is_room_for,
    a_secret_that_has_ended_signs_nothing_and_makes_room,
    a_rotation_needs_no_body,
];

/// The only delivery that a new event makes.
async fn delivered(entity: &Entity, receiver: &Receiver) -> Received {
    let before = receiver.received("/").len();
    let id = entity.publish(json!({ "guest": "Zoë" })).await;
    entity.until_status(&id, &["delivered"]).await;
    receiver.until("/", before + 1).await.remove(before)
}

fn signatures(received: &Received) -> usize {
    received.header("webhook-signature").split(' ').count()
}

async fn a_new_secret_signs_at_once_and_the_old_one_signs_beside_it(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let answer = entity.rotate(&hook.id).expect(200).await;
    let until = time(&answer.json()["previousSecretExpiresDate"]).as_second() - now();
    assert!((86_340..=86_400).contains(&until), "the old secret ends in {until} s");
    assert_eq!(answer.header("cache-control"), "no-store");
    let new = secret_of(&answer);
    assert_ne!(new, hook.secret);
    let received = delivered(&entity, &receiver).await;
    assert!(is_signed_by(&received, &new) && is_signed_by(&received, &hook.secret));
    assert_eq!(signatures(&received), 2);

    let newest = entity.new_secret(&hook.id).await;
    let received = delivered(&entity, &receiver).await;
    for secret in [&newest, &new, &hook.secret] {
        assert!(is_signed_by(&received, secret));
    }
    assert_eq!(signatures(&received), 3);
}

async fn both_signatures_verify_in_the_standard_library(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let other =
        entity.hook_with(json!({ "name": "x", "eventUrl": "http://127.0.0.1:9/", "eventList": [], "enabled": false }));
    let (new, other) = (entity.new_secret(&hook.id).await, other.await.secret);
    let received = delivered(&entity, &receiver).await;
    let headers: Map<String, Value> =
        received.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let requests: Vec<Value> = [&new, &hook.secret, &other]
        .iter()
        .map(|secret| json!({ "secret": secret, "headers": headers, "body": BASE64_STANDARD.encode(&received.body) }))
        .collect();
    let verdicts = python("verify_webhook.py", &json!(requests)).await;
    assert_eq!(verdicts, json!(["valid", "valid", "No matching signature found"]));
}

async fn a_secret_is_shown_once_and_never_again(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let secrets = [hook.secret.clone(), entity.new_secret(&hook.id).await, entity.new_secret(&hook.id).await];
    assert_eq!(secrets.iter().collect::<HashSet<_>>().len(), 3);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    let mut texts = vec![suite.bundle().logs()];
    for call in [
        entity.get(&format!("/webhook/{}", hook.id)),
        entity.get("/webhook/list"),
        entity.change(&hook.id, &json!({ "name": "other" })),
        entity.get(&format!("/webhook/delivery/{id}")),
        entity.remove(&hook.id),
    ] {
        texts.push(call.expect(200).await.text());
    }
    for secret in &secrets {
        let key = secret.trim_start_matches("whsec_");
        assert!(texts.iter().all(|text| !text.contains(key)), "a secret was shown again");
    }
    assert!(texts[1..].iter().all(|text| !text.contains("ecret")), "{texts:#?}");
    // The table has it sealed only.
    for item in suite.table().scan().await {
        let item = item.to_string();
        assert!(secrets.iter().all(|secret| !item.contains(secret.trim_start_matches("whsec_"))), "{item}");
    }
}

async fn a_new_secret_changes_when_the_webhook_was_changed_and_not_its_version(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let before = entity.webhook(&hook.id).await;
    entity.new_secret(&hook.id).await;
    let mut after = entity.webhook(&hook.id).await;
    assert!(time(&after["lastUpdate"]) > time(&before["lastUpdate"]));
    after["lastUpdate"] = before["lastUpdate"].clone();
    assert_eq!(after, before);
    // So a client that read the webhook before can change it.
    assert_eq!(entity.changed(&hook.id, json!({ "name": "n", "version": 1 })).await["version"], 2);
}

/// Fails unless the answer to one secret too many has the time at which there is room.
fn says_when_there_is_room(problem: &Value) {
    let properties = &problem["properties"];
    assert_eq!(properties["limit"], 5);
    let ends = time(&properties["oldestEndsDate"]).as_second() - now();
    assert!((86_300..=86_400).contains(&ends), "the oldest ends in {ends} s");
    let end = properties["oldestEndsDate"].as_str().expect("a time");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(end)), "{problem:#}");
}

async fn at_most_five_secrets_sign_at_once(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let mut secrets = vec![hook.secret.clone()];
    for _ in 0..4 {
        secrets.push(entity.new_secret(&hook.id).await);
    }
    says_when_there_is_room(&entity.rotate(&hook.id).refused(409, "signing-secret-limit").await);
    let received = delivered(&entity, &receiver).await;
    assert!(secrets.iter().all(|secret| is_signed_by(&received, secret)));
    assert_eq!(signatures(&received), 5);
}

async fn of_twenty_rotations_at_once_as_many_are_made_as_there_is_room_for(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let answers = join_all((0..20).map(|_| entity.rotate(&hook.id).send())).await;
    let (made, refused): (Vec<&ApiResponse>, Vec<&ApiResponse>) =
        answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(made.len(), 4, "one secret there is, and five there may be");
    for answer in refused {
        assert_eq!(answer.status, 409, "{}", answer.exchange);
        says_when_there_is_room(&answer.json());
    }
    let received = delivered(&entity, &receiver).await;
    for secret in made.into_iter().map(secret_of).chain([hook.secret]) {
        assert!(is_signed_by(&received, &secret), "a secret that was shown is lost");
    }
    assert_eq!(signatures(&received), 5);
}

async fn a_secret_that_has_ended_signs_nothing_and_makes_room(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let mut secrets = vec![hook.secret.clone()];
    for _ in 0..4 {
        secrets.push(entity.new_secret(&hook.id).await);
    }
    // The two oldest end, as if a day had passed since they were replaced.
    let (table, partition) = (suite.table(), format!("ENT#{}", entity.id));
    let mut item = table.item(&partition, &format!("WHK#{}", hook.id)).await.expect("the webhook is there");
    for sealed in item["signingSecrets"]["L"].as_array_mut().expect("a list").iter_mut().skip(3) {
        sealed["M"]["expiresDate"]["S"] = "2026-01-01T00:00:00.000Z".into();
    }
    table.put(item).await;
    let received = delivered(&entity, &receiver).await;
    let signed: Vec<bool> = secrets.iter().map(|secret| is_signed_by(&received, secret)).collect();
    assert_eq!(signed, [false, false, true, true, true]);
    assert_eq!(signatures(&received), 3);

    for _ in 0..2 {
        secrets.push(entity.new_secret(&hook.id).await);
    }
    says_when_there_is_room(&entity.rotate(&hook.id).refused(409, "signing-secret-limit").await);
    let received = delivered(&entity, &receiver).await;
    let signed: Vec<bool> = secrets.iter().map(|secret| is_signed_by(&received, secret)).collect();
    assert_eq!(signed, [false, false, true, true, true, true, true]);
}

async fn a_rotation_needs_no_body(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    entity.rotate(&hook.id).json(&json!({})).expect(200).await;
    entity.rotate(&hook.id).body("application/json", "").expect(200).await;
    for body in [r#"{"signingSecret":"whsec_AAAA"}"#, r#"{"overlapSeconds":0}"#, "[]", "null", "{"] {
        entity.rotate(&hook.id).body("application/json", body).refused(400, "invalid-request").await;
    }
    entity.rotate(&hook.id).body("text/plain", "{}").refused(415, "unsupported-media-type").await;
}
