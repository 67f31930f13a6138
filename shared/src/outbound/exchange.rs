//! One HTTP exchange with a stranger, limited in every way: no redirect is followed, no proxy is asked, nothing is
//! decompressed, the answer is read to 4 KiB and one byte, and one clock runs over all of it, a trickled body included.

use std::{fmt, time::Duration};

use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
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

use super::{addresses::AddressRules, dial};

/// How much of an answer's body is kept.
pub const KEPT_BODY: usize = 4096;
/// The largest head of an answer; hyper would take 400 KiB.
const MAX_HEAD: usize = 32 * 1024;

/// How long an exchange may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until the connection stands.
    pub connect: Duration,
    /// For everything.
    pub whole: Duration,
}

impl Default for Limits {
    /// The contract's: 5 s and 15 s.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), whole: Duration::from_secs(15) }
    }
}

/// Sends to strangers.
#[derive(Debug, Clone, Default)]
pub struct Outbound {
    /// Whereto.
    pub rules: AddressRules,
    /// For how long.
    pub limits: Limits,
}

/// An answer, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its `Retry-After`, when it is one text.
    pub retry_after: Option<String>,
    /// The first bytes of its body, [`KEPT_BODY`] at most.
    pub body: Vec<u8>,
}

/// Why an exchange never completed: a stable code and a sentence, neither of which says anything of the inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The name does not resolve.
    #[error("dns: {0}")]
    Dns(&'static str),
    /// There was no connection, or it broke, or what came over it was not HTTP.
    #[error("connect: {0}")]
    Connect(&'static str),
    /// TLS failed.
    #[error("tls: {0}")]
    Tls(&'static str),
    /// It took too long.
    #[error("timeout: {0}")]
    Timeout(&'static str),
    /// The target may not be dialled.
    #[error("blocked: {0}")]
    Blocked(&'static str),
}

impl Outbound {
    /// Sends within these rules, and the contract's limits.
    pub fn within(rules: AddressRules) -> Self {
        Self { rules, limits: Limits::default() }
    }

    /// Posts a body and reads the answer. The error says at which step it ended.
    pub async fn post(
        &self,
        url: &Url,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Answer, AttemptError> {
        let exchange = async {
            let stream = timeout(self.limits.connect, dial::connect(url, &self.rules)).await;
            let stream =
                stream.unwrap_or(Err(AttemptError::Timeout("the endpoint took no connection within 5 seconds")))?;
            let request = request(url, headers, body)?;
            match url.scheme() {
                "https" => converse(dial::secure(stream, url).await?, request).await,
                "http" if self.rules.allow_http => converse(stream, request).await,
                _ => Err(AttemptError::Blocked("the URL does not begin with https://")),
            }
        };
        let late = Err(AttemptError::Timeout("the endpoint had not answered completely after 15 seconds"));
        timeout(self.limits.whole, exchange).await.unwrap_or(late)
    }
}

fn request(
    url: &Url,
    headers: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Result<Request<Full<Bytes>>, AttemptError> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&url[Position::BeforePath..Position::AfterQuery])
        .header(header::HOST, &url[Position::BeforeHost..Position::AfterPort])
        .body(Full::new(body))
        .map_err(|_| AttemptError::Blocked("the URL cannot be asked for in HTTP"))?;
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    Ok(request)
}

async fn converse<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, AttemptError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| broken(&error))?;
    // Dropped with this function, and the connection with it, however the exchange ends.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
    read(response).await
}

async fn read(response: Response<Incoming>) -> Result<Answer, AttemptError> {
    let (head, mut incoming) = response.into_parts();
    let mut body = Vec::new();
    // One byte more than is kept is enough to know that the rest does not matter.
    while body.len() <= KEPT_BODY {
        let Some(frame) = incoming.frame().await else { break };
        if let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() {
            body.extend_from_slice(&data[..data.len().min(KEPT_BODY + 1 - body.len())]);
        }
    }
    body.truncate(KEPT_BODY);
    let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Answer { status: head.status, retry_after, body })
}

fn broken(error: &hyper::Error) -> AttemptError {
    AttemptError::Connect(if error.is_parse() {
        "what the endpoint answered is not HTTP"
    } else {
        "the endpoint closed the connection before its answer was complete"
    })
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}

/// The body as text: cut at the boundary of a character, and what is no UTF-8 replaced by U+FFFD.
pub fn shown(body: &[u8]) -> String {
    let end = match std::str::from_utf8(body) {
        // Only an *incomplete* last character is cut away, and only where the limit cut it.
        Err(error) if error.error_len().is_none() && body.len() == KEPT_BODY => error.valid_up_to(),
        _ => body.len(),
    };
    String::from_utf8_lossy(&body[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_body_is_cut_at_a_character_and_keeps_its_damage_visible() {
        assert_eq!(shown(b"ok"), "ok");
        assert_eq!(shown(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(shown(b"a\xc3"), "a\u{fffd}");
        let cut = [vec![b'x'; KEPT_BODY - 1], vec![0xc3]].concat();
        assert_eq!(shown(&cut), "x".repeat(KEPT_BODY - 1));
        let whole = [vec![b'x'; KEPT_BODY - 2], "é".into()].concat();
        assert_eq!(shown(&whole).len(), KEPT_BODY);
        let damaged_early = [vec![0xff], vec![b'x'; KEPT_BODY - 2], vec![0xc3]].concat();
        assert!(shown(&damaged_early).starts_with('\u{fffd}'));
    }

    proptest! {
        #[test]
        fn any_answer_can_be_shown(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = shown(&body);
            prop_assert!(text.len() <= body.len() * 3);
        }
    }
}
