//! Third-party clients: some generated from openapi.yaml, and one that was published for a similar platform.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Application, Behaviour, Entity, Receiver, Suite, node, python};

/// The settings that let a script act for the entity as the platform's application.
async fn settings(suite: &Suite, entity: &Entity, event_url: &str) -> Value {
    let api = &suite.api;
    let (id, secret) = Application::Platform.variables();
    json!({
        "address": api.address(),
        "document": format!("{}/openapi.json", api.address()),
        "issuer": api.env["AUTH_URL"],
        "clientId": api.env[id],
        "clientSecret": api.env[secret],
        "token": api.token(Application::Platform, "").await,
        "entity": entity.id,
        "eventUrl": event_url,
    })
}

/// Makes a generated client get a token, create a webhook, publish an event, read the delivery, and get an error.
/// Returns the client's results.
async fn delivers_an_event(suite: &Suite, run: impl AsyncFnOnce(&Value) -> Value) -> Value {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let settings = settings(suite, &entity, &receiver.on("/generated", [Behaviour::status(204)])).await;
    let seen = run(&settings).await;
    let received = receiver.until("/generated", 1).await.remove(0).json();
    assert_eq!(received["data"], json!({ "booking": { "nights": 3 } }));
    assert_eq!(seen["data"], received["data"]);
    assert_eq!(seen["refusedToken"], json!(["invalid_client", "invalid-client"]));
    assert_eq!(seen["enabled"], true);
    assert_eq!(seen["delivery"], json!(["delivered", seen["webhook"], 204]));
    assert_eq!(seen["attempts"][0], 204);
    assert_eq!(seen["problem"], json!([400, "invalid-request", ["/type"]]));
    seen
}

/// Checks the additional results of a client from openapi-generator, which also resends, lists, counts, changes and
/// removes.
fn manages_deliveries(seen: &Value) {
    assert_eq!(seen["attempts"], json!([204, 204]), "the delivery was sent again");
    assert_eq!(seen["listed"], json!([true]));
    assert_eq!(seen["changed"], json!(["Changed", 2]));
    assert!(seen["counted"].is_u64() && seen["removed"] == true, "{seen}");
}

#[contract_test]
async fn a_client_of_openapi_generator_works_in_typescript(suite: Arc<Suite>) {
    let seen = delivers_an_event(&suite, async |settings| node("openapi_generator.js", settings).await).await;
    manages_deliveries(&seen);
}

#[contract_test]
async fn a_client_of_openapi_generator_works_in_python(suite: Arc<Suite>) {
    let seen = delivers_an_event(&suite, async |settings| python("openapi_generator.py", settings).await).await;
    manages_deliveries(&seen);
    let examples = seen["examples"].as_u64().unwrap_or_default();
    assert!(examples > 100, "its models read only {examples} examples of the document");
    let later_values = seen["laterValues"].as_u64().unwrap_or_default();
    assert!(later_values > 50, "its models read only {later_values} values that a later release may add");
}

#[contract_test]
async fn a_generated_typescript_client_compiles_and_works(suite: Arc<Suite>) {
    delivers_an_event(&suite, async |settings| node("generated_client.js", settings).await).await;
}

#[contract_test]
async fn a_generated_python_client_compiles_and_works(suite: Arc<Suite>) {
    delivers_an_event(&suite, async |settings| python("generated_client.py", settings).await).await;
}

/// Makes the published client call all its methods for one kind of resource; returns the values read.
async fn managed(suite: &Suite, entity: &Entity, things: &str) -> Value {
    let settings = settings(suite, entity, "https://receiver.example.com/hook").await;
    let mut seen = python("published_client.py", &json!({ "things": things, "settings": settings })).await;
    assert_eq!(seen["removed"]["success"], true);
    seen["removed"] = seen["removed"]["id"].take();
    seen
}

/// Checks the owner that the published client has read.
fn owned_by(entity: &Entity, seen: &Value) {
    let owner = ["ownerIdentifier", "ownerName", "ownerType"].map(|name| &seen[name]);
    assert_eq!(owner, [&json!(entity.id), &json!(entity.id), &json!("COMPANY")], "{seen}");
}

#[contract_test]
async fn a_published_client_manages_webhooks_once_its_paths_are_rewritten(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let seen = managed(&suite, &entity, "webhooks").await;
    let catalogue = entity.get("/webhook/event/list").expect(200).await.json();
    assert_eq!(seen["events"], catalogue);
    let made = &seen["made"];
    owned_by(&entity, made);
    assert_eq!((&made["name"], &made["version"]), (&json!("Published"), &json!(1)));
    assert_eq!((&made["eventList"], &made["userIdentifier"]), (&json!(["booking.created"]), &json!(entity.id)));
    assert_eq!((&seen["loaded"], &seen["listed"]), (made, &json!([made])));
    assert_eq!((&seen["changed"]["name"], &seen["changed"]["version"]), (&json!("Changed"), &json!(2)));
    assert_eq!(seen["ofAnother"], "invalid-request");
    assert_eq!((&seen["removed"], &seen["gone"]), (&made["id"], &json!("webhook-not-found")));
}

#[contract_test]
async fn a_published_client_manages_applications_once_its_paths_are_rewritten(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let seen = managed(&suite, &entity, "applications").await;
    let made = &seen["made"];
    let loaded = &seen["loaded"];
    owned_by(&entity, made);
    owned_by(&entity, loaded);
    assert_eq!((&made["name"], &made["id"]), (&json!("Published"), &made["clientId"]));
    assert_eq!((&loaded["id"], &seen["listed"]), (&made["id"], &json!([loaded])));
    assert_eq!((&seen["changed"]["name"], &seen["changed"]["id"]), (&json!("Changed"), &made["id"]));
    assert_eq!(seen["revoked"]["clientId"], made["clientId"]);
    assert_ne!(seen["revoked"]["secretKey"], made["secretKey"]);
    assert_eq!((&seen["removed"], &seen["gone"]), (&made["id"], &json!("application-not-found")));
}
