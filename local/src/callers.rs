//! Authentication for callers of the AWS stand-ins. The stand-ins are web servers, so any page in a browser, any
//! webhook endpoint on 127.0.0.1 and any user of the machine could send requests to them. Each stand-in therefore
//! requires a signature with credentials, which are created and written to `service.env` at each start, and refuses
//! every request from a browser.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, StatusCode, Uri,
        header::{CONTENT_TYPE, HOST, ORIGIN},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use base::SharedClock;
use serde_json::json;

use crate::{
    aws::Credentials,
    call_record::CallRecord,
    signature::{Signature, SignatureError},
};

/// The maximum size of a body that is read to check its signature: DynamoDB's limit, the largest of all.
const MAX_REQUEST: usize = 16 * 1024 * 1024;

/// Headers that only browsers send. `Sec-Fetch-Mode` is not one of them: Node.js also sends it, and no browser sends it
/// alone.
const BROWSERS_OWN: [&str; 3] = ["sec-fetch-site", "sec-fetch-dest", "sec-fetch-user"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A browser page sent the request.
    Browser,
    /// The request was sent to a host name: a page whose host name resolves to this machine would have the same origin
    /// (DNS rebinding).
    Host,
    /// The request has unknown credentials.
    Stranger,
    /// The request is not signed, or was not signed by the caller whose credentials it names.
    Signature(SignatureError),
}

/// The callers that a server accepts.
#[derive(Clone)]
pub struct Callers {
    /// The callers, keyed by access key id. The map's hash is keyed, so that lookup timing reveals nothing about the
    /// ids.
    known: Arc<HashMap<String, Caller>>,
    /// In tests, the record of the functions' calls.
    record: Option<Arc<CallRecord>>,
    clock: SharedClock,
}

struct Caller {
    /// The function's name; `None` for the operator.
    function: Option<String>,
    secret_access_key: String,
}

impl Callers {
    /// Accepts these functions, and the operator with the credentials in `service.env`.
    pub fn new(
        operator: &Credentials,
        functions: &BTreeMap<String, Credentials>,
        record: Option<Arc<CallRecord>>,
        clock: SharedClock,
    ) -> Self {
        let functions = functions.iter().map(|(name, own)| (Some(name.clone()), own));
        let known = functions.chain([(None, operator)]);
        let known = known.map(|(function, own)| {
            let Credentials { access_key_id, secret_access_key } = own.clone();
            (access_key_id, Caller { function, secret_access_key })
        });
        Self { known: Arc::new(known.collect()), record, clock }
    }
}

/// Accepts only requests that do not come from a browser and are signed by a known caller.
pub async fn with_credentials(State(callers): State<Callers>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(refusal) = from_this_machine(&parts.headers, &parts.uri) {
        return refusal.into_response();
    }
    let signature = match Signature::read(&parts.headers) {
        Ok(signature) => signature,
        Err(error) => return Refusal::Signature(error).into_response(),
    };
    let Some(caller) = callers.known.get(&signature.access_key_id) else {
        return Refusal::Stranger.answer(&signature);
    };
    let (whole, body) = if signature.needs_body(&parts.headers) {
        let Ok(whole) = to_bytes(body, MAX_REQUEST).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        (Some(whole.clone()), Body::from(whole))
    } else {
        (None, body)
    };
    let checked = signature.check(&caller.secret_access_key, &parts, whole.as_deref(), callers.clock.now());
    if let Err(error) = checked {
        return Refusal::Signature(error).answer(&signature);
    }
    let request = Request::from_parts(parts, body);
    match (&callers.record, &caller.function) {
        (Some(record), Some(function)) => record.pass(function, request, &whole.unwrap_or_default(), next).await,
        _ => next.run(request).await,
    }
}

/// Accepts only requests that do not come from a browser, for a server with its own authentication.
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

impl Refusal {
    /// AWS's name for the error in its JSON protocols.
    fn code(self) -> &'static str {
        match self {
            Self::Browser | Self::Host => "AccessDeniedException",
            Self::Stranger => "UnrecognizedClientException",
            Self::Signature(SignatureError::Absent) => "MissingAuthenticationTokenException",
            Self::Signature(SignatureError::Malformed) => "IncompleteSignatureException",
            Self::Signature(SignatureError::Different | SignatureError::Expired) => "InvalidSignatureException",
        }
    }

    /// S3's name for the error. <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
    fn code_of_s3(self) -> &'static str {
        match self {
            Self::Stranger => "InvalidAccessKeyId",
            Self::Signature(SignatureError::Different) => "SignatureDoesNotMatch",
            Self::Signature(SignatureError::Expired) => "RequestTimeTooSkewed",
            _ => "AccessDenied",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Browser => "Pages in browsers may not call this server.",
            Self::Host => "The Host header must name one of this machine's addresses.",
            Self::Stranger | Self::Signature(SignatureError::Absent) => {
                "Sign with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY from service.env, which change at each start."
            }
            Self::Signature(SignatureError::Malformed) => {
                "The Authorization header must have Credential, SignedHeaders and Signature, and X-Amz-Date must be \
                 the time, such as 20260102T030405Z."
            }
            Self::Signature(SignatureError::Different) => {
                "The signature does not match this request. Sign the request as it is sent, including its body, Host, \
                 X-Amz-Date and X-Amz-Target, with AWS_SECRET_ACCESS_KEY from service.env, which changes at each start."
            }
            Self::Signature(SignatureError::Expired) => {
                "Signature expired: X-Amz-Date is more than 15 minutes away from this machine's clock. Sign the \
                 request again with the current time."
            }
        }
    }

    /// The refusal in the format of the service that the request was signed for.
    fn answer(self, signature: &Signature) -> Response {
        if !signature.is_of_s3() {
            return self.into_response();
        }
        let code = self.code_of_s3();
        let message = self.message();
        let body = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"#
        );
        (StatusCode::FORBIDDEN, [(CONTENT_TYPE, "application/xml")], body).into_response()
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

    fn said(headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut map = HeaderMap::new();
        map.insert(HOST, "127.0.0.2:4566".parse().expect("a value"));
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a name");
            map.insert(name, value.parse().expect("a value"));
        }
        from_this_machine(&map, &Uri::from_static("/"))
    }

    #[test]
    fn requests_to_a_loopback_address_pass() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:1", "[::1]:9"] {
            assert_eq!(said(&[("host", host)]), Ok(()), "{host}");
        }
        // Node.js sends this header.
        assert_eq!(said(&[("sec-fetch-mode", "cors")]), Ok(()));
    }

    #[test]
    fn requests_of_browsers_are_refused() {
        for header in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-user", "?1"),
        ] {
            assert_eq!(said(&[header]), Err(Refusal::Browser), "{header:?}");
        }
        for host in ["evil.example:4566", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "", "a b"] {
            assert_eq!(said(&[("host", host)]), Err(Refusal::Host), "{host}");
        }
    }
}
