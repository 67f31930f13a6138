//! The callers of the stand-ins for AWS. The stand-ins are web servers, so that any page in a browser, any endpoint of a
//! webhook on 127.0.0.1 and any user of the machine could send them requests. So each asks for credentials, which each start
//! makes anew and `service.env` names, and refuses every request of a browser.
//!
//! The access key id is the secret that is checked, as a bearer token: it is random, only the owner of `service.env` can read
//! it, and it stays on this machine. Signatures are not checked: an attacker who can read or change requests on the loopback
//! interface can read the file as well.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, StatusCode, Uri,
        header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{aws::Credentials, call_record::CallRecord};

/// Headers that only browsers send. Not `Sec-Fetch-Mode`: Node.js sends it as well, and no browser sends it alone.
const BROWSERS_OWN: [&str; 3] = ["sec-fetch-site", "sec-fetch-dest", "sec-fetch-user"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A page in a browser sent it.
    Browser,
    /// It was sent to a name: a page whose name leads to this machine counts as this server's own page in a browser.
    Host,
    /// It has no credentials.
    Anonymous,
    /// It has other credentials.
    Stranger,
}

/// The callers that a server answers.
#[derive(Clone)]
pub struct Callers {
    /// By their access key ids. The map's hash is keyed, so that its time says nothing of the ids in it.
    known: Arc<HashMap<String, Caller>>,
    /// Where the calls of functions are recorded, in tests.
    record: Option<Arc<CallRecord>>,
}

/// A caller with credentials.
struct Caller {
    /// The function's name; `None` for the operator.
    function: Option<String>,
}

impl Callers {
    /// The operator, who has the credentials of `service.env`, and these functions.
    pub fn new(
        operator: &Credentials,
        functions: &BTreeMap<String, Credentials>,
        record: Option<Arc<CallRecord>>,
    ) -> Self {
        let functions = functions.iter().map(|(name, own)| (Some(name.clone()), own));
        let known = functions.chain([(None, operator)]);
        let known = known.map(|(function, own)| (own.access_key_id.clone(), Caller { function })).collect();
        Self { known: Arc::new(known), record }
    }
}

/// Lets requests through that come from no browser and carry known credentials.
pub async fn with_credentials(State(callers): State<Callers>, request: Request, next: Next) -> Response {
    let presented = from_this_machine(request.headers(), request.uri())
        .and_then(|()| access_key_id(request.headers(), request.uri()));
    let presented = match presented {
        Ok(presented) => presented,
        Err(refusal) => return refusal.into_response(),
    };
    let Some(caller) = callers.known.get(&presented) else { return Refusal::Stranger.into_response() };
    match (&callers.record, &caller.function) {
        (Some(record), Some(function)) => record.pass(function, request, next).await,
        _ => next.run(request).await,
    }
}

/// Lets requests through that come from no browser, for a server with secrets of its own.
pub async fn without_browsers(request: Request, next: Next) -> Response {
    match from_this_machine(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Compares two secrets in constant time.
pub fn same(presented: &str, known: &str) -> bool {
    verify_slices_are_equal(presented.as_bytes(), known.as_bytes()).is_ok()
}

fn from_this_machine(headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
    if headers.contains_key(ORIGIN) || BROWSERS_OWN.iter().any(|name| headers.contains_key(*name)) {
        return Err(Refusal::Browser);
    }
    let named = headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
    let authority = named.or(uri.authority().map(Authority::as_str)).and_then(|host| host.parse::<Authority>().ok());
    let host = authority.as_ref().map(Authority::host).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    let here = host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback());
    if here { Ok(()) } else { Err(Refusal::Host) }
}

/// The access key id that a request shows.
fn access_key_id(headers: &HeaderMap, uri: &Uri) -> Result<String, Refusal> {
    let signed = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let in_header = signed.and_then(|value| {
        let (_, credential) = value.strip_prefix("AWS4-")?.split_once("Credential=")?;
        Some(credential.to_owned())
    });
    // A URL that was signed in advance has them in the query, by the name of either version of signatures.
    let in_query = || {
        let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        pairs
            .find(|(name, _)| name == "X-Amz-Credential" || name == "AWSAccessKeyId")
            .map(|(_, value)| value.into_owned())
    };
    let credential = in_header.or_else(in_query).ok_or(Refusal::Anonymous)?;
    Ok(credential.split('/').next().unwrap_or_default().to_owned())
}

impl Refusal {
    /// AWS's name of the error.
    fn code(self) -> &'static str {
        match self {
            Self::Browser | Self::Host => "AccessDeniedException",
            Self::Anonymous => "MissingAuthenticationTokenException",
            Self::Stranger => "UnrecognizedClientException",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Browser => "Pages in browsers may not call this server.",
            Self::Host => "The Host header must name an address of this machine.",
            Self::Anonymous | Self::Stranger => {
                "Sign with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of service.env, which each start makes anew."
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "__type": self.code(), "message": self.message() }).to_string();
        let headers = [(CONTENT_TYPE.as_str(), "application/x-amz-json-1.0"), ("x-amzn-errortype", self.code())];
        (StatusCode::FORBIDDEN, headers, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    const KEY: &str = "LOCALabcdefghijklmnop";

    fn authorization(access_key_id: &str) -> String {
        format!("AWS4-HMAC-SHA256 Credential={access_key_id}/20260101/us-east-1/any/aws4_request")
    }

    /// The verdict on a request for this address with these headers.
    fn said(uri: &str, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut map = HeaderMap::new();
        map.insert(HOST, "127.0.0.2:4566".parse().expect("a value"));
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a name");
            map.insert(name, value.parse().expect("a value"));
        }
        let uri: Uri = uri.parse().expect("an address");
        let presented = from_this_machine(&map, &uri).and_then(|()| access_key_id(&map, &uri))?;
        if same(&presented, KEY) { Ok(()) } else { Err(Refusal::Stranger) }
    }

    #[test]
    fn requests_with_the_credentials_come_in_signed_in_a_header_or_in_the_address() {
        let credential = authorization(KEY);
        assert_eq!(said("/", &[("authorization", &credential)]), Ok(()));
        let other = format!("AWS4-HMAC-SHA256 SignedHeaders=host, Credential={KEY}/2026/x/aws4_request,Signature=0");
        assert_eq!(said("/", &[("authorization", &other)]), Ok(()));
        assert_eq!(said(&format!("/b/o?a=b&X-Amz-Credential={KEY}%2F20260101%2Fus-east-1"), &[]), Ok(()));
        assert_eq!(said(&format!("/b/o?AWSAccessKeyId={KEY}&Signature=0&Expires=1"), &[]), Ok(()));
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:1", "[::1]:9"] {
            assert_eq!(said("/", &[("host", host), ("authorization", &credential)]), Ok(()), "{host}");
        }
        // Node.js sends this.
        assert_eq!(said("/", &[("sec-fetch-mode", "cors"), ("authorization", &credential)]), Ok(()));
    }

    #[test]
    fn requests_without_credentials_or_with_others_stay_out() {
        assert_eq!(said("/", &[]), Err(Refusal::Anonymous));
        assert_eq!(said("/", &[("authorization", &format!("Bearer {KEY}"))]), Err(Refusal::Anonymous));
        assert_eq!(said("/", &[("authorization", KEY)]), Err(Refusal::Anonymous));
        for key in ["", "local", &KEY[1..], &format!("{KEY}x"), &KEY.to_lowercase()] {
            assert_eq!(said("/", &[("authorization", &authorization(key))]), Err(Refusal::Stranger), "{key}");
            assert_eq!(said(&format!("/?X-Amz-Credential={key}"), &[]), Err(Refusal::Stranger), "{key}");
        }
    }

    #[test]
    fn requests_of_browsers_stay_out_with_and_without_credentials() {
        let credential = authorization(KEY);
        for header in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-user", "?1"),
        ] {
            assert_eq!(said("/", &[header, ("authorization", &credential)]), Err(Refusal::Browser), "{header:?}");
        }
        for host in ["evil.example:4566", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "", "a b"] {
            assert_eq!(said("/", &[("host", host), ("authorization", &credential)]), Err(Refusal::Host), "{host}");
        }
    }
}
