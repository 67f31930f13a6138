//! Replacing a webhook's signing secret: the old and the new secret both sign for a day, or for as long as the owner
//! chooses, and the owner can end the old one immediately.

use std::{collections::HashSet, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use contract_test::contract_test;
use futures::future::{join, join_all};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::harness::{
    Agent, AwsCall, Behaviour, Entity, Hook, Moment, Received, Receiver, Settings, Suite, invalid_values, is_signed_by,
    now, python, secret_of, time,
};

/// Publishes an event, and returns its only delivery.
async fn delivered(entity: &Entity, receiver: &Receiver) -> Received {
    let before = receiver.received("/").len();
    let id = entity.publish(json!({ "guest": "Zoë" })).await;
    entity.until_status(&id, &["delivered"]).await;
    receiver.until("/", before + 1).await.remove(before)
}

fn signatures(received: &Received) -> usize {
    received.header("webhook-signature").split(' ').count()
}

#[contract_test]
async fn a_new_secret_signs_at_once_and_the_old_one_signs_beside_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let before = now();
    let answer = entity.rotate(&hook.id).expect(200).await;
    let replaced = time(&answer.json()["previousSecretExpiresDate"]).as_second() - 24 * 60 * 60;
    assert!((before..=now()).contains(&replaced), "{}", answer.exchange);
    assert_eq!(answer.header("cache-control"), "no-store");
    let new = secret_of(&answer);
    assert_ne!(new, hook.secret);
    let received = delivered(&entity, &receiver).await;
    assert!(is_signed_by(&received, &new) && is_signed_by(&received, &hook.secret));
    assert_eq!(signatures(&received), 2);
}

#[contract_test]
async fn both_signatures_verify_in_the_standard_library(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let other =
        entity.hook_with(json!({ "name": "x", "eventUrl": "http://127.0.0.1:9/", "eventList": [], "enabled": false }));
    let new = entity.new_secret(&hook.id).await;
    let other = other.await.secret;
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

#[contract_test]
async fn a_secret_is_shown_once_and_never_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let secrets = [hook.secret.clone(), entity.new_secret(&hook.id).await, entity.new_secret(&hook.id).await];
    assert_eq!(secrets.iter().collect::<HashSet<_>>().len(), 3);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    // The removal below also removes the webhook's item.
    let items = suite.table().scan().await;
    let sort = format!("WHK#{}", hook.id);
    assert!(items.iter().any(|item| item["sk"]["S"] == sort), "the webhook is in the table");
    let mut texts = Vec::new();
    for call in [
        entity.get(&format!("/webhook/{}", hook.id)),
        entity.get("/webhook/list"),
        entity.change(&hook.id, &json!({ "name": "other" })),
        entity.get(&format!("/webhook/delivery/{id}")),
        entity.remove(&hook.id),
    ] {
        texts.push(call.expect(200).await.text());
    }
    let logs = suite.bundle().whole_logs();
    for secret in &secrets {
        let key = secret.trim_start_matches("whsec_");
        assert!(texts.iter().all(|text| !text.contains(key)), "a secret was shown again");
        assert!(!logs.contains(key), "a log contains a secret");
    }
    let of_secrets = |text: &str| text.replace("previousSecretExpiresDate", "").contains("ecret");
    assert!(!texts.iter().any(|text| of_secrets(text)), "{texts:#?}");
    // The table contains only sealed secrets.
    for item in items {
        let item = item.to_string();
        assert!(secrets.iter().all(|secret| !item.contains(secret.trim_start_matches("whsec_"))), "{item}");
    }
}

#[contract_test]
async fn a_new_secret_changes_when_the_webhook_was_changed_and_not_its_version(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let before = entity.webhook(&hook.id).await;
    entity.new_secret(&hook.id).await;
    let mut after = entity.webhook(&hook.id).await;
    assert!(time(&after["lastUpdate"]) > time(&before["lastUpdate"]));
    after["lastUpdate"] = before["lastUpdate"].clone();
    after.as_object_mut().expect("openapi.yaml says so").remove("previousSecretExpiresDate");
    assert_eq!(after, before);
    // Therefore, a client that read the webhook earlier can still change it.
    assert_eq!(entity.changed(&hook.id, json!({ "name": "n", "version": 1 })).await["version"], 2);
}

/// When the previous secret ends, according to the webhook and the list; `None` if there is no such secret.
async fn previous_ends(entity: &Entity, hook: &Hook) -> Option<Timestamp> {
    let shown = entity.webhook(&hook.id).await;
    let listed = entity.listed(hook).await;
    let end = shown.get("previousSecretExpiresDate").cloned();
    assert_eq!(listed.get("previousSecretExpiresDate").cloned(), end);
    end.map(|end| time(&end))
}

#[contract_test]
async fn a_rotation_while_two_secrets_sign_ends_the_older_one_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let second = entity.new_secret(&hook.id).await;
    let third = entity.new_secret(&hook.id).await;
    let received = delivered(&entity, &receiver).await;
    let signed = [&hook.secret, &second, &third].map(|secret| is_signed_by(&received, secret));
    assert_eq!((signed, signatures(&received)), ([false, true, true], 2));
}

#[contract_test]
async fn a_rotation_ends_no_secret_before_its_time_unless_it_says_so(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let first = entity.rotate(&hook.id).expect(200).await;
    let end = first.json()["previousSecretExpiresDate"].clone();
    for body in [json!({}), json!({ "overlapSeconds": 0 }), json!({ "endPrevious": false })] {
        let problem = entity.rotate(&hook.id).json(&body).refused(409, "previous-secret-live").await;
        assert_eq!(problem["properties"]["previousSecretExpiresDate"], end, "{problem:#}");
    }
    let received = delivered(&entity, &receiver).await;
    let signed = [&hook.secret, &secret_of(&first)].map(|secret| is_signed_by(&received, secret));
    assert_eq!((signed, signatures(&received)), ([true, true], 2), "the first secret signs until its promised end");

    let agent = Agent::of(&entity).await;
    let mut arguments = json!({ "webhookIdentifier": hook.id });
    let refused = agent.refused("rotate_webhook_secret", arguments.clone()).await;
    assert_eq!(refused["kind"], "previous-secret-live", "{refused:#}");
    arguments["endPrevious"] = json!(true);
    let last = agent.call("rotate_webhook_secret", arguments).await;
    let last = last["signingSecret"].as_str().expect("a text");
    let received = delivered(&entity, &receiver).await;
    let signed = [&*hook.secret, &secret_of(&first), last].map(|secret| is_signed_by(&received, secret));
    assert_eq!((signed, signatures(&received)), ([false, true, true], 2));
}

#[contract_test]
async fn of_rotations_at_once_the_last_two_secrets_sign(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let answers =
        join_all((0..5).map(|_| entity.rotate(&hook.id).json(&json!({ "endPrevious": true })).expect(200))).await;
    let secrets: Vec<String> = answers.iter().map(secret_of).collect();
    let received = delivered(&entity, &receiver).await;
    let signing = secrets.iter().filter(|secret| is_signed_by(&received, secret)).count();
    assert_eq!((signing, signatures(&received)), (2, 2), "the two shown secrets sign");
}

#[contract_test]
async fn a_rotation_whose_answer_from_the_table_is_lost_is_made_once(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "rotation".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let webhook = hook.id.clone();
    let rotates = move |call: &AwsCall| call.operation == "UpdateItem" && call.mentions(&webhook);
    let mut held = setup.table.hold("rotated, answer lost", Moment::After, rotates);
    let lost = async move {
        held.reached().await;
        held.lose();
    };
    let (answer, ()) = join(entity.rotate(&hook.id).expect(200), lost).await;
    let received = delivered(&entity, &receiver).await;
    let new = secret_of(&answer);
    assert!(is_signed_by(&received, &new) && is_signed_by(&received, &hook.secret), "the owner may have either secret");
    assert_eq!(signatures(&received), 2);
    assert!(setup.bundle.stop().await.success());
}

async fn item_of(suite: &Suite, entity: &Entity, hook: &Hook) -> Value {
    let partition = format!("ENT#{}", entity.id);
    let sort = format!("WHK#{}", hook.id);
    suite.table().item(&partition, &sort).await.expect("the webhook is there")
}

#[contract_test]
async fn a_secret_that_has_ended_signs_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let new = entity.new_secret(&hook.id).await;
    // End the overlap early.
    let mut item = item_of(&suite, &entity, &hook).await;
    item["signingSecrets"]["L"][1]["M"]["expiresDate"]["S"] = "2026-01-01T00:00:00.000Z".into();
    suite.table().put(item).await;
    assert_eq!(previous_ends(&entity, &hook).await, None);
    let received = delivered(&entity, &receiver).await;
    let signed = [&hook.secret, &new].map(|secret| is_signed_by(&received, secret));
    assert_eq!((signed, signatures(&received)), ([false, true], 1));
}

#[contract_test]
async fn secrets_of_the_previous_release_sign_until_they_end(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let mut secrets = vec![hook.secret.clone()];
    let sealed = async || item_of(&suite, &entity, &hook).await["signingSecrets"]["L"][0].clone();
    let mut list = vec![sealed().await];
    for _ in 0..2 {
        secrets.push(entity.new_secret(&hook.id).await);
        list.insert(0, sealed().await);
    }
    let [last, earlier] = [20, 10].map(|hours| Timestamp::from_second(now() + hours * 3_600).expect("a time"));
    for (position, end) in [(1, last), (2, earlier)] {
        list[position]["M"]["expiresDate"] = json!({ "S": format!("{end:.3}") });
    }
    let mut item = item_of(&suite, &entity, &hook).await;
    item["signingSecrets"]["L"] = list.into();
    suite.table().put(item).await;
    let received = delivered(&entity, &receiver).await;
    assert!(secrets.iter().all(|secret| is_signed_by(&received, secret)) && signatures(&received) == 3);
    assert_eq!(previous_ends(&entity, &hook).await, Some(last), "the last of the ends");
    entity.end_previous_secret(&hook.id).expect(200).await;
    let received = delivered(&entity, &receiver).await;
    assert!(is_signed_by(&received, &secrets[2]) && signatures(&received) == 1);
}

#[contract_test]
async fn the_owner_says_how_long_the_old_secret_signs(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    assert_eq!(previous_ends(&entity, &hook).await, None);
    let week = json!({ "overlapSeconds": 604_800, "endPrevious": true });
    for (body, seconds) in [(json!({}), 86_400), (week, 604_800)] {
        let before = now();
        let answer = entity.rotate(&hook.id).json(&body).expect(200).await.json();
        let end = time(&answer["previousSecretExpiresDate"]);
        assert!((before..=now()).contains(&(end.as_second() - seconds)), "{body}: the old secret ends at {end}");
        assert_eq!(previous_ends(&entity, &hook).await, Some(end), "{body}");
    }
    let at_once = json!({ "overlapSeconds": 0, "endPrevious": true });
    let answer = entity.rotate(&hook.id).json(&at_once).expect(200).await;
    assert!(time(&answer.json()["previousSecretExpiresDate"]).as_second() <= now());
    assert_eq!(previous_ends(&entity, &hook).await, None);
    let received = delivered(&entity, &receiver).await;
    assert!(is_signed_by(&received, &secret_of(&answer)) && signatures(&received) == 1);
    for bad in [json!(604_801), json!(-1), json!(1.5), json!("60"), Value::Null] {
        let call = entity.rotate(&hook.id).json(&json!({ "overlapSeconds": bad }));
        assert_eq!(invalid_values(&call.refused(400, "invalid-request").await), ["body/overlapSeconds"], "{bad}");
    }
}

#[contract_test]
async fn the_previous_secret_is_ended_at_once_and_the_webhook_says_so(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let new = entity.new_secret(&hook.id).await;
    assert!(previous_ends(&entity, &hook).await.is_some());
    let before = entity.webhook(&hook.id).await;
    let ended = entity.end_previous_secret(&hook.id).expect(200).await.json();
    assert_eq!((&ended["id"], ended.get("success")), (&json!(hook.id), None));
    let after = entity.webhook(&hook.id).await;
    assert!(after.get("previousSecretExpiresDate").is_none(), "{after:#}");
    assert!(after["version"] == before["version"] && time(&after["lastUpdate"]) > time(&before["lastUpdate"]));
    let received = delivered(&entity, &receiver).await;
    let signed = [&hook.secret, &new].map(|secret| is_signed_by(&received, secret));
    assert_eq!((signed, signatures(&received)), ([false, true], 1));
    // Repeating the request, as after a lost response, changes nothing, and the response says so.
    let again = entity.end_previous_secret(&hook.id).expect(200).await.json();
    assert_ne!(again["message"], ended["message"]);
    assert_eq!(entity.webhook(&hook.id).await, after);
    assert!(is_signed_by(&delivered(&entity, &receiver).await, &new));
}

#[contract_test]
async fn only_the_owner_ends_a_secret(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let stranger = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    entity.new_secret(&hook.id).await;
    for id in [hook.id.as_str(), "whk_00000000000000000000000000", "nothing"] {
        stranger.end_previous_secret(id).refused(404, "webhook-not-found").await;
    }
    assert!(previous_ends(&entity, &hook).await.is_some());
}

#[contract_test]
async fn a_rotation_needs_no_body(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    entity.rotate(&hook.id).json(&json!({})).expect(200).await;
    let other = entity.hook("http://127.0.0.1:9/").await;
    entity.rotate(&other.id).body("application/json", "").expect(200).await;
    for body in [r#"{"signingSecret":"whsec_AAAA"}"#, "[]", "null", "{"] {
        entity.rotate(&hook.id).body("application/json", body).refused(400, "invalid-request").await;
    }
    entity.rotate(&hook.id).body("text/plain", "{}").refused(415, "unsupported-media-type").await;
}
