//! A webhook's metadata: strings that link the webhook to an integrator's other systems.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Agent, Suite, invalid_values};

fn new(metadata: &Value) -> Value {
    json!({ "name": "n", "eventUrl": "https://hooks.example.com/", "eventList": [], "metadata": metadata })
}

#[contract_test]
async fn metadata_is_shown_as_given_and_replaced_as_a_whole(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let metadata = json!({ "system": "pms-7", "Größe": "", "note": "two\nlines" });
    let hook = entity.hook_with(new(&metadata)).await;
    assert_eq!(hook.json["metadata"], metadata);
    assert_eq!(entity.webhook(&hook.id).await["metadata"], metadata);
    assert_eq!(entity.listed(&hook).await["metadata"], metadata);

    let renamed = entity.changed(&hook.id, json!({ "name": "renamed" })).await;
    assert_eq!(renamed["metadata"], metadata, "another member is changed");
    let replaced = entity.changed(&hook.id, json!({ "metadata": { "system": "pms-8" } })).await;
    assert_eq!(replaced["metadata"], json!({ "system": "pms-8" }));
    let removed = entity.changed(&hook.id, json!({ "metadata": null })).await;
    assert_eq!((&removed["metadata"], &entity.webhook(&hook.id).await["metadata"]), (&json!({}), &json!({})));
}

#[contract_test]
async fn metadata_has_few_members_and_each_value_is_a_text(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("https://hooks.example.com/").await;
    let many: serde_json::Map<_, _> = (0..21).map(|number| (format!("m{number}"), json!(""))).collect();
    for bad in [json!({ "rooms": 12 }), json!({ "a": { "b": "c" } }), json!(["a"]), json!("a"), many.into()] {
        for call in [
            entity.post("/webhook").json(&new(&bad)),
            entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&json!({ "metadata": bad })),
        ] {
            let problem = call.refused(400, "invalid-request").await;
            assert_eq!(invalid_values(&problem), ["body/metadata"], "{bad}");
        }
    }
    let problem = entity.post("/webhook").json(&new(&Value::Null)).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/metadata"], "there is none to remove");
}

#[contract_test]
async fn an_agent_sets_and_sees_metadata(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let agent = Agent::of(&entity).await;
    let hook = entity.hook_with(new(&json!({ "system": "pms-7" }))).await;
    let change = json!({ "webhookIdentifier": hook.id, "metadata": { "system": "pms-8" } });
    let changed = agent.call("change_webhook", change).await;
    assert!(changed["metadata"].to_string().contains("pms-8"), "{changed:#}");
    assert_eq!(entity.webhook(&hook.id).await["metadata"], json!({ "system": "pms-8" }));
}
