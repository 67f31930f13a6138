//! The gateway's connections: their maximum number, the time limit for a request's head, and an orderly shutdown.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time,
};

/// The maximum number of connections, well below the open-file limit. Further connections wait.
const MOST: u32 = 4096;

/// How long to pause after failing to accept a connection because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The timeout for a request's head, and for an idle connection.
pub const HEAD_LIMIT: Duration = Duration::from_secs(60);

/// Serves requests until `shutdown`, then waits for the requests in progress.
pub async fn serve<A, F>(
    listener: TcpListener,
    head_limit: Duration,
    answer: A,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    A: Fn(SocketAddr, Request<Body>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let (ending, _) = watch::channel(());
    let permits = Arc::new(Semaphore::new(MOST as usize));
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let permit = Arc::clone(&permits).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, peer)| (permit, stream, peer))
        };
        tokio::select! {
            accepted = accepted => match accepted {
                Ok((permit, stream, peer)) => {
                    let conversation = converse(stream, peer, head_limit, answer.clone(), ending.subscribe());
                    tokio::spawn(async move {
                        conversation.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!("a connection could not be accepted: {error}");
                    time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    ending.send_replace(());
    permits.acquire_many(MOST).await.map(drop).map_err(io::Error::other)
}

async fn converse<A, F>(
    stream: TcpStream,
    peer: SocketAddr,
    head_limit: Duration,
    answer: A,
    mut ending: watch::Receiver<()>,
) where
    A: Fn(SocketAddr, Request<Body>) -> F,
    F: Future<Output = Response>,
{
    // Send small responses immediately.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let answered = answer(peer, request.map(Body::new));
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_limit)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = ending.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke: {error}");
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        sync::oneshot,
        task::JoinHandle,
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A server that responds with the request's path; returns its address, a handle that ends it, and its task.
    async fn server(head_limit: Duration) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let (end, ended) = oneshot::channel::<()>();
        let answer = |_, request: Request<Body>| async move { request.uri().path().to_owned().into_response() };
        let serving = serve(listener, head_limit, answer, async move { drop(ended.await) });
        (address, end, tokio::spawn(serving))
    }

    async fn connect(address: SocketAddr, sent: &str) -> TcpStream {
        let mut connection = TcpStream::connect(address).await.expect("it listens");
        connection.write_all(sent.as_bytes()).await.expect("sent");
        connection
    }

    /// Everything received until the connection ends.
    async fn rest(connection: &mut TcpStream) -> String {
        let mut read = Vec::new();
        let ended = time::timeout(LONG, connection.read_to_end(&mut read)).await.expect("the connection ends");
        ended.expect("it ends in good order");
        String::from_utf8(read).expect("text")
    }

    /// Whether a client that sends its head at once gets a response. On a slow machine, even such a client may be too
    /// slow.
    async fn other_is_served(address: SocketAddr) -> bool {
        let mut read = Vec::new();
        let mut other = TcpStream::connect(address).await.expect("it listens");
        let exchange = async {
            other.write_all(b"GET /other HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await?;
            other.read_to_end(&mut read).await
        };
        let _ = time::timeout(LONG, exchange).await.expect("the connection ends");
        read.ends_with(b"/other")
    }

    #[tokio::test]
    async fn a_client_with_an_unfinished_head_loses_its_connection() {
        let (address, _end, _serving) = server(Duration::from_millis(50)).await;
        for begun in ["", "GET /", "GET / HTTP/1.1\r\nHost: h\r\n"] {
            let mut slow = connect(address, begun).await;
            let mut tries = 0;
            while !other_is_served(address).await {
                tries += 1;
                assert!(tries < 100, "{begun}");
            }
            assert!(!rest(&mut slow).await.contains("200 OK"), "{begun}");
        }
    }

    #[tokio::test]
    async fn the_end_waits_for_requests_and_not_for_idle_connections() {
        let (address, end, serving) = server(LONG).await;
        let mut idle = connect(address, "GET /first HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let mut first = [0; 15];
        idle.read_exact(&mut first).await.expect("an answer");
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        drop(end);
        assert!(rest(&mut idle).await.ends_with("/first"));
        time::timeout(LONG, serving).await.expect("it ends").expect("no panic").expect("in good order");
    }
}
