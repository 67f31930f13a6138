//! A webhook's custom headers. Only harmless ones are allowed.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};

use base::trace;
use problem::{Pointer, Rule, Violations};

/// How many headers a webhook may have.
pub const MAX_HEADERS: usize = 20;
const MAX_VALUE_LENGTH: usize = 2048;
/// The maximum size of all headers as JSON, in bytes: the list of an entity's webhooks must fit into one response.
const MAX_TOGETHER: usize = 6 * 1024;

/// Headers that the service sets itself, that control how a message is parsed, that ask for a partial or conditional
/// response, or that have a meaning only in responses. `Cookie` is allowed, since some endpoints use it to authenticate
/// callers.
const RESERVED: [&str; 22] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "range",
    "set-cookie",
    "set-cookie2",
    "te",
    trace::TRACEPARENT,
    trace::TRACESTATE,
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];
const RESERVED_PREFIXES: [&str; 5] = ["if-", "proxy-", "service-", "webhook-", "x-amzn-"];
/// Prefixes of headers that command a cloud's services, which a webhook must not send even if its address leads there.
const CLOUD_PREFIXES: [&str; 2] = ["x-amz-", "x-goog-"];

/// Why a header is not allowed.
struct Fault {
    rule: Rule,
    detail: String,
}

impl Fault {
    fn new(rule: Rule, detail: impl Into<String>) -> Self {
        Self { rule, detail: detail.into() }
    }
}

/// Adds a violation for each header that is not allowed.
pub fn check(headers: &BTreeMap<String, String>, violations: &mut Violations) {
    if headers.len() > MAX_HEADERS {
        violations.add("headers", Rule::TooLong, format!("must have at most {MAX_HEADERS} headers"));
        return;
    }
    if serde_json::to_string(headers).map_or(usize::MAX, |json| json.len()) > MAX_TOGETHER {
        violations.add("headers", Rule::TooLong, format!("must have at most {MAX_TOGETHER} bytes in total, as JSON"));
        return;
    }
    let mut seen = Vec::new();
    for (name, value) in headers {
        let pointer = Pointer::from("headers").member(name);
        if let Err(Fault { rule, detail }) = check_name(name).and_then(|()| check_value(value)) {
            violations.add(pointer, rule, detail);
        } else if seen.iter().any(|other: &String| other.eq_ignore_ascii_case(name)) {
            violations.add(pointer, Rule::Duplicate, "is given twice: header names are case-insensitive");
        }
        seen.push(name.clone());
    }
}

fn check_name(name: &str) -> Result<(), Fault> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Fault::new(Rule::InvalidFormat, "is not a valid header name (RFC 9110 §5.1)"))?;
    let lower = parsed.as_str();
    if name.len() > 128 {
        return Err(Fault::new(Rule::TooLong, "has a name of more than 128 characters"));
    }
    if is_cloud_command(lower) {
        let detail = "is reserved: headers with this prefix are commands to a cloud provider's services";
        return Err(Fault::new(Rule::NotAllowed, detail));
    }
    if is_reserved(lower) {
        return Err(Fault::new(Rule::NotAllowed, "is reserved: the service sets it, or must not send it"));
    }
    Ok(())
}

fn is_cloud_command(lower: &str) -> bool {
    CLOUD_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
}

fn is_reserved(lower: &str) -> bool {
    RESERVED.contains(&lower) || RESERVED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
}

/// The headers for a request. They were checked when they were set.
pub fn to_send(headers: &BTreeMap<String, String>) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    headers.iter().filter_map(|(name, value)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
    })
}

/// Printable ASCII and inner spaces: no control characters, and thus no folding and no second header (RFC 9110 §5.5).
fn check_value(value: &str) -> Result<(), Fault> {
    let printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !printable || HeaderValue::from_str(value).is_err() || value.trim() != value {
        let detail = "must have a value of printable ASCII characters, without leading or trailing spaces";
        return Err(Fault::new(Rule::InvalidFormat, detail));
    }
    if value.len() > MAX_VALUE_LENGTH {
        let detail = format!("must have a value of at most {MAX_VALUE_LENGTH} characters");
        return Err(Fault::new(Rule::TooLong, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(headers: &[(&str, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut violations = Violations::default();
        check(&headers, &mut violations);
        violations.check().is_err()
    }

    #[test]
    fn ordinary_headers_are_taken() {
        assert!(!refused(&[("Authorization", "Bearer abc"), ("X-Tenant", "a b; c=\"d\""), ("X-Empty", "")]));
    }

    #[test]
    fn reserved_names_are_refused_in_any_case() {
        for name in [
            "Host",
            "CONTENT-LENGTH",
            "Transfer-Encoding",
            "Webhook-Signature",
            "Service-Delivery-Id",
            "User-Agent",
            "Traceparent",
            "tracestate",
        ] {
            assert!(refused(&[(name, "x")]), "{name}");
        }
    }

    #[test]
    fn headers_that_ask_for_another_answer_or_belong_to_a_proxy_are_refused() {
        for name in [
            "Proxy-Authenticate",
            "Proxy-Status",
            "proxy-anything",
            "HTTP2-Settings",
            "Range",
            "Content-Range",
            "If-Match",
            "If-None-Match",
            "If-Modified-Since",
            "IF-RANGE",
            "Set-Cookie",
            "Set-Cookie2",
        ] {
            assert!(refused(&[(name, "x")]), "{name}");
        }
        assert!(!refused(&[("Cookie", "gate=1"), ("X-If-Match", "x"), ("Accept", "application/json")]));
    }

    #[test]
    fn commands_to_the_services_of_a_cloud_are_refused_in_any_case() {
        for name in ["X-Amz-Target", "x-amz-date", "X-AMZ-SECURITY-TOKEN", "x-amz-x", "X-Goog-Api-Key", "x-goog-"] {
            assert!(refused(&[(name, "x")]), "{name}");
        }
        assert!(!refused(&[("X-Amazing", "x"), ("X-Google", "x"), ("X-Amz", "x")]));
    }

    #[test]
    fn headers_that_are_too_large_together_are_refused_as_a_whole() {
        // `{"X-0":"…","X-1":"…"}`: nine bytes per value, and one more.
        let value = "x".repeat(2_038);
        let three: Vec<_> = ["X-0", "X-1", "X-2"].map(|name| (name, value.as_str())).to_vec();
        assert!(!refused(&three));
        let headers = [three.as_slice(), &[("X-3", "")]].concat();
        assert!(refused(&headers));
        let quotes = "\"".repeat(2_038);
        assert!(refused(&["X-0", "X-1"].map(|name| (name, quotes.as_str()))), "quotes take two bytes each");
    }

    #[test]
    fn headers_that_could_split_a_message_are_refused() {
        for value in ["a\r\nX-Evil: 1", "a\n b", "a\0", "\ta", "a\u{7f}", "é", " a", "a "] {
            assert!(refused(&[("X-Test", value)]), "{value:?}");
        }
        for name in ["", "a b", "a:", "a\r\n", "é"] {
            assert!(refused(&[(name, "x")]), "{name:?}");
        }
        assert!(refused(&[("X-Test", &"x".repeat(MAX_VALUE_LENGTH + 1))]));
    }

    #[test]
    fn too_many_and_doubled_headers_are_refused() {
        let many: Vec<_> = (0..=MAX_HEADERS).map(|number| format!("X-{number}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), "x")).collect();
        assert!(refused(&many) && !refused(&many[1..]));
        assert!(refused(&[("X-Test", "1"), ("x-test", "2")]));
    }
}
