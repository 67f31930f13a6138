//! Valid and broken responses from untrusted servers. Endpoints listen on loopback.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use http::{Method, StatusCode};
use hyper::body::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::{AddressRules, AttemptError, HttpResponse, Limits, Outbound, SystemResolver, endpoint_url::EndpointUrl};
use base::{Time, clock::SystemClock, pause};

/// How an endpoint ends the connection after its response.
#[derive(Debug, Clone, Copy)]
enum End {
    Close,
    Reset,
    /// The endpoint keeps the connection open until the other side closes it.
    Hang,
}

/// An endpoint that sends these bytes after each request.
async fn endpoint(response: impl Into<Vec<u8>>, end: End) -> Url {
    let response = response.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, response.clone(), end));
        }
    });
    Url::parse(&format!("http://127.0.0.1:{port}/hooks")).expect("a URL")
}

async fn serve(mut stream: TcpStream, response: Vec<u8>, end: End) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"{}") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(&response).await?;
    match end {
        End::Close => {}
        End::Reset => {
            // This gives the client time to read the response before the reset discards it.
            pause(Duration::from_millis(50)).await;
            stream.set_zero_linger()?;
        }
        End::Hang => while stream.read(&mut [0; 64]).await? > 0 {},
    }
    Ok(())
}

fn outbound() -> Outbound {
    let allowed_networks = vec!["127.0.0.1/32".parse().expect("a network")];
    let rules = AddressRules { allowed_networks, allow_http: true };
    Outbound::at(rules, Arc::new(SystemResolver), Arc::new(SystemClock))
}

async fn deliver(url: &Url) -> Result<HttpResponse, AttemptError> {
    deliver_by(&outbound(), url).await
}

async fn deliver_by(outbound: &Outbound, url: &Url) -> Result<HttpResponse, AttemptError> {
    let url = EndpointUrl::at_any_host(url.as_str(), true).expect("a URL");
    outbound.send_for("hotel", Method::POST, &url, &[], Bytes::from_static(b"{}")).await
}

/// Delivers with a short limit, or with a longer one on a machine where even the response head needs it.
async fn deliver_within_a_short_limit(url: &Url) -> (Outbound, Result<HttpResponse, AttemptError>) {
    let mut whole = Duration::from_millis(400);
    loop {
        let outbound = outbound().limited_to(Limits { whole, ..Limits::default() });
        let sent = deliver_by(&outbound, url).await;
        if !matches!(sent, Err(AttemptError::Timeout(_))) || whole >= Duration::from_secs(40) {
            return (outbound, sent);
        }
        whole *= 10;
    }
}

const INCOMPLETE: [(&str, &str, End, &str); 6] = [
    ("a length that is too large", "Content-Length: 9\r\n\r\nhel", End::Close, "hel"),
    ("no last chunk", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", End::Close, "hel"),
    ("half a chunk", "Transfer-Encoding: chunked\r\n\r\n9\r\nhel", End::Close, "hel"),
    ("a chunk without a length", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nlength\r\n", End::Hang, "hel"),
    ("a reset", "Content-Length: 9\r\n\r\nhel", End::Reset, "hel"),
    ("no end in time", "Content-Length: 9\r\n\r\nhel", End::Hang, "hel"),
];

#[tokio::test]
async fn the_status_decides_a_delivery_although_the_body_is_incomplete() {
    for (what, rest, end, body) in INCOMPLETE {
        for status in [StatusCode::OK, StatusCode::GONE] {
            let url = endpoint(format!("HTTP/1.1 {} X\r\n{rest}", status.as_u16()), end).await;
            let (outbound, sent) = deliver_within_a_short_limit(&url).await;
            let response = sent.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!((response.status, response.text().as_str(), response.truncated), (status, body, true), "{what}");
            assert_eq!(outbound.connections().count(), 0, "{what}");
        }
    }
}

/// A response to `send` with these headers and this body.
async fn provided(headers: &str, body: &[u8], limit: usize) -> HttpResponse {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    let url = endpoint([head.as_bytes(), body].concat(), End::Close).await;
    let outbound = outbound().limited_to(Limits { body: limit, ..Limits::default() });
    outbound.send(Method::POST, &url, &[], Bytes::from_static(b"{}")).await.expect("a response")
}

#[tokio::test]
async fn a_compressed_response_of_a_provider_is_decompressed_to_the_limit() {
    let text = b"access_token=at&".repeat(40);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&text).expect("memory takes everything");
    let packed = encoder.finish().expect("memory takes everything");
    let gzip = "Content-Type: Application/JSON; charset=utf-8\r\nContent-Encoding: gzip\r\n";
    let whole = provided(gzip, &packed, text.len()).await;
    assert_eq!((whole.body.as_slice(), whole.truncated), (text.as_slice(), false));
    assert_eq!(whole.media_type.as_deref(), Some("application/json"));
    let long = provided(gzip, &packed, text.len() - 1).await;
    assert_eq!((long.body.len(), long.truncated), (text.len() - 1, true));
    let damaged = provided(gzip, &packed[..packed.len() - 1], text.len()).await;
    assert!(damaged.truncated, "half a token is useless");
    for (headers, body) in [("Content-Encoding: br\r\n", packed.as_slice()), (gzip, b"{}"), ("", b"{}"), (gzip, b"")] {
        let same = provided(headers, body, 4096).await;
        assert_eq!((same.body.as_slice(), same.truncated), (body, false), "{headers}");
    }
}

#[tokio::test]
async fn an_incomplete_body_is_no_response_of_a_provider() {
    for (what, rest, end, _) in INCOMPLETE {
        let url = endpoint(format!("HTTP/1.1 200 OK\r\n{rest}"), end).await;
        let outbound = outbound().limited_to(Limits { whole: Duration::from_millis(400), ..Limits::default() });
        let sent = outbound.send(Method::POST, &url, &[], Bytes::from_static(b"{}")).await;
        assert!(matches!(sent, Err(AttemptError::Connect(_) | AttemptError::Timeout(_))), "{what}: {sent:?}");
    }
}

#[tokio::test]
async fn a_complete_body_is_not_truncated() {
    for (what, rest) in [
        ("a length", "Content-Length: 3\r\n\r\nhel"),
        ("chunks", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n\r\n"),
        ("the end of the connection", "\r\nhel"),
    ] {
        let url = endpoint(format!("HTTP/1.1 200 OK\r\n{rest}"), End::Close).await;
        let response = deliver(&url).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((response.text().as_str(), response.truncated), ("hel", false), "{what}");
    }
}

/// Response heads, each with the status that is accepted, if any, and the reason.
#[tokio::test]
async fn response_heads_are_accepted_as_by_browsers() {
    let with_headers = |count: usize| {
        let headers: String = (0..count).map(|number| format!("X-{number}: {number}\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n")
    };
    let many = with_headers(2_000);
    let too_many = with_headers(3_000);
    let large = format!("HTTP/1.1 410 Gone\r\nX-A: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(900_000));
    let hints = format!("HTTP/1.1 103 Early Hints\r\nLink: </{}>\r\n\r\n", "x".repeat(900)).repeat(1_000);
    let interim = format!("{hints}{}HTTP/1.1 204 No\r\n\r\n", "HTTP/1.1 102 Wait\r\n\r\n".repeat(1_000));
    let heads: &[(&[u8], Option<u16>, &str)] = &[
        (b"HTTP/1.1 200 OK\r\nX-A: one\r\n two\r\nContent-Length: 0\r\n\r\n", Some(200), "folded, RFC 9112 5.2"),
        (b"HTTP/1.1 410 Gone\r\nX-A: one\r\n\ttwo\r\nContent-Length: 0\r\n\r\n", Some(410), "folded with a tab"),
        (b"HTTP/1.1 200 OK\r\nX-A : one\r\nContent-Length: 0\r\n\r\n", Some(200), "a space before the colon, 5.1"),
        (
            b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n",
            Some(200),
            "a line that is no header is left out",
        ),
        (
            b"HTTP/1.1 200 OK\r\nX(A): one\r\nContent-Length: 0\r\n\r\n",
            Some(200),
            "a name that is no token is left out",
        ),
        (b"HTTP/1.1 200 OK\r\n: one\r\nContent-Length: 0\r\n\r\n", Some(200), "an empty name is left out"),
        (b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 0\r\n\r\n", None, "a NUL, which curl refuses as well, 5.5"),
        (b"HTTP/1.1 200 OK\r\nX-A: \xe9\xff\r\nContent-Length: 0\r\n\r\n", Some(200), "high bytes are obs-text, 5.5"),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", Some(200), "bare LF ends a line, 2.2"),
        (b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", Some(200), "an empty reason phrase, 4"),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Some(200), "no reason phrase nor its space"),
        (b"HTTP/1.1 200 \xc3\xa0 la carte\r\nContent-Length: 0\r\n\r\n", Some(200), "high bytes in the reason phrase"),
        (b"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Some(200), "empty lines before it, 2.2"),
        (b"HTTP/1.0 200 OK\r\n\r\n", Some(200), "HTTP/1.0"),
        (b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", Some(200), "names in lower case, no space after the colon"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: \t 0 \t\r\n\r\n", Some(200), "white space around a value"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", Some(200), "lengths that agree, 6.3"),
        (b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nhel", Some(204), "no body belongs to a 204, 6.3"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Some(200),
            "chunks override a length, 6.3",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\nhel",
            Some(200),
            "an unknown coding ends with the connection",
        ),
        (b"HTTP/1.1 101 X\r\nUpgrade: y\r\nConnection: upgrade\r\n\r\n", Some(101), "a switch, which is no success"),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", Some(999), "three digits are a status, if from 100 on"),
        (many.as_bytes(), Some(200), "many headers within the limits"),
        (large.as_bytes(), Some(410), "a large head"),
        (interim.as_bytes(), Some(204), "many interim responses"),
        (too_many.as_bytes(), None, "more headers than anything needs"),
        (b"HTTP/1.1 099 Odd\r\n\r\n", None, "no class of statuses"),
        (b"HTTP/1.1 20 OK\r\n\r\n", None, "two digits"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", None, "four digits"),
        (b"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", None, "two spaces: the status is not where it must be"),
        (b"http/1.1 200 OK\r\n\r\n", None, "the version is case-sensitive, 2.3"),
        (b"HTTP/2 200 OK\r\n\r\n", None, "not asked for; framed otherwise"),
        (b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0d", None, "the first frame of HTTP/2"),
        (b"ICY 200 OK\r\n\r\n", None, "another protocol"),
        (b"<html>", None, "HTTP/0.9 has no status"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 3\r\n\r\n", None, "lengths that differ, 6.3"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0, 3\r\n\r\n", None, "lengths that differ, in one line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", None, "a length that is no number, 6.3"),
        (
            b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Some(200),
            "chunks in HTTP/1.0, as curl, 6.1",
        ),
        (
            b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Some(200),
            "an interim one before",
        ),
    ];
    let mut wrong = Vec::new();
    for (head, status, reason) in heads {
        let sent = deliver(&endpoint(*head, End::Close).await).await;
        if sent.as_ref().ok().map(|response| response.status.as_u16()) != *status {
            wrong.push(format!("{reason}: {sent:?} instead of {status:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_error_of_a_head_beyond_the_limits_names_them() {
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
    for (what, response) in [
        ("a head", format!("HTTP/1.1 200 OK\r\nX-A: {}\r\n\r\n", "x".repeat(1_100_000))),
        ("headers", format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: x\r\n".repeat(3_000))),
        ("interim responses", hint.repeat(30_000)),
        ("interim responses before a head", format!("{}HTTP/1.1 200 OK\r\n\r\n", hint.repeat(30_000))),
    ] {
        let error = deliver(&endpoint(response, End::Hang).await).await.expect_err(what).to_string();
        assert!(error.starts_with("connect: ") && error.contains("1 MiB or 2 048 headers"), "{what}: {error}");
    }
}

#[tokio::test]
async fn the_chunks_of_http_1_0_are_joined() {
    let response = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    let response = deliver(&endpoint(response, End::Hang).await).await.expect("a response");
    assert_eq!((response.text().as_str(), response.truncated), ("hello", false));
}

#[tokio::test]
async fn a_retry_after_is_read_next_to_a_folded_header_and_when_it_is_folded() {
    for head in ["X-A: one\r\n two\r\nRetry-After: 120", "Retry-After: 120\r\nX-A: one\r\n two", "Retry-After:\r\n 120"]
    {
        let url = endpoint(format!("HTTP/1.1 503 Busy\r\n{head}\r\nContent-Length: 0\r\n\r\n"), End::Close).await;
        let response = deliver(&url).await.expect("a response");
        assert_eq!(response.pause_asked_for(Time::from_millis(0)), Some(Duration::from_secs(120)), "{head}");
    }
}

#[tokio::test]
async fn the_body_of_a_delivery_is_text_within_the_limit() {
    for (what, rest, body, truncated) in [
        (
            "no UTF-8",
            [b"Content-Length: 4096\r\n\r\n".as_slice(), &[0xff; 4_096]].concat(),
            "\u{fffd}".repeat(1_365),
            true,
        ),
        ("UTF-8", b"Content-Length: 2\r\n\r\n\xc3\xa9".to_vec(), "é".to_owned(), false),
        (
            "another coding",
            b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc".to_vec(),
            "(3 bytes compressed with \"br\", which is not shown)".to_owned(),
            false,
        ),
    ] {
        let url = endpoint([b"HTTP/1.1 200 OK\r\n".as_slice(), &rest].concat(), End::Close).await;
        let response = deliver(&url).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((&response.text(), response.truncated), (&body, truncated), "{what}");
        assert_eq!(response.body, body.as_bytes(), "{what}");
    }
}
