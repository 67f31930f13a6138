//! Requests that no HTTP library writes, over plain TCP.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Bundle;

/// Sends bytes and returns everything that comes back until the connection ends. The request must ask for that end.
pub async fn send_raw(bundle: &Bundle, request: &[u8]) -> String {
    let stream = TcpStream::connect(("127.0.0.1", bundle.port)).await.expect("the bundle listens");
    let (mut read, mut write) = stream.into_split();
    let mut answer = Vec::new();
    // Both at once: an answer may come before the request is complete, and the rest of it is then refused.
    let (_, _) = tokio::join!(write.write_all(request), read.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}
