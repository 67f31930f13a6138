//! Responses from token endpoints: grants, refusals, and bodies that are neither.

use super::*;
use crate::{client_proof::tests::NOW, description::tests::provider};
use proptest::prelude::*;
use serde_json::json;

fn answer(status: u16, body: &[u8]) -> HttpResponse {
    let status = StatusCode::from_u16(status).expect("a status");
    HttpResponse {
        status,
        location: None,
        retry_after: Some("7".into()),
        media_type: None,
        body: body.to_vec(),
        truncated: false,
    }
}

fn square_like() -> Reading {
    provider(json!({
        "accountFields": ["merchant", "accounts"], "expiry": { "field": "expires_at", "form": "date" },
        "errorFields": ["/errors/0/code", "/type"], "deadGrantCodes": ["UNAUTHORIZED"], "scopeSeparator": ",",
    }))
    .reading
}

fn read_text(body: &str) -> Result<GrantedTokens, GrantError> {
    read(&answer(200, body.as_bytes()), &square_like(), NOW)
}

fn with(member: &str, value: &str) -> Result<GrantedTokens, GrantError> {
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

/// The value of one optional member that a grant keeps.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    /// The grant is the same as without the member.
    Absent,
    /// Seconds from now.
    Life(u64),
    Refresh(&'static str),
    Scopes(&'static [&'static str]),
    Account(&'static str),
}

const TEN_YEARS: u64 = MAX_LIFE.as_secs();

#[test]
fn no_optional_member_costs_the_grant() {
    use Kept::{Absent, Account, Life, Refresh, Scopes};
    let table: &[(&str, &[(&str, Kept)])] = &[
        // RFC 6749 §A.17: visible ASCII and spaces. A refresh token that is not replaced stays valid (§6).
        (
            "refresh_token",
            &[
                ("\"rt\"", Refresh("rt")),
                ("\"r t\"", Refresh("r t")),
                ("\"\"", Absent),
                ("\" \"", Absent),
                ("\"\\u00e9\"", Absent),
                ("1", Absent),
                ("{}", Absent),
                ("[]", Absent),
                ("true", Absent),
            ],
        ),
        // §7.1 forbids using a token of an unknown type; this service uses it only to revoke access.
        (
            "token_type",
            &[("\"mac\"", Absent), ("\"BEARER \"", Absent), ("\"\"", Absent), ("1", Absent), ("[]", Absent)],
        ),
        // Python and PHP write floats and strings; zero and less mean that the token does not expire.
        (
            "expires_in",
            &[
                ("3600", Life(3600)),
                ("\"3600\"", Life(3600)),
                ("3600.0", Life(3600)),
                ("3599.9", Life(3599)),
                ("\"3600.5\"", Life(3600)),
                ("1e3", Life(1000)),
                ("0", Absent),
                ("-1", Absent),
                ("\"-1\"", Absent),
                ("999999999999", Life(TEN_YEARS)),
                ("18446744073709551616", Life(TEN_YEARS)),
                ("\"inf\"", Life(TEN_YEARS)),
                ("1e999", Absent),
                ("\"NaN\"", Absent),
                ("\"\"", Absent),
                ("\"soon\"", Absent),
                ("true", Absent),
                ("{}", Absent),
            ],
        ),
        (
            "expires_at",
            &[
                ("\"2999-01-01T00:00:00Z\"", Life(TEN_YEARS)),
                ("\"2020-01-01T00:00:00Z\"", Absent),
                ("\"soon\"", Absent),
                ("3600", Absent),
            ],
        ),
        // Without a scope, the requested one applies (§5.1).
        (
            "scope",
            &[
                ("\"a b\"", Scopes(&["a", "b"])),
                ("[\"a\",\"b\"]", Scopes(&["a", "b"])),
                ("[]", Absent),
                ("\"\"", Absent),
                ("[1]", Absent),
                ("1", Absent),
                ("{}", Absent),
                ("\"a\\nb\"", Absent),
                ("\"é\"", Absent),
            ],
        ),
        (
            "merchant",
            &[
                ("\"M\"", Account("M")),
                ("42", Account("42")),
                ("[\"A\",\"B\"]", Account("A, B")),
                ("\"\"", Absent),
                ("1.5", Absent),
                ("{\"id\":\"M\"}", Absent),
                ("[]", Absent),
                ("[[\"a\"]]", Absent),
                ("\"a\\nb\"", Absent),
                ("true", Absent),
            ],
        ),
        ("x", &[("1,\"x\":2", Absent), ("1e999", Absent), ("\"\\ud800\"", Absent)]),
    ];
    for (member, values) in table {
        for (value, kept) in *values {
            for value in [*value, "null"] {
                let kept = if value == "null" { &Absent } else { kept };
                let granted = with(member, value).unwrap_or_else(|error| panic!("{member}: {value}: {error}"));
                let life = granted.expires.map(|end| end.since(NOW).as_secs());
                let refresh = granted.refresh_token.as_ref().map(SecretText::expose);
                let scopes = &granted.scopes;
                let account = granted.account.as_deref();
                let what = format!("{member}: {value}");
                assert_eq!(granted.access_token.expose(), "at", "{what}");
                assert_eq!(life, if let Life(life) = kept { Some(*life) } else { None }, "{what}");
                assert_eq!(refresh, if let Refresh(text) = kept { Some(*text) } else { None }, "{what}");
                assert_eq!(*scopes, if let Scopes(scopes) = kept { scopes.to_vec() } else { vec![] }, "{what}");
                assert_eq!(account, if let Account(text) = kept { Some(*text) } else { None }, "{what}");
            }
        }
    }
}

#[test]
fn an_unreadable_member_is_replaced_by_its_next_equivalent() {
    let body = r#"{"access_token":"at","expires_at":"soon","expires_in":60,"merchant":{},"accounts":["A"]}"#;
    let granted = read_text(body).expect("granted");
    assert_eq!(granted.expires, Some(NOW + Duration::from_secs(60)));
    assert_eq!(granted.account.as_deref(), Some("A"));
}

#[test]
fn bytes_that_are_not_utf_8_spoil_only_their_member() {
    let granted = read(&answer(200, b"{\"access_token\":\"at\",\"merchant\":\"H\xf4tel\"}"), &square_like(), NOW);
    assert_eq!(granted.expect("granted").account, None);
    let spoilt = read(&answer(200, b"{\"access_token\":\"\xff\"}"), &square_like(), NOW);
    assert!(matches!(spoilt, Err(GrantError::Malformed("access_token"))));
}

#[test]
fn a_byte_order_mark_is_ignored() {
    let granted = read(&answer(200, b"\xef\xbb\xbf{\"access_token\":\"at\"}"), &square_like(), NOW);
    assert_eq!(granted.expect("granted").access_token.expose(), "at");
    assert!(refused(400, "\u{feff}{\"error\":\"invalid_grant\"}").is_dead_grant());
}

#[test]
fn there_is_no_grant_without_one_readable_access_token() {
    for body in [
        "{}",
        r#"{"access_token":null}"#,
        r#"{"access_token":1}"#,
        r#"{"access_token":""}"#,
        r#"{"access_token":" "}"#,
        r#"{"access_token":"é"}"#,
        r#"{"access_token":"a","access_token":"a"}"#,
        r#"{"refresh_token":"rt"}"#,
    ] {
        assert!(matches!(read_text(body), Err(GrantError::Malformed("access_token"))), "{body}");
    }
}

#[test]
fn an_expiry_comes_as_seconds_or_as_the_description_says() {
    let granted = with("expires_at", "\"2026-12-20T09:45:00Z\"").expect("granted");
    assert_eq!(granted.expires.expect("a date").to_string(), "2026-12-20T09:45:00.000Z");
    let mut reading = square_like();
    reading.expiry = Some(Expiry { field: "life".into(), form: ExpiryForm::SecondsOrText });
    for value in ["28800", "\"28800\""] {
        let body = format!(r#"{{"access_token":"at","life":{value},"expires_in":1}}"#);
        let granted = read(&answer(200, body.as_bytes()), &reading, NOW).expect("granted");
        assert_eq!(granted.expires, Some(NOW + Duration::from_secs(28_800)), "{value}");
    }
}

#[test]
fn a_body_that_is_no_json_object_is_no_grant() {
    for body in [&b""[..], b"<html>", b"[]", b"null", b"\"x\"", b"{\"access_token\":\"a\"}x", b"\xef\xbb\xbf"] {
        assert!(matches!(read(&answer(200, body), &square_like(), NOW), Err(GrantError::Unreadable)), "{body:?}");
    }
    let deep = format!(r#"{{"access_token":"at","x":{}}}"#, "[".repeat(30_000));
    assert!(matches!(read_text(&deep), Err(GrantError::Unreadable)));
    let mut large = answer(200, br#"{"access_token":"at"}"#);
    large.truncated = true;
    assert!(matches!(read(&large, &square_like(), NOW), Err(GrantError::TooLarge)));
}

fn form(status: u16, body: &str) -> HttpResponse {
    HttpResponse { media_type: Some(FORM.to_owned()), ..answer(status, body.as_bytes()) }
}

#[test]
fn a_form_is_read_by_its_media_type() {
    let read = |answer: &HttpResponse| read(answer, &square_like(), NOW);
    let granted = read(&form(200, "access_token=at%7E1&token_type=bearer&expires_in=3600&scope=a,b+c&merchant=M\n"));
    let granted = granted.expect("granted");
    assert_eq!(granted.access_token.expose(), "at~1");
    assert_eq!(granted.expires, Some(NOW + Duration::from_secs(3600)));
    assert_eq!((granted.scopes, granted.account.as_deref()), (vec!["a".into(), "b".into(), "c".into()], Some("M")));
    // Some servers send JSON under the media type of a form.
    assert!(read(&form(200, r#"{"access_token":"at"}"#)).is_ok());
    assert!(matches!(read(&answer(200, b"access_token=at")), Err(GrantError::Unreadable)), "no form by its media type");
    for twice in ["access_token=at&access_token=at", "", "access_token", "access_token=%FF"] {
        assert!(matches!(read(&form(200, twice)), Err(GrantError::Malformed("access_token"))), "{twice}");
    }
    assert!(read(&form(400, "error=invalid_grant&error_description=x")).expect_err("refused").is_dead_grant());
    assert!(matches!(
        read(&form(200, "error=bad_verification_code")),
        Err(GrantError::Refused(RefusalCode::Other, StatusCode::OK))
    ));
}

fn refused(status: u16, body: &str) -> GrantError {
    read(&answer(status, body.as_bytes()), &square_like(), NOW).expect_err("refused")
}

#[test]
fn the_rfc_and_the_description_name_the_codes_of_a_dead_grant() {
    for body in [r#"{"error":"invalid_grant","error_description":"x"}"#, r#"{"errors":[{"code":"UNAUTHORIZED"}]}"#] {
        assert!(refused(400, body).is_dead_grant() && refused(401, body).is_dead_grant(), "{body}");
        for status in [200, 302, 408, 429, 500, 503] {
            assert!(refused(status, body).is_dead_grant(), "{status} {body}");
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
    for passing in [302, 408, 429, 500, 503] {
        let error = refused(passing, r#"{"error":"invalid_client"}"#);
        assert!(matches!(error, GrantError::Status { .. }), "an overloaded or broken server: {error:?}");
    }
    let ours = refused(401, r#"{"message":"Not Authorized","type":"service.not_authorized"}"#);
    assert!(matches!(ours, GrantError::Refused(RefusalCode::Other, StatusCode::UNAUTHORIZED)));
}

#[test]
fn an_error_with_a_status_of_success_is_a_refusal() {
    let mut reading = square_like();
    reading.dead_grant_codes.push("bad_refresh_token".to_owned());
    let read = |body: &str| read(&answer(200, body.as_bytes()), &reading, NOW);
    for body in [
        r#"{"error":"invalid_grant"}"#,
        r#"{"error":"bad_refresh_token"}"#,
        r#"{"error":"","type":"bad_refresh_token"}"#,
        r#"{"access_token":"at","error":"invalid_grant"}"#,
    ] {
        assert!(read(body).expect_err(body).is_dead_grant(), "{body}");
    }
    let error = read(r#"{"error":"incorrect_client_credentials"}"#).expect_err("refused");
    assert!(matches!(error, GrantError::Refused(RefusalCode::Other, StatusCode::OK)), "{error:?}");
    // The description's fields may mean something else in a grant, and here RFC 6749's error field has no code.
    for beside in [r#""type":"UNAUTHORIZED""#, r#""error":null"#, r#""error":"""#, r#""error":false"#, r#""error":{}"#]
    {
        assert!(read(&format!(r#"{{"access_token":"at",{beside}}}"#)).is_ok(), "{beside}");
    }
}

#[test]
fn the_pause_that_the_provider_requests_is_returned() {
    assert_eq!(refused(429, r#"{"error":"slow_down"}"#).retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(refused(500, "").retry_after(), None);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(status in 100u16..600, body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let json = answer(status, &body);
        let _ = read(&json, &square_like(), NOW);
        let _ = read(&HttpResponse { media_type: Some(FORM.to_owned()), ..json }, &square_like(), NOW);
    }

    #[test]
    fn no_value_of_a_known_member_makes_the_reader_panic(member in "(access_token|expires_in|expires_at|scope|merchant|error|errors)", value in "(\"\\PC{0,20}\"|-?[0-9]{1,25}|\\[.{0,5}\\]|null)") {
        let body = format!(r#"{{"access_token":"at","{member}":{value}}}"#);
        for status in [200, 400] {
            let _ = read(&answer(status, body.as_bytes()), &square_like(), NOW);
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
            let outcome = read(&answer(status, body.as_bytes()), &square_like(), NOW);
            let shown = match &outcome {
                Ok(granted) => format!("{:?} {:?}", granted.access_token, granted.refresh_token),
                Err(error) => format!("{error} {error:?} {}", base::logging::chain(error)),
            };
            prop_assert!(!shown.contains("SECRET"), "{}", shown);
        }
    }
}
