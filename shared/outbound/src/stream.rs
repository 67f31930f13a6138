//! A large answer from a stranger, read piece by piece. Each step has a limit: the connection, the head, and the time
//! without a byte. How much is read, and for how long altogether, is for the reader to say. As everywhere in outbound, no
//! redirect is followed, no proxy is asked, nothing is decompressed, and only addresses that were checked are dialled.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Request, Response, header, response};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::timeout,
};
use url::{Position, Url};

use super::{AttemptError, SystemResolver, USER_AGENT, addresses::AddressRules, dial};

/// What is read of a connection at a time, and the largest head of an answer.
const BUFFER: usize = 64 * 1024;

/// How long each step may take.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// Until the connection stands.
    pub connect: Duration,
    /// From there until the head of the answer is there.
    pub head: Duration,
    /// Without a byte of the body.
    pub idle: Duration,
}

impl Default for StreamLimits {
    fn default() -> Self {
        let ten = Duration::from_secs(10);
        Self { connect: Duration::from_secs(5), head: ten, idle: ten }
    }
}

/// An answer of which the head was read.
#[derive(Debug)]
pub struct Opened {
    /// Status and headers.
    pub head: response::Parts,
    body: Incoming,
    idle: Duration,
    /// Dropped with the answer, and the connection with it.
    _driver: JoinSet<()>,
}

impl Opened {
    /// The next piece of the body; nothing when it is complete.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, AttemptError> {
        loop {
            let late = AttemptError::Timeout("nothing more came of the answer");
            let Some(frame) = timeout(self.idle, self.body.frame()).await.map_err(|_| late)? else { return Ok(None) };
            let broken = AttemptError::Connect("the connection broke before the answer was complete");
            if let Ok(data) = frame.map_err(|_| broken)?.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// Asks for an address, and reads the head of the answer. A connection that breaks before that is tried once more.
pub async fn get(
    url: &Url,
    headers: &[(HeaderName, HeaderValue)],
    rules: &AddressRules,
    limits: StreamLimits,
) -> Result<Opened, AttemptError> {
    match attempt(url, headers, rules, limits).await {
        Err(Failure::Broken) => attempt(url, headers, rules, limits).await.map_err(AttemptError::from),
        outcome => outcome.map_err(AttemptError::from),
    }
}

enum Failure {
    /// The connection stood, and broke before any answer.
    Broken,
    Final(AttemptError),
}

impl From<AttemptError> for Failure {
    fn from(error: AttemptError) -> Self {
        Self::Final(error)
    }
}

impl From<Failure> for AttemptError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Broken => Self::Connect("the connection broke before there was an answer"),
            Failure::Final(error) => error,
        }
    }
}

async fn attempt(
    url: &Url,
    headers: &[(HeaderName, HeaderValue)],
    rules: &AddressRules,
    limits: StreamLimits,
) -> Result<Opened, Failure> {
    let secure = match url.scheme() {
        "https" => true,
        "http" if rules.allow_http => false,
        _ => return Err(AttemptError::Blocked("the URL does not begin with https://").into()),
    };
    let request = request(url, headers)?;
    let late = AttemptError::Timeout("no connection could be made in time");
    let stream = timeout(limits.connect, dial::connect(url, rules, &SystemResolver)).await.map_err(|_| late)??;
    let answer = async {
        if secure {
            converse(dial::secure(stream, url).await?, request, limits).await
        } else {
            converse(stream, request, limits).await
        }
    };
    let late = AttemptError::Timeout("the server did not begin to answer in time");
    timeout(limits.head, answer).await.map_err(|_| late)?
}

fn request(url: &Url, headers: &[(HeaderName, HeaderValue)]) -> Result<Request<Empty<Bytes>>, AttemptError> {
    let mut request = Request::builder()
        .method(Method::GET)
        .uri(&url[Position::BeforePath..Position::AfterQuery])
        .header(header::HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::ACCEPT_ENCODING, "identity")
        .body(Empty::new())
        .map_err(|_| AttemptError::Blocked("the URL cannot be asked for in HTTP"))?;
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    Ok(request)
}

async fn converse<S>(stream: S, request: Request<Empty<Bytes>>, limits: StreamLimits) -> Result<Opened, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = http1::Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|_| Failure::Broken)?;
    let mut driver = JoinSet::new();
    driver.spawn(async { drop(connection.await) });
    let answer: Response<Incoming> = sender.send_request(request).await.map_err(|error| {
        if error.is_parse() {
            Failure::Final(AttemptError::Connect("what the server answered is not HTTP"))
        } else {
            Failure::Broken
        }
    })?;
    let (head, body) = answer.into_parts();
    Ok(Opened { head, body, idle: limits.idle, _driver: driver })
}
