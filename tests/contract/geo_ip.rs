//! `POST /task/geo-ip-update`: its credentials and its request. Unit tests cover how a provider's file is handled.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Application, Call, Suite, invalid_values};

const PATH: &str = "/task/geo-ip-update";

fn good(suite: &Suite) -> Value {
    json!({"key": suite.api.env["TASK_KEY"], "environment": suite.api.env["ENVIRONMENT"]})
}

async fn call(suite: &Suite, query: &str, body: &Value) -> Call {
    let token = suite.api.token(Application::Demo, "").await;
    suite.api.post(format!("{PATH}{query}")).bearer(&token).json(body)
}

#[contract_test]
async fn a_token_with_any_scope_is_accepted(suite: Arc<Suite>) {
    suite.api.post(PATH).json(&good(&suite)).refused(401, "unauthorized").await;
    for (application, scope) in [(Application::Demo, "booking.read"), (Application::Platform, "mcp.remove")] {
        let token = suite.api.token(application, scope).await;
        let with_token = || suite.api.post(PATH).bearer(&token);
        with_token().json(&good(&suite)).expect(200).await;
        with_token().json(&good(&suite)).header("service-version", "1.0").refused(400, "unsupported-version").await;
        with_token().body("text/plain", good(&suite).to_string()).refused(415, "unsupported-media-type").await;
    }
}

#[contract_test]
async fn every_value_of_a_task_is_checked_at_once(suite: Arc<Suite>) {
    let mut unknown = good(&suite);
    unknown["more"] = 1.into();
    for (query, body, expected) in [
        ("", json!({}), vec!["body/environment", "body/key"]),
        ("?live=yes", json!({"key": "", "environment": ""}), vec!["body/environment", "body/key", "query/live"]),
        ("", json!({"key": null, "environment": 5}), vec!["body/environment", "body/key"]),
        ("?live=", good(&suite), vec!["query/live"]),
        ("?live=TRUE", good(&suite), vec!["query/live"]),
        ("?live=true&live=true", good(&suite), vec!["query/live"]),
        ("?live=false", unknown, vec!["body/more"]),
        ("", json!([]), vec!["body"]),
    ] {
        let problem = call(&suite, query, &body).await.refused(400, "invalid-request").await;
        let mut invalid = invalid_values(&problem);
        invalid.sort_unstable();
        assert_eq!(invalid, expected, "{query} {body}");
    }
}

#[contract_test]
async fn a_wrong_key_and_a_wrong_environment_look_the_same(suite: Arc<Suite>) {
    let key = &suite.api.env["TASK_KEY"];
    let environment = &suite.api.env["ENVIRONMENT"];
    let mut problems = Vec::new();
    for body in [
        json!({"key": "wrong", "environment": environment}),
        json!({"key": format!("{key} "), "environment": environment}),
        json!({"key": key[1..], "environment": environment}),
        json!({"key": key, "environment": "production"}),
        json!({"key": key, "environment": "LOCAL"}),
    ] {
        let mut problem = call(&suite, "?live=true", &body).await.refused(403, "task-refused").await;
        problem["instance"] = Value::Null;
        problems.push(problem);
    }
    assert!(problems.windows(2).all(|pair| pair[0] == pair[1]), "{problems:#?}");
}

#[contract_test]
async fn an_update_without_any_edition_fails(suite: Arc<Suite>) {
    for query in ["", "?live=false", "?live=true"] {
        let answer = call(&suite, query, &good(&suite)).await.expect(200).await.json();
        assert_eq!(answer["success"], false);
        assert!(answer["message"].as_str().is_some_and(|message| message.starts_with("no edition is configured")));
    }
}
