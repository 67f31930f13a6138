//! Forwards a delivery to an address, as the service would post it to an endpoint.

use std::{fmt, str::FromStr};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use hyper::body::Bytes;
use url::Url;

use super::feed::{ANSWERED_WITHIN, FeedDelivery};
use crate::{
    http_client::{Client, Outgoing},
    output::visible_line,
};

/// The maximum length of a reason, in characters.
const LONGEST_REASON: usize = 500;
/// Headers that belong to the connection between this program and the address.
const OF_THE_CONNECTION: [HeaderName; 4] =
    [header::HOST, header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING];

/// The address to which events are posted.
#[derive(Clone)]
pub struct Target {
    url: Url,
    client: Client,
}

/// The answer of the address, or the reason for its absence.
pub type Answered = Result<Answer, String>;

/// The status of an answer, and the beginning of its body in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// The reason to report a delivery as failed; `None` for a 2xx answer.
pub fn failure_of(answer: &Answered) -> Option<String> {
    let reason = match answer {
        Ok(Answer { status: 200..=299, .. }) => return None,
        Ok(Answer { status, body }) if body.is_empty() => format!("HTTP {status}"),
        Ok(Answer { status, body }) => format!("HTTP {status}: {body}"),
        Err(reason) => reason.clone(),
    };
    Some(reason.chars().take(LONGEST_REASON).collect())
}

impl Target {
    /// Posts a delivery with its headers and its exact body.
    pub async fn forward(&self, delivery: &FeedDelivery) -> Answered {
        let mut headers = HeaderMap::new();
        for (name, value) in &delivery.headers {
            let name = HeaderName::try_from(name).map_err(|_| format!("no header can be named `{name}`"))?;
            let value = HeaderValue::try_from(value).map_err(|_| format!("the header `{name}` cannot be sent"))?;
            if !OF_THE_CONNECTION.contains(&name) {
                headers.insert(name, value);
            }
        }
        let body = Bytes::from(delivery.body.clone());
        let outgoing = Outgoing { method: Method::POST, url: &self.url, headers, body, within: ANSWERED_WITHIN };
        let (status, body) = self.client.beginning(outgoing, LONGEST_REASON).await?;
        Ok(Answer { status, body: visible_line(String::from_utf8_lossy(&body).trim()) })
    }
}

impl FromStr for Target {
    type Err = String;

    /// Parses an address. The default scheme is `http`.
    fn from_str(given: &str) -> Result<Self, String> {
        let address = if given.contains("://") { given.to_owned() } else { format!("http://{given}") };
        let url: Url = address.parse().map_err(|error| format!("it is no address: {error}"))?;
        if !["http", "https"].contains(&url.scheme()) || url.host().is_none() {
            return Err("it must begin with http:// or https://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("credentials in an address are not sent; leave them out".to_owned());
        }
        let client = Client::new(&url).map_err(|failure| failure.to_string())?;
        Ok(Self { url, client })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_2xx_answer_confirms() {
        let answer = |status, body: &str| Ok(Answer { status, body: body.to_owned() });
        assert_eq!(failure_of(&answer(204, "stored")), None);
        assert_eq!(failure_of(&answer(302, "")).as_deref(), Some("HTTP 302"));
        assert_eq!(failure_of(&answer(401, "no signature")).as_deref(), Some("HTTP 401: no signature"));
        assert_eq!(failure_of(&Err("x".repeat(600))).map(|reason| reason.len()), Some(500));
    }

    #[test]
    fn an_address_may_lack_its_scheme() {
        let target = |given: &str| given.parse::<Target>().map(|target| target.to_string());
        assert_eq!(target("localhost:3000/hooks").as_deref(), Ok("http://localhost:3000/hooks"));
        assert_eq!(target("http://127.0.0.1:3000").as_deref(), Ok("http://127.0.0.1:3000/"));
        for wrong in ["ftp://localhost", "http://", "http://a:b@localhost"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }
}
