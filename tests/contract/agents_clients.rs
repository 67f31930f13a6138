//! The door for agents as the official libraries see it, each unchanged: with nothing but an address, a client identifier and
//! a secret they find the issuer, get a token for `mcp.read`, and a wider one by themselves when a call needs it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Entity, Suite, node, python, tests};

tests![
    the_library_of_python_needs_an_address_an_identifier_and_a_secret,
    the_library_of_typescript_needs_an_address_an_identifier_and_a_secret,
    the_former_library_of_typescript_needs_an_address_an_identifier_and_a_secret,
];

const NEWEST: &str = "2026-07-28";
const NEWEST_WITH_HANDSHAKE: &str = "2025-11-25";

/// What a library does with an application of its own, in this mode of its.
struct Attempt {
    entity: Entity,
    application: Value,
    mode: &'static str,
}

impl Attempt {
    async fn new(suite: &Suite, mode: &'static str) -> Self {
        let entity = suite.entity().await;
        let scopes = ["mcp.read", "mcp.write", "integrations.read", "integrations.write"];
        let application = json!({ "name": "An agent", "scopes": scopes });
        let application = entity.post("/application").json(&application).expect(201).await.json();
        entity.hook("http://127.0.0.1:9/").await;
        Self { entity, application, mode }
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
            ],
        })
    }

    /// Fails unless the library has listed the tools and called them in this revision, with wider tokens on its way.
    fn succeeded(&self, outcome: &Value, revision: &str) {
        assert_eq!((&outcome["server"], &outcome["revision"]), (&json!("waypost"), &json!(revision)));
        let tools = outcome["tools"].as_array().expect("a list");
        assert!(tools.contains(&"list_webhooks".into()), "{outcome:#}");
        let results = outcome["results"].as_array().expect("a list");
        assert!(results.iter().all(|result| result["isError"] == false), "{outcome:#}");
        assert!(results[0]["structuredContent"]["eventTypes"].is_array(), "{outcome:#}");
        let webhook = &results[1]["structuredContent"]["webhooks"][0];
        assert_eq!(webhook["ownerIdentifier"], self.entity.id.as_str(), "{outcome:#}");
        assert_eq!(outcome["granted"][0], "mcp.read", "the first token is for what a client needs first");
        assert_eq!(outcome["granted"][1], "integrations.read mcp.read", "{outcome:#}");
    }
}

async fn the_library_of_python_needs_an_address_an_identifier_and_a_secret(suite: Arc<Suite>) {
    let (new, old) = (Attempt::new(&suite, "auto").await, Attempt::new(&suite, "legacy").await);
    let outcomes = python("mcp_client.py", &json!([new.input(), old.input()])).await;
    new.succeeded(&outcomes[0], NEWEST);
    old.succeeded(&outcomes[1], NEWEST_WITH_HANDSHAKE);
}

async fn the_library_of_typescript_needs_an_address_an_identifier_and_a_secret(suite: Arc<Suite>) {
    let (new, old) = (Attempt::new(&suite, "auto").await, Attempt::new(&suite, "legacy").await);
    let outcomes = node("mcp_client.js", &json!([new.input(), old.input()])).await;
    new.succeeded(&outcomes[0], NEWEST);
    old.succeeded(&outcomes[1], NEWEST_WITH_HANDSHAKE);
}

async fn the_former_library_of_typescript_needs_an_address_an_identifier_and_a_secret(suite: Arc<Suite>) {
    let attempt = Attempt::new(&suite, "legacy").await;
    let outcomes = node("mcp_sdk.js", &json!([attempt.input()])).await;
    attempt.succeeded(&outcomes[0], NEWEST_WITH_HANDSHAKE);
}
