//! Errors that every operation of a kind can return.

use serde_json::{Value, json};

use super::Checked;
use crate::harness::{Application, Call, Suite, now};

/// Well-formed values for path parameters that identify nothing.
const NOTHING: [(&str, &str); 9] = [
    ("{eventIdentifier}", "evt_01m7w5gmev7xwvpyt3bc2k45jh"),
    ("{deliveryIdentifier}", "dlv_01m7w5gmev32p3wwt3y0b8j32h"),
    ("{webhookIdentifier}", "whk_01m74zy5eva3kj3s4w04zg1hhc"),
    ("{linkIdentifier}", "plk_01m7w5gmev7xwvpyt3bc2k45jh"),
    ("{clientId}", "app8aRq2LkTz05NvXwYcB1deF"),
    ("{secretId}", "sec_01m74zy5evf6q0n2h4ck9w8b1x"),
    ("{kid}", "laptop"),
    ("{provider}", "stripe"),
    ("{connectionIdentifier}", "con_01m7wa4v0evcs5n0yrq8bhk2zt"),
];

/// Errors whose examples the module `provoked` covers, with the operations that return them.
const SPECIAL: [(&str, &str); 10] = [
    ("createWebhook", "invalidRequest"),
    ("checkEventFilter", "invalidRequest"),
    ("upgradeGeoIPs", "invalidRequest"),
    ("publishEvent", "payloadTooLarge"),
    ("testWebhook", "payloadTooLarge"),
    ("token", "payloadTooLarge"),
    ("revokeToken", "payloadTooLarge"),
    ("introspectToken", "payloadTooLarge"),
    ("receiveCanary", "payloadTooLarge"),
    ("connectProvider", "providerNotFound"),
];

/// Provokes each error that an operation returns without special preparation.
pub(super) async fn provoke(suite: &Suite, checked: &mut Checked) {
    let entity = suite.entity().await;
    let platform = suite.api.token(Application::Platform, "").await;
    let demo = suite.api.token(Application::Demo, "").await;
    let forge = suite.forge();
    let mut claims = forge.claims();
    claims["iat"] = (now() - 4000).into();
    claims["exp"] = (now() - 400).into();
    let expired = forge.token(&forge.header(), &claims);

    for operation in suite.contract.operations() {
        let declared = &suite.contract.document["paths"][&operation.path][operation.method.to_lowercase()];
        let body = example_of_body(declared);
        let path = |entity: &str| {
            let path = operation.path.replace("{managingEntityIdentifier}", entity);
            NOTHING.iter().fold(path, |path, (name, value)| path.replace(name, value))
        };
        let to = |path: String| suite.api.call(&operation.method, path);
        let with_body = |call: Call| match &body {
            Some(body) => call.json(body),
            None => call,
        };
        let of_operation: Vec<_> =
            checked.all.iter().filter(|example| example.operation == operation.id).cloned().collect();
        for example in of_operation {
            if SPECIAL.contains(&(operation.id.as_str(), example.name.as_str())) {
                continue;
            }
            let path = path(&entity.id);
            let call = match example.name.as_str() {
                "expired" => with_body(to(path).bearer(&expired)),
                "entityNotCovered" if operation.id != "providerCallback" => with_body(to(path).bearer(&demo)),
                "unsupportedVersion" => with_body(to(path).bearer(&platform)).header("service-version", "9.0"),
                "unsupportedMediaType" if operation.method != "GET" => {
                    to(path).bearer(&platform).body("text/plain", "{}")
                }
                "payloadTooLarge" => {
                    let large = json!({ "a": "x".repeat(1_100_000) }).to_string();
                    to(path).bearer(&platform).body("application/json", large)
                }
                "invalidCursor" => with_body(to(format!("{path}?cursor=x")).bearer(&platform)),
                "invalidRequest" => {
                    let path = operation.path.replace("{managingEntityIdentifier}", "a%20b");
                    let path = NOTHING.iter().fold(path, |path, (name, value)| path.replace(name, value));
                    with_body(to(path).bearer(&platform))
                }
                "eventNotFound"
                | "deliveryNotFound"
                | "webhookNotFound"
                | "applicationNotFound"
                | "connectionNotFound"
                | "panelLinkNotFound" => with_body(to(path).bearer(&platform)),
                _ => continue,
            };
            let answer = call.answered().await;
            checked.compare(&operation.id, &example.name, &answer);
        }
    }
    for (operation, path) in [("listEventTypes", "/webhook/event/list"), ("showDelivery", "/webhook/delivery/dlv_0")] {
        let answer = entity.call("DELETE", path).answered().await;
        checked.compare(operation, "methodNotAllowed", &answer);
    }
    for (operation, path) in [
        ("listEventTypes", entity.path("/webhook/event/lists/x")),
        ("panelPage", "/panel/assets/typo".to_owned()),
        ("providerOutcome", "/panel/provider/_x".to_owned()),
        ("problemPage", "/problems/typo".to_owned()),
    ] {
        let answer = suite.api.get(path).answered().await;
        checked.compare(operation, "notFound", &answer);
    }
}

/// The first example of a JSON body.
fn example_of_body(declared: &Value) -> Option<Value> {
    let examples = declared.pointer("/requestBody/content/application~1json/examples")?.as_object()?;
    Some(examples.values().next()?["value"].clone())
}
