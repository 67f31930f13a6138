//! The official conformance suite of the Model Context Protocol, run against the endpoint for agents, the fixture
//! server that the suite expects, and the token issuer.

use std::{os::unix::fs::symlink, sync::Arc};

use contract_test::contract_test;
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Api, Application, Suite, local, node};

/// The expected failures: parts of the protocol that the service does not offer.
const NOT_OFFERED: &str = "mcp_not_offered.yaml";
/// The expected failures: features with other names at the endpoint for agents.
const OTHER_NAMES: &str = "mcp_other_names.yaml";

/// The functions that run with the fixtures, and their programs. At startup, a bundle checks a token with
/// `list-event-types`.
const FUNCTIONS: [(&str, &str); 3] =
    [("token", "functions"), ("list-event-types", "functions"), ("mcp", "mcp-fixtures")];

/// The suite allows each request a few seconds, which a stalled machine may exceed. Therefore, a single run without
/// failures is enough.
const RUNS: usize = 4;

/// Runs a part of the suite, and fails with its output unless the failures are exactly those in these lists.
async fn conforms(api: &Api, arguments: &[&str], expected_failures: &[&str]) {
    let token = api.token(Application::Demo, "").await;
    let input = json!({
        "address": api.address(),
        "baseUrl": api.base_url(),
        "issuer": api.env["AUTH_URL"],
        "token": token,
        "arguments": arguments,
        "expectedFailures": expected_failures,
    });
    let mut left = RUNS;
    loop {
        let outcome = node("mcp_conformance.js", &input).await;
        let output = outcome["output"].as_str().unwrap_or_default();
        let verdict = output.find("\nTotal: ").map_or("", |start| &output[start..]);
        left -= 1;
        if outcome["status"] == 0 {
            return;
        }
        assert!(left > 0, "{verdict}\n\n{output}");
    }
}

/// Tests a revision's requirements against the fixtures, which replace the endpoint for agents.
async fn fixtures_conform(suite: &Suite, revision: &str) {
    let programs = TempDir::new().expect("a folder");
    for (function, program) in FUNCTIONS {
        let program = local().expect("the bundle is built").with_file_name(program);
        symlink(program, programs.path().join(function)).expect("a link");
    }
    let (_bundle, api, _permit) =
        suite.other_bundle_of_programs(programs.path(), &FUNCTIONS.map(|(function, _)| function)).await;
    conforms(&api, &["server", "--requirements", revision], &[NOT_OFFERED]).await;
}

#[contract_test]
async fn the_newest_revision_conforms(suite: Arc<Suite>) {
    conforms(&suite.api, &["server", "--requirements", "2026-07-28"], &[NOT_OFFERED, OTHER_NAMES]).await;
}

#[contract_test]
async fn the_newest_revision_with_a_handshake_conforms(suite: Arc<Suite>) {
    conforms(&suite.api, &["server", "--requirements", "2025-11-25"], &[NOT_OFFERED, OTHER_NAMES]).await;
}

#[contract_test]
async fn the_fixtures_of_the_newest_revision_conform(suite: Arc<Suite>) {
    fixtures_conform(&suite, "2026-07-28").await;
}

#[contract_test]
async fn the_fixtures_of_the_newest_revision_with_a_handshake_conform(suite: Arc<Suite>) {
    fixtures_conform(&suite, "2025-11-25").await;
}

#[contract_test]
async fn the_token_issuer_conforms(suite: Arc<Suite>) {
    conforms(&suite.api, &["authorization"], &[]).await;
}
