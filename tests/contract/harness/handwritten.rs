//! Requests over plain TCP that no HTTP library would send.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Bundle;

/// Sends these bytes and returns everything received until the connection ends. The request must ask the server to
/// close the connection.
pub async fn send_raw(bundle: &Bundle, request: &[u8]) -> String {
    let stream = TcpStream::connect(("127.0.0.1", bundle.port)).await.expect("the bundle listens");
    let (mut read, mut write) = stream.into_split();
    let mut answer = Vec::new();
    // Send and read concurrently: a response may arrive before the request is complete, and the rest is then not read.
    let (_, _) = tokio::join!(write.write_all(request), read.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}
