//! Answers of token endpoints: grants, refusals, and texts that are neither.

use super::*;
use crate::{client_proof::tests::NOW, description::tests::provider};
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

fn read_text(body: &str) -> Result<GrantedTokens, GrantError> {
    read(&answer(200, body.as_bytes()), &square_like(), &["asked".to_owned()], NOW)
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

#[test]
fn new_tokens_are_taken_with_malformed_members_beside_them() {
    for beside in
        [r#""account_id":{"a":1}"#, r#""scope":7"#, r#""token_type":"mac""#, r#""expires_in":"soon""#, r#""x":1,"x":2"#]
    {
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
fn null_counts_as_absent_and_an_absent_member_has_its_default() {
    let nulls =
        r#""token_type":null,"expires_in":null,"expires_at":null,"refresh_token":null,"scope":null,"merchant":null"#;
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
fn a_body_that_is_no_json_object_is_no_grant() {
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
fn the_rfc_and_the_description_name_the_codes_of_a_dead_grant() {
    for body in [r#"{"error":"invalid_grant","error_description":"x"}"#, r#"{"errors":[{"code":"UNAUTHORIZED"}]}"#] {
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
fn a_pause_that_the_provider_asks_for_is_returned() {
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
