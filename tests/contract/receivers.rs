//! Receivers that are slow, send endlessly, or respond with any status and body: each attempt is recorded as the
//! contract promises, in time, without memory growth.

use std::{io::Write, sync::Arc, time::Duration};

use contract_test::contract_test;
use flate2::{Compression, write::GzEncoder};
use futures::{future::join_all, join};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    harness::{Behaviour, Entity, LONG, LONG_AGO, Receiver, Settings, Suite, Table, has_outcome, memory_kilobytes},
    sweep::overdue,
};

/// How long an exchange may take, in milliseconds, minus a margin for the difference between two clock readings.
const LIMIT: u64 = 14_500;

/// Creates a webhook at this URL, publishes to it, and returns the first attempt.
pub async fn first_attempt(entity: &Entity, url: &str) -> Value {
    attempt_with(entity, url, json!({})).await
}

/// Publishes this data to a new webhook, and returns the first attempt.
pub async fn attempt_with(entity: &Entity, url: &str, data: Value) -> Value {
    entity.hook(url).await;
    let id = entity.publish(data).await;
    let delivery = entity.until_delivery(&id, "has its first attempt", |delivery| delivery["attemptCount"] != 0).await;
    delivery["attempts"][0].clone()
}

/// The first attempt at a delivery to a receiver with this behaviour.
pub async fn attempt(suite: &Suite, behaviour: Behaviour) -> Value {
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let attempt = first_attempt(&entity, &receiver.on("/", [behaviour.clone()])).await;
        // A machine that stalls interrupts attempts.
        if has_outcome(&attempt) {
            return attempt;
        }
    }
    panic!("the first attempt was interrupted in each of {ROUNDS} rounds");
}

/// The first attempt at a delivery to this URL.
pub async fn attempt_at(suite: &Suite, url: &str) -> Value {
    first_attempt(&suite.entity().await, url).await
}

/// Asserts that the attempt failed with this error code.
pub fn did_not_complete(attempt: &Value, code: &str) {
    assert!(
        attempt["error"].as_str().is_some_and(|error| error.starts_with(&format!("{code}: "))),
        "expected {code}: {attempt:#}"
    );
    assert_eq!(attempt["httpStatus"], Value::Null, "{attempt:#}");
    assert!(attempt.get("responseBody").is_none(), "{attempt:#}");
}

/// Asserts that the attempt ended before its timeout.
pub fn was_soon_over(attempt: &Value) {
    assert!(attempt["durationMs"].as_u64().is_some_and(|duration| duration < LIMIT), "{attempt:#}");
}

/// Asserts that the attempt received this status and this body.
pub fn was_answered(attempt: &Value, status: u16, body: &str) {
    assert_eq!((&attempt["httpStatus"], &attempt["responseBody"]), (&json!(status), &json!(body)), "{attempt:#}");
}

/// Asserts that the attempt timed out after 15 s.
pub fn timed_out(attempt: &Value) {
    did_not_complete(attempt, "timeout");
    lasted_to_the_limit(attempt);
}

/// Asserts that the attempt took at least the 15 s allowed for an exchange; how much longer depends on the machine.
fn lasted_to_the_limit(attempt: &Value) {
    let duration = attempt["durationMs"].as_u64().expect("openapi.yaml says so");
    assert!(duration >= LIMIT, "given up after {duration} ms");
}

#[contract_test]
async fn an_endpoint_that_never_answers_times_out(suite: Arc<Suite>) {
    timed_out(&attempt(&suite, Behaviour::hang()).await);
}

#[contract_test]
async fn a_body_that_does_not_end_in_time_takes_back_no_status(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::trickled_body(200, Duration::from_millis(100))).await;
    assert_eq!(attempt["httpStatus"], 200, "{attempt:#}");
    let body = attempt["responseBody"].as_str().unwrap_or_default();
    assert!((5..4_000).contains(&body.len()) && body.bytes().all(|byte| byte == b'x'), "{attempt:#}");
    lasted_to_the_limit(&attempt);
}

#[contract_test]
async fn headers_that_trickle_time_out(suite: Arc<Suite>) {
    timed_out(&attempt(&suite, Behaviour::endless_headers(Duration::from_secs(1))).await);
}

/// The number of concurrent deliveries.
const AT_ONCE: usize = 100;
/// How much more memory these deliveries may use than ordinary ones. A response's head may take 1 MiB, though few heads
/// are complete at the same time.
const MEMORY_KILOBYTES: u64 = 40_000;

#[contract_test]
async fn endless_answers_cost_no_memory(suite: Arc<Suite>) {
    // An open breaker would put deliveries on hold after the first failures.
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s").with("BREAKER_THRESHOLD", "1000");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let receiver = Receiver::start().await;
    // The first delivery starts the dispatcher.
    let first = Entity::new(&api, "first".to_owned()).await;
    first.deliver_to(&receiver.on("/first", [Behaviour::status(200)])).await;
    let dispatcher = bundle.process("dispatch-deliveries").await;
    let deliver = async |kind: usize, behaviour: Behaviour| {
        let entity = Entity::new(&api, format!("memory-{kind}")).await;
        let path = format!("/{kind}");
        entity.hook(&receiver.on(&path, [behaviour])).await;
        let watch = async {
            let mut most = 0;
            loop {
                most = memory_kilobytes(&dispatcher).max(most);
                if receiver.received(&path).len() >= AT_ONCE {
                    return most;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let publish = join_all((0..AT_ONCE).map(|_| entity.publish(json!({}))));
        let (deliveries, most) = timeout(LONG, async { join!(publish, watch) }).await.expect("all are attempted");
        for id in deliveries {
            entity.until_status(&id, &["delivered", "failed"]).await;
        }
        most.max(memory_kilobytes(&dispatcher))
    };
    // Make ordinary deliveries first, so that their memory is not counted.
    let slow = |behaviour: Behaviour| behaviour.after(Duration::from_millis(500));
    let kinds = [
        ("an endless body", Behaviour::endless_body(200)),
        ("a gzip bomb", Behaviour::gzip_bomb(200)),
        ("endless headers", Behaviour::endless_headers(Duration::ZERO)),
        ("endless interim answers", Behaviour::endless_interim_answers(Duration::ZERO)),
    ];
    for kind in 0..3 {
        deliver(kind, slow(Behaviour::answer(200, &[], "x".repeat(4_096)))).await;
    }
    let before = memory_kilobytes(&dispatcher);
    for (number, (what, behaviour)) in kinds.into_iter().enumerate() {
        // The delayed responses make the deliveries overlap.
        let most = deliver(10 + number, slow(behaviour)).await;
        println!("{what} on {AT_ONCE} deliveries at once: {before} kB before, {most} kB at most");
        assert!(before > 0 && most > 0, "the dispatcher died");
        assert!(most < before + MEMORY_KILOBYTES, "{what}: the dispatcher grew from {before} kB to {most} kB");
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn an_address_that_is_no_longer_allowed_is_blocked(suite: Arc<Suite>) {
    // A delivery is waiting for its second attempt when the operator removes the exception for this machine.
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,1h");
    let (bundle, api, _permit) = suite.other_bundle(settings.clone()).await;
    let entity = Entity::new(&api, "blocked".to_owned()).await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    assert!(bundle.stop().await.success());
    bundle.start_again(settings.with("DELIVERY_ALLOWED_NETWORKS", "192.0.2.0/24")).await;
    overdue(&Table::of(&bundle.service_env()), &id, LONG_AGO).await;
    let delivery = entity.until_status(&id, &["failed", "delivered"]).await;
    did_not_complete(&delivery["attempts"][1], "blocked");
    assert_eq!(receiver.received("/").len(), 1, "a blocked address was contacted");
    // No new webhook with an endpoint on this machine can be created.
    let body = json!({ "name": "x", "eventUrl": receiver.url("/"), "eventList": [] });
    entity.post("/webhook").json(&body).refused(400, "invalid-request").await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_body_of_four_kib_is_kept_and_no_byte_more(suite: Arc<Suite>) {
    for length in [1, 4_095, 4_096, 4_097, 4_098, 100_000] {
        let body = "0123456789".repeat(length / 10 + 1)[..length].to_owned();
        let attempt = attempt(&suite, Behaviour::answer(200, &[], &body)).await;
        assert_eq!(attempt["responseBody"], body[..length.min(4_096)], "a body of {length} bytes");
        assert_eq!(attempt["httpStatus"], 200);
    }
}

#[contract_test]
async fn a_body_is_cut_at_a_character(suite: Arc<Suite>) {
    for (before, character) in [
        (4_095, "é"),
        (4_094, "é"),
        (4_094, "€"),
        (4_093, "€"),
        (4_093, "😀"),
        (4_094, "😀"),
        (4_095, "😀"),
        (4_092, "😀"),
    ] {
        let start = "x".repeat(before);
        let attempt = attempt(&suite, Behaviour::answer(500, &[], format!("{start}{character}tail"))).await;
        let expected = if before + character.len() <= 4_096 { format!("{start}{character}tail") } else { start };
        assert_eq!(attempt["responseBody"], expected[..expected.len().min(4_096)], "{character} after {before} bytes");
    }
}

#[contract_test]
async fn bytes_that_are_not_utf_8_are_replaced(suite: Arc<Suite>) {
    for (body, kept) in [
        (&b"a\xff\xfeb"[..], "a\u{fffd}\u{fffd}b"),
        (b"Gr\xfc\xdfe", "Gr\u{fffd}\u{fffd}e"),
        (b"\x00\x01\x7f", "\u{0}\u{1}\u{7f}"),
        (b"ends in half a character \xc3", "ends in half a character \u{fffd}"),
    ] {
        let attempt =
            attempt(&suite, Behaviour::answer(200, &[("Content-Type", "text/plain; charset=iso-8859-1")], body)).await;
        assert_eq!(attempt["responseBody"], kept);
    }
}

#[contract_test]
async fn a_body_that_is_not_utf_8_takes_no_more_than_the_limit(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::answer(200, &[], [0xff_u8; 4_096])).await;
    assert_eq!(attempt["responseBody"], "\u{fffd}".repeat(4_096 / 3));
}

/// Endpoints compress responses although the request asks them not to.
#[contract_test]
async fn a_compressed_body_is_shown_as_text(suite: Arc<Suite>) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"no such booking").expect("memory takes everything");
    let gzip = packed.finish().expect("memory takes everything");
    let garbage = [0xff_u8; 2_345];
    for (coding, body, shown) in [
        ("gzip", &gzip[..], "no such booking"),
        ("gzip", &garbage, "(2 345 bytes compressed with \"gzip\", which is not shown)"),
        ("br", &garbage, "(2 345 bytes compressed with \"br\", which is not shown)"),
    ] {
        let attempt = attempt(&suite, Behaviour::answer(422, &[("Content-Encoding", coding)], body)).await;
        was_answered(&attempt, 422, shown);
    }
    let attempt = attempt(&suite, Behaviour::gzip_bomb(200)).await;
    was_answered(&attempt, 200, &"\0".repeat(4_096));
}

#[contract_test]
async fn an_endless_body_is_read_no_further_than_needed(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::endless_body(200)).await;
    assert_eq!(attempt["responseBody"], "x".repeat(4_096));
    assert_eq!(attempt["httpStatus"], 200);
    was_soon_over(&attempt);
}

#[contract_test]
async fn an_answer_without_a_body_has_none(suite: Arc<Suite>) {
    for behaviour in
        [Behaviour::status(204), Behaviour::status(200), Behaviour::raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")]
    {
        let attempt = attempt(&suite, behaviour).await;
        assert!(attempt.get("responseBody").is_none() && attempt.get("error").is_none(), "{attempt:#}");
    }
}

#[contract_test]
async fn a_body_in_chunks_is_put_together(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::chunked(200, &[b"one, ", b"tw", b"o, three"])).await;
    assert_eq!(attempt["responseBody"], "one, two, three");
}

#[contract_test]
async fn interim_answers_are_skipped(suite: Arc<Suite>) {
    for interim in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"] {
        let whole = format!("{interim}HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok");
        let attempt = attempt(&suite, Behaviour::raw(whole)).await;
        was_answered(&attempt, 202, "ok");
    }
}

#[contract_test]
async fn an_answer_of_http_1_0_is_taken(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::raw("HTTP/1.0 200 OK\r\n\r\nuntil the end")).await;
    was_answered(&attempt, 200, "until the end");
    let chunks = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    was_answered(&self::attempt(&suite, Behaviour::raw(chunks)).await, 200, "hello");
}

#[contract_test]
async fn a_large_head_and_many_interim_answers_are_read(suite: Arc<Suite>) {
    let cookies: String = (0..1_000).map(|number| format!("Set-Cookie: c{number}={}\r\n", "x".repeat(500))).collect();
    let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000);
    let whole = format!("{interim}HTTP/1.1 200 OK\r\n{cookies}Content-Length: 2\r\n\r\nok");
    was_answered(&attempt(&suite, Behaviour::raw(whole)).await, 200, "ok");
}

#[contract_test]
async fn the_query_reaches_the_endpoint_as_its_owner_wrote_it(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let target = "/?name='O'Brien'&quoted=%27";
    suite.entity().await.deliver_to(&receiver.on(target, [Behaviour::status(204)])).await;
    receiver.until(target, 1).await;
}

#[contract_test]
async fn only_2xx_is_a_success(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let successes = [200, 201, 202, 204, 226, 299];
    let failures = [300, 304, 400, 401, 404, 422, 500, 502, 599, 600, 999];
    for status in successes.into_iter().chain(failures) {
        let entity = suite.entity().await;
        entity.hook(&receiver.on(&format!("/{status}"), [Behaviour::status(status)])).await;
        let id = entity.publish(json!({})).await;
        let delivery = entity.until_delivery(&id, "has an attempt", |delivery| delivery["attemptCount"] != 0).await;
        assert_eq!(delivery["status"] == "delivered", successes.contains(&status), "{status}: {delivery:#}");
        assert_eq!(delivery["attempts"][0]["httpStatus"], status);
    }
}

#[contract_test]
async fn a_redirect_is_recorded_and_not_followed(suite: Arc<Suite>) {
    for status in [301, 302, 303, 307, 308] {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let target = receiver.on("/target", [Behaviour::status(200)]);
        let location = format!("{}?token=s3cret", target.replacen("://", "://user:secret@", 1));
        let url = receiver.on("/", [Behaviour::answer(status, &[("Location", &location)], "moved")]);
        let delivery = entity.deliver_to(&url).await;
        assert_eq!(delivery["status"], "failed");
        assert_eq!(delivery["attempts"][0]["httpStatus"], status);
        assert_eq!(delivery["attempts"][0]["responseBody"], "moved");
        assert_eq!(delivery["attempts"][0]["location"], format!("{target}?token=***"));
        assert!(receiver.received("/target").is_empty(), "{status} was followed");
    }
}
