//! Connections to endpoints are kept open between attempts, separately for each managing entity. No receiver gets
//! another receiver's data, the history shows every request, and an idle connection that was closed costs no attempt.

use std::{fs, sync::Arc, time::Duration};

use contract_test::contract_test;
use fakes::{Authority, TlsFront};
use serde_json::{Value, json};

use crate::{
    harness::{Behaviour, Entity, Receiver, Settings, Suite, outcomes},
    receivers::did_not_complete,
};

/// An attempt ended for a reason unrelated to its endpoint: the machine stalled for so long that one of the service's
/// deadlines passed.
struct Disturbed;

/// The result of a test's round, unless the round was disturbed.
type Round<T> = Result<T, Disturbed>;

/// Repeats a round until nothing disturbs it.
async fn undisturbed<T>(mut round: impl AsyncFnMut() -> Round<T>) -> T {
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        if let Ok(found) = round().await {
            return found;
        }
    }
    panic!("an attempt of each of {ROUNDS} rounds was interrupted or timed out");
}

/// Publishes an event and waits for its delivery's first attempt.
async fn deliver(entity: &Entity) -> Round<Value> {
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_delivery(&id, "has its first attempt", |delivery| delivery["attemptCount"] != 0).await;
    not_stalled(&delivery["attempts"][0])?;
    Ok(delivery)
}

/// Fails if the machine, rather than the endpoint, ended the attempt.
fn not_stalled(attempt: &Value) -> Round<()> {
    let error = attempt["error"].as_str().unwrap_or_default();
    let stalled = ["interrupted: ", "timeout: "].iter().any(|stalled| error.starts_with(stalled));
    if stalled { Err(Disturbed) } else { Ok(()) }
}

async fn is_delivered_at_once(entity: &Entity) -> Round<()> {
    let delivery = deliver(entity).await?;
    assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1), "{delivery:#}");
    Ok(())
}

/// An entity with a webhook whose receiver follows this script.
async fn hooked(suite: &Suite, script: impl Into<Vec<Behaviour>>) -> (Entity, Receiver) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", script)).await;
    (entity, receiver)
}

/// Asserts that a round uses this many connections. A round may need more, since a connection expires when the machine
/// stalls, and another dispatcher process has separate connections.
async fn assert_connections(expected: usize, mut round: impl AsyncFnMut() -> Round<usize>) {
    const ROUNDS: usize = 10;
    let mut connections = Vec::new();
    while connections.len() < ROUNDS {
        connections.push(undisturbed(&mut round).await);
        assert!(connections.last() >= Some(&expected), "{connections:?}");
        if connections.last() == Some(&expected) {
            return;
        }
    }
    panic!("expected {expected} connections in a round: {connections:?}");
}

#[contract_test]
async fn attempts_of_an_entity_at_an_endpoint_share_a_connection(suite: Arc<Suite>) {
    assert_connections(1, async || {
        let (entity, receiver) = hooked(&suite, [Behaviour::status(204)]).await;
        for _ in 0..3 {
            is_delivered_at_once(&entity).await?;
        }
        assert_eq!(receiver.everything().len(), 3);
        Ok(receiver.connections())
    })
    .await;
}

#[contract_test]
async fn attempts_behind_tls_share_a_connection(suite: Arc<Suite>) {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trusted = folder.path().join("trusted.pem");
    fs::write(&trusted, authority.pem()).expect("a file in a temporary folder");
    let settings = Settings::default().with("SSL_CERT_FILE", trusted.display().to_string());
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let mut round = 0;
    assert_connections(1, async || {
        round += 1;
        let entity = Entity::new(&api, format!("kept-tls-{round}")).await;
        let receiver = Receiver::start().await;
        receiver.on("/", [Behaviour::answer(200, &[], "thanks")]);
        let front = TlsFront::start(authority.issue(&["127.0.0.1"], false), receiver.address).await;
        entity.hook(&front.url("/")).await;
        for _ in 0..3 {
            is_delivered_at_once(&entity).await?;
        }
        assert_eq!(receiver.everything().len(), 3);
        Ok(receiver.connections())
    })
    .await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn entities_share_no_connection(suite: Arc<Suite>) {
    assert_connections(2, async || {
        let (entity, receiver) = hooked(&suite, [Behaviour::status(204)]).await;
        let other = suite.entity().await;
        other.hook(&receiver.url("/")).await;
        for entity in [&entity, &other, &entity, &other] {
            is_delivered_at_once(entity).await?;
        }
        assert_eq!(receiver.everything().len(), 4);
        Ok(receiver.connections())
    })
    .await;
}

#[contract_test]
async fn a_premature_answer_does_not_deliver_another_delivery(suite: Arc<Suite>) {
    undisturbed(async || {
        let ahead = Behaviour::answer(204, &[], "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nforged!");
        let (entity, receiver) = hooked(&suite, [ahead, Behaviour::answer(500, &[], "honest")]).await;
        is_delivered_at_once(&entity).await?;
        let delivery = deliver(&entity).await?;
        let attempt = &delivery["attempts"][0];
        assert_eq!((&attempt["httpStatus"], &attempt["responseBody"]), (&json!(500), &json!("honest")), "{delivery:#}");
        assert_eq!(receiver.connections(), 2);
        Ok(())
    })
    .await;
}

#[contract_test]
async fn an_endpoint_that_closes_its_connections_costs_no_attempt(suite: Arc<Suite>) {
    undisturbed(async || {
        let closes = Behaviour::raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let (entity, receiver) = hooked(&suite, [closes]).await;
        for _ in 0..3 {
            is_delivered_at_once(&entity).await?;
        }
        assert_eq!((receiver.everything().len(), receiver.connections()), (3, 3), "no request was sent twice");
        Ok(())
    })
    .await;
}

/// The endpoint has already read the event on a kept connection, so the request must not be sent again within the same
/// attempt.
#[contract_test]
async fn every_request_is_an_attempt_of_the_history(suite: Arc<Suite>) {
    for breaks in [
        Behaviour::close(),
        Behaviour::reset(),
        Behaviour::reset().after(Duration::from_millis(700)),
        Behaviour::raw("H"),
    ] {
        undisturbed(async || {
            let (entity, receiver) = hooked(&suite, [Behaviour::status(204), breaks.clone()]).await;
            is_delivered_at_once(&entity).await?;
            let id = entity.publish(json!({})).await;
            let delivery = entity.until_status(&id, &["failed", "delivered"]).await;
            // An interrupted attempt may have sent its request or not.
            delivery["attempts"].as_array().into_iter().flatten().try_for_each(not_stalled)?;
            did_not_complete(&delivery["attempts"][0], "connect");
            let attempts = delivery["attemptCount"].as_u64().expect("openapi.yaml says so");
            assert_eq!(receiver.everything().len() as u64, 1 + attempts, "{delivery:#}");
            Ok(())
        })
        .await;
    }
}

#[contract_test]
async fn a_truncated_answer_does_not_spill_into_the_next_attempt(suite: Arc<Suite>) {
    undisturbed(async || {
        let long = Behaviour::answer(200, &[], "x".repeat(100_000));
        let (entity, receiver) = hooked(&suite, [long, Behaviour::answer(200, &[], "short")]).await;
        is_delivered_at_once(&entity).await?;
        let delivery = deliver(&entity).await?;
        assert_eq!(delivery["attempts"][0]["responseBody"], "short", "{delivery:#}");
        assert_eq!(receiver.connections(), 2);
        Ok(())
    })
    .await;
}
