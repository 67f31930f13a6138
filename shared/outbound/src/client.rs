//! The HTTP client beneath every exchange: requests, one after the other, on a connection to an address that was checked.
//!
//! No redirect is followed, no proxy is asked, nothing is decompressed here; heads and interim answers have limits. How long
//! each step may take and how much of the body is read is for the caller to say, who drops the future or the connection to
//! end it.

use std::{
    io,
    net::{IpAddr, TcpStream as Socket},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{HeaderName, HeaderValue, Method, Request, header, response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
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
    attempt_error::{self, AttemptError},
    dial,
    trust::Trust,
    write_tracker::{TrackedStream, WriteTracker},
};

/// How many interim answers (1xx) may come before the answer: a handful is sensible, and each costs its parsing.
const MAX_INTERIM: usize = 20;

/// How many headers a response may have: hyper's 100 are too few for servers that set many cookies or policies, and a
/// head has a limit of bytes besides.
const MAX_HEADERS: usize = 512;

/// A request that can be sent once.
pub(crate) type Sent = Request<Full<Bytes>>;

/// A connection over which requests can go, one after the other. It is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    tracker: WriteTracker,
    /// The same socket, which tells whether something came that is still unread.
    socket: Socket,
    address: IpAddr,
    /// Drives the connection.
    _driver: JoinSet<()>,
}

/// An answer of which the head was read. Its connection must live until its body is read.
#[derive(Debug)]
pub(crate) struct IncomingResponse {
    /// Status and headers.
    pub head: response::Parts,
    body: Incoming,
}

/// Why a connection gave no answer.
pub(crate) enum Unanswered {
    /// A step ended with this error.
    Failed(AttemptError),
    /// The endpoint's bytes are not HTTP.
    NotHttp,
    /// The connection broke before any byte of the request was written, perhaps for a reason of TLS.
    Unsent(Option<AttemptError>),
    /// The connection broke after that, so the endpoint may have the request.
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
        match attempt_error::tls_reason(error) {
            Some(reason) => Self::Failed(AttemptError::Tls(reason)),
            None if error.is_parse() => Self::NotHttp,
            None => Self::Broken,
        }
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

/// Refuses a URL of a scheme that the rules do not allow.
pub(crate) fn check_scheme(url: &Url, rules: &AddressRules) -> Result<(), AttemptError> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if rules.allow_http => Ok(()),
        _ => Err(AttemptError::Blocked("the URL does not begin with https://")),
    }
}

impl Connection {
    /// Speaks HTTP on a stream to the URL's host, over TLS where the URL says so. The head of an answer has so many bytes at
    /// most.
    pub(crate) async fn over(stream: TcpStream, url: &Url, max_head: usize, trust: &Trust) -> Result<Self, Unanswered> {
        let unreachable = |_| AttemptError::Connect("the endpoint could not be reached");
        let address = stream.peer_addr().map_err(unreachable)?.ip();
        let socket = stream.as_fd().try_clone_to_owned().map_err(unreachable)?.into();
        let tracker = WriteTracker::default();
        let stream = TrackedStream::new(stream, tracker.clone());
        let (sender, driver) = if url.scheme() == "https" {
            handshake(dial::secure(stream, url, trust).await?, max_head).await?
        } else {
            handshake(stream, max_head).await?
        };
        Ok(Self { sender, tracker, socket, address, _driver: driver })
    }

    /// Sends a request, and reads the head of the answer.
    pub(crate) async fn send(&mut self, mut request: Sent) -> Result<IncomingResponse, Unanswered> {
        let too_many_interim = limit_interim(&mut request);
        self.tracker.begin();
        let response = select! {
            response = self.sender.try_send_request(request) => response,
            () = too_many_interim.notified() => return Err(Unanswered::TooManyInterim),
        };
        let response = response.map_err(|error| {
            // hyper gives back a request of which it wrote nothing.
            let is_unsent = error.message().is_some() || !self.tracker.has_written();
            match Unanswered::from(error.error()) {
                Unanswered::Broken if is_unsent => Unanswered::Unsent(None),
                Unanswered::Failed(error) if is_unsent => Unanswered::Unsent(Some(error)),
                unanswered => unanswered,
            }
        })?;
        let (head, body) = response.into_parts();
        Ok(IncomingResponse { head, body })
    }

    /// The address that it leads to.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether another request may go over it: the last answer is complete, the other side has not closed it, and has sent
    /// nothing since. What came ahead of a request must not be taken for its answer.
    pub(crate) fn is_quiet(&self) -> bool {
        let has_nothing_unread =
            || self.socket.peek(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        self.sender.is_ready() && has_nothing_unread()
    }

    /// Whether the other side has closed it, as far as is known without asking the system.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// Begins HTTP on a stream, and returns the sender of requests and the task that drives the connection.
async fn handshake<S>(stream: S, max_head: usize) -> Result<(SendRequest<Full<Bytes>>, JoinSet<()>), Unanswered>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(max_head).max_headers(MAX_HEADERS);
    // As browsers and curl do: an endpoint that has stored the event must not get it again for a faulty header. RFC 9112
    // §5.2 demands it of folded headers, and §5.1 of spaces before the colon. A line that is no header is left out.
    builder.allow_obsolete_multiline_headers_in_responses(true);
    builder.allow_spaces_after_header_name_in_responses(true);
    builder.ignore_invalid_headers_in_responses(true);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| Unanswered::from(&error))?;
    let mut driver = JoinSet::new();
    driver.spawn(async { drop(connection.await) });
    Ok((sender, driver))
}

/// Counts the interim answers to a request, which hyper skips for as long as they come, and notifies when there are too
/// many.
fn limit_interim(request: &mut Sent) -> Arc<Notify> {
    let count = AtomicUsize::new(0);
    let limit = Arc::new(Notify::new());
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
