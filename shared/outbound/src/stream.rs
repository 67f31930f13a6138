//! A large response from an untrusted server, read in chunks. The connection, the head and idle time have limits; the
//! reader limits the total size and time.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, header, response};
use hyper::body::Bytes;
use tokio::time::timeout;
use url::Url;

use crate::{
    USER_AGENT,
    addresses::AddressRules,
    attempt_error::AttemptError,
    client::{self, Connection, IncomingResponse, Unanswered},
    dial::{self, SystemResolver},
    network::Network,
};

/// The largest head of a response, and the size of the read buffer.
const MAX_HEAD: usize = 64 * 1024;

/// Each step's timeout.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// The timeout for name resolution and connection.
    pub connect: Duration,
    /// The timeout for TLS, the request and the response head.
    pub head: Duration,
    /// The timeout between two chunks of the body.
    pub idle: Duration,
}

impl Default for StreamLimits {
    fn default() -> Self {
        let ten = Duration::from_secs(10);
        Self { connect: Duration::from_secs(5), head: ten, idle: ten }
    }
}

/// A response whose head was read.
#[derive(Debug)]
pub struct ResponseStream {
    answered: IncomingResponse,
    idle: Duration,
    _connection: Connection,
}

impl ResponseStream {
    /// Status and headers.
    pub fn head(&self) -> &response::Parts {
        &self.answered.head
    }

    /// The next chunk of the body; `None` if the body is complete.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, AttemptError> {
        let chunk = timeout(self.idle, self.answered.chunk()).await;
        let chunk = chunk.map_err(|_| AttemptError::Timeout("the rest of the response did not arrive in time"))?;
        chunk.map_err(|_| AttemptError::Connect("the connection broke before the response was complete"))
    }
}

/// Sends a GET request and reads the response head. Retries once if the connection breaks before the head has arrived.
pub async fn get(
    url: &Url,
    headers: &[(HeaderName, HeaderValue)],
    rules: &AddressRules,
    limits: StreamLimits,
    network: &dyn Network,
) -> Result<ResponseStream, AttemptError> {
    let answered = match attempt(url, headers, rules, limits, network).await {
        Err(Unanswered::Unsent(None) | Unanswered::Broken) => attempt(url, headers, rules, limits, network).await,
        answered => answered,
    };
    let (connection, answered) = answered.map_err(in_words)?;
    Ok(ResponseStream { answered, idle: limits.idle, _connection: connection })
}

async fn attempt(
    url: &Url,
    headers: &[(HeaderName, HeaderValue)],
    rules: &AddressRules,
    limits: StreamLimits,
    network: &dyn Network,
) -> Result<(Connection, IncomingResponse), Unanswered> {
    let mut sent = vec![
        (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
        (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ];
    sent.extend_from_slice(headers);
    let request = client::request(Method::GET, url, client::target(url), &sent, Bytes::new())?;
    client::check_scheme(url, rules)?;
    let link = timeout(limits.connect, dial::connect(url, rules, &SystemResolver, network)).await;
    let link = link.unwrap_or(Err(AttemptError::Timeout("the connection was not made in time")))?;
    let answered = timeout(limits.head, async {
        let mut connection = Connection::over(link, url, MAX_HEAD, &dial::TRUST).await?;
        let answered = connection.send(request).await?;
        Ok((connection, answered))
    });
    let late = AttemptError::Timeout("the server did not begin to answer in time");
    answered.await.unwrap_or(Err(late.into()))
}

fn in_words(unanswered: Unanswered) -> AttemptError {
    match unanswered {
        Unanswered::Failed(error) | Unanswered::Unsent(Some(error)) => error,
        Unanswered::NotHttp => AttemptError::Connect("the server's response is not HTTP"),
        Unanswered::Unsent(None) | Unanswered::Broken => {
            AttemptError::Connect("the connection broke before the server answered")
        }
        Unanswered::HeadTooLong => AttemptError::Connect(
            "the server's response exceeds 64 KiB or 2 048 headers before its body, counting interim responses (1xx)",
        ),
    }
}
