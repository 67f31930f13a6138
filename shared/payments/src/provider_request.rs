//! One request to a provider: parameters as a form or as JSON, with the client's credentials. It is never repeated,
//! since a provider may end the whole connection if a code or a rotating token is sent twice.

use std::time::Duration;

use http::{
    HeaderName, HeaderValue, Method,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT as USER_AGENT_HEADER},
};
use hyper::body::Bytes;
use serde_json::{Map, Value};
use url::Url;

use crate::client_proof::{Authentication, Client, Occasion, SigningError};
use base::{SharedClock, SharedRandom, Time};
use outbound::{AttemptError, HttpResponse, Limits, Outbound, USER_AGENT};

/// A request's limits. Tokens have at most a few kilobytes.
pub const LIMITS: Limits = Limits { connect: Duration::from_secs(5), whole: Duration::from_secs(10), body: 64 * 1024 };

/// Sends requests to providers.
#[derive(Clone)]
pub struct ProviderRequests {
    outbound: Outbound,
    own_host: String,
    clock: SharedClock,
    random: SharedRandom,
}

pub struct Prepared {
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
}

impl ProviderRequests {
    /// Creates a client that sends with `outbound`; `base_url` is this service's address.
    pub fn new(outbound: Outbound, base_url: &str, clock: SharedClock, random: SharedRandom) -> Self {
        let own_host = Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        Self { outbound: outbound.limited_to(LIMITS), own_host, clock, random }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The credentials for a request to this address.
    pub fn authentication(&self, client: &Client, address: &Url) -> Result<Authentication, SigningError> {
        let occasion = Occasion {
            address: address.as_str(),
            own_host: &self.own_host,
            now: self.clock.now(),
            random: &*self.random,
        };
        client.authentication(&occasion)
    }

    pub async fn send(&self, request: Prepared) -> Result<HttpResponse, AttemptError> {
        self.outbound.send(request.method, &request.url, &request.headers, request.body).await
    }
}

impl Prepared {
    /// A request with these parameters in its body.
    pub fn new(
        method: Method,
        url: &Url,
        authorization: Option<HeaderValue>,
        json: bool,
        parameters: &[(&str, &str)],
    ) -> Self {
        let (media_type, body) = if json {
            let members: Map<_, _> =
                parameters.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
            ("application/json", Value::Object(members).to_string())
        } else {
            let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
            ("application/x-www-form-urlencoded", form)
        };
        let mut headers = vec![
            (ACCEPT, HeaderValue::from_static("application/json")),
            (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
            (CONTENT_TYPE, HeaderValue::from_static(media_type)),
            (USER_AGENT_HEADER, HeaderValue::from_static(USER_AGENT)),
        ];
        headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
        Self { method, url: url.clone(), headers, body: Bytes::from(body) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client_proof::tests::NOW;
    use base::testing::{CountingRandom, FixedClock};
    use outbound::AddressRules;
    use std::{
        io::{Read, Write},
        net::TcpListener,
        sync::Arc,
        thread::JoinHandle,
    };

    /// Requests that may also go to this machine.
    pub fn requests() -> ProviderRequests {
        let rules =
            AddressRules { allow_http: true, allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")] };
        ProviderRequests::new(
            Outbound::within(rules),
            "https://waypost.example:8443/base",
            Arc::new(FixedClock::at(NOW)),
            Arc::new(CountingRandom::default()),
        )
    }

    /// A fake provider that answers one request with these bytes. Returns its address, and the received request.
    pub fn answering(answer: Vec<u8>) -> (Url, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/token", listener.local_addr().expect("an address"));
        let request = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                let count = stream.read(&mut buffer).expect("readable");
                request.extend_from_slice(&buffer[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let length = |head: &str| {
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())
                };
                let complete =
                    text.split_once("\r\n\r\n").is_some_and(|(head, body)| body.len() >= length(head).unwrap_or(0));
                if complete || count == 0 {
                    let _ = stream.write_all(&answer); // the client may have closed the connection already
                    return text;
                }
            }
        });
        (address.parse().expect("a URL"), request)
    }

    /// A response with this status and body.
    pub fn answer(status: u16, body: &str) -> Vec<u8> {
        answer_with(status, "", body.as_bytes())
    }

    /// A response with this status, these header lines, and this body.
    pub fn answer_with(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[test]
    fn own_host_is_the_name_alone() {
        assert_eq!(requests().own_host, "waypost.example");
    }
}
