//! Clients that are slow, announce too much or send too much: each gets an error immediately and delays no other
//! client.

use std::{pin::pin, sync::Arc};

use contract_test::contract_test;
use futures::future::{Either, join_all, select};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::harness::{LONG, Suite};

/// Opens a connection and sends the start of a request.
async fn begin(suite: &Suite, head: &str) -> TcpStream {
    let mut connection = TcpStream::connect(("127.0.0.1", suite.bundle().port)).await.expect("the bundle listens");
    connection.write_all(head.as_bytes()).await.expect("a head is taken");
    connection
}

/// Reads a response: the status, the headers in lower case, and the body.
async fn answer(connection: &mut (impl AsyncReadExt + Unpin)) -> (u16, String, Value) {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = timeout(LONG, connection.read(&mut buffer)).await.expect("an answer in time").expect("an answer");
        read.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let announced = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if announced.is_some_and(|announced: usize| body.len() >= announced) || length == 0 {
                let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
                return (status, head, serde_json::from_str(body).unwrap_or_default());
            }
        }
        assert_ne!(length, 0, "the connection ended without an answer: {text}");
    }
}

/// Asserts that a response is this Problem, and that it is the last one on its connection.
fn refused((status, head, problem): (u16, String, Value), expected: u16, kind: &str) {
    assert!(head.contains("\r\nx-content-type-options: nosniff"), "{head}");
    assert_eq!(status, expected, "{head}\n{problem:#}");
    assert!(head.contains("\r\nconnection: close"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/problem+json"), "{head}");
    assert!(problem["type"].as_str().is_some_and(|url| url.ends_with(kind)), "{problem:#}");
    assert_eq!(problem["status"], expected);
}

#[contract_test]
async fn a_body_that_is_announced_too_large_is_refused_before_it_is_sent(suite: Arc<Suite>) {
    for more in ["", "Expect: 100-continue\r\n"] {
        for length in ["10485761", "99999999999"] {
            let head = format!("POST /oauth2/token HTTP/1.1\r\nHost: h\r\n{more}Content-Length: {length}\r\n\r\n");
            let mut connection = begin(&suite, &head).await;
            refused(answer(&mut connection).await, 413, "payload-too-large");
        }
    }
}

#[contract_test]
async fn a_body_that_grows_too_large_is_refused_while_it_is_sent(suite: Arc<Suite>) {
    let head = "POST /oauth2/token HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (mut read, mut write) = begin(&suite, head).await.into_split();
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x10_0000));
    let endless = pin!(async {
        // Send until the connection ends.
        while write.write_all(chunk.as_bytes()).await.is_ok() {}
    });
    let answered = match select(pin!(answer(&mut read)), endless).await {
        Either::Left((answered, _)) => answered,
        // The connection may end while the response is waiting to be read.
        Either::Right(((), answered)) => answered.await,
    };
    refused(answered, 413, "payload-too-large");
}

#[contract_test]
async fn a_body_that_does_not_come_is_refused(suite: Arc<Suite>) {
    let form = "Content-Type: application/x-www-form-urlencoded";
    let cases = ["Content-Length: 100\r\n\r\ngrant_type=", "Transfer-Encoding: chunked\r\n\r\n5\r\ngrant\r\n"];
    join_all(cases.map(async |rest| {
        let head = format!("POST /oauth2/token HTTP/1.1\r\nHost: h\r\n{form}\r\n{rest}");
        let mut connection = begin(&suite, &head).await;
        refused(answer(&mut connection).await, 408, "request-timeout");
    }))
    .await;
}

#[contract_test]
async fn headers_that_are_too_large_are_refused(suite: Arc<Suite>) {
    let head = format!("GET /openapi.json HTTP/1.1\r\nHost: h\r\nX-Large: {}\r\n\r\n", "x".repeat(10_240));
    let mut connection = begin(&suite, &head).await;
    refused(answer(&mut connection).await, 431, "headers-too-large");
    let query = format!("GET /openapi.json?x={} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(10_240));
    let mut connection = begin(&suite, &query).await;
    refused(answer(&mut connection).await, 431, "headers-too-large");
}
