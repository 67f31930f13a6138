//! Retries: the time and content of the next attempt, and when there is none.

use std::sync::Arc;

use contract_test::contract_test;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::harness::{Behaviour, LONG, Receiver, Suite, is_signed_by, now, time, until};

fn statuses(delivery: &Value) -> Vec<&Value> {
    let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
    attempts.iter().map(|attempt| &attempt["httpStatus"]).collect()
}

#[contract_test]
async fn a_delivery_is_retried_until_it_succeeds(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let broken = Behaviour::answer(500, &[], "broken").closing();
    let script = [broken, Behaviour::reset(), Behaviour::answer(200, &[], "fine")];
    entity.hook(&receiver.on("/", script)).await;
    let id = entity.publish(json!({})).await;
    let retrying =
        entity.until_delivery(&id, "shows its first attempt", |delivery| delivery["attemptCount"] != 0).await;
    assert!(["retrying", "delivered"].contains(&retrying["status"].as_str().expect("text")), "{retrying:#}");
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!(delivery["status"], "delivered");
    assert_eq!(delivery["attemptCount"], 3);
    assert_eq!(delivery["lastHttpStatus"], 200);
    assert_eq!(statuses(&delivery), [&json!(500), &Value::Null, &json!(200)]);
    let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
    let numbers: Vec<&Value> = attempts.iter().map(|attempt| &attempt["attemptNumber"]).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(attempts[0]["responseBody"], "broken");
    assert!(attempts[1]["error"].as_str().is_some_and(|error| error.starts_with("connect: ")), "{}", attempts[1]);
    assert!(attempts[0].get("error").is_none() && attempts[2].get("error").is_none());
    assert!(attempts.is_sorted_by_key(|attempt| time(&attempt["attemptDate"])));
    assert_eq!(receiver.received("/").len(), 3);
}

#[contract_test]
async fn an_exhausted_delivery_is_failed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(500), Behaviour::status(404), Behaviour::status(302)])).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!(delivery["status"], "failed");
    assert_eq!(statuses(&delivery), [500, 404, 302]);
    assert_eq!(delivery["lastHttpStatus"], 302);
    assert!(delivery.get("nextAttemptDate").is_none(), "{delivery:#}");
    let listed = entity.get("/webhook/list").expect(200).await.json();
    assert_eq!(listed[0]["enabled"], true, "a failure does not disable a webhook at once");
}

#[contract_test]
async fn every_attempt_sends_the_same_bytes_under_a_fresh_signature(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let id = entity.publish(json!({ "a": [1, 2.50, "ü"] })).await;
    entity.until_status(&id, &["failed"]).await;
    let received = receiver.received("/");
    assert_eq!(received.len(), 3);
    for attempt in &received {
        assert_eq!(attempt.body, received[0].body);
        assert_eq!(attempt.header("webhook-id"), received[0].header("webhook-id"));
        assert_eq!(attempt.header("service-delivery-id"), id);
        assert!(is_signed_by(attempt, &hook.secret));
    }
    let signed: Vec<i64> =
        received.iter().filter_map(|attempt| attempt.header("webhook-timestamp").parse().ok()).collect();
    assert!(signed[2] > signed[0], "the third attempt, seconds later, has the first one's timestamp {}", signed[2]);
}

#[contract_test]
async fn gone_fails_the_delivery_and_disables_the_webhook(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(410)])).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_status(&id, &["delivered", "failed", "retrying"]).await;
    assert_eq!(delivery["status"], "failed", "{delivery:#}");
    assert_eq!(statuses(&delivery), [410]);
    assert!(delivery.get("nextAttemptDate").is_none());
    let listed = entity.until_gone(&hook).await;
    assert!(listed["disabledReason"].as_str().is_some_and(|reason| reason.contains("410")), "{listed:#}");
    assert!(listed["version"].as_u64() > hook.json["version"].as_u64(), "the webhook has a new version");
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    assert_eq!(published["deliveries"], json!([]));
}

/// The time of the first attempt, which gets this response, and of the second, which is not due yet.
async fn attempt_and_next(suite: &Suite, status: u16, retry_after: &str) -> [Timestamp; 2] {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::answer(status, &[("Retry-After", retry_after)], "")])).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_delivery(&id, "is retrying", |delivery| delivery["attemptCount"] == 1).await;
    assert_eq!(delivery["status"], "retrying");
    [&delivery["attempts"][0]["attemptDate"], &delivery["nextAttemptDate"]].map(time)
}

/// How long the wait is after a first attempt with this response, in seconds.
async fn wait_after(suite: &Suite, status: u16, retry_after: &str) -> i64 {
    let [attempt, next] = attempt_and_next(suite, status, retry_after).await;
    next.duration_since(attempt).as_secs()
}

/// A date after the end of any test, in whole seconds.
fn in_an_hour() -> Timestamp {
    Timestamp::from_second(now() + 3_600).expect("a time")
}

#[contract_test]
async fn retry_after_in_seconds_lengthens_the_wait(suite: Arc<Suite>) {
    for status in [429, 503] {
        let wait = wait_after(&suite, status, "600").await;
        assert!((599..=700).contains(&wait), "{status} with Retry-After: 600 leads to a wait of {wait} s");
    }
}

#[contract_test]
async fn an_attempt_shows_the_wait_that_its_endpoint_asked_for(suite: Arc<Suite>) {
    for (status, retry_after, shown) in [
        (429, "600", json!(600)),
        (503, "8640000", json!(86_400)),
        (503, "soon", Value::Null),
        (500, "600", Value::Null),
    ] {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        entity.hook(&receiver.on("/", [Behaviour::answer(status, &[("Retry-After", retry_after)], "")])).await;
        let id = entity.publish(json!({})).await;
        let delivery =
            entity.until_delivery(&id, "has an attempt", |delivery| delivery["attempts"][0].is_object()).await;
        assert_eq!(delivery["attempts"][0]["retryAfterSeconds"], shown, "{status}, Retry-After: {retry_after}");
    }
}

#[contract_test]
async fn retry_after_as_a_date_lengthens_the_wait(suite: Arc<Suite>) {
    let date = in_an_hour();
    let written = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    assert_eq!(attempt_and_next(&suite, 503, &written).await[1], date, "Retry-After: {written}");
}

#[contract_test]
async fn retry_after_is_limited_to_a_day(suite: Arc<Suite>) {
    for absurd in ["8640000", "8640000.5", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let wait = wait_after(&suite, 429, absurd).await;
        assert!((86_000..=96_000).contains(&wait), "Retry-After: {absurd} leads to a wait of {wait} s");
    }
}

#[contract_test]
async fn retry_after_counts_for_429_and_503_only(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::answer(500, &[("Retry-After", "600")], "")])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
}

#[contract_test]
async fn retry_after_never_shortens_the_wait(suite: Arc<Suite>) {
    // 1795168020 is a Unix time, not a duration. Test these concurrently, since each delivery takes at least two
    // seconds.
    let values = ["0", "-5", "0.5", "soon", "1795168020", "Thu, 01 Jan 1970 00:00:00 GMT", ""];
    join_all(values.map(async |value| {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        entity.hook(&receiver.on("/", [Behaviour::answer(429, &[("Retry-After", value)], "")])).await;
        let id = entity.publish(json!({})).await;
        let delivery = entity.until_status(&id, &["failed"]).await;
        let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
        let dates: Vec<_> = attempts.iter().map(|attempt| time(&attempt["attemptDate"])).collect();
        assert!(
            dates.windows(2).all(|pair| pair[1].duration_since(pair[0]).as_millis() >= 1_000),
            "{value}: {dates:?}"
        );
    }))
    .await;
}

#[contract_test]
async fn a_webhook_that_keeps_failing_is_failing_until_one_success(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    for _ in 0..2 {
        let id = entity.publish(json!({})).await;
        entity.until_status(&id, &["failed"]).await;
    }
    let health = async |expected: &str| {
        until(&format!("the webhook is {expected}"), LONG, async || {
            (entity.listed(&hook).await["health"] == expected).then_some(())
        })
        .await;
    };
    health("failing").await;
    receiver.on("/", [Behaviour::status(200)]);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    health("healthy").await;
}
