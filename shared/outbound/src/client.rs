//! The HTTP client beneath every exchange: one request on a connection of its own, to an address that was checked.
//!
//! No redirect is followed, no proxy is asked, nothing is decompressed; heads and interim answers have limits. How long
//! each step may take and how much of the body is read is for the caller to say, who drops the future or the answer to
//! end it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{HeaderName, HeaderValue, Method, Request, header, response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    select,
    sync::Notify,
    task::JoinSet,
};
use url::{Position, Url};

use crate::{
    addresses::AddressRules,
    attempt_error::AttemptError,
    dial::{self, Resolver},
};

/// How many interim answers (1xx) may come before the answer: a handful is sensible, and each costs its parsing.
const MAX_INTERIM: usize = 20;

/// A request that can be sent once.
pub(crate) type Sent = Request<Full<Bytes>>;

/// A connection to the URL's host.
pub(crate) struct Connection<'a> {
    stream: TcpStream,
    url: &'a Url,
}

/// An answer of which the head was read.
#[derive(Debug)]
pub(crate) struct IncomingResponse {
    /// Status and headers.
    pub head: response::Parts,
    body: Incoming,
    /// Drives the connection, which is closed when the answer is dropped.
    _driver: JoinSet<()>,
}

/// Why a connection gave no answer.
pub(crate) enum Unanswered {
    /// A step ended with this error.
    Failed(AttemptError),
    /// The endpoint's bytes are not HTTP.
    NotHttp,
    /// The connection broke.
    Broken,
    /// Interim answers came without an end.
    TooManyInterim,
}

impl From<AttemptError> for Unanswered {
    fn from(error: AttemptError) -> Self {
        Self::Failed(error)
    }
}

impl From<&hyper::Error> for Unanswered {
    fn from(error: &hyper::Error) -> Self {
        if error.is_parse() { Self::NotHttp } else { Self::Broken }
    }
}

/// A request for the URL. A URL that cannot be asked for in HTTP is blocked.
pub(crate) fn request(
    method: Method,
    url: &Url,
    headers: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Result<Sent, AttemptError> {
    let mut request = Request::builder()
        .method(method)
        .uri(&url[Position::BeforePath..Position::AfterQuery])
        .header(header::HOST, &url[Position::BeforeHost..Position::AfterPort])
        .body(Full::new(body))
        .map_err(|_| AttemptError::Blocked("the URL cannot be asked for in HTTP"))?;
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    Ok(request)
}

/// Opens a connection to the URL's host, if the rules allow the URL's scheme and every address of the host.
pub(crate) async fn connect<'a>(
    url: &'a Url,
    rules: &AddressRules,
    resolver: &dyn Resolver,
) -> Result<Connection<'a>, AttemptError> {
    match url.scheme() {
        "https" => {}
        "http" if rules.allow_http => {}
        _ => return Err(AttemptError::Blocked("the URL does not begin with https://")),
    }
    Ok(Connection { stream: dial::connect(url, rules, resolver).await?, url })
}

impl Connection<'_> {
    /// Sends a request, over TLS where the URL says so, and reads the head of the answer, of so many bytes at most.
    pub(crate) async fn send(self, request: Sent, max_head: usize) -> Result<IncomingResponse, Unanswered> {
        let Self { stream, url } = self;
        if url.scheme() == "https" {
            converse(dial::secure(stream, url).await?, request, max_head).await
        } else {
            converse(stream, request, max_head).await
        }
    }
}

async fn converse<S>(stream: S, mut request: Sent, max_head: usize) -> Result<IncomingResponse, Unanswered>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let too_many_interim = limit_interim(&mut request);
    let handshake = http1::Builder::new().max_buf_size(max_head).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| Unanswered::from(&error))?;
    let mut driver = JoinSet::new();
    driver.spawn(async { drop(connection.await) });
    let response = select! {
        response = sender.send_request(request) => response.map_err(|error| Unanswered::from(&error))?,
        () = too_many_interim.notified() => return Err(Unanswered::TooManyInterim),
    };
    let (head, body) = response.into_parts();
    Ok(IncomingResponse { head, body, _driver: driver })
}

/// Counts the interim answers to a request, which hyper skips for as long as they come, and notifies when there are too
/// many.
fn limit_interim(request: &mut Sent) -> Arc<Notify> {
    let (count, limit) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let reached = Arc::clone(&limit);
    hyper::ext::on_informational(request, move |_| {
        if count.fetch_add(1, Ordering::Relaxed) == MAX_INTERIM {
            reached.notify_one();
        }
    });
    limit
}

impl IncomingResponse {
    /// The next piece of the body; `None` when the body is complete.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, Unanswered> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame.map_err(|error| Unanswered::from(&error))?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
