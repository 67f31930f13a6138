//! The official conformance suite of the Model Context Protocol, at the door for agents and at the token issuer.

use std::sync::Arc;

use serde_json::json;

use crate::harness::{Application, Suite, node, tests};

tests![the_newest_revision_conforms, the_newest_revision_with_a_handshake_conforms, the_token_issuer_conforms,];

/// Runs a part of the suite, and fails with what it says unless everything is as tests/node/mcp_conformance says.
async fn conforms(suite: &Suite, arguments: &[&str]) {
    let token = suite.api.token(Application::Demo, "").await;
    let input = json!({
        "address": suite.api.address(),
        "baseUrl": suite.api.base_url(),
        "issuer": suite.api.env["AUTH_URL"],
        "token": token,
        "arguments": arguments,
    });
    let outcome = node("mcp_conformance.js", &input).await;
    assert_eq!(outcome["status"], 0, "{}", outcome["output"].as_str().unwrap_or_default());
}

async fn the_newest_revision_conforms(suite: Arc<Suite>) {
    conforms(&suite, &["server", "--requirements", "2026-07-28"]).await;
}

async fn the_newest_revision_with_a_handshake_conforms(suite: Arc<Suite>) {
    conforms(&suite, &["server", "--requirements", "2025-11-25"]).await;
}

async fn the_token_issuer_conforms(suite: Arc<Suite>) {
    conforms(&suite, &["authorization"]).await;
}
