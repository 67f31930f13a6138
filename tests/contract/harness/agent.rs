//! A client for the Model Context Protocol, with the features that the tests of tools need.

use std::collections::BTreeSet;

use functions_agents::tools;
use jsonschema::draft202012;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{Api, ApiResponse, Application, Call, Entity, LONG, contract::close_values, until};

/// The protocol revision that these tests use.
const REVISION: &str = "2026-07-28";

/// A client with a token for an entity.
pub struct Agent {
    api: Api,
    token: String,
    /// The entity that its calls name.
    entity: Option<String>,
    /// The tools that it has called.
    pub called: Mutex<BTreeSet<String>>,
}

/// A message in this revision, without a token or the header that names its subject.
pub fn message(api: &Api, method: &str, mut params: Value) -> Call {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "contract", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = api.post("/mcp").header("accept", "application/json, text/event-stream").json(&message);
    request.header("mcp-protocol-version", REVISION).header("mcp-method", method)
}

impl Agent {
    /// An agent that uses the platform's application for this entity.
    pub async fn of(entity: &Entity) -> Self {
        Self::with_scopes(entity, "").await
    }

    /// An agent that uses the platform's application with a token for only these scopes.
    pub async fn with_scopes(entity: &Entity, scopes: &str) -> Self {
        let token = entity.api().token(Application::Platform, scopes).await;
        Self {
            token,
            entity: Some(entity.id.clone()),
            ..Self::of_application(entity.api(), Application::Platform).await
        }
    }

    /// An agent that uses an application without a default entity.
    pub async fn of_application(api: &Api, application: Application) -> Self {
        Self { api: api.clone(), token: api.token(application, "").await, entity: None, called: Mutex::default() }
    }

    /// A message with the token.
    pub fn message(&self, method: &str, name: Option<&str>, params: Value) -> Call {
        let request = message(&self.api, method, params).bearer(&self.token);
        name.into_iter().fold(request, |request, name| request.header("mcp-name", name))
    }

    /// Sends a message unchanged, and again while the response reports a 503.
    pub async fn send(&self, method: &str, name: Option<&str>, params: Value) -> ApiResponse {
        self.message(method, name, params).answered().await
    }

    /// The result of a message.
    pub async fn asked(&self, method: &str, name: Option<&str>, params: Value) -> Value {
        result_of(&self.send(method, name, params).await)
    }

    /// The parameters of a call.
    pub fn arguments(&self, mut arguments: Value, tool: &str) -> Value {
        let acts_for_an_entity = !["list_event_types", "explain_problem"].contains(&tool);
        if let Some(entity) = self.entity.as_ref().filter(|_| acts_for_an_entity) {
            arguments["managingEntity"] = json!(entity);
        }
        json!({ "name": tool, "arguments": arguments })
    }

    /// Calls a tool, and again while its Problem is a 503.
    async fn called(&self, tool: &str, arguments: Value) -> Value {
        let result = self.asked("tools/call", Some(tool), self.arguments(arguments, tool)).await;
        let text = in_text(&result);
        if result.get("structuredContent").is_some() {
            assert_eq!(text, result["structuredContent"], "{tool}");
        }
        result
    }

    /// Calls a tool, checks its result against the schema, and returns it.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.called(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result:#}");
        let mut schema = (tools::find(tool).expect("a tool").output)();
        close_values(&mut schema);
        let validator = draft202012::options().should_validate_formats(true).build(&schema).expect("a schema");
        let given = result["structuredContent"].clone();
        let faults: Vec<_> = validator.iter_errors(&given).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{tool}: {faults:#?}\n{given:#}");
        self.called.lock().await.insert(tool.to_owned());
        given
    }

    /// Calls a tool that must refuse, and returns its Problem.
    pub async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let result = self.called(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result:#}");
        in_text(&result)
    }

    /// Calls a tool once while the service is down.
    pub async fn unavailable(&self, tool: &str, arguments: Value) {
        let call = self.message("tools/call", Some(tool), self.arguments(arguments, tool));
        let result = result_of(&call.send().await);
        assert_eq!(result["isError"], true, "{tool}: {result:#}");
        assert_eq!(in_text(&result)["kind"], "service-unavailable", "{tool}: {result:#}");
    }

    /// Waits until a delivery has one of these states.
    pub async fn until_status(&self, delivery: &str, states: &[&str]) -> Value {
        until(&format!("a delivery is {states:?}"), LONG, async || {
            let shown = self.call("show_delivery", json!({ "deliveryIdentifier": delivery })).await;
            states.iter().any(|state| shown["status"] == *state).then_some(shown)
        })
        .await
    }
}

/// The result in a response.
fn result_of(answer: &ApiResponse) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.exchange);
    answer.json().get("result").unwrap_or_else(|| panic!("no result: {}", answer.exchange)).clone()
}

/// The JSON in the text of a tool's result: its structured content, or a Problem.
fn in_text(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().expect("a text beside the structured content");
    serde_json::from_str(text).expect("the text is JSON")
}
