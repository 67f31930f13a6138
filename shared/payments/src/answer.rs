//! Reading what a token endpoint answers (RFC 6749 §5), strictly: what is not exactly a grant is none, and of what a
//! provider says in its refusals only a known code is kept.

use std::{collections::HashSet, fmt, time::Duration};

use http::StatusCode;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::{
    granted::{GrantError, Granted, RefusalCode},
    provider::{Expiry, ExpiryForm, Reading},
};
use base::clock::Time;
use outbound::HttpResponse;
use storage::secrets::SecretText;

/// The longest life of an access token that is believed: ten years.
const MAX_LIFE: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
/// The longest name of an account.
const MAX_ACCOUNT: usize = 255;
/// The most scopes, and the longest, that are kept.
const MAX_SCOPES: usize = 200;
const MAX_SCOPE: usize = 255;

/// Reads a grant, or the refusal of one.
pub fn read(answer: &HttpResponse, reading: &Reading, asked: &[String], now: Time) -> Result<Granted, GrantError> {
    if !answer.status.is_success() {
        return Err(refusal(answer, reading, now));
    }
    if answer.truncated {
        return Err(GrantError::TooLarge);
    }
    granted(&answer.body, reading, asked, now)
}

/// Reads new tokens. A malformed member beside them is passed over: the old refresh token may be worth
/// nothing any more, and tokens that are thrown away cost the connection.
pub fn read_renewed(answer: &HttpResponse, reading: &Reading, now: Time) -> Result<Granted, GrantError> {
    if !answer.status.is_success() {
        return Err(refusal(answer, reading, now));
    }
    if answer.truncated {
        return Err(GrantError::TooLarge);
    }
    let Members { members, .. } = serde_json::from_slice(&answer.body).map_err(|_| GrantError::NotJson)?;
    let member = |name: &str| members.get(name).filter(|value| !value.is_null());
    let expires = expires(&member, reading.expiry.as_ref(), now).unwrap_or_else(|error| {
        tracing::warn!(%error, "a refresh gave tokens with an end that cannot be read");
        None
    });
    Ok(Granted {
        access_token: token(&member, "access_token").ok_or(GrantError::Malformed("access_token"))??,
        refresh_token: token(&member, "refresh_token").transpose()?,
        expires,
        scopes: Vec::new(),
        account: None,
    })
}

/// A token of an answer; nothing, where it is not there.
fn token<'a>(
    member: &impl Fn(&str) -> Option<&'a Value>,
    name: &'static str,
) -> Option<Result<SecretText, GrantError>> {
    let value = member(name)?;
    let visible = value.as_str().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()));
    Some(visible.map(SecretText::new).ok_or(GrantError::Malformed(name)))
}

fn granted(body: &[u8], reading: &Reading, asked: &[String], now: Time) -> Result<Granted, GrantError> {
    let Members { members, doubled } = serde_json::from_slice(body).map_err(|_| GrantError::NotJson)?;
    if doubled {
        return Err(GrantError::Malformed("a member that comes twice"));
    }
    let member = |name: &str| members.get(name).filter(|value| !value.is_null());
    let access_token = token(&member, "access_token").ok_or(GrantError::Malformed("access_token"))??;
    let bearer = |value: &Value| value.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !member("token_type").is_none_or(bearer) {
        return Err(GrantError::Malformed("token_type"));
    }
    let granted_scopes = match member("scope") {
        Some(value) => scopes(value, &reading.scope_separator).ok_or(GrantError::Malformed("scope"))?,
        None => Vec::new(),
    };
    let named = reading.account_fields.iter().find_map(|field| member(field));
    Ok(Granted {
        access_token,
        refresh_token: token(&member, "refresh_token").transpose()?,
        expires: expires(&member, reading.expiry.as_ref(), now)?,
        scopes: if granted_scopes.is_empty() { asked.to_vec() } else { granted_scopes },
        account: named.map(|value| account(value).ok_or(GrantError::Malformed("account"))).transpose()?,
    })
}

/// What the description says of the expiry, else what RFC 6749 says; none where neither is there.
fn expires<'a>(
    member: &impl Fn(&str) -> Option<&'a Value>,
    expiry: Option<&Expiry>,
    now: Time,
) -> Result<Option<Time>, GrantError> {
    let described = expiry.and_then(|expiry| Some((member(&expiry.field)?, expiry.form)));
    let Some((value, form)) = described.or_else(|| Some((member("expires_in")?, ExpiryForm::Seconds))) else {
        return Ok(None);
    };
    let seconds = match form {
        ExpiryForm::Seconds => value.as_u64(),
        ExpiryForm::SecondsOrText => value.as_u64().or_else(|| digits(value.as_str()?)),
        ExpiryForm::Date => None,
    };
    let time = match form {
        ExpiryForm::Date => value.as_str().and_then(|text| text.parse::<Time>().ok()),
        _ => seconds.filter(|seconds| *seconds <= MAX_LIFE.as_secs()).map(|seconds| now + Duration::from_secs(seconds)),
    };
    let life = time.map(|time| time.since(now)).filter(|life| !life.is_zero() && *life <= MAX_LIFE);
    life.map(|life| Some(now + life)).ok_or(GrantError::Malformed("expiry"))
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn scopes(value: &Value, separator: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = match value {
        Value::String(text) if separator.is_empty() => text.split(' ').collect(),
        Value::String(text) => text.split(separator).flat_map(|part| part.split(' ')).collect(),
        Value::Array(list) => list.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let plain = |word: &String| word.len() <= MAX_SCOPE && word.bytes().all(|byte| byte.is_ascii_graphic());
    (words.len() <= MAX_SCOPES && words.iter().all(plain)).then_some(words)
}

/// A text or a number; or several of them, where a person chose several accounts.
fn account(value: &Value) -> Option<String> {
    let name = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        Value::Array(list) if list.iter().all(|one| !one.is_array()) => {
            list.iter().map(account).collect::<Option<Vec<_>>>()?.join(", ")
        }
        _ => return None,
    };
    let good = !name.is_empty() && name.len() <= MAX_ACCOUNT && !name.chars().any(char::is_control);
    good.then_some(name)
}

/// What an answer without success means. Only a client error that names its reason is a refusal; what an overloaded or
/// broken server says of a grant proves nothing.
fn refusal(answer: &HttpResponse, reading: &Reading, now: Time) -> GrantError {
    let status = answer.status;
    let passing = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    match error_code(answer, &reading.error_fields) {
        Some(code) if status.is_client_error() && !passing => {
            let dead = reading.dead_grant_codes.contains(&code);
            GrantError::Refused(if dead { RefusalCode::InvalidGrant } else { RefusalCode::of(&code) }, status)
        }
        _ => GrantError::Status { status, retry_after: answer.pause_asked_for(now) },
    }
}

/// The code of an error, where RFC 6749 has it or where the description says. It is compared, and never kept.
pub(super) fn error_code(answer: &HttpResponse, fields: &[String]) -> Option<String> {
    let body = error_body(answer)?;
    let known = std::iter::once("/error").chain(fields.iter().map(String::as_str));
    known.filter_map(|field| body.pointer(field)?.as_str()).map(str::to_owned).next()
}

/// The body of an error, where it is a JSON object.
pub(super) fn error_body(answer: &HttpResponse) -> Option<Value> {
    let Members { members, doubled } = serde_json::from_slice(&answer.body).ok()?;
    (!doubled && !answer.truncated).then_some(Value::Object(members))
}

/// The members of an object, and whether one of them comes twice.
struct Members {
    members: Map<String, Value>,
    doubled: bool,
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let (mut members, mut names, mut doubled) = (Map::new(), HashSet::new(), false);
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    doubled |= !names.insert(name.clone());
                    members.insert(name, value);
                }
                Ok(Members { members, doubled })
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client_authentication::tests::NOW, description::tests::provider};
    use proptest::prelude::*;
    use serde_json::json;

    fn answer(status: u16, body: &[u8]) -> HttpResponse {
        let status = StatusCode::from_u16(status).expect("a status");
        HttpResponse { status, retry_after: Some("7".into()), body: body.to_vec(), truncated: false }
    }

    fn square_like() -> Reading {
        provider(json!({
            "accountFields": ["merchant", "accounts"], "expiry": { "field": "expires_at", "form": "date" },
            "errorFields": ["/errors/0/code", "/type"], "deadGrantCodes": ["UNAUTHORIZED"], "scopeSeparator": ",",
        }))
        .reading
    }

    fn read_text(body: &str) -> Result<Granted, GrantError> {
        read(&answer(200, body.as_bytes()), &square_like(), &["asked".to_owned()], NOW)
    }

    fn with(member: &str, value: &str) -> Result<Granted, GrantError> {
        read_text(&format!(r#"{{"access_token":"at",{member:?}:{value}}}"#))
    }

    #[test]
    fn a_complete_grant_is_read_whole() {
        let granted = read_text(
            r#"{"access_token":"at~1","token_type":"BEARER","expires_in":3600,"refresh_token":"rt","scope":"a,b c",
                "merchant":"M-1","unknown":{"x":[1]}}"#,
        )
        .expect("granted");
        assert_eq!(granted.access_token.expose(), "at~1");
        assert_eq!(granted.refresh_token.expect("a token").expose(), "rt");
        assert_eq!(granted.expires, Some(NOW + Duration::from_secs(3600)));
        assert_eq!(granted.scopes, ["a", "b", "c"]);
        assert_eq!(granted.account.as_deref(), Some("M-1"));
    }

    #[test]
    fn new_tokens_are_taken_whatever_comes_beside_them() {
        for beside in [
            r#""account_id":{"a":1}"#,
            r#""scope":7"#,
            r#""token_type":"mac""#,
            r#""expires_in":"soon""#,
            r#""x":1,"x":2"#,
        ] {
            let body = format!(r#"{{"access_token":"at2","refresh_token":"rt2",{beside}}}"#);
            let renewed = read_renewed(&answer(200, body.as_bytes()), &square_like(), NOW).expect(beside);
            assert_eq!(renewed.access_token.expose(), "at2");
            assert_eq!(renewed.refresh_token.expect("a token").expose(), "rt2");
            assert_eq!(renewed.expires, None);
        }
        for bad in [r#"{"access_token":1}"#, r#"{"access_token":"at","refresh_token":1}"#, "[]"] {
            assert!(read_renewed(&answer(200, bad.as_bytes()), &square_like(), NOW).is_err(), "{bad}");
        }
        let dead = read_renewed(&answer(400, br#"{"error":"invalid_grant"}"#), &square_like(), NOW);
        assert!(dead.expect_err("refused").is_dead_grant());
    }

    #[test]
    fn null_counts_as_absent_and_what_is_absent_has_its_default() {
        let nulls = r#""token_type":null,"expires_in":null,"expires_at":null,"refresh_token":null,"scope":null,"merchant":null"#;
        for body in [r#"{"access_token":"at"}"#.to_owned(), format!(r#"{{"access_token":"at",{nulls}}}"#)] {
            let granted = read_text(&body).expect("granted");
            assert!(granted.refresh_token.is_none() && granted.expires.is_none() && granted.account.is_none());
            assert_eq!(granted.scopes, ["asked"]);
        }
    }

    #[test]
    fn every_wrong_member_is_named() {
        for (member, expected, values) in [
            ("refresh_token", "refresh_token", &["1", "\"\"", "\"a b\"", "\"\\u00e9\"", "{}", "[]", "true"][..]),
            ("token_type", "token_type", &["\"mac\"", "1", "\"\"", "[\"bearer\"]"]),
            (
                "expires_in",
                "expiry",
                &["0", "-1", "1.5", "\"3600\"", "3600.0", "true", "1e3", "999999999999", "18446744073709551616"],
            ),
            ("expires_at", "expiry", &["3600", "\"soon\"", "\"2020-01-01T00:00:00Z\"", "\"2999-01-01T00:00:00Z\""]),
            ("scope", "scope", &["1", "{}", "[1]", "\"a\\nb\"", "\"é\"", "true"]),
            ("merchant", "account", &["\"\"", "1.5", "{}", "[]", "[[\"a\"]]", "\"a\\nb\"", "true"]),
        ] {
            for value in values {
                match with(member, value) {
                    Err(GrantError::Malformed(named)) => assert_eq!(named, expected, "{member}: {value}"),
                    other => panic!("{member}: {value}: {other:?}"),
                }
            }
        }
        for body in [
            "{}",
            r#"{"access_token":null}"#,
            r#"{"access_token":1}"#,
            r#"{"access_token":""}"#,
            r#"{"error":"invalid_grant"}"#,
        ] {
            assert!(matches!(read_text(body), Err(GrantError::Malformed("access_token"))), "{body}");
        }
        let doubled = r#"{"access_token":"a","access_token":"a"}"#;
        assert!(matches!(read_text(doubled), Err(GrantError::Malformed("a member that comes twice"))));
    }

    #[test]
    fn an_expiry_comes_as_seconds_or_as_the_description_says() {
        let granted = with("expires_at", "\"2026-12-20T09:45:00Z\"").expect("granted");
        assert_eq!(granted.expires.expect("a date").to_string(), "2026-12-20T09:45:00.000Z");
        let mut reading = square_like();
        reading.expiry = Some(Expiry { field: "expires_in".into(), form: ExpiryForm::SecondsOrText });
        for value in ["28800", "\"28800\""] {
            let body = format!(r#"{{"access_token":"at","expires_in":{value}}}"#);
            let granted = read(&answer(200, body.as_bytes()), &reading, &[], NOW).expect("granted");
            assert_eq!(granted.expires, Some(NOW + Duration::from_secs(28_800)), "{value}");
        }
        for bad in ["\"\"", "\"+5\"", "\"5s\""] {
            let body = format!(r#"{{"access_token":"at","expires_in":{bad}}}"#);
            assert!(read(&answer(200, body.as_bytes()), &reading, &[], NOW).is_err(), "{bad}");
        }
    }

    #[test]
    fn scopes_and_accounts_may_be_lists_and_an_account_a_number() {
        assert_eq!(with("scope", r#"["a","b"]"#).expect("granted").scopes, ["a", "b"]);
        assert_eq!(with("merchant", "42").expect("granted").account.as_deref(), Some("42"));
        assert_eq!(with("accounts", r#"["A","B"]"#).expect("granted").account.as_deref(), Some("A, B"));
    }

    #[test]
    fn what_is_no_json_object_is_no_grant() {
        for body in [
            &b""[..],
            b"<html>",
            b"[]",
            b"null",
            b"\"x\"",
            b"{\"access_token\":\"\xff\"}",
            b"{\"access_token\":\"a\"}x",
            b"\xef\xbb\xbf{}",
        ] {
            assert!(matches!(read(&answer(200, body), &square_like(), &[], NOW), Err(GrantError::NotJson)), "{body:?}");
        }
        let deep = format!(r#"{{"access_token":"at","x":{}}}"#, "[".repeat(30_000));
        assert!(matches!(read_text(&deep), Err(GrantError::NotJson)));
        let mut large = answer(200, br#"{"access_token":"at"}"#);
        large.truncated = true;
        assert!(matches!(read(&large, &square_like(), &[], NOW), Err(GrantError::TooLarge)));
    }

    fn refused(status: u16, body: &str) -> GrantError {
        read(&answer(status, body.as_bytes()), &square_like(), &[], NOW).expect_err("refused")
    }

    #[test]
    fn a_dead_grant_is_what_the_rfc_or_the_description_calls_so() {
        for body in [r#"{"error":"invalid_grant","error_description":"x"}"#, r#"{"errors":[{"code":"UNAUTHORIZED"}]}"#]
        {
            assert!(refused(400, body).is_dead_grant() && refused(401, body).is_dead_grant(), "{body}");
            for passing in [302, 408, 429, 500, 503] {
                assert!(!refused(passing, body).is_dead_grant(), "{passing} {body}");
            }
        }
        for body in ["", "<html>", "{}", r#"{"error":{"type":"x"}}"#, r#"{"error":"invalid_grant","error":"x"}"#] {
            assert!(matches!(refused(400, body), GrantError::Status { .. }), "{body}");
        }
        for (code, expected) in [
            ("invalid_client", RefusalCode::InvalidClient),
            ("invalid_request", RefusalCode::InvalidRequest),
            ("INVALID_GRANT", RefusalCode::Other),
        ] {
            let error = refused(400, &json!({ "error": code }).to_string());
            assert!(matches!(error, GrantError::Refused(found, _) if found == expected), "{error:?}");
            assert!(!error.is_dead_grant());
        }
        let ours = refused(401, r#"{"message":"Not Authorized","type":"service.not_authorized"}"#);
        assert!(matches!(ours, GrantError::Refused(RefusalCode::Other, StatusCode::UNAUTHORIZED)));
    }

    #[test]
    fn a_pause_that_is_asked_for_is_told() {
        assert_eq!(refused(429, r#"{"error":"slow_down"}"#).retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(refused(500, "").retry_after(), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(status in 100u16..600, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&answer(status, &body), &square_like(), &[], NOW);
        }

        #[test]
        fn no_value_of_a_known_member_makes_the_reader_panic(member in "(access_token|expires_in|expires_at|scope|merchant|error|errors)", value in "(\"\\PC{0,20}\"|-?[0-9]{1,25}|\\[.{0,5}\\]|null)") {
            let body = format!(r#"{{"access_token":"at","{member}":{value}}}"#);
            for status in [200, 400] {
                let _ = read(&answer(status, body.as_bytes()), &square_like(), &[], NOW);
            }
        }

        #[test]
        fn no_token_is_ever_shown(token in "[!-~]{12,40}", member in "(refresh_token|scope|expires_in|token_type|error|merchant)", value in "(1|\"x\"|null|\\[\\]|\\{\\})", status in prop_oneof![Just(200u16), Just(400), Just(401), Just(500)]) {
            let token = format!("SECRET{token}");
            let quoted = Value::from(token.as_str());
            for body in [
                format!(r#"{{"access_token":{quoted},"refresh_token":{quoted},"{member}":{value}}}"#),
                format!(r#"{{"{member}":{value},"access_token":{quoted}}}"#),
                format!(r#"{{"error":{quoted},"access_token":{quoted}}}"#),
                format!(r#"{{"{member}":{quoted}}}"#),
                quoted.to_string(),
            ] {
                let outcome = read(&answer(status, body.as_bytes()), &square_like(), &[], NOW);
                let shown = match &outcome {
                    Ok(granted) => format!("{:?} {:?}", granted.access_token, granted.refresh_token),
                    Err(error) => format!("{error} {error:?} {}", base::logging::chain(error)),
                };
                prop_assert!(!shown.contains("SECRET"), "{}", shown);
            }
        }
    }
}
