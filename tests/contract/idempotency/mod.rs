//! Idempotency keys: a repeated request with the same key is carried out once and gets the first response. The module
//! `publish` tests the additional promises about publishing.

pub mod asked;
mod changes;
pub mod records;

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    applications::{forged, text},
    harness::{ApiResponse, Behaviour, Entity, LONG, Receiver, Suite, invalid_values, until},
};
use asked::{Wanted, is_first, is_replayed, of_each};

#[contract_test]
async fn a_repeated_request_gets_the_first_answer_and_creates_nothing(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    for (entity, asked) in of_each(&suite, Wanted::ALL, &url).await {
        let wanted = asked.wanted;
        let before = asked.count(&entity).await;
        let first = asked.call(&entity, "key").expect(asked.status).await;
        assert!(is_first(&first), "{wanted:?}: {}", first.exchange);
        // A request that is written differently is still the same request.
        let body: Value = serde_json::from_str(&asked.body).expect("JSON");
        let rewritten = serde_json::to_string_pretty(&body).expect("JSON");
        for again in [&asked.body, &rewritten] {
            let again = asked.with_body(&entity, " key\t", again).expect(asked.status).await;
            assert!(is_replayed(&again), "{wanted:?}: {}", again.exchange);
            assert_eq!(again.text(), first.text(), "{wanted:?}");
            for header in ["location", "cache-control"] {
                assert_eq!(again.header(header), first.header(header), "{wanted:?}");
            }
        }
        assert_eq!(asked.count(&entity).await, before + 1, "{wanted:?}");
        // Another key creates another resource; the application cannot get the same public key or a third secret.
        if wanted != Wanted::Key && wanted != Wanted::ClientSecret {
            let other = asked.call(&entity, "other").expect(asked.status).await;
            assert!(is_first(&other) && other.text() != first.text(), "{wanted:?}: {}", other.exchange);
            // Creating another signing secret may end a previous one.
            assert!(wanted == Wanted::SigningSecret || asked.count(&entity).await == before + 2, "{wanted:?}");
        }
    }
}

#[contract_test]
async fn another_body_under_the_same_key_is_a_conflict(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    for (entity, asked) in of_each(&suite, Wanted::ALL, &url).await {
        let wanted = asked.wanted;
        asked.call(&entity, "key").expect(asked.status).await;
        let count = asked.count(&entity).await;
        asked.with_body(&entity, "key", &asked.other).refused(409, "idempotency-conflict").await;
        assert_eq!(asked.count(&entity).await, count, "{wanted:?}");
    }
}

#[contract_test]
async fn of_twenty_at_once_one_is_carried_out_and_all_get_its_answer(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    for (entity, asked) in of_each(&suite, Wanted::ALL, &url).await {
        let wanted = asked.wanted;
        let before = asked.count(&entity).await;
        let answers = join_all((0..20).map(|_| asked.call(&entity, "key").expect(asked.status))).await;
        let texts: BTreeSet<_> = answers.iter().map(ApiResponse::text).collect();
        assert_eq!(texts.len(), 1, "{wanted:?}: {texts:#?}");
        // The first response may have been a 503.
        assert!(answers.iter().filter(|answer| !is_replayed(answer)).count() <= 1, "{wanted:?}");
        assert_eq!(asked.count(&entity).await, before + 1, "{wanted:?}");
    }
}

#[contract_test]
async fn of_two_bodies_at_once_one_is_carried_out(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    for (entity, asked) in of_each(&suite, Wanted::ALL, &url).await {
        let wanted = asked.wanted;
        let before = asked.count(&entity).await;
        let bodies = [&asked.body, &asked.other];
        let calls = (0..10).map(|number| asked.with_body(&entity, "key", bodies[number % 2]).answered());
        let statuses: Vec<u16> = join_all(calls).await.iter().map(|answer| answer.status).collect();
        let mut of_bodies = [0, 1].map(|body| statuses.iter().skip(body).step_by(2).collect::<BTreeSet<_>>());
        of_bodies.sort();
        assert_eq!(of_bodies, [[&asked.status].into(), [&409].into()], "{wanted:?}: {statuses:?}");
        assert_eq!(asked.count(&entity).await, before + 1, "{wanted:?}");
    }
}

#[contract_test]
async fn a_repeated_publication_says_that_it_is_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({ "type": "booking.created", "data": {} });
    let publish = || entity.post("/webhook/event").header("idempotency-key", "key").json(&body).expect(202);
    assert!(is_first(&publish().await));
    assert!(is_replayed(&publish().await));
    assert!(is_first(&entity.post("/webhook/event").json(&body).expect(202).await));
}

#[contract_test]
async fn a_resend_is_done_once_for_its_key(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let delivery = entity.deliver_to(&receiver.on("/", [Behaviour::status(200)])).await;
    let path = format!("/webhook/delivery/{}/resend", text(&delivery, "id"));
    let resend =
        |key: &str, body: &str| entity.post(&path).header("idempotency-key", key).body("application/json", body);
    let answers = join_all((0..10).map(|_| resend("key", "{}").expect(202))).await;
    // The first answer may have been a 503.
    assert!(answers.iter().filter(|answer| !is_replayed(answer)).count() <= 1);
    let id = text(&delivery, "id");
    let is_attempted =
        |times: u64| move |delivery: &Value| delivery["attemptCount"] == times && delivery["status"] == "delivered";
    entity.until_delivery(&id, "is delivered again", is_attempted(2)).await;
    // The response shows the current state.
    let again = resend("key", "{}").expect(202).await;
    assert!(is_replayed(&again));
    assert_eq!((&again.json()["attemptCount"], &again.json()["status"]), (&json!(2), &json!("delivered")));
    assert!(is_replayed(&resend("key", " { } ").expect(202).await), "it has the same members, none");
    // Another key sends the delivery again, once; if a repetition had sent it, there would be more attempts.
    assert!(is_first(&resend("other", "{}").expect(202).await));
    entity.until_delivery(&id, "is delivered once more", is_attempted(3)).await;
    assert_eq!(receiver.received("/").len(), 3);
}

#[contract_test]
async fn a_recovery_is_begun_once_for_its_key(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let delivery = entity.deliver_to(&receiver.on("/", [Behaviour::status(500)])).await;
    let id = text(&delivery, "id");
    let webhook = text(&delivery, "webhookIdentifier");
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("failed"), &json!(3)));
    let recover =
        |body: &Value| entity.post(&format!("/webhook/{webhook}/recover")).header("idempotency-key", "key").json(body);
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let other = json!({ "createdFrom": "2020-01-02T00:00:00Z" });
    let answers = join_all((0..10).map(|_| recover(&range).expect(202))).await;
    let texts: BTreeSet<_> = answers.iter().map(ApiResponse::text).collect();
    assert_eq!(texts.len(), 1, "{texts:#?}");
    assert_eq!(answers[0].json()["count"], 1);
    // The first answer may have been a 503.
    assert!(answers.iter().filter(|answer| !is_replayed(answer)).count() <= 1);
    let failed_again = |delivery: &Value| delivery["attemptCount"] == 6 && delivery["status"] == "failed";
    entity.until_delivery(&id, "has failed again", failed_again).await;
    let job = format!("JOB#{webhook}");
    let is_over = async || suite.table().item(&job, "RECOVER").await.is_none().then_some(());
    until("the recovery is over", LONG, is_over).await;
    // The delivery has failed again, so it would be recovered if the request were carried out again.
    let again = recover(&range).expect(202).await;
    assert!(is_replayed(&again) && again.json()["count"] == 1, "{}", again.exchange);
    recover(&other).refused(409, "idempotency-conflict").await;
    assert_eq!(suite.table().item(&job, "RECOVER").await, None, "no further recovery is requested");
    // "Nothing to recover" is also stored as the key's response.
    let another = suite.entity().await;
    let quiet = another.hook(&receiver.on("/quiet", [Behaviour::status(200)])).await;
    let nothing = || {
        let call = another.post(&format!("/webhook/{}/recover", quiet.id)).header("idempotency-key", "key");
        call.json(&range).expect(202)
    };
    let first = nothing().await;
    let again = nothing().await;
    assert_eq!((first.json()["count"].clone(), is_first(&first)), (json!(0), true));
    assert_eq!((again.text(), is_replayed(&again)), (first.text(), true));
}

#[contract_test]
async fn a_key_belongs_to_its_application_its_entity_and_its_address(suite: Arc<Suite>) {
    let one = suite.entity().await;
    let other = suite.entity().await;
    let url = "https://hooks.example.com/";
    let asked = Wanted::Webhook.asked(&one, url).await;
    let token = |client: &str| {
        let forge = suite.forge();
        let mut claims = forge.claims();
        claims["client_id"] = client.into();
        claims["managing_entities"] = json!(["*"]);
        forge.token(&forge.header(), &claims)
    };
    let first = token("appFirst");
    let second = token("appSecond");
    let ask = |entity: &Entity, token: &str| asked.by(&suite.api, entity, token, "key").expect(201);
    let made = ask(&one, &first).await;
    for (entity, token) in [(&one, &second), (&other, &first)] {
        let answer = ask(entity, token).await;
        assert!(is_first(&answer) && answer.json()["id"] != made.json()["id"], "{}", answer.exchange);
    }
    // The same application uses another token.
    assert_eq!(ask(&one, &token("appFirst")).await.text(), made.text());
    // Keys are separate for each path, even within one operation.
    let ids: Vec<String> = one
        .get("/webhook/list")
        .expect(200)
        .await
        .json()
        .as_array()
        .expect("a list")
        .iter()
        .map(|webhook| text(webhook, "id"))
        .collect();
    assert_eq!(ids.len(), 2);
    for id in &ids {
        let call = suite.api.post(one.path(&format!("/webhook/{id}/secret"))).bearer(&first);
        let answer = call.header("idempotency-key", "key").expect(200).await;
        assert!(is_first(&answer), "{}", answer.exchange);
    }
}

#[contract_test]
async fn a_key_of_a_wrong_form_is_a_violation(suite: Arc<Suite>) {
    let url = "https://hooks.example.com/";
    let entity = suite.entity().await;
    for wanted in Wanted::ALL {
        let asked = wanted.asked(&entity, url).await;
        let count = asked.count(&entity).await;
        for key in [&b""[..], &[b'x'; 256], "schlüssel".as_bytes()] {
            let call = entity.post(&asked.path).header("idempotency-key", key);
            let call = call.body("application/json", asked.body.as_str());
            assert_eq!(
                invalid_values(&call.refused(400, "invalid-request").await),
                ["header/Idempotency-Key"],
                "{wanted:?}"
            );
        }
        assert_eq!(asked.count(&entity).await, count, "{wanted:?}");
        asked.call(&entity, &"x".repeat(255)).expect(asked.status).await;
    }
}

#[contract_test]
async fn a_refused_request_does_not_use_its_key(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let wrong = json!({ "name": "", "eventUrl": "https://hooks.example.com/", "eventList": [] });
    entity.post("/webhook").header("idempotency-key", "key").json(&wrong).expect(400).await;
    let asked = Wanted::Webhook.asked(&entity, "https://hooks.example.com/").await;
    asked.call(&entity, "key").expect(201).await;
    // A refusal due to a resource's state is also stored.
    let asked = Wanted::ClientSecret.asked(&entity, "").await;
    asked.call(&entity, "first").expect(200).await;
    asked.call(&entity, "second").refused(409, "client-secret-limit").await;
    let secrets = entity.get(&format!("/application/{}", asked.about)).expect(200).await.json()["secrets"].clone();
    let oldest = text(secrets.as_array().and_then(|all| all.last()).expect("two secrets"), "id");
    entity.call("DELETE", &format!("/application/{}/secret/{oldest}", asked.about)).expect(200).await;
    assert!(is_first(&asked.call(&entity, "second").expect(200).await));
}

#[contract_test]
async fn a_repetition_by_a_token_that_lacks_a_right_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let every = forged(&suite, "account.write account.read integrations.write integrations.read", &[&entity.id]);
    let own = forged(&suite, "account.write", &[&entity.id]);
    let foreign = forged(&suite, "account.write account.read integrations.read", &["another-hotel"]);
    for wanted in [Wanted::Application, Wanted::ClientSecret, Wanted::Key] {
        let asked = wanted.asked(&entity, "").await;
        asked.by(api, &entity, &every, "key").expect(asked.status).await;
        // The application has scopes that this token lacks, so this token may not reveal the application's secrets.
        asked.by(api, &entity, &own, "key").refused(403, "insufficient-scope").await;
        asked.by(api, &entity, &foreign, "key").refused(403, "entity-not-covered").await;
        assert!(is_replayed(&asked.by(api, &entity, &every, "key").expect(asked.status).await), "{wanted:?}");
    }
    let asked = Wanted::Webhook.asked(&entity, "https://hooks.example.com/").await;
    asked.by(api, &entity, &every, "key").expect(201).await;
    asked.by(api, &entity, &own, "key").refused(403, "insufficient-scope").await;
}
