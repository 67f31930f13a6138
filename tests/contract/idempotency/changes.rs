//! Changes and removals with an idempotency key: if a client repeats a request after losing the response, its own
//! change does not cause a conflict, nor its own removal a missing resource.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::json;

use super::asked::{is_first, is_replayed};
use crate::{
    applications::{KEY, made, made_with, of, shown, text},
    harness::{ApiResponse, Behaviour, Call, Choice, Entity, LONG, Receiver, Suite, until},
};

fn changing(entity: &Entity, path: &str, key: &str, body: &str) -> Call {
    entity.call("PATCH", path).header("idempotency-key", key).body("application/json", body)
}

fn removing(entity: &Entity, path: &str, key: &str) -> Call {
    entity.call("DELETE", path).header("idempotency-key", key)
}

/// A removal's final response. On a slow machine, a 202 leaves the rest of an erasure to a job.
async fn removed(entity: &Entity, path: &str, key: &str) -> ApiResponse {
    let mut is_repetition = false;
    let answer = until("the removal is complete", LONG, async || {
        let answer = removing(entity, path, key).answered().await;
        is_repetition |= answer.is_repetition || answer.status == 202;
        (answer.status != 202).then_some(answer)
    })
    .await;
    assert_eq!(answer.status, 200, "{}", answer.exchange);
    ApiResponse { is_repetition, ..answer }
}

#[contract_test]
async fn a_repeated_change_of_a_webhook_is_made_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let hook = entity.hook(&url).await;
    let path = format!("/webhook/{}", hook.id);
    let first = changing(&entity, &path, "first", r#"{"name":"new","version":1}"#).expect(200).await;
    assert!(is_first(&first) && first.json()["version"] == 2, "{}", first.exchange);
    // This is the same change, written differently.
    let again = changing(&entity, &path, "first", r#"{ "version": 1.0, "name": "\u006eew" }"#).expect(200).await;
    assert!(is_replayed(&again), "{}", again.exchange);
    assert_eq!(again.json(), first.json());
    let other = changing(&entity, &path, "first", r#"{"name":"other","version":1}"#);
    other.refused(409, "idempotency-conflict").await;
    entity.call("PATCH", &path).json(&json!({ "name": "new", "version": 1 })).refused(409, "version-conflict").await;

    // Each of these changes uses a different transaction.
    let pushed = json!({ "delivery": "push", "eventUrl": url }).to_string();
    let moved = json!({ "eventUrl": receiver.on("/other", [Behaviour::status(200)]) }).to_string();
    for (number, body) in [
        r#"{"enabled":false}"#,
        r#"{"enabled":true,"version":3}"#,
        r#"{"maxAttemptsPerSecond":5}"#,
        r#"{"timeoutSeconds":5,"retries":"none"}"#,
        r#"{"order":"subject"}"#,
        r#"{"order":"none"}"#,
        r#"{"signature":"ed25519"}"#,
        &moved,
        r#"{"maxAttemptsPerSecond":null}"#,
        r#"{"delivery":"pull"}"#,
        &pushed,
        "{}",
    ]
    .into_iter()
    .enumerate()
    {
        let key = number.to_string();
        let first = changing(&entity, &path, &key, body).expect(200).await;
        let again = changing(&entity, &path, &key, body).expect(200).await;
        assert_eq!((is_first(&first), is_replayed(&again)), (true, true), "{body}: {}", again.exchange);
        assert_eq!(again.json()["version"], first.json()["version"], "{body}");
    }
    // The response to a repeated request shows the current state.
    let current = entity.get(&path).expect(200).await.json();
    assert_eq!(changing(&entity, &path, "0", r#"{"enabled":false}"#).expect(200).await.json(), current);
    // A refused change does not use up its key.
    changing(&entity, &path, "free", r#"{"name":"late","version":1}"#).refused(409, "version-conflict").await;
    let late = changing(&entity, &path, "free", r#"{"name":"late"}"#).expect(200).await;
    assert!(is_first(&late), "{}", late.exchange);
    // Each method has its own keys.
    assert!(is_first(&removing(&entity, &path, "first").expect(200).await));
}

#[contract_test]
async fn a_repeated_change_of_an_application_is_made_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let path = of(&application, "");
    let first = changing(&entity, &path, "key", r#"{"name":"new","version":1}"#).expect(200).await;
    let again = changing(&entity, &path, "key", r#"{"version":1,"name":"new"}"#).expect(200).await;
    assert_eq!((is_first(&first), is_replayed(&again)), (true, true), "{}", again.exchange);
    assert_eq!((&first.json()["version"], again.json()), (&json!(2), first.json()));
    let nothing = |key: &str| changing(&entity, &path, key, r#"{"version":2}"#).expect(200);
    assert!(is_first(&nothing("nothing").await));
    changing(&entity, &path, "later", r#"{"name":"newer"}"#).expect(200).await;
    assert!(is_replayed(&nothing("nothing").await), "the version is another by now");
    changing(&entity, &path, "key", r#"{"name":"x"}"#).refused(409, "idempotency-conflict").await;
}

/// A resource to remove: its path, and the kind of error that a second removal gets; `None` if it succeeds as well.
type Removable = (String, Option<&'static str>);

/// One of each kind of resource that can be removed.
async fn removables(entity: &Entity, url: &str) -> Vec<Removable> {
    let hook = entity.hook(url).await;
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    let delivery = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    entity.until_status(delivery, &["delivered"]).await;
    let rotated = entity.hook(url).await;
    entity.rotate(&rotated.id).expect(200).await;
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "laptop" });
    let application = made_with(entity, json!({ "name": "n", "scopes": ["account.read"], "publicKeys": [key] })).await;
    let secret = text(&shown(entity, &application).await["secrets"][0], "id");
    let link = entity.post("/panel/link").json(&json!({})).expect(201).await.json();
    entity.link("sim-basic", Choice::ALLOW).await;
    vec![
        (format!("/webhook/event/{}/content", text(&published, "eventIdentifier")), None),
        (format!("/webhook/{}/secret/previous", rotated.id), None),
        (format!("/webhook/{}", hook.id), Some("webhook-not-found")),
        (of(&application, &format!("/secret/{secret}")), Some("credential-not-found")),
        (of(&application, "/key/laptop"), Some("credential-not-found")),
        (of(&application, ""), Some("application-not-found")),
        (format!("/panel/link/{}", text(&link, "id")), Some("panel-link-not-found")),
        ("/payment/provider/sim-basic/connection".to_owned(), Some("connection-not-found")),
    ]
}

#[contract_test]
async fn a_repeated_removal_gets_the_first_answer(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    for (path, other) in removables(&entity, &url).await {
        let first = removed(&entity, &path, "key").await;
        assert!(is_first(&first), "{}", first.exchange);
        for _ in 0..2 {
            let again = removing(&entity, &path, "key").expect(200).await;
            assert!(is_replayed(&again), "{}", again.exchange);
            assert_eq!(again.text(), first.text(), "{path}");
        }
        match other {
            Some(kind) => {
                removing(&entity, &path, "other").refused(404, kind).await;
                entity.call("DELETE", &path).refused(404, kind).await;
            }
            None => assert!(is_first(&removed(&entity, &path, "other").await), "{path}"),
        }
    }
}

#[contract_test]
async fn of_ten_removals_at_once_all_get_the_same_answer(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    // The responses to concurrent erasures differ, since they show the progress.
    let removables = removables(&entity, &url).await.into_iter().filter(|(path, _)| !path.ends_with("/content"));
    for (path, _) in removables {
        let answers = join_all((0..10).map(|_| removing(&entity, &path, "key").expect(200))).await;
        let texts: BTreeSet<_> = answers.iter().map(ApiResponse::text).collect();
        assert_eq!(texts.len(), 1, "{path}: {texts:#?}");
    }
}
