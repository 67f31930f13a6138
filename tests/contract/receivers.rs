//! Receivers that misbehave: each is recorded as the contract says, within its time, and costs nothing but that.

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use doubles::{Authority, Identity, TlsFront};
use futures::{future::join_all, join};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::harness::{Behaviour, Entity, LONG, Receiver, Settings, Suite, memory_kilobytes, tests};

tests![
    an_endpoint_that_never_answers_times_out,
    a_body_that_trickles_times_out,
    headers_that_trickle_time_out,
    endless_answers_cost_no_memory,
    an_address_that_is_no_longer_allowed_is_blocked,
    a_body_of_four_kib_is_kept_and_no_byte_more,
    a_body_is_cut_at_a_character,
    bytes_that_are_not_utf_8_are_replaced,
    a_compressed_body_is_kept_as_it_came,
    an_endless_body_is_read_no_further_than_needed,
    an_answer_without_a_body_has_none,
    a_body_in_chunks_is_put_together,
    interim_answers_are_skipped,
    an_answer_of_http_1_0_is_one,
    only_2xx_is_a_success,
    a_redirect_is_recorded_and_not_followed,
    a_connection_that_breaks_is_a_connection_error,
    an_answer_that_is_not_http_is_a_connection_error,
    endless_headers_end_the_attempt,
    huge_headers_do_not_stop_deliveries,
    a_port_without_a_listener_is_a_connection_error,
    a_name_without_an_address_is_a_dns_error,
    a_server_without_tls_is_a_tls_error,
    a_tls_handshake_that_never_ends_times_out,
    only_a_certificate_that_is_trusted_and_good_for_the_name_is_spoken_to,
    interim_answers_without_an_end_end_the_attempt,
    an_endpoint_that_does_not_read_times_out,
    an_answer_before_the_request_was_read_is_one,
    an_answer_before_any_request_is_no_success_of_another,
    a_half_closed_connection_is_a_connection_error,
    an_answer_that_comes_byte_by_byte_is_one,
    heads_that_are_too_large_end_the_attempt_and_large_ones_do_not,
    lengths_that_contradict_each_other_are_never_guessed,
    chunks_without_an_end_end_the_attempt,
    what_comes_after_the_answer_is_not_part_of_it,
    a_switch_of_protocols_is_no_success,
];

/// Makes a webhook at this address, publishes to it, and returns the first attempt.
async fn first_attempt(entity: &Entity, url: &str) -> Value {
    entity.hook(url).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_delivery(&id, "has its first attempt", |delivery| delivery["attemptCount"] != 0).await;
    delivery["attempts"][0].clone()
}

/// The first attempt to deliver to a receiver that behaves like this.
async fn attempt(suite: &Suite, behaviour: Behaviour) -> Value {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    first_attempt(&entity, &receiver.on("/", [behaviour])).await
}

/// The first attempt to deliver to this address.
async fn attempt_at(suite: &Suite, url: &str) -> Value {
    first_attempt(&suite.entity().await, url).await
}

/// Fails unless the attempt did not complete, for a reason with this code.
fn did_not_complete(attempt: &Value, code: &str) {
    assert!(
        attempt["error"].as_str().is_some_and(|error| error.starts_with(&format!("{code}: "))),
        "expected {code}: {attempt:#}"
    );
    assert_eq!(attempt["httpStatus"], Value::Null, "{attempt:#}");
    assert!(attempt.get("responseBody").is_none(), "{attempt:#}");
}

/// Fails unless the attempt was given up when the whole exchange had taken 15 s.
fn timed_out(attempt: &Value) {
    did_not_complete(attempt, "timeout");
    let duration = attempt["durationMs"].as_u64().expect("openapi.yaml says so");
    assert!((14_500..20_000).contains(&duration), "given up after {duration} ms");
}

async fn an_endpoint_that_never_answers_times_out(suite: Arc<Suite>) {
    timed_out(&attempt(&suite, Behaviour::hang()).await);
}

async fn a_body_that_trickles_times_out(suite: Arc<Suite>) {
    timed_out(&attempt(&suite, Behaviour::trickled_body(200, Duration::from_secs(1))).await);
}

async fn headers_that_trickle_time_out(suite: Arc<Suite>) {
    timed_out(&attempt(&suite, Behaviour::endless_headers(Duration::from_secs(1))).await);
}

/// As many deliveries as are under way at once.
const AT_ONCE: usize = 100;
/// What they may cost beside what any deliveries do.
const MEMORY_KILOBYTES: u64 = 20_000;

async fn endless_answers_cost_no_memory(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s")).await;
    let receiver = Receiver::start().await;
    let dispatcher = bundle.process("dispatch-deliveries").await;
    // Each kind has an entity of its own, so that no breaker ends one for what another did. The most while it lasted.
    let deliver = async |kind: usize, behaviour: Behaviour| {
        let (entity, path) = (Entity::new(&api, format!("memory-{kind}")).await, format!("/{kind}"));
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
    // What any hundred deliveries need is needed once.
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
        // All of them wait for each other, so that they come at the same moment.
        let most = deliver(10 + number, slow(behaviour)).await;
        println!("{what} on {AT_ONCE} deliveries at once: {before} kB before, {most} kB at most");
        assert!(before > 0 && most > 0, "the dispatcher died");
        assert!(most < before + MEMORY_KILOBYTES, "{what}: the dispatcher grew from {before} kB to {most} kB");
    }
    assert!(bundle.stop().await.success());
}

async fn an_address_that_is_no_longer_allowed_is_blocked(suite: Arc<Suite>) {
    // A delivery waits for its second attempt while the operator withdraws the exception for this machine.
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,3s");
    let (bundle, api, _permit) = suite.other_bundle(settings.clone()).await;
    let (entity, receiver) = (Entity::new(&api, "blocked".to_owned()).await, Receiver::start().await);
    entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_delivery(&id, "has its first attempt", |delivery| delivery["attemptCount"] == 1).await;
    assert!(bundle.stop().await.success());
    bundle.start_again(settings.with("DELIVERY_ALLOWED_NETWORKS", "192.0.2.0/24")).await;
    let delivery = entity.until_status(&id, &["failed", "delivered"]).await;
    did_not_complete(&delivery["attempts"][1], "blocked");
    assert_eq!(receiver.received("/").len(), 1, "a blocked address was contacted");
    // And no new webhook can be made there.
    let body = json!({ "name": "x", "eventUrl": receiver.url("/"), "eventList": [] });
    entity.post("/webhook").json(&body).refused(400, "invalid-request").await;
    assert!(bundle.stop().await.success());
}

async fn a_body_of_four_kib_is_kept_and_no_byte_more(suite: Arc<Suite>) {
    for length in [1, 4_095, 4_096, 4_097, 4_098, 100_000] {
        let body = "0123456789".repeat(length / 10 + 1)[..length].to_owned();
        let attempt = attempt(&suite, Behaviour::answer(200, &[], &body)).await;
        assert_eq!(attempt["responseBody"], body[..length.min(4_096)], "a body of {length} bytes");
        assert_eq!(attempt["httpStatus"], 200);
    }
}

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

async fn a_compressed_body_is_kept_as_it_came(suite: Arc<Suite>) {
    // The beginning of a gzip stream of zeros; whoever inflated it would find nothing but zeros, and no end.
    let mut body =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xec\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf\xee\x08".to_vec();
    body.extend([0; 3_000]);
    let attempt = attempt(&suite, Behaviour::answer(200, &[("Content-Encoding", "gzip")], &body)).await;
    assert_eq!(attempt["responseBody"], String::from_utf8_lossy(&body).into_owned());
}

async fn an_endless_body_is_read_no_further_than_needed(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::endless_body(200)).await;
    assert_eq!(attempt["responseBody"], "x".repeat(4_096));
    assert_eq!(attempt["httpStatus"], 200);
    assert!(attempt["durationMs"].as_u64().is_some_and(|duration| duration < 10_000), "it was waited for: {attempt:#}");
}

async fn an_answer_without_a_body_has_none(suite: Arc<Suite>) {
    for behaviour in
        [Behaviour::status(204), Behaviour::status(200), Behaviour::raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")]
    {
        let attempt = attempt(&suite, behaviour).await;
        assert!(attempt.get("responseBody").is_none() && attempt.get("error").is_none(), "{attempt:#}");
    }
}

async fn a_body_in_chunks_is_put_together(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::chunked(200, &[b"one, ", b"tw", b"o, three"])).await;
    assert_eq!(attempt["responseBody"], "one, two, three");
}

async fn interim_answers_are_skipped(suite: Arc<Suite>) {
    for interim in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"] {
        let whole = format!("{interim}HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok");
        let attempt = attempt(&suite, Behaviour::raw(whole)).await;
        assert_eq!((&attempt["httpStatus"], &attempt["responseBody"]), (&json!(202), &json!("ok")), "{attempt:#}");
    }
}

async fn an_answer_of_http_1_0_is_one(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::raw("HTTP/1.0 200 OK\r\n\r\nuntil the end")).await;
    assert_eq!(
        (&attempt["httpStatus"], &attempt["responseBody"]),
        (&json!(200), &json!("until the end")),
        "{attempt:#}"
    );
}

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

async fn a_redirect_is_recorded_and_not_followed(suite: Arc<Suite>) {
    for status in [301, 302, 303, 307, 308] {
        let (entity, receiver) = (suite.entity().await, Receiver::start().await);
        let target = receiver.on("/target", [Behaviour::status(200)]);
        let url = receiver.on("/", [Behaviour::answer(status, &[("Location", &target)], "moved")]);
        let delivery = entity.deliver_to(&url).await;
        assert_eq!(delivery["status"], "failed");
        assert_eq!(delivery["attempts"][0]["httpStatus"], status);
        assert_eq!(delivery["attempts"][0]["responseBody"], "moved");
        assert!(receiver.received("/target").is_empty(), "{status} was followed");
    }
}

async fn a_connection_that_breaks_is_a_connection_error(suite: Arc<Suite>) {
    for behaviour in
        [Behaviour::reset(), Behaviour::close(), Behaviour::raw("HTTP/1.1 200"), Behaviour::truncated_body(200)]
    {
        did_not_complete(&attempt(&suite, behaviour).await, "connect");
    }
}

async fn an_answer_that_is_not_http_is_a_connection_error(suite: Arc<Suite>) {
    for garbage in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/9.9 hello\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        did_not_complete(&attempt(&suite, Behaviour::raw(garbage)).await, "connect");
    }
}

async fn endless_headers_end_the_attempt(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::endless_headers(Duration::ZERO)).await;
    did_not_complete(&attempt, "connect");
}

async fn huge_headers_do_not_stop_deliveries(suite: Arc<Suite>) {
    let huge = "x".repeat(2_000_000);
    let many: String = (0..5_000).map(|number| format!("X-{number}: {number}\r\n")).collect();
    for headers in [format!("X-Huge: {huge}\r\n"), many] {
        let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nok");
        let attempt = attempt(&suite, Behaviour::raw(answer)).await;
        // Either is a record; what counts is that there is one, and soon.
        assert!(attempt["httpStatus"] == 200 || attempt["error"].is_string(), "{attempt:#}");
        assert!(attempt["durationMs"].as_u64().is_some_and(|duration| duration < 10_000), "{attempt:#}");
    }
}

async fn a_port_without_a_listener_is_a_connection_error(suite: Arc<Suite>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    drop(listener);
    did_not_complete(&attempt_at(&suite, &format!("http://{address}/")).await, "connect");
}

async fn a_name_without_an_address_is_a_dns_error(suite: Arc<Suite>) {
    did_not_complete(&attempt_at(&suite, "http://nothing.invalid/").await, "dns");
}

async fn a_server_without_tls_is_a_tls_error(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let url = receiver.url("/").replacen("http:", "https:", 1);
    did_not_complete(&attempt_at(&suite, &url).await, "tls");
    assert!(receiver.everything().is_empty(), "an https webhook was sent in the clear");
}

/// An endpoint that does with each connection what HTTP would never.
async fn endpoint<F: Future<Output = std::io::Result<()>> + Send + 'static>(
    act: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(act(stream));
        }
    });
    address
}

/// Waits for the other side to close.
async fn until_closed(mut stream: TcpStream) -> std::io::Result<()> {
    let mut ignored = [0; 1_024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

async fn a_tls_handshake_that_never_ends_times_out(suite: Arc<Suite>) {
    let address = endpoint(until_closed).await;
    timed_out(&attempt_at(&suite, &format!("https://{address}/")).await);
}

async fn only_a_certificate_that_is_trusted_and_good_for_the_name_is_spoken_to(suite: Arc<Suite>) {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trusted = folder.path().join("trusted.pem");
    fs::write(&trusted, authority.pem()).expect("a file in a temporary folder");
    let settings = Settings::default().with("SSL_CERT_FILE", trusted.display().to_string());
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let receiver = Receiver::start().await;
    receiver.on("/", [Behaviour::status(200)]);
    let names = ["127.0.0.1"];
    for (what, identity, good) in [
        ("good", authority.issue(&names, false), true),
        ("another-address", authority.issue(&["127.0.0.2"], false), false),
        ("another-name", authority.issue(&["hotel.example.com", "localhost"], false), false),
        ("expired", authority.issue(&names, true), false),
        ("self-signed", Identity::self_signed(&names), false),
        ("strange", Authority::new().issue(&names, false), false),
    ] {
        let (front, before) = (TlsFront::start(identity, receiver.address).await, receiver.everything().len());
        let attempt = first_attempt(&Entity::new(&api, format!("tls-{what}")).await, &front.url("/")).await;
        if good {
            assert_eq!(attempt["httpStatus"], 200, "{what}: {attempt:#}");
            assert_eq!(receiver.everything().len(), before + 1);
        } else {
            did_not_complete(&attempt, "tls");
            assert_eq!(receiver.everything().len(), before, "{what}: it was sent all the same");
        }
    }
    assert!(bundle.stop().await.success());
}

async fn interim_answers_without_an_end_end_the_attempt(suite: Arc<Suite>) {
    for pause in [Duration::ZERO, Duration::from_millis(20)] {
        let attempt = attempt(&suite, Behaviour::endless_interim_answers(pause)).await;
        did_not_complete(&attempt, "connect");
        assert!(attempt["durationMs"].as_u64().is_some_and(|duration| duration < 10_000), "{attempt:#}");
    }
}

/// A delivery whose body does not fit into the buffers of a connection.
async fn large_attempt(suite: &Suite, address: SocketAddr) -> Value {
    let entity = suite.entity().await;
    entity.hook(&format!("http://{address}/")).await;
    let id = entity.publish(json!({ "large": "x".repeat(250_000) })).await;
    let delivery = entity.until_delivery(&id, "has its first attempt", |delivery| delivery["attemptCount"] != 0).await;
    delivery["attempts"][0].clone()
}

async fn an_endpoint_that_does_not_read_times_out(suite: Arc<Suite>) {
    let address = endpoint(async |stream: TcpStream| {
        sleep(LONG).await;
        drop(stream);
        Ok(())
    })
    .await;
    timed_out(&large_attempt(&suite, address).await);
}

async fn an_answer_before_the_request_was_read_is_one(suite: Arc<Suite>) {
    let address = endpoint(async |mut stream: TcpStream| {
        let mut some = [0; 100];
        stream.read_exact(&mut some).await?;
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!").await?;
        until_closed(stream).await
    })
    .await;
    let attempt = large_attempt(&suite, address).await;
    assert_eq!((&attempt["httpStatus"], &attempt["responseBody"]), (&json!(413), &json!("no!")), "{attempt:#}");
}

async fn an_answer_before_any_request_is_no_success_of_another(suite: Arc<Suite>) {
    let address = endpoint(async |mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
        until_closed(stream).await
    })
    .await;
    // Whether it came before or after the request's first byte is for chance to say; either is a record, and soon.
    let attempt = attempt_at(&suite, &format!("http://{address}/")).await;
    assert!(attempt["httpStatus"] == 200 || attempt["error"].is_string(), "{attempt:#}");
    assert!(attempt["durationMs"].as_u64().is_some_and(|duration| duration < 10_000), "{attempt:#}");
}

async fn a_half_closed_connection_is_a_connection_error(suite: Arc<Suite>) {
    did_not_complete(&attempt(&suite, Behaviour::half_close()).await, "connect");
}

async fn an_answer_that_comes_byte_by_byte_is_one(suite: Arc<Suite>) {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow";
    let attempt = attempt(&suite, Behaviour::byte_by_byte(answer, Duration::from_millis(20))).await;
    assert_eq!((&attempt["httpStatus"], &attempt["responseBody"]), (&json!(200), &json!("slow")), "{attempt:#}");
}

async fn heads_that_are_too_large_end_the_attempt_and_large_ones_do_not(suite: Arc<Suite>) {
    let with_header =
        |length: usize| format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(length));
    let with_reason = |length: usize| format!("HTTP/1.1 200 {}\r\nContent-Length: 0\r\n\r\n", "O".repeat(length));
    for fine in [with_header(16_000), with_reason(16_000)] {
        let attempt = attempt(&suite, Behaviour::raw(fine)).await;
        assert_eq!(attempt["httpStatus"], 200, "{attempt:#}");
    }
    for huge in [with_header(65_536), with_reason(65_536)] {
        did_not_complete(&attempt(&suite, Behaviour::raw(huge)).await, "connect");
    }
}

async fn lengths_that_contradict_each_other_are_never_guessed(suite: Arc<Suite>) {
    for lengths in
        ["Content-Length: 2\r\nContent-Length: 5", "Content-Length: 2, 5", "Content-Length: 99999999999999999999"]
    {
        let answer = format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\nhello");
        did_not_complete(&attempt(&suite, Behaviour::raw(answer)).await, "connect");
    }
    // RFC 9112 §6.3: chunks override a length.
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let attempt = attempt(&suite, Behaviour::raw(both)).await;
    assert!(attempt["responseBody"] == "hello" || attempt["error"].is_string(), "{attempt:#}");
}

async fn chunks_without_an_end_end_the_attempt(suite: Arc<Suite>) {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for garbage in
        ["FFFFFFFFFFFFFFFFF\r\nx", "not a number\r\n", "-1\r\n", "5\r\nhello, and more than five\r\n0\r\n\r\n"]
    {
        did_not_complete(&attempt(&suite, Behaviour::raw(format!("{head}{garbage}"))).await, "connect");
    }
    let extensions = format!("{head}5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(100_000));
    did_not_complete(&attempt(&suite, Behaviour::raw(extensions)).await, "connect");
    let trailers = format!("{head}5\r\nhello\r\n0\r\n{}", "X-Trailer: one\r\n".repeat(100_000));
    let attempt = attempt(&suite, Behaviour::raw(trailers)).await;
    assert!(attempt["durationMs"].as_u64().is_some_and(|duration| duration < 10_000), "{attempt:#}");
}

async fn what_comes_after_the_answer_is_not_part_of_it(suite: Arc<Suite>) {
    let two =
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none, and moreHTTP/1.1 500 Never\r\nContent-Length: 0\r\n\r\n";
    let attempt = attempt(&suite, Behaviour::raw(two)).await;
    assert_eq!((&attempt["httpStatus"], &attempt["responseBody"]), (&json!(200), &json!("one")), "{attempt:#}");
}

async fn a_switch_of_protocols_is_no_success(suite: Arc<Suite>) {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let delivery = entity.deliver_to(&receiver.on("/", [Behaviour::raw(switch)])).await;
    assert_eq!(delivery["status"], "failed", "{delivery:#}");
}
