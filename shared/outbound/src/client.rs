//! The HTTP client for all exchanges. It sends requests one after another on a connection to a checked address.
//!
//! The client follows no redirects, uses no proxy and decompresses nothing; heads and interim responses have limits.
//! The caller limits each step's time and the body's size, and drops the future or the connection to end it.

use std::{fmt, net::IpAddr};

use http::{HeaderName, HeaderValue, Method, Request, header, response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};
use url::{Position, Url};

use crate::{
    addresses::AddressRules,
    attempt_error::{self, AttemptError},
    dial,
    network::Link,
    response_head::{HeadTooLong, Heads, MAX_HEADERS},
    trust::Trust,
    write_tracker::{TrackedStream, WriteTracker},
};

/// A request that can be sent once.
pub(crate) type Sent = Request<Full<Bytes>>;

/// A connection for consecutive requests. It is closed when it is dropped.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    tracker: WriteTracker,
    heads: Heads,
    /// [`Link::is_quiet`] of the stream.
    link_is_quiet: Box<dyn Fn() -> bool + Send + Sync>,
    address: IpAddr,
    _driver: JoinSet<()>,
}

/// A response whose head was read. Its connection must stay open until its body is read.
#[derive(Debug)]
pub(crate) struct IncomingResponse {
    /// Status and headers.
    pub head: response::Parts,
    body: Incoming,
}

/// Why a request got no response.
pub(crate) enum Unanswered {
    Failed(AttemptError),
    NotHttp,
    /// The connection broke before any byte of the request was written, possibly with a TLS error.
    Unsent(Option<AttemptError>),
    /// The connection broke later, so the endpoint may have received the request.
    Broken,
    /// The response's heads, interim responses included, have too many bytes or headers.
    HeadTooLong,
}

impl From<AttemptError> for Unanswered {
    fn from(error: AttemptError) -> Self {
        Self::Failed(error)
    }
}

impl From<&hyper::Error> for Unanswered {
    fn from(error: &hyper::Error) -> Self {
        match attempt_error::tls_reason(error) {
            Some(reason) => Self::Failed(AttemptError::Tls(reason)),
            None if attempt_error::cause::<HeadTooLong>(error).is_some() => Self::HeadTooLong,
            None if error.is_parse() => Self::NotHttp,
            None => Self::Broken,
        }
    }
}

/// A request for the URL, whose path and query are `target`. Fails as blocked if HTTP cannot express it.
pub(crate) fn request(
    method: Method,
    url: &Url,
    target: &str,
    headers: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Result<Sent, AttemptError> {
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header(header::HOST, &url[Position::BeforeHost..Position::AfterPort])
        .body(Full::new(body))
        .map_err(|_| AttemptError::Blocked("the URL cannot be requested over HTTP"))?;
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    Ok(request)
}

/// The path and query of a URL, as its parser writes them.
pub(crate) fn target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

pub(crate) fn check_scheme(url: &Url, rules: &AddressRules) -> Result<(), AttemptError> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if rules.allow_http => Ok(()),
        _ => Err(AttemptError::Blocked("the URL does not begin with https://")),
    }
}

impl Connection {
    /// Starts HTTP on a link to the URL's host, over TLS for `https`. A response's heads, interim responses included,
    /// have at most `max_head` bytes.
    pub(crate) async fn over(link: Link, url: &Url, max_head: usize, trust: &Trust) -> Result<Self, Unanswered> {
        let Link { stream, peer, is_quiet } = link;
        let tracker = WriteTracker::default();
        let stream = TrackedStream::new(stream, tracker.clone());
        let heads = Heads::within(max_head);
        let (sender, driver) = if url.scheme() == "https" {
            handshake(heads.clone().over(dial::secure(stream, url, trust).await?), max_head).await?
        } else {
            handshake(heads.clone().over(stream), max_head).await?
        };
        Ok(Self { sender, tracker, heads, link_is_quiet: is_quiet, address: peer.ip(), _driver: driver })
    }

    /// Sends a request and reads the response head.
    pub(crate) async fn send(&mut self, request: Sent) -> Result<IncomingResponse, Unanswered> {
        self.tracker.begin();
        self.heads.begin();
        let response = self.sender.try_send_request(request).await.map_err(|error| {
            // hyper returns the request if it has written none of it.
            let is_unsent = error.message().is_some() || !self.tracker.has_written();
            match Unanswered::from(error.error()) {
                Unanswered::Broken if is_unsent => Unanswered::Unsent(None),
                Unanswered::Failed(error) if is_unsent => Unanswered::Unsent(Some(error)),
                unanswered => unanswered,
            }
        })?;
        self.heads.end();
        let (head, body) = response.into_parts();
        Ok(IncomingResponse { head, body })
    }

    /// The peer's address.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether the connection may be kept after its last response.
    pub(crate) fn may_be_kept(&self) -> bool {
        self.heads.may_be_kept()
    }

    /// Whether the connection can be used for another request: the last response is complete, and the peer has neither
    /// closed the connection nor sent anything since. Bytes that arrive ahead of a request must not become its
    /// response.
    pub(crate) fn is_quiet(&self) -> bool {
        self.sender.is_ready() && (self.link_is_quiet)()
    }

    /// Whether the peer is known to have closed the connection. Makes no system call.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Starts HTTP on a stream and returns the sender of requests and the task that drives the connection.
async fn handshake<S>(stream: S, max_head: usize) -> Result<(SendRequest<Full<Bytes>>, JoinSet<()>), Unanswered>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    // hyper's limits are higher than those of `Heads`, whose error differs from the one for a damaged head.
    builder.max_buf_size(max_head + 1).max_headers(MAX_HEADERS);
    // As lenient as browsers and curl: an endpoint that has stored the event must not get it again because of a faulty
    // header. RFC 9112 requires leniency for folded headers (§5.2) and spaces before the colon (§5.1). Other invalid
    // lines are ignored.
    builder.allow_obsolete_multiline_headers_in_responses(true);
    builder.allow_spaces_after_header_name_in_responses(true);
    builder.ignore_invalid_headers_in_responses(true);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| Unanswered::from(&error))?;
    let mut driver = JoinSet::new();
    driver.spawn(async { drop(connection.await) });
    Ok((sender, driver))
}

impl IncomingResponse {
    /// The next chunk of the body; `None` if the body is complete.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Unanswered> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame.map_err(|error| Unanswered::from(&error))?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
