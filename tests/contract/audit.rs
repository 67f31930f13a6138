//! The audit trail in the functions' logs: actor, action, source address and outcome, but no secrets or tokens.

use std::{fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{ApiResponse, Application, Bundle, LONG, Suite, message, until};

/// The audit line about a request in a function's log.
async fn line(suite: &Suite, function: &str, answer: &ApiResponse) -> Value {
    let log = suite.bundle().data().join(format!("logs/{function}.log"));
    let request = answer.header("x-request-id");
    until(&format!("{request} in the trail of {function}"), LONG, async || {
        let text = fs::read_to_string(&log).ok()?;
        let lines = text.lines().filter(|line| line.contains("\"audit\"") && line.contains(request));
        let mut lines: Vec<Value> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(lines.len() < 2, "more than one line for the request: {lines:#?}");
        lines.pop()
    })
    .await
}

/// Fails unless the line is also a metric, and has exactly these members in addition to the time and the request.
fn says(line: &Value, expected: &Value) {
    let mut said = line["audit"].clone();
    let members = said.as_object_mut().expect("an object");
    for always in ["time", "requestId"] {
        assert!(members.remove(always).is_some_and(|value| value.is_string()), "{line:#}");
    }
    assert_eq!(said, *expected, "{line:#}");
    assert_eq!(line["Audited"], 1.0);
    assert_eq!((&line["Action"], &line["Outcome"]), (&expected["action"], &expected["outcome"]));
    let metrics = &line["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(metrics["Dimensions"], json!([["Environment", "Action", "Outcome"], ["Environment"]]));
    assert_eq!((&metrics["Namespace"], &metrics["Metrics"][0]["Name"]), (&json!("Waypost"), &json!("Audited")));
}

fn claims(token: &str) -> Value {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    let payload = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload).expect("base 64")).expect("JSON")
}

#[contract_test]
async fn issued_revoked_and_introspected_tokens_are_in_the_trail(suite: Arc<Suite>) {
    let api = &suite.api;
    let client = &api.env["CLIENT_ID"];
    let grant = [("grant_type", "client_credentials")];
    let issued = api.as_client("/oauth2/token", Application::Demo, &grant).expect(200).await;
    let body = issued.json();
    let token = body["access_token"].as_str().expect("openapi.yaml says so");
    let jti = &claims(token)["jti"];
    let trail = line(&suite, "token", &issued).await;
    let credential = &trail["audit"]["credential"];
    assert!(credential.as_str().is_some_and(|id| id.starts_with("sec_")), "{trail:#}");
    let expected = |action: &str| {
        json!({
            "action": action, "outcome": "done", "client": client, "credential": credential, "subject": jti,
            "sourceAddress": "127.0.0.1",
        })
    };
    says(&trail, &expected("token.issue"));
    let form = [("token", token)];
    let asked = api.as_client("/oauth2/introspect", Application::Demo, &form).expect(200).await;
    says(&line(&suite, "introspect-token", &asked).await, &expected("token.introspect"));
    let revoked = api.as_client("/oauth2/revoke", Application::Demo, &form).expect(200).await;
    says(&line(&suite, "revoke-token", &revoked).await, &expected("token.revoke"));
}

#[contract_test]
async fn refusals_are_in_the_trail_with_their_reason(suite: Arc<Suite>) {
    let api = &suite.api;
    let client = api.env["CLIENT_ID"].as_str();
    let secret = api.env["CLIENT_SECRET"].as_str();
    let grant = ("grant_type", "client_credentials");
    let wrong = [grant, ("client_id", client), ("client_secret", "wrong")];
    let refused = api.post("/oauth2/token").form(&wrong).expect(401).await;
    let expected = json!({
        "action": "token.issue", "outcome": "refused", "reason": "invalid-client", "client": client,
        "sourceAddress": "127.0.0.1",
    });
    says(&line(&suite, "token", &refused).await, &expected);
    // The identifier and the secret are swapped: the secret must not be logged as the client.
    let confused = [grant, ("client_id", secret), ("client_secret", client)];
    let refused = api.post("/oauth2/token").form(&confused).expect(401).await;
    let expected = json!({
        "action": "token.issue", "outcome": "refused", "reason": "invalid-client", "sourceAddress": "127.0.0.1",
    });
    says(&line(&suite, "token", &refused).await, &expected);

    let scope = [grant, ("scope", "nonsense")];
    let refused = api.as_client("/oauth2/token", Application::Demo, &scope).expect(400).await;
    let trail = line(&suite, "token", &refused).await;
    assert_eq!((&trail["audit"]["reason"], &trail["audit"]["client"]), (&json!("invalid-scope"), &json!(client)));

    let foreign = api.new_token(Application::Platform, "mcp.read").await;
    let refused = api.as_client("/oauth2/revoke", Application::Demo, &[("token", &foreign)]).expect(400).await;
    let trail = line(&suite, "revoke-token", &refused).await;
    let audit = &trail["audit"];
    assert_eq!((&audit["reason"], &audit["client"]), (&json!("foreign-token"), &json!(client)));
    assert_eq!(audit["subject"], claims(&foreign)["jti"], "the line names the token");
}

#[contract_test]
async fn a_change_of_an_application_is_in_the_trail(suite: Arc<Suite>) {
    let api = &suite.api;
    let own = &api.env["MANAGING_ENTITY"];
    let client = &api.env["CLIENT_ID"];
    let me = format!("/api/managing-entity/{own}");
    let token = api.new_token(Application::Demo, "account.write account.remove").await;
    let application = json!({ "name": "Audited", "scopes": ["account.write"] });
    let made = api.post(format!("{me}/application")).bearer(&token).json(&application).expect(201).await;
    let made_json = made.json();
    let id = made_json["clientId"].as_str().expect("openapi.yaml says so");
    let expected = |action: &str, outcome: &str| {
        json!({
            "action": action, "outcome": outcome, "client": client, "entity": own, "subject": id,
            "sourceAddress": "127.0.0.1",
        })
    };
    says(&line(&suite, "create-application", &made).await, &expected("application.create", "done"));
    let beyond = json!({ "name": "Audited", "scopes": ["booking.remove"] });
    let refused = api.post(format!("{me}/application")).bearer(&token).json(&beyond).expect(403).await;
    let trail = line(&suite, "create-application", &refused).await;
    assert_eq!((&trail["audit"]["reason"], &trail["audit"]["client"]), (&json!("insufficient-scope"), &json!(client)));
    let renamed = api.call("PATCH", format!("{me}/application/{id}")).bearer(&token);
    let renamed = renamed.json(&json!({ "name": "Renamed" })).expect(200).await;
    says(&line(&suite, "change-application", &renamed).await, &expected("application.change", "done"));
    let removed = api.call("DELETE", format!("{me}/application/{id}")).bearer(&token).expect(200).await;
    says(&line(&suite, "remove-application", &removed).await, &expected("application.remove", "done"));
    // The trail also records the gate's refusals.
    let reader = api.token(Application::Demo, "account.read").await;
    let refused = api.call("DELETE", format!("{me}/application/{id}")).bearer(&reader).expect(403).await;
    let trail = line(&suite, "remove-application", &refused).await;
    assert_eq!((&trail["audit"]["outcome"], &trail["audit"]["entity"]), (&json!("refused"), &json!(own)));
}

#[contract_test]
async fn a_change_by_a_tool_is_in_the_trail(suite: Arc<Suite>) {
    let api = &suite.api;
    let client = &api.env["CLIENT_ID"];
    let own = &api.env["MANAGING_ENTITY"];
    let rights = "mcp.read mcp.write integrations.read integrations.write integrations.remove";
    let token = api.new_token(Application::Demo, rights).await;
    let call = |tool: &str, arguments: Value, token: &str| {
        let params = json!({ "name": tool, "arguments": arguments });
        message(api, "tools/call", params).header("mcp-name", tool).bearer(token)
    };
    let expected = |tool: &str, subject: Option<&str>, outcome: Value| {
        let mut line = json!({
            "action": "tool.call", "client": client, "entity": own, "tool": tool, "sourceAddress": "127.0.0.1",
        });
        let members = line.as_object_mut().expect("an object");
        members.extend(subject.map(|subject| ("subject".to_owned(), json!(subject))));
        members.extend(outcome.as_object().cloned().expect("an object"));
        line
    };
    let done = || json!({ "outcome": "done" });
    let new = json!({ "name": "n", "eventUrl": "http://127.0.0.1:9/", "eventList": [], "enabled": false });
    let made = call("create_webhook", new, &token).expect(200).await;
    let made_json = made.json();
    let id = made_json["result"]["structuredContent"]["id"].as_str().expect("the webhook was made");
    says(&line(&suite, "mcp", &made).await, &expected("create_webhook", Some(id), done()));
    let of = |more: Value| {
        let mut arguments = json!({ "webhookIdentifier": id });
        arguments.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        arguments
    };
    let renamed = call("change_webhook", of(json!({ "name": "renamed" })), &token).expect(200).await;
    says(&line(&suite, "mcp", &renamed).await, &expected("change_webhook", Some(id), done()));

    let refused = call("change_webhook", of(json!({ "name": "n", "version": 1 })), &token).expect(200).await;
    let conflict = json!({ "outcome": "refused", "reason": "version-conflict" });
    says(&line(&suite, "mcp", &refused).await, &expected("change_webhook", Some(id), conflict));
    let refused = call("publish_test_event", json!({ "webhookIdentifier": "x" }), &token).expect(200).await;
    let missing = json!({ "outcome": "refused", "reason": "webhook-not-found" });
    says(&line(&suite, "mcp", &refused).await, &expected("publish_test_event", None, missing));
    let reader = api.token(Application::Demo, "mcp.read integrations.read").await;
    let refused = call("publish_test_event", of(json!({})), &reader).expect(403).await;
    let trail = line(&suite, "mcp", &refused).await;
    assert_eq!(
        (&trail["audit"]["reason"], &trail["audit"]["tool"]),
        (&json!("insufficient-scope"), &json!("publish_test_event"))
    );

    // Reading does not write a line. Once the last call's line has been written, all earlier lines have been written
    // too.
    let looked = call("show_webhook", of(json!({})), &token).expect(200).await;
    let last = call("change_webhook", of(json!({ "name": "last" })), &token).expect(200).await;
    line(&suite, "mcp", &last).await;
    let log = fs::read_to_string(suite.bundle().data().join("logs/mcp.log")).expect("a log");
    let request = looked.header("x-request-id");
    assert!(log.lines().any(|line| line.contains(request)), "the call is in the log");
    assert!(!log.lines().any(|line| line.contains(request) && line.contains("\"audit\"")), "but not in the trail");
    let webhook = format!("/api/managing-entity/{own}/webhook/{id}");
    api.call("DELETE", webhook).bearer(&token).expect(200).await;
}

#[contract_test]
async fn no_log_contains_a_secret_or_a_token(suite: Arc<Suite>) {
    let api = &suite.api;
    let mut secrets: Vec<String> = Vec::new();
    for application in [Application::Demo, Application::Platform] {
        secrets.push(api.env[application.variables().1].clone());
        let token = api.new_token(application, "").await;
        let form = [("token", token.as_str())];
        api.as_client("/oauth2/introspect", application, &form).expect(200).await;
        let last = api.as_client("/oauth2/revoke", application, &form).expect(200).await;
        line(&suite, "revoke-token", &last).await; // once it has been written, earlier lines have been too
        // The trail may contain claims from the payload, since a token is usable only with its signature.
        secrets.push(token.rsplit('.').next().expect("three parts").to_owned());
        secrets.push(token);
    }
    let confused = [("grant_type", "client_credentials"), ("client_id", secrets[0].as_str()), ("client_secret", "x")];
    let refused = api.post("/oauth2/token").form(&confused).expect(401).await;
    line(&suite, "token", &refused).await;
    let logs = logs(suite.bundle());
    assert!(logs.len() > 10, "{} logs", logs.len());
    for (name, log) in logs {
        for secret in &secrets {
            assert!(!log.contains(secret), "the log of {name} contains a secret or a token");
        }
    }
}

/// The current logs of all functions.
fn logs(bundle: &Bundle) -> Vec<(String, String)> {
    let entries = fs::read_dir(bundle.data().join("logs")).expect("there are logs").flatten();
    let read = |path: std::path::PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    entries.map(|entry| (entry.file_name().display().to_string(), read(entry.path()))).collect()
}

/// Regression test: a line contained the whole path, up to 8 KB, before any token was checked.
#[contract_test]
async fn a_stranger_fills_no_log_with_long_requests(suite: Arc<Suite>) {
    let long = "x".repeat(8_000);
    let unknown = suite.api.get(format!("/{long}")).expect(404).await;
    let forged = suite.api.get("/api/managing-entity/x/webhook/list").bearer(&long).expect(401).await;
    for (function, answer) in [("fallback", &unknown), ("list-webhooks", &forged)] {
        let log = suite.bundle().data().join(format!("logs/{function}.log"));
        let request = answer.header("x-request-id");
        let lines = until(&format!("{request} in the log of {function}"), LONG, async || {
            let text = fs::read_to_string(&log).ok()?;
            let lines: Vec<_> = text.lines().filter(|line| line.contains(request)).map(str::to_owned).collect();
            lines.iter().any(|line| line.contains("\"answered\"")).then_some(lines)
        })
        .await;
        for line in &lines {
            assert!(line.len() < 1_000, "{} bytes: {line}", line.len());
        }
    }
}
