//! Checks 5 to 7: the version, the content type, and the values in the path and the body.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Application, Suite, invalid_values};

/// The paths that take a body, each with a valid body.
fn operations_with_a_body() -> [(&'static str, Value); 2] {
    let webhook = json!({ "name": "x", "eventUrl": "http://127.0.0.1:9/", "eventList": [], "enabled": false });
    [("/webhook", webhook), ("/webhook/event", json!({ "type": "booking.created", "data": {} }))]
}

#[contract_test]
async fn only_versions_that_exist_are_accepted(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for version in ["2.0", "2.0.0"] {
        entity.get("/webhook/list").header("service-version", version).expect(200).await;
    }
    for version in ["", "2", "1.0", "2.1", "2.0.1", "3.0", "v2.0", "latest", "2.0, 1.0"] {
        let problem =
            entity.get("/webhook/list").header("service-version", version).refused(400, "unsupported-version").await;
        let detail = problem["detail"].as_str().expect("openapi.yaml says so");
        assert!(detail.contains("2.0") && detail.contains("2.0.0"), "the versions that exist are not named: {detail}");
    }
}

#[contract_test]
async fn a_body_must_be_declared_as_json(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in operations_with_a_body() {
        let body = body.to_string();
        for content_type in ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"] {
            let answer = entity.post(path).body(content_type, body.as_str()).answered().await;
            assert!(answer.status < 300, "{content_type}: {}", answer.exchange);
        }
        for content_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "text/json",
            "application/problem+json",
            "",
        ] {
            entity.post(path).body(content_type, body.as_str()).refused(415, "unsupported-media-type").await;
        }
        entity.post(path).untyped_body(body.as_str()).refused(415, "unsupported-media-type").await;
    }
}

#[contract_test]
async fn a_compressed_body_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in operations_with_a_body() {
        for encoding in ["gzip", "br", "identity, gzip", "aws-chunked"] {
            let call = entity.post(path).header("content-encoding", encoding).json(&body);
            let problem = call.refused(415, "unsupported-media-type").await;
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("Content-Encoding")), "{problem}");
        }
        let plain = entity.post(path).header("content-encoding", "identity").json(&body).answered().await;
        assert!(plain.status < 300, "{}", plain.exchange);
    }
    let form = [("grant_type", "client_credentials")];
    let answer =
        suite.api.post("/oauth2/token").header("content-encoding", "gzip").form(&form).expect(400).await.json();
    assert_eq!(answer["error"], "invalid_request");
    assert!(answer["error_description"].as_str().is_some_and(|said| said.contains("Content-Encoding")), "{answer}");
}

#[contract_test]
async fn a_body_may_begin_with_a_byte_order_mark(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in operations_with_a_body() {
        let answer = entity.post(path).body("application/json", format!("\u{feff}{body}")).answered().await;
        assert!(answer.status < 300, "{}", answer.exchange);
    }
}

#[contract_test]
async fn an_integer_may_be_written_with_a_fraction_of_zero(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook_with(operations_with_a_body()[0].1.clone()).await;
    let id = &hook.id;
    let change = r#"{"name":"changed","version":1.0}"#;
    let call = entity.call("PATCH", &format!("/webhook/{id}")).body("application/json", change);
    assert_eq!(call.expect(200).await.json()["version"], 2);
    let rotation = entity.rotate(id).body("application/json", r#"{"overlapSeconds":3.6e3}"#);
    rotation.expect(200).await;
    // As doubles, these numbers are integers.
    let exact = entity.rotate(id).body("application/json", r#"{"overlapSeconds":1e-400}"#);
    exact.refused(400, "invalid-request").await;
    let change = r#"{"name":"changed","version":2.00000000000000001e0}"#;
    let exact = entity.call("PATCH", &format!("/webhook/{id}")).body("application/json", change);
    exact.refused(400, "invalid-request").await;
    // Times with upper- or lower-case letters (RFC 3339, section 5.6), and with an offset as Python writes it.
    for since in ["2026-11-20t09:45:00z", "2026-11-20T09:45:00+0000"] {
        let recovery =
            entity.post(&format!("/webhook/{id}/recover")).json(&json!({ "createdFrom": since })).answered().await;
        assert_ne!(recovery.status, 400, "{}", recovery.exchange);
    }
}

#[contract_test]
async fn a_body_other_than_a_json_object_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in operations_with_a_body() {
        let good = body.to_string();
        let unclosed = &good.as_bytes()[..good.len() - 1];
        let member = good.split_once(',').expect("several members").0.trim_start_matches('{');
        let bodies: [Vec<u8>; 16] = [
            b"".to_vec(),
            b" ".to_vec(),
            b"null".to_vec(),
            b"1".to_vec(),
            b"\"text\"".to_vec(),
            b"[]".to_vec(),
            format!("[{good}]").into_bytes(),
            b"{".to_vec(),
            b"{}".to_vec(),
            unclosed.to_vec(),
            format!("{good}x").into_bytes(),
            format!("{good}{good}").into_bytes(),
            good.replacen('{', "{\"x\": \"\u{1}\",", 1).into_bytes(),
            [unclosed, b",\"x\":\"\xff\"}"].concat(),
            good.replacen('{', &format!("{{{member},"), 1).into_bytes(),
            good.replacen('{', &format!("{{\"x\":{}{},", "[".repeat(10_000), "]".repeat(10_000)), 1).into_bytes(),
        ];
        for body in bodies {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let problem = entity.post(path).body("application/json", body).refused(400, "invalid-request").await;
            assert!(!invalid_values(&problem).is_empty(), "{shown}: {problem}");
        }
        let mut unknown = body.clone();
        unknown["eventURL"] = "misspelt".into();
        unknown["another"] = 1.into();
        let problem = entity.post(path).json(&unknown).refused(400, "invalid-request").await;
        let invalid = invalid_values(&problem);
        assert!(
            ["body/eventURL", "body/another"].iter().all(|name| invalid.contains(&(*name).to_owned())),
            "{path}: {problem}"
        );
    }
}

#[contract_test]
async fn nothing_within_a_value_is_silently_dropped(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let id = entity.id.as_str();
    let reference = format!(r#"{{"identifier":"other","identifier":"{id}","name":null}}"#);
    let body = format!(r#"{{"name":"x","eventUrl":"http://127.0.0.1:9/","eventList":[],"entity":{reference}}}"#);
    let problem = entity.post("/webhook").body("application/json", body).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/entity/identifier"]);
}

/// The service would check the JSON within the string, and deliver or store the member around it.
#[contract_test]
async fn a_member_that_the_parser_would_misread_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let wrapped = r#"{"$serde_json::private::RawValue":"{\"valid\":1}"}"#;
    let event = format!(r#"{{"type":"booking.created","data":{{"a":[{wrapped}]}}}}"#);
    let webhook = format!(r#"{{"name":"x","eventUrl":"http://127.0.0.1:9/","eventList":[],"eventFilter":{wrapped}}}"#);
    for (path, body, parent) in [("/webhook/event", event, "/data/a/0"), ("/webhook", webhook, "/eventFilter")] {
        let problem = entity.post(path).body("application/json", body).refused(400, "invalid-request").await;
        let violations = problem["properties"]["violations"].as_array().expect("openapi.yaml says so");
        let pointer = format!("{parent}/$serde_json::private::RawValue");
        let is_found = violations.iter().any(|found| found["pointer"] == *pointer && found["code"] == "not-allowed");
        assert!(is_found, "{problem:#}");
    }
}

/// Check 7 comes before check 8.
#[contract_test]
async fn a_faulty_body_is_refused_before_a_malformed_identifier(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let operations = [
        "/webhook/x/pause",
        "/webhook/x/resume",
        "/webhook/x/feed/read",
        "/webhook/x/feed/ack",
        "/webhook/x/feed/extend",
        "/webhook/x/recover",
        "/webhook/x/replay",
        "/webhook/x/secret",
        "/webhook/x/test",
        "/webhook/delivery/x/resend",
        "/webhook/delivery/x/cancel",
    ];
    for path in operations {
        let problem = entity.post(path).json(&json!({ "nonsense": 1 })).refused(400, "invalid-request").await;
        assert!(invalid_values(&problem).contains(&"body/nonsense".to_owned()), "{path}: {problem}");
    }
}

#[contract_test]
async fn an_entity_that_cannot_exist_is_a_violation(suite: Arc<Suite>) {
    let token = suite.api.token(Application::Platform, "").await;
    for entity in ["a%20b", "a%2Fb", "%C3%A4", "a%00b", "*", &"x".repeat(129)] {
        let call = suite.api.get(format!("/api/managing-entity/{entity}/webhook/list")).bearer(&token);
        let problem = call.refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["path/managingEntityIdentifier"]);
    }
}

#[contract_test]
async fn a_body_that_is_too_large_is_a_problem(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in operations_with_a_body() {
        for megabytes in [7, 11] {
            let mut body = body.clone();
            body["padding"] = "x".repeat(megabytes * 1_024 * 1_024).into();
            entity.post(path).json(&body).refused(413, "payload-too-large").await;
        }
    }
}

/// The service does not read the rest of such a body, and closes the connection after the response. It must announce
/// this; otherwise, a client would send its next request on the connection and get no response.
#[contract_test]
async fn a_connection_that_a_too_large_body_ends_is_not_used_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({ "type": "booking.created", "data": { "x": "x".repeat(11 * 1_024 * 1_024) } });
    let answer = entity.post("/webhook/event").json(&body).expect(413).await;
    assert_eq!(answer.header("connection"), "close");
}
