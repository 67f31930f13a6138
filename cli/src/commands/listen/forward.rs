//! Forwards a delivery to an address, with the same exchange as the service.

use std::{fmt, str::FromStr};

use http::{HeaderName, HeaderValue, Method, header};
use hyper::body::Bytes;
use outbound::{
    AddressRules, Outbound,
    addresses::Networks,
    endpoint_url::{EndpointUrl, EndpointUrlError},
};
use url::Host;

use super::feed::FeedDelivery;
use crate::output::visible_line;

/// The maximum length of a reason, in characters.
const LONGEST_REASON: usize = 500;
/// Headers that belong to the connection between this program and the address.
const OF_THE_CONNECTION: [HeaderName; 4] =
    [header::HOST, header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING];
/// The tenant of the reused connections.
const TENANT: &str = "listen";

/// The address to which events are posted.
#[derive(Clone)]
pub struct Target {
    url: EndpointUrl,
    outbound: Outbound,
}

/// The response from the address, or why there is none.
pub type Answered = Result<Answer, String>;

/// A response's status, and the beginning of its body on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// Why a delivery is reported as failed; `None` for a 2xx response.
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
        let mut headers = Vec::new();
        for (name, value) in &delivery.headers {
            let name = HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a valid header name"))?;
            let value = HeaderValue::try_from(value).map_err(|_| format!("the header `{name}` cannot be sent"))?;
            if !OF_THE_CONNECTION.contains(&name) {
                headers.push((name, value));
            }
        }
        let body = Bytes::from(delivery.body.clone());
        let sent = self.outbound.send_for(TENANT, Method::POST, &self.url, &headers, body).await;
        let response = sent.map_err(|error| error.to_string())?;
        let body = visible_line(response.text().trim()).chars().take(LONGEST_REASON).collect();
        Ok(Answer { status: response.status.as_u16(), body })
    }
}

impl FromStr for Target {
    type Err = String;

    /// Parses an address. The default scheme is `http`, and the default host is this machine.
    fn from_str(given: &str) -> Result<Self, String> {
        let url = EndpointUrl::at_any_host(&completed(given), true).map_err(|error| match error {
            EndpointUrlError::Credentials => "it must not contain credentials, which would not be sent".to_owned(),
            error => format!("it {error}"),
        })?;
        // The parser reads a number as an IPv4 address: `http://3000` would be 0.0.11.184.
        if let Some(Host::Ipv4(address)) = url.url().host()
            && !given.contains(&address.to_string())
        {
            return Err(format!(
                "its host means the address {address}: write that address, or just a number for a port on this machine"
            ));
        }
        let Networks(allowed_networks) = "0.0.0.0/0,::/0".parse().expect("two networks");
        let rules = AddressRules { allowed_networks, allow_http: true };
        Ok(Self { url, outbound: Outbound::within(rules) })
    }
}

/// Completes an address that may lack the scheme, or both scheme and host.
fn completed(given: &str) -> String {
    let has_scheme = given.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', ':']));
    if has_scheme {
        return given.to_owned();
    }
    let (host, path) = given.split_at(given.find(['/', '?']).unwrap_or(given.len()));
    let port = host.strip_prefix(':').unwrap_or(host);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { format!("http://localhost:{port}{path}") } else { format!("http://{given}") }
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
    fn an_address_may_lack_its_scheme_and_its_host() {
        let target = |given: &str| given.parse::<Target>().map(|target| target.to_string());
        for (given, meant) in [
            ("3000", "http://localhost:3000/"),
            (":3000", "http://localhost:3000/"),
            ("localhost:3000", "http://localhost:3000/"),
            ("3000/hooks", "http://localhost:3000/hooks"),
            (":3000?a=b://c", "http://localhost:3000/?a=b://c"),
            ("localhost:3000/hooks", "http://localhost:3000/hooks"),
            ("devbox/hooks", "http://devbox/hooks"),
            ("127.0.0.1:3000", "http://127.0.0.1:3000/"),
            ("http://[::1]:3000/?name='O'Brien'", "http://[::1]:3000/?name='O'Brien'"),
            ("https://10.0.0.1", "https://10.0.0.1/"),
        ] {
            assert_eq!(target(given).as_deref(), Ok(meant), "{given}");
        }
        for wrong in [
            "",
            ":",
            "70000",
            "ftp://localhost",
            "http://",
            "http://a:b@localhost",
            "http://3000",
            "http://127.1:3000",
            "0x7f000001",
        ] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
        assert!(target("http://3000").expect_err("a number").contains("0.0.11.184"));
    }
}
