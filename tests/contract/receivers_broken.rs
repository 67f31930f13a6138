//! Receivers that violate TCP, TLS or HTTP: each attempt is recorded in time, with a stable code.

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use contract_test::contract_test;
use fakes::{Authority, Identity, TlsFront};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    time::sleep,
};

use crate::{
    harness::{Behaviour, Entity, LONG, Receiver, Settings, Suite, outcomes},
    receivers::{
        attempt, attempt_at, attempt_with, did_not_complete, first_attempt, timed_out, was_answered, was_soon_over,
    },
};

#[contract_test]
async fn a_connection_that_breaks_is_a_connection_error(suite: Arc<Suite>) {
    for behaviour in [Behaviour::reset(), Behaviour::close(), Behaviour::raw("HTTP/1.1 200")] {
        did_not_complete(&attempt(&suite, behaviour).await, "connect");
    }
}

#[contract_test]
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

#[contract_test]
async fn endless_headers_end_the_attempt(suite: Arc<Suite>) {
    let attempt = attempt(&suite, Behaviour::endless_headers(Duration::ZERO)).await;
    did_not_complete(&attempt, "connect");
}

#[contract_test]
async fn huge_headers_do_not_stop_deliveries(suite: Arc<Suite>) {
    let huge = "x".repeat(2_000_000);
    let many: String = (0..5_000).map(|number| format!("X-{number}: {number}\r\n")).collect();
    for headers in [format!("X-Huge: {huge}\r\n"), many] {
        let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nok");
        let attempt = attempt(&suite, Behaviour::raw(answer)).await;
        // The attempt is recorded soon, with either a response or an error.
        assert!(attempt["httpStatus"] == 200 || attempt["error"].is_string(), "{attempt:#}");
        was_soon_over(&attempt);
    }
}

#[contract_test]
async fn a_port_without_a_listener_is_a_connection_error(suite: Arc<Suite>) {
    // The port is taken, so that no other test listens there.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let address = socket.local_addr().expect("it has an address");
    did_not_complete(&attempt_at(&suite, &format!("http://{address}/")).await, "connect");
}

#[contract_test]
async fn a_name_without_an_address_is_a_dns_error(suite: Arc<Suite>) {
    did_not_complete(&attempt_at(&suite, "http://nothing.invalid/").await, "dns");
}

#[contract_test]
async fn a_server_without_tls_is_a_tls_error(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let url = receiver.url("/").replacen("http:", "https:", 1);
    did_not_complete(&attempt_at(&suite, &url).await, "tls");
    assert!(receiver.everything().is_empty(), "an https webhook received plain HTTP");
}

/// An endpoint that runs `act` for each connection.
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

#[contract_test]
async fn a_tls_handshake_that_never_ends_times_out(suite: Arc<Suite>) {
    let address = endpoint(until_closed).await;
    timed_out(&attempt_at(&suite, &format!("https://{address}/")).await);
}

#[contract_test]
async fn an_endpoint_is_sent_to_only_with_a_trusted_certificate_for_its_name(suite: Arc<Suite>) {
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
        let front = TlsFront::start(identity, receiver.address).await;
        let before = receiver.everything().len();
        let attempt = first_attempt(&Entity::new(&api, format!("tls-{what}")).await, &front.url("/")).await;
        if good {
            assert_eq!(attempt["httpStatus"], 200, "{what}: {attempt:#}");
            assert_eq!(receiver.everything().len(), before + 1);
        } else {
            did_not_complete(&attempt, "tls");
            assert_eq!(receiver.everything().len(), before, "{what}: the request was still sent");
        }
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn interim_answers_without_an_end_end_the_attempt(suite: Arc<Suite>) {
    // If the data is sent at once, the size limit ends the attempt; if it is sent slowly, the time limit does.
    for (pause, code) in [(Duration::ZERO, "connect"), (Duration::from_millis(20), "timeout")] {
        let attempt = attempt(&suite, Behaviour::endless_interim_answers(pause)).await;
        did_not_complete(&attempt, code);
    }
}

/// An attempt at a delivery whose body does not fit into a connection's buffers.
async fn large_attempt(suite: &Suite, address: SocketAddr) -> Value {
    attempt_with(&suite.entity().await, &format!("http://{address}/"), json!({ "large": "x".repeat(250_000) })).await
}

#[contract_test]
async fn an_endpoint_that_does_not_read_times_out(suite: Arc<Suite>) {
    let address = endpoint(async |stream: TcpStream| {
        sleep(LONG).await;
        drop(stream);
        Ok(())
    })
    .await;
    timed_out(&large_attempt(&suite, address).await);
}

#[contract_test]
async fn an_answer_before_the_request_was_read_is_taken(suite: Arc<Suite>) {
    let address = endpoint(async |mut stream: TcpStream| {
        let mut some = [0; 100];
        stream.read_exact(&mut some).await?;
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!").await?;
        until_closed(stream).await
    })
    .await;
    let attempt = large_attempt(&suite, address).await;
    was_answered(&attempt, 413, "no!");
}

#[contract_test]
async fn an_answer_before_any_request_is_no_success_of_another(suite: Arc<Suite>) {
    let address = endpoint(async |mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
        until_closed(stream).await
    })
    .await;
    // The response may arrive before or after the request's first byte; either way, it is recorded soon.
    let attempt = attempt_at(&suite, &format!("http://{address}/")).await;
    assert!(attempt["httpStatus"] == 200 || attempt["error"].is_string(), "{attempt:#}");
    was_soon_over(&attempt);
}

#[contract_test]
async fn a_half_closed_connection_is_a_connection_error(suite: Arc<Suite>) {
    did_not_complete(&attempt(&suite, Behaviour::half_close()).await, "connect");
}

#[contract_test]
async fn an_answer_that_comes_byte_by_byte_is_taken(suite: Arc<Suite>) {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow";
    let attempt = attempt(&suite, Behaviour::byte_by_byte(answer, Duration::from_millis(20))).await;
    was_answered(&attempt, 200, "slow");
}

#[contract_test]
async fn heads_that_are_too_large_end_the_attempt_and_large_ones_do_not(suite: Arc<Suite>) {
    let with_header =
        |length: usize| format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(length));
    let with_reason = |length: usize| format!("HTTP/1.1 200 {}\r\nContent-Length: 0\r\n\r\n", "O".repeat(length));
    for fine in [with_header(900_000), with_reason(900_000)] {
        let attempt = attempt(&suite, Behaviour::raw(fine)).await;
        assert_eq!(attempt["httpStatus"], 200, "{attempt:#}");
    }
    for huge in [with_header(1_048_576), with_reason(1_048_576)] {
        let attempt = attempt(&suite, Behaviour::raw(huge)).await;
        did_not_complete(&attempt, "connect");
        assert!(attempt["error"].as_str().is_some_and(|error| error.contains("1 MiB")), "{attempt:#}");
    }
}

#[contract_test]
async fn lengths_that_contradict_each_other_are_never_guessed(suite: Arc<Suite>) {
    for lengths in
        ["Content-Length: 2\r\nContent-Length: 5", "Content-Length: 2, 5", "Content-Length: 99999999999999999999"]
    {
        let answer = format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\nhello");
        did_not_complete(&attempt(&suite, Behaviour::raw(answer)).await, "connect");
    }
    // RFC 9112 §6.3: chunks override a content length.
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let attempt = attempt(&suite, Behaviour::raw(both)).await;
    assert!(attempt["responseBody"] == "hello" || attempt["error"].is_string(), "{attempt:#}");
}

/// The status received counts (RFC 9112 §9.8): the endpoint has the event, and must not receive it again.
#[contract_test]
async fn a_broken_body_takes_back_no_status(suite: Arc<Suite>) {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let extensions = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(100_000));
    for body in
        ["FFFFFFFFFFFFFFFFF\r\nx", "not a number\r\n", "-1\r\n", "5\r\nhello, and more\r\n0\r\n\r\n", &extensions]
    {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let delivery = entity.deliver_to(&receiver.on("/", [Behaviour::raw(format!("{head}{body}"))])).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1), "{delivery:#}");
    }
    for (behaviour, body) in
        [(Behaviour::truncated_body(200), "only this"), (Behaviour::raw(format!("{head}5\r\nhello\r\n")), "hello")]
    {
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let delivery = entity.deliver_to(&receiver.on("/", [behaviour])).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1), "{delivery:#}");
        was_answered(&delivery["attempts"][0], 200, body);
        assert_eq!(receiver.everything().len(), 1, "{delivery:#}");
    }
    let trailers = format!("{head}5\r\nhello\r\n0\r\n{}", "X-Trailer: one\r\n".repeat(100_000));
    let attempt = attempt(&suite, Behaviour::raw(trailers)).await;
    was_soon_over(&attempt);
}

#[contract_test]
async fn bytes_after_the_answer_are_no_part_of_it(suite: Arc<Suite>) {
    let two =
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none, and moreHTTP/1.1 500 Never\r\nContent-Length: 0\r\n\r\n";
    let attempt = attempt(&suite, Behaviour::raw(two)).await;
    was_answered(&attempt, 200, "one");
}

#[contract_test]
async fn a_switch_of_protocols_is_no_success(suite: Arc<Suite>) {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let delivery = entity.deliver_to(&receiver.on("/", [Behaviour::raw(switch)])).await;
    assert_eq!(delivery["status"], "failed", "{delivery:#}");
}

/// RFC 9112 §5.2: a recipient replaces each line fold with spaces.
#[contract_test]
async fn a_folded_header_changes_nothing(suite: Arc<Suite>) {
    for (status, expected) in [(200, "delivered"), (410, "failed")] {
        let folded =
            Behaviour::raw(format!("HTTP/1.1 {status} X\r\nX-Folded: one\r\n two\r\nContent-Length: 2\r\n\r\nok"));
        let entity = suite.entity().await;
        let receiver = Receiver::start().await;
        let delivery = entity.deliver_to(&receiver.on("/", [folded])).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!(expected), 1), "{delivery:#}");
        was_answered(&delivery["attempts"][0], status, "ok");
    }
    let busy = "HTTP/1.1 503 Busy\r\nX-Folded: one\r\n two\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::raw(busy)])).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_delivery(&id, "has its first attempt", |delivery| delivery["attemptCount"] != 0).await;
    let next: Timestamp = delivery["nextAttemptDate"].as_str().expect("it waits").parse().expect("a time");
    let began: Timestamp = delivery["attempts"][0]["attemptDate"].as_str().expect("a date").parse().expect("a time");
    assert!((3_600..3_700).contains(&next.duration_since(began).as_secs()), "{delivery:#}");
}
