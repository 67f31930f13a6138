//! Every function's sample events for `cargo lambda invoke`: `events/NAME.json`, and `events/NAME.KIND.json` for
//! another kind of call. The test invokes each function with each of its samples.

use std::{collections::BTreeSet, fs, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Application, LONG, Suite, invocation, project, secret, until};

/// The placeholder for an access token in a sample.
const PLACEHOLDER: &str = "ACCESS_TOKEN";

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(project().join(folder)).expect("the project has this folder");
    entries.filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned())).collect()
}

/// The names of all functions, taken from the binaries in each family.
fn all_functions() -> BTreeSet<String> {
    let families = fs::read_dir(project().join("functions")).expect("the project has this folder").flatten();
    families.flat_map(|family| names(&format!("functions/{}/src/bin", family.file_name().display()))).collect()
}

fn function_of(sample: &str) -> &str {
    sample.split('.').next().unwrap_or_default()
}

/// The sample with placeholders replaced by values, even within an encoded body.
fn filled(sample: &str, values: &[(&str, &str)]) -> String {
    let replaced = |text: &str| values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
    let mut event: Value = serde_json::from_str(sample).expect("a sample is JSON");
    if event["isBase64Encoded"] == true {
        let body = BASE64.decode(event["body"].as_str().expect("a body")).expect("it is encoded");
        event["body"] = BASE64.encode(replaced(std::str::from_utf8(&body).expect("a form is text"))).into();
    }
    replaced(&event.to_string())
}

/// Invokes a function with this event, and returns its response. A 503, as a machine that stalls causes, asks the client
/// to try again.
async fn invoked(suite: &Suite, function: &str, event: &str) -> Value {
    until(&format!("a response of {function}"), LONG, async || {
        let response = invocation(&suite.api.env, function, event).send().await.expect("functions can be invoked");
        assert_eq!(response.status(), 200, "{function}");
        let failed = response.headers().contains_key("x-amz-function-error");
        let answer = response.text().await.expect("the answer is text");
        assert!(!failed, "{function} failed: {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{function}: {answer}"));
        Some(answer).filter(|answer| answer["statusCode"] != 503)
    })
    .await
}

#[contract_test]
async fn every_function_has_a_sample_event(_suite: Arc<Suite>) {
    let with_samples: BTreeSet<String> = names("events").iter().map(|sample| function_of(sample).to_owned()).collect();
    assert_eq!(all_functions(), with_samples);
    assert!(all_functions().is_subset(&names("events")), "each function has a sample of its name");
}

#[contract_test]
async fn every_sample_event_is_answered_as_it_should_be(suite: Arc<Suite>) {
    let own = |name: &'static str| (name, suite.api.env[name].as_str());
    for name in names("events") {
        let function = function_of(&name);
        let sample = fs::read_to_string(project().join("events").join(format!("{name}.json")));
        let sample = sample.unwrap_or_else(|error| panic!("events/{name}.json: {error}"));
        // One of the samples revokes its token.
        let token = suite.api.new_token(Application::Demo, "").await;
        let secrets = secret(&suite.api.env, "");
        let environment = format!(r#"\"{}\""#, suite.api.env["ENVIRONMENT"]);
        let values = [
            (PLACEHOLDER, token.as_str()),
            ("waypost/local/", &secrets),
            (r#"\"local\""#, &environment),
            own("TASK_KEY"),
            own("CLIENT_ID"),
            own("CLIENT_SECRET"),
        ];
        let event = filled(&sample, &values);
        let answer = invoked(&suite, function, &event).await;
        let expected: Value = match name.as_str() {
            // The sample's delivery, application, connection or state does not exist in this bundle.
            "show-delivery" | "webhook-stats" | "disconnect-provider" | "fallback" => 404.into(),
            "resend-delivery" | "cancel-delivery" | "recover-deliveries" => 404.into(),
            "recover-deliveries.replay" => 404.into(),
            "read-feed" | "acknowledge-feed" | "acknowledge-feed.extend" => 404.into(),
            "end-previous-secret" | "show-event" | "erase-event" => 404.into(),
            "remove-panel-link" | "renew-panel-link" | "list-connections.show" => 404.into(),
            "list-panel-links.show" => 404.into(),
            "panel-session" => 400.into(),
            "panel-session.end" => 204.into(),
            "show-webhook"
            | "change-webhook"
            | "remove-webhook"
            | "rotate-webhook-secret"
            | "test-webhook"
            | "resume-webhook"
            | "resume-webhook.pause" => 404.into(),
            "show-application"
            | "change-application"
            | "remove-application"
            | "add-application-secret"
            | "remove-application-secret"
            | "add-application-key"
            | "remove-application-key" => 404.into(),
            "provider-start" | "provider-callback" | "authorize" => 400.into(),
            "canary-receiver" => 403.into(),
            "create-webhook" | "connect-provider" | "create-application" | "create-panel-link" => 201.into(),
            "publish-event" => 202.into(),
            "dispatch-deliveries"
            | "sweep-deliveries"
            | "refresh-connections"
            | "run-canary"
            | "geo-ip-update.schedule"
            | "ingest-event"
            | "rotate-signing-key" => Value::Null,
            _ => 200.into(),
        };
        assert_eq!(answer["statusCode"], expected, "{name}: {answer:#}");
        if function == "ingest-event" {
            assert!(answer["published"]["eventIdentifier"].is_string(), "{answer:#}");
        }
        if function == "dispatch-deliveries" {
            assert_eq!(answer["batchItemFailures"], Value::Array(vec![]), "{answer:#}");
        }
    }
}

#[contract_test]
async fn an_event_with_any_characters_is_answered_by_its_route(suite: Arc<Suite>) {
    let sample = |name: &str| -> Value {
        let sample = fs::read_to_string(project().join("events").join(format!("{name}.json"))).expect("a sample");
        serde_json::from_str(&sample).expect("a sample is JSON")
    };
    let odd = "x=\"&y=<&z= &name=José";
    for (function, members, expected) in [
        ("openapi", json!({ "rawQueryString": odd, "headers": { "x-name": "José" } }), json!(200)),
        ("fallback", json!({ "rawPath": "/\"< é", "rawQueryString": odd }), json!(404)),
        ("token", json!({ "body": "grant_type=\"", "isBase64Encoded": true }), json!(400)),
        ("panel-session", json!({ "body": "{}", "isBase64Encoded": true, "cookies": ["a=José"] }), json!(400)),
    ] {
        let mut event = sample(function);
        event.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        let answer = invoked(&suite, function, &event.to_string()).await;
        assert_eq!(answer["statusCode"], expected, "{function}: {answer:#}");
    }
}
