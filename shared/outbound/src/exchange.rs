//! One HTTP exchange with an untrusted server. The body has a limit, and one deadline covers the whole exchange,
//! including a trickled body and a second connection.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::body::Bytes;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::{
    addresses::AddressRules,
    attempt_error::AttemptError,
    body_text::{self, BodyText},
    client::{self, Connection, IncomingResponse, Unanswered},
    connections::{Connections, Endpoint},
    content_coding::{self, Decoded},
    dial::{self, SharedResolver, SystemResolver},
    endpoint_url::EndpointUrl,
    location,
    network::{SharedNetwork, SystemNetwork},
    retry_after,
    trust::Trust,
};
use base::{SharedClock, Time, clock::SystemClock};

/// The maximum size of a response's heads, interim responses (1xx) included, in bytes; curl reads 300 KiB of one head.
/// The buffer grows with the head, to at most twice this size, and a function makes 50 concurrent attempts.
const MAX_HEAD: usize = 1024 * 1024;
/// The maximum length of the body text that is stored with an attempt.
const KEPT_BODY: usize = 4_096;
/// The longest pause that an endpoint can request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

const LATE: AttemptError = AttemptError::Timeout("the endpoint did not answer in time");
const NO_CONNECTION: AttemptError = AttemptError::Timeout("the endpoint did not accept a connection in time");

/// An exchange's limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The timeout for name resolution and connection.
    pub connect: Duration,
    /// The timeout for the whole exchange.
    pub whole: Duration,
    /// The maximum number of bytes of the response's body that are kept.
    pub body: usize,
}

impl Default for Limits {
    /// The contract's limits for deliveries: 5 s, 15 s and 4 096 bytes.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), whole: Duration::from_secs(15), body: KEPT_BODY }
    }
}

/// A sender of requests to untrusted servers.
#[derive(Debug, Clone)]
pub struct Outbound {
    /// Which addresses may be dialled.
    pub rules: AddressRules,
    /// An exchange's limits.
    pub limits: Limits,
    /// The resolver of names.
    pub resolver: SharedResolver,
    /// The network that its connections use.
    pub network: SharedNetwork,
    pub(crate) trust: &'static Trust,
    connections: Connections,
}

impl Default for Outbound {
    /// A sender to public addresses, with the system's resolver and the contract's limits for deliveries.
    fn default() -> Self {
        Self::within(AddressRules::default())
    }
}

/// An HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The absolute address that a redirect leads to, without credentials and fragment.
    pub location: Option<String>,
    /// The `Retry-After` header, if it is text.
    pub retry_after: Option<String>,
    /// The media type of the body without parameters, in lower case: `application/json`.
    pub media_type: Option<String>,
    /// The first bytes of the body, with gzip and deflate decompressed, at most [`Limits::body`]; for a delivery, as
    /// text.
    pub body: Vec<u8>,
    /// Whether part of the body was dropped or did not arrive.
    pub truncated: bool,
}

impl Outbound {
    /// A sender with these rules, and the contract's limits for deliveries.
    pub fn within(rules: AddressRules) -> Self {
        Self::at(rules, Arc::new(SystemResolver), Arc::new(SystemClock))
    }

    /// Sets the limits.
    pub fn limited_to(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// A sender with these rules, this resolver, and this clock for kept connections.
    pub fn at(rules: AddressRules, resolver: SharedResolver, clock: SharedClock) -> Self {
        Self {
            rules,
            limits: Limits::default(),
            resolver,
            network: Arc::new(SystemNetwork),
            trust: &dial::TRUST,
            connections: Connections::new(clock),
        }
    }

    /// Sets the network.
    pub fn on(self, network: SharedNetwork) -> Self {
        Self { network, ..self }
    }

    /// Reads the machine's trusted authorities before the first exchange. A failure is logged, and the first exchange
    /// over TLS tries again.
    pub async fn warm(self) -> Self {
        drop(self.trust.of_machine().await);
        self
    }

    /// Sends a body on a separate connection and reads the response. The error names the failed step. An incomplete
    /// body is an error. A body in gzip or deflate is decompressed up to the limit; any other coding is left as it is.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<HttpResponse, AttemptError> {
        let began = Instant::now();
        let deadline = began + self.limits.whole;
        let connecting_ends = deadline.min(began + self.limits.connect);
        let (_connection, mut incoming) = before(deadline, async {
            let addresses = self.addresses(url, connecting_ends).await?;
            let request = client::request(method, url, client::target(url), headers, body)?;
            let mut connection = self.connect(url, &addresses, connecting_ends).await?;
            let incoming = connection.send(request).await?;
            Ok((connection, incoming))
        })
        .await?;
        let (response, end) = read(&mut incoming, url, self.limits.body, deadline).await;
        end?;
        let codings = content_coding::names(&incoming.head.headers);
        Ok(match content_coding::decode(&codings, &response.body, self.limits.body) {
            Some(Decoded { bytes, is_complete }) => {
                HttpResponse { body: bytes, truncated: response.truncated || !is_complete, ..response }
            }
            None => response,
        })
    }

    /// Sends a body for a tenant, on the tenant's kept connection to this endpoint, or on a new one that is kept
    /// afterwards if possible. If a kept connection breaks before any byte of the request was written, the request is
    /// sent on a new one. If it breaks later, the endpoint may have read the request, and the attempt fails.
    ///
    /// A response with an incomplete body is a success, marked as truncated (RFC 9112 §9.8): the endpoint has
    /// responded, and an error would cause the event to be sent again.
    ///
    /// The response body is text for the history: decompressed, in UTF-8, and within the limit.
    pub async fn send_for(
        &self,
        tenant: &str,
        method: Method,
        endpoint: &EndpointUrl,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<HttpResponse, AttemptError> {
        let url = endpoint.url();
        let began = Instant::now();
        let deadline = began + self.limits.whole;
        let connecting_ends = deadline.min(began + self.limits.connect);
        let (connection, mut incoming) = before(deadline, async {
            // The name is resolved even for a kept connection: the name's addresses may have changed.
            let addresses = self.addresses(url, connecting_ends).await?;
            let request = || client::request(method.clone(), url, endpoint.target(), headers, body.clone());
            let endpoint = Endpoint::of(tenant, url);
            if let Some(mut kept) = self.connections.take(&endpoint, &addresses) {
                match kept.connection.send(request()?).await {
                    Err(Unanswered::Unsent(_)) => {}
                    answered => return Ok((kept, answered?)),
                }
            }
            let request = request()?;
            let connection = self.connect(url, &addresses, connecting_ends).await?;
            let mut opened = self.connections.opened(endpoint, connection);
            let incoming = opened.connection.send(request).await?;
            Ok((opened, incoming))
        })
        .await?;
        let (mut response, end) = read(&mut incoming, url, self.limits.body, deadline).await;
        response.truncated |= end.is_err();
        // The unread rest of a truncated body would come before the next response.
        if !response.truncated && connection.connection.may_be_kept() {
            self.connections.keep(connection, &incoming.head.headers);
        }
        let headers = &incoming.head.headers;
        let BodyText { text, truncated } =
            body_text::of_response(headers, &response.body, response.truncated, self.limits.body);
        Ok(HttpResponse { body: text.into_bytes(), truncated, ..response })
    }

    async fn addresses(&self, url: &Url, connecting_ends: Instant) -> Result<Vec<IpAddr>, AttemptError> {
        client::check_scheme(url, &self.rules)?;
        let resolved = dial::addresses(url, &self.rules, &*self.resolver);
        timeout_at(connecting_ends, resolved).await.unwrap_or(Err(NO_CONNECTION))
    }

    async fn connect(
        &self,
        url: &Url,
        addresses: &[IpAddr],
        connecting_ends: Instant,
    ) -> Result<Connection, Unanswered> {
        let opening = dial::open(url, addresses, &*self.network);
        let link = timeout_at(connecting_ends, opening).await.unwrap_or(Err(NO_CONNECTION))?;
        Connection::over(link, url, MAX_HEAD, self.trust).await
    }

    #[cfg(test)]
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }
}

/// Waits for a step of an exchange until the deadline.
async fn before<T>(deadline: Instant, head: impl Future<Output = Result<T, Unanswered>>) -> Result<T, AttemptError> {
    timeout_at(deadline, head).await.unwrap_or(Err(LATE.into())).map_err(in_words)
}

/// Reads the body up to its limit and returns the response with the received part. The second value is an error if the
/// body broke off or was incomplete at the deadline.
async fn read(
    incoming: &mut IncomingResponse,
    url: &Url,
    kept: usize,
    deadline: Instant,
) -> (HttpResponse, Result<(), AttemptError>) {
    let mut body = Vec::new();
    let mut end = Ok(());
    // Reading one byte more than the limit shows whether the body is longer.
    while body.len() <= kept {
        match before(deadline, incoming.chunk()).await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk[..chunk.len().min(kept + 1 - body.len())]),
            Ok(None) => break,
            Err(error) => {
                end = Err(error);
                break;
            }
        }
    }
    let truncated = body.len() > kept;
    body.truncate(kept);
    let text = |name| incoming.head.headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = text(header::RETRY_AFTER).map(str::to_owned);
    let media_type = text(header::CONTENT_TYPE).and_then(|value| value.split(';').next());
    let media_type = media_type.map(|value| value.trim().to_ascii_lowercase());
    let location = location::of_response(&incoming.head, url);
    (HttpResponse { status: incoming.head.status, location, retry_after, media_type, body, truncated }, end)
}

fn in_words(unanswered: Unanswered) -> AttemptError {
    match unanswered {
        Unanswered::Failed(error) | Unanswered::Unsent(Some(error)) => error,
        Unanswered::NotHttp => AttemptError::Connect("the endpoint's response is not HTTP"),
        Unanswered::Unsent(None) | Unanswered::Broken => {
            AttemptError::Connect("the endpoint closed the connection before its response was complete")
        }
        Unanswered::HeadTooLong => AttemptError::Connect(
            "the endpoint's response exceeds 1 MiB or 2 048 headers before its body, counting interim responses (1xx)",
        ),
    }
}

impl HttpResponse {
    /// The body as text of at most 4 096 bytes, cut at a character boundary, with U+FFFD for invalid UTF-8. The body of
    /// a delivery's response is already such text, and `truncated` says whether it was cut.
    pub fn text(&self) -> String {
        body_text::from_bytes(&self.body, self.truncated, KEPT_BODY).text
    }

    /// The pause that a 429 or 503 requests with `Retry-After`, at most a day. `None` for other statuses, and if the
    /// header cannot be parsed.
    pub fn pause_asked_for(&self, now: Time) -> Option<Duration> {
        if !matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return None;
        }
        let asked = retry_after::wait(self.retry_after.as_deref()?, now)?;
        Some(asked.min(MAX_RETRY_AFTER))
    }
}

impl fmt::Display for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(body: &[u8], truncated: bool) -> HttpResponse {
        HttpResponse {
            status: StatusCode::OK,
            location: None,
            retry_after: None,
            media_type: None,
            body: body.to_vec(),
            truncated,
        }
    }

    #[test]
    fn a_body_is_cut_at_a_character_and_keeps_its_damage_visible() {
        assert_eq!(answer(b"ok", false).text(), "ok");
        assert_eq!(answer(b"a\xffb", false).text(), "a\u{fffd}b");
        assert_eq!(answer(b"a\xc3", false).text(), "a\u{fffd}");
        assert_eq!(answer(b"a\xc3", true).text(), "a");
        assert_eq!(answer("aé".as_bytes(), true).text(), "aé");
        assert_eq!(answer(b"\xffa\xc3", true).text(), "\u{fffd}a\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_answer_can_be_shown(body in proptest::collection::vec(any::<u8>(), 0..9_000), truncated in any::<bool>()) {
            prop_assert!(answer(&body, truncated).text().len() <= KEPT_BODY);
        }
    }
}
