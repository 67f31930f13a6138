//! Relays requests to ministack, which checks no credentials itself: ministack listens at a socket in a private folder, and
//! the relay passes on the requests that come over TCP with the credentials.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, StatusCode, Uri, Version,
        header::{CONNECTION, EXPECT, TRANSFER_ENCODING, UPGRADE},
    },
    middleware,
    response::{IntoResponse, Response},
    serve::ListenerExt,
};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, UnixStream};

use crate::callers::{self, Callers};

/// Headers that concern one connection and are not relayed. The relay's own server answers `Expect`.
const OF_A_CONNECTION: [HeaderName; 4] = [CONNECTION, EXPECT, TRANSFER_ENCODING, UPGRADE];

/// The connections to the socket.
#[derive(Clone)]
struct Relay {
    socket: PathBuf,
    /// Idle connections. The last one is used first, so that the others can end.
    idle: Arc<Mutex<Vec<SendRequest<Body>>>>,
}

#[derive(Debug, thiserror::Error)]
enum RelayError {
    /// ministack is starting, or starting again.
    #[error("ministack does not listen")]
    Closed(#[source] io::Error),
    #[error("ministack did not answer")]
    Broken(#[source] hyper::Error),
}

/// Passes requests on until the process ends.
pub async fn serve(listener: TcpListener, socket: PathBuf, callers: Callers) -> io::Result<()> {
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    let service = Router::new()
        .fallback(pass)
        .layer(middleware::from_fn_with_state(callers, callers::with_credentials))
        .with_state(Relay { socket, idle: Arc::default() });
    axum::serve(listener, service).await
}

async fn pass(State(relay): State<Relay>, mut request: Request) -> Response {
    *request.version_mut() = Version::HTTP_11;
    *request.uri_mut() = request.uri().path_and_query().map_or_else(Uri::default, |path| path.clone().into());
    strip(request.headers_mut());
    match relay.ask(request).await {
        Ok(answer) => {
            let mut answer = answer.map(Body::new);
            strip(answer.headers_mut());
            answer
        }
        // Every AWS SDK tries again.
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, base::logging::chain(&error)).into_response(),
    }
}

/// Removes the headers of one connection, and the CORS headers that would let browser pages in.
fn strip(headers: &mut HeaderMap) {
    for name in &OF_A_CONNECTION {
        headers.remove(name);
    }
    let for_pages: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
    for name in for_pages {
        headers.remove(name);
    }
}

impl Relay {
    fn idle(&self) -> MutexGuard<'_, Vec<SendRequest<Body>>> {
        self.idle.lock().expect("nothing panics while holding it")
    }

    async fn ask(&self, mut request: Request) -> Result<hyper::Response<Incoming>, RelayError> {
        loop {
            // A statement of its own, so that the lock is not held until the answer.
            let idle = self.idle().pop();
            let Some(mut connection) = idle else { break };
            match connection.try_send_request(request).await {
                Ok(answer) => return Ok(self.keep(connection, answer)),
                // The connection ended before anything was sent, so that the request can be sent again.
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(RelayError::Broken(failed.into_error())),
                },
            }
        }
        let stream = UnixStream::connect(&self.socket).await.map_err(RelayError::Closed)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(RelayError::Broken)?;
        tokio::spawn(async move {
            // The sender of the last request has got the error.
            let _ = connection.await;
        });
        let answer = sender.send_request(request).await.map_err(RelayError::Broken)?;
        Ok(self.keep(sender, answer))
    }

    /// Keeps a connection for another request as soon as its answer was read.
    fn keep(&self, mut connection: SendRequest<Body>, answer: hyper::Response<Incoming>) -> hyper::Response<Incoming> {
        let relay = self.clone();
        tokio::spawn(async move {
            if connection.ready().await.is_ok() {
                relay.idle().push(connection);
            }
        });
        answer
    }
}
