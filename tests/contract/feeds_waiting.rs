//! Readers that wait for a delivery: an entity may start a limited number of waits, a resent delivery reaches a waiting
//! reader, and a reader that has closed its connection gets nothing.

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::harness::{
    Application, Entity, Hook, LONG, Settings, Suite,
    feed::{answer, confirm, id, pulled, read, read_some, reading},
    is_limited, until,
};

/// A waiting request occupies an invocation, and all of an account's functions share invocations.
#[contract_test]
async fn an_entity_that_has_begun_its_waits_is_refused_before_it_waits(suite: Arc<Suite>) {
    let (entity, other) = (suite.entity().await, suite.entity().await);
    let (hook, of_other) = (pulled(&entity).await, pulled(&other).await);
    // As if the entity had started all its waits.
    suite.table().count_as_used(&format!("feed-waits#{}", entity.id), 10, 200).await;
    // On a busy machine, one response may take long, but a request that waits first always takes long.
    until("a request is refused before it waits", LONG, async || {
        let asked = Instant::now();
        let refused = reading(&entity, &hook, &json!({ "wait": 10 })).expect(429).await;
        is_limited(&refused, "feed-waits", 200, 10);
        (asked.elapsed() < Duration::from_secs(10)).then_some(())
    })
    .await;
    assert!(read(&entity, &hook, json!({})).await.is_empty(), "a request that does not wait is accepted");
    assert!(read(&other, &of_other, json!({ "wait": 1 })).await.is_empty(), "the other entity waits");
    let published = entity.publish(json!({})).await;
    entity.until_delivery(&published, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    assert_eq!(id(&read(&entity, &hook, json!({ "wait": 10 })).await[0]), published, "nothing has to wait");
}

/// A busy machine may not manage this within a reader's longest wait, but a reader that does not see a resend never
/// does.
#[contract_test]
async fn a_resent_delivery_reaches_a_reader_that_already_waits(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,40s,40s");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "waits".to_owned()).await;
    let hook = pulled(&entity).await;
    // When the reader begins, the delivery is waiting for its next attempt, or is still held by its first reader.
    for is_held in [false, true] {
        until("a waiting reader soon gets a resent delivery", LONG, async || {
            resent_soon(&entity, &hook, is_held).await.then_some(())
        })
        .await;
    }
    assert!(bundle.stop().await.success());
}

/// Resends a delivery while a reader waits; returns whether the reader got it soon afterwards.
async fn resent_soon(entity: &Entity, hook: &Hook, is_held: bool) -> bool {
    /// One second, with a margin for a slow machine.
    const SOON: Duration = Duration::from_secs(4);
    let published = entity.publish(json!({ "isHeld": is_held })).await;
    let first = read_some(entity, hook, json!({ "visibility": 60 })).await;
    assert_eq!(first.iter().map(id).collect::<Vec<_>>(), [&published]);
    let failure = json!({ "failed": [{ "receipt": first[0]["receipt"], "reason": "busy" }] });
    let report = async || assert_eq!(answer(entity, hook, failure.clone()).await, ["failed"]);
    if !is_held {
        report().await;
    }
    let resending = async {
        sleep(Duration::from_secs(2)).await;
        if is_held {
            report().await;
        }
        entity.post(&format!("/webhook/delivery/{published}/resend")).once().expect(202).await;
        Instant::now()
    };
    let reading = async { (read(entity, hook, json!({ "wait": 10 })).await, Instant::now()) };
    let ((mut found, arrived), resent) = tokio::join!(reading, resending);
    let is_soon = !found.is_empty() && arrived.saturating_duration_since(resent) < SOON;
    if found.is_empty() {
        found = read_some(entity, hook, json!({})).await;
    }
    assert_eq!(found.iter().map(id).collect::<Vec<_>>(), [&published]);
    assert_eq!(confirm(entity, hook, &found).await, ["confirmed"]);
    assert_eq!(entity.delivery(&published).await["status"], "delivered");
    is_soon
}

/// As happens when a waiting browser or program is closed. A busy machine may notice the end of a connection only after
/// it has given the delivery to it, but a machine that does not look at connections always does.
#[contract_test]
async fn a_reader_that_has_closed_its_connection_gets_nothing(suite: Arc<Suite>) {
    until("only a reader that waits gets the delivery", LONG, async || {
        (attempts_after_closed_readers(&suite).await? == 1).then_some(())
    })
    .await;
}

/// The number of attempts that it takes to read a delivery after two readers have closed their connections; `None` if
/// these did not wait.
async fn attempts_after_closed_readers(suite: &Suite) -> Option<u64> {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let token = suite.api.token(Application::Platform, "").await;
    let path = entity.path(&format!("/webhook/{}/feed/read", hook.id));
    let body = r#"{"wait":10,"visibility":10}"#;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..2 {
        let mut waiting = TcpStream::connect(("127.0.0.1", suite.bundle().port)).await.expect("the bundle listens");
        waiting.write_all(request.as_bytes()).await.expect("sent");
        let early = timeout(Duration::from_secs(2), waiting.read_u8()).await;
        if early.is_ok() {
            return None;
        }
    }
    // Let the gateway notice that the connections have ended.
    sleep(Duration::from_millis(500)).await;
    let published = entity.publish(json!({})).await;
    let found = read_some(&entity, &hook, json!({})).await;
    assert_eq!(id(&found[0]), published);
    assert_eq!(confirm(&entity, &hook, &found).await, ["confirmed"]);
    let delivered = entity.until_status(&published, &["delivered"]).await;
    delivered["attemptCount"].as_u64()
}
