//! Responses as strangers' servers send them, broken ones among them. Endpoints listen on loopback.

use std::{io, sync::Arc, time::Duration};

use http::{Method, StatusCode};
use hyper::body::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::{AddressRules, AttemptError, HttpResponse, Limits, Outbound, SystemResolver};
use base::{clock::SystemClock, pause};

/// How an endpoint ends the connection after its response.
#[derive(Debug, Clone, Copy)]
enum End {
    Close,
    Reset,
    /// Never, until the other side closes it.
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
            // The response must have been read before the reset discards it.
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
    outbound().send_for("hotel", Method::POST, url, &[], Bytes::from_static(b"{}")).await
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
            let outbound = outbound().limited_to(Limits { whole: Duration::from_millis(400), ..Limits::default() });
            let sent = outbound.send_for("hotel", Method::POST, &url, &[], Bytes::from_static(b"{}")).await;
            let response = sent.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!((response.status, response.text().as_str(), response.truncated), (status, body, true), "{what}");
            assert_eq!(outbound.connections().count(), 0, "{what}");
        }
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
