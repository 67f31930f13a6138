//! A signed request, and the reasons why it does not verify.

use std::{borrow::Cow, str::FromStr, time::Duration};

use jiff::Timestamp;
use serde::Deserialize;

use super::signature::Key;
use crate::{
    commands::times::shown_duration,
    output::{compact_json, visible_line},
};

/// A header of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    name: String,
    value: String,
}

/// A request as it was received.
pub struct SignedRequest<'a> {
    pub headers: &'a [Header],
    pub body: &'a [u8],
}

/// A reason that a request is not valid.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The wrong part: `header`, `timestamp`, `signature`, `secret`, `body`, or `secret-or-body`.
    pub kind: &'static str,
    pub detail: String,
    pub next: String,
}

/// The member of a body that equals `webhook-id`.
#[derive(Deserialize)]
struct Identified<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

/// The headers that are signed or contain the signature.
struct Signed<'a> {
    id: &'a str,
    timestamp: &'a str,
    signatures: &'a str,
}

impl Signed<'_> {
    fn message(&self, body: &[u8]) -> Vec<u8> {
        [format!("{}.{}.", self.id, self.timestamp).as_bytes(), body].concat()
    }
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').ok_or(
            "it is not a header: write it as 'name: value', or give a file with all headers to --headers (`-` for standard \
             input)",
        )?;
        Ok(Self { name: name.trim().to_owned(), value: value.trim().to_owned() })
    }
}

/// The headers in some text. Other lines, such as the request line, are skipped.
pub fn headers_of_text(text: &str) -> Vec<Header> {
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

impl SignedRequest<'_> {
    /// Why the request is not valid; nothing if it is.
    pub fn faults(&self, key: &Key, now: Timestamp, tolerance: Duration) -> Vec<Fault> {
        let signed = match self.signed() {
            Ok(signed) => signed,
            Err(fault) => return vec![fault],
        };
        let signature =
            (!key.verifies(signed.signatures, &signed.message(self.body))).then(|| self.fault(&signed, key));
        let is_signed = signature.is_none();
        timestamp_fault(signed.timestamp, is_signed, now, tolerance).into_iter().chain(signature).collect()
    }

    fn signed(&self) -> Result<Signed<'_>, Fault> {
        Ok(Signed {
            id: self.header("webhook-id")?,
            timestamp: self.header("webhook-timestamp")?,
            signatures: self.header("webhook-signature")?,
        })
    }

    fn header(&self, name: &str) -> Result<&str, Fault> {
        let found = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.as_str()).ok_or_else(|| Fault {
            kind: "header",
            detail: format!("there is no header `{name}`"),
            next: "pass all the request's headers; a request without this header is not from Waypost".to_owned(),
        })
    }

    /// Why no signature verifies. A changed body is recognized if the form that the sender used verifies.
    fn fault(&self, signed: &Signed<'_>, key: &Key) -> Fault {
        if key.signatures(signed.signatures).next().is_none() {
            let version = key.version();
            return Fault {
                kind: "signature",
                detail: format!("`webhook-signature` has no signature that begins with `{version},`"),
                next: "check the header; `v1a` signatures need a webhook with `\"signature\": \"ed25519\"`".to_owned(),
            };
        }
        let body = String::from_utf8_lossy(self.body);
        let is_signed = |body: &str| key.verifies(signed.signatures, &signed.message(body.as_bytes()));
        let bytes = "pass the body as bytes, exactly as received, before any program parses it".to_owned();
        if is_signed(body.trim_end()) {
            let detail = "the body has white space at its end that was not sent; without it, the signature is valid";
            return Fault { kind: "body", detail: detail.to_owned(), next: bytes };
        }
        if is_signed(&compact_json(&body)) {
            let detail =
                "the body was parsed and serialized again with other white space; without it, the signature is valid";
            return Fault { kind: "body", detail: detail.to_owned(), next: bytes };
        }
        let secret = "the secret belongs to another webhook or was replaced".to_owned();
        match serde_json::from_str::<Identified<'_>>(&body) {
            Ok(Identified { id }) if id != signed.id => Fault {
                kind: "body",
                detail: format!(
                    "body and headers belong to different requests: the body's `id` is {}, and `webhook-id` is {}",
                    visible_line(&id),
                    visible_line(signed.id)
                ),
                next: "pass the body and the headers of the same request".to_owned(),
            },
            Ok(_) => Fault {
                kind: "secret",
                detail: "no signature was made with this secret; the body's `id` fits, so the secret is probably wrong"
                    .to_owned(),
                next: format!(
                    "probably {secret}, and `waypost webhooks rotate ID` makes a new one; otherwise the body was \
                     changed: {bytes}"
                ),
            },
            Err(_) => Fault {
                kind: "secret-or-body",
                detail: "no signature was made with this secret for this body".to_owned(),
                next: format!("either {secret}; or the body was changed: {bytes}"),
            },
        }
    }
}

fn timestamp_fault(text: &str, is_signed: bool, now: Timestamp, tolerance: Duration) -> Option<Fault> {
    let kind = "timestamp";
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(timestamp) = text.parse::<i64>().ok().filter(|_| is_number) else {
        let next = "check the header; Waypost sends a number of seconds".to_owned();
        return Some(Fault {
            kind,
            detail: "`webhook-timestamp` is not a number of seconds since 1970".to_owned(),
            next,
        });
    };
    let age = now.as_second().saturating_sub(timestamp);
    let difference = Duration::from_secs(age.unsigned_abs());
    if difference <= tolerance {
        return None;
    }
    let shown = shown_duration(difference);
    let detail = if age > 0 {
        format!("the timestamp is too old, {shown}")
    } else {
        format!("the timestamp is {shown} in the future")
    };
    let only = if is_signed { "; apart from the timestamp, the request is valid" } else { "" };
    let next = format!("correct the clock, or check a stored request with a longer --tolerance, such as 30d{only}");
    Some(Fault { kind, detail, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Duration = Duration::from_secs(300);
    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDM6hHCb0bUrQ=";
    const PUBLIC_KEY: &str = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
    const OTHER_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const TIME: i64 = 1_795_167_900;
    /// The request of docs/receiving-webhooks.md, with its two signatures.
    const HEADERS: &str = "POST /waypost HTTP/1.1\nWebhook-Id: evt_01m7w5gmev7xwvpyt3bc2k45jh\n\
        webhook-timestamp: 1795167900\nwebhook-signature: v1,kRiFHZLAvyBbyT28HycnNPK+c4B4lsDxxEZRfChCp5o= \
        v1a,oQPUI4k/yn8HiNk+S6ZutqAEbvu+LKBla2eHWHPMr4HkuOh7BulT+8c8wrGCF1og81tnIODfKq1bvfdvu2+zDQ==\n";
    const BODY: &str = r#"{"id":"evt_01m7w5gmev7xwvpyt3bc2k45jh","type":"booking.created","subject":"B-20417","timestamp":"2026-11-20T09:45:00.123Z","managingEntityIdentifier":"demo-hotel","data":{"bookingIdentifier":"B-20417"}}"#;

    fn key(text: &str) -> Key {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    fn faults(headers: &str, body: &str, secret: &str, seconds_later: i64) -> Vec<Fault> {
        let headers = headers_of_text(headers);
        let now = Timestamp::from_second(TIME + seconds_later).expect("a time");
        SignedRequest { headers: &headers, body: body.as_bytes() }.faults(&key(secret), now, TOLERANCE)
    }

    fn kinds(headers: &str, body: &str, secret: &str, seconds_later: i64) -> Vec<&'static str> {
        faults(headers, body, secret, seconds_later).into_iter().map(|fault| fault.kind).collect()
    }

    #[test]
    fn the_documented_request_verifies_with_the_secret_and_with_the_public_key() {
        for secret in [SECRET, PUBLIC_KEY] {
            for later in [-300, 0, 300] {
                assert!(faults(HEADERS, BODY, secret, later).is_empty(), "{secret} {later}");
            }
        }
    }

    #[test]
    fn a_timestamp_beyond_the_tolerance_is_named_in_either_direction() {
        let old = faults(HEADERS, BODY, SECRET, 11_700);
        assert_eq!((old.len(), old[0].kind), (1, "timestamp"));
        assert!(old[0].detail.contains("too old, 3 h 15 min"), "{old:?}");
        assert!(old[0].next.contains("apart from the timestamp, the request is valid"), "{old:?}");
        assert!(faults(HEADERS, BODY, SECRET, -301)[0].detail.contains("5 min 1 s in the future"));
        let other = faults(HEADERS, BODY, OTHER_SECRET, 301);
        assert_eq!(other.iter().map(|fault| fault.kind).collect::<Vec<_>>(), ["timestamp", "secret"]);
        assert!(!other[0].next.contains("apart from"), "{other:?}");
        assert_eq!(kinds(&HEADERS.replace("1795167900", "+179516790"), BODY, SECRET, 0)[0], "timestamp");
    }

    #[test]
    fn a_body_that_was_formatted_or_extended_is_named() {
        let formatted = BODY.replace("\":", "\": ");
        assert!(faults(HEADERS, &formatted, SECRET, 0)[0].detail.contains("serialized again"));
        assert!(faults(HEADERS, &format!("{BODY}\r\n"), PUBLIC_KEY, 0)[0].detail.contains("at its end"));
        let other = BODY.replace("evt_01m7w5gmev7xwvpyt3bc2k45jh", "evt_2");
        assert!(faults(HEADERS, &other, SECRET, 0)[0].detail.contains("different requests"));
    }

    #[test]
    fn a_wrong_secret_is_suspected_only_if_the_body_fits_the_headers() {
        assert_eq!(kinds(HEADERS, BODY, OTHER_SECRET, 0), ["secret"]);
        assert_eq!(kinds(HEADERS, "no JSON", SECRET, 0), ["secret-or-body"]);
    }

    #[test]
    fn a_missing_header_and_a_missing_kind_of_signature_are_named() {
        let without = HEADERS.replace("webhook-timestamp", "timestamp");
        assert_eq!(faults(&without, BODY, SECRET, 0)[0].detail, "there is no header `webhook-timestamp`");
        assert_eq!(kinds(&HEADERS.replace("v1a,", "v2,"), BODY, PUBLIC_KEY, 0), ["signature"]);
        for wrong in ["no header", "@-", "@headers.txt"] {
            assert!(wrong.parse::<Header>().is_err_and(|why| why.contains("--headers")), "{wrong}");
        }
    }
}
