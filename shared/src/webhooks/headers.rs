//! Headers that a webhook's owner wants to be sent along: harmless ones only.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};

use crate::http::Violations;

/// How many headers a webhook may have.
pub const MAX_HEADERS: usize = 20;
const MAX_VALUE_LENGTH: usize = 2048;

/// Names that the service sets itself, or that decide how a message is read on its way.
const RESERVED: [&str; 18] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];
const RESERVED_PREFIXES: [&str; 3] = ["service-", "webhook-", "x-amzn-"];

/// Checks the headers that an owner wants, and notes what is wrong with each.
pub fn check(headers: &BTreeMap<String, String>, violations: &mut Violations) {
    if headers.len() > MAX_HEADERS {
        violations.add("headers", format!("must not be more than {MAX_HEADERS}"));
        return;
    }
    let mut seen = Vec::new();
    for (name, value) in headers {
        let field = format!("headers.{name}");
        if let Err(message) = check_name(name).and_then(|()| check_value(value)) {
            violations.add(field, message);
        } else if seen.iter().any(|other: &String| other.eq_ignore_ascii_case(name)) {
            violations.add(field, "comes twice: names of headers are the same in any case");
        }
        seen.push(name.clone());
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| "is not the name of a header (RFC 9110 §5.1)".to_owned())?;
    let lower = parsed.as_str();
    if name.len() > 128 {
        return Err("has a name of more than 128 characters".to_owned());
    }
    if RESERVED.contains(&lower) || RESERVED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) {
        return Err("is reserved: the service sets it itself or must not send it".to_owned());
    }
    Ok(())
}

/// Printable ASCII and inner spaces: no control characters, so no folding and no second header (RFC 9110 §5.5).
fn check_value(value: &str) -> Result<(), String> {
    let printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !printable || HeaderValue::from_str(value).is_err() || value.trim() != value {
        return Err("must have a value of printable ASCII characters, without spaces at its ends".to_owned());
    }
    if value.len() > MAX_VALUE_LENGTH {
        return Err(format!("must have a value of at most {MAX_VALUE_LENGTH} characters"));
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
        for name in
            ["Host", "CONTENT-LENGTH", "Transfer-Encoding", "Webhook-Signature", "Service-Delivery-Id", "User-Agent"]
        {
            assert!(refused(&[(name, "x")]), "{name}");
        }
    }

    #[test]
    fn nothing_that_could_split_a_message_is_taken() {
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
