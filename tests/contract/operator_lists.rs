//! Lists across all managing entities, for operators.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    applications::text,
    harness::{Behaviour, Entity, Hook, LONG, Receiver, Suite, until},
};

/// The JSON array that a command prints.
async fn listed(suite: &Suite, arguments: &[&str]) -> Vec<Value> {
    let listed = suite.admin(&[arguments, &["--json"]].concat()).await.json();
    listed.as_array().expect("a list").clone()
}

#[contract_test]
async fn all_applications_of_a_deployment_are_listed(suite: Arc<Suite>) {
    let one = suite.entity().await;
    let other = suite.entity().await;
    let mut made = Vec::new();
    for entity in [&one, &other] {
        let body = json!({ "name": "Listed", "scopes": ["mcp.read"] });
        made.push(entity.post("/application").json(&body).expect(201).await.json());
    }
    // This application does not appear in any managing entity's list.
    let create = ["application", "create", "--json", "--name", "Everywhere", "--entity", "*", "--may-publish"];
    made.push(suite.admin(&create).await.json());

    let all = listed(&suite, &["application", "list", "--all"]).await;
    for application in &made {
        let id = text(application, "clientId");
        let found: Vec<_> = all.iter().filter(|found| found["clientId"] == id.as_str()).collect();
        assert_eq!(found.len(), 1, "{id}");
        for member in ["name", "ownerIdentifier", "mayPublish", "managingEntities", "version"] {
            assert_eq!(found[0][member], application[member], "{member}");
        }
    }
    assert!(all.iter().any(|found| found["clientId"] == suite.api.env["CLIENT_ID"].as_str()), "the demo application");
    let words = suite.admin(&["application", "list", "--all"]).await.done();
    assert!(words.contains(&text(&made[2], "clientId")) && words.contains("operators only"), "{words}");
    assert!(made.iter().all(|application| !words.contains(&text(application, "clientSecret"))));
    for wrong in [&["application", "list"][..], &["application", "list", "hotel", "--all"], &["webhook", "list"]] {
        suite.admin(wrong).await.failed(2);
    }
}

async fn publish(entity: &Entity, events: usize) {
    for _ in 0..events {
        let id = entity.publish(json!({})).await;
        entity.until_status(&id, &["delivered", "failed"]).await;
    }
}

async fn until_health(entity: &Entity, hook: &Hook, health: &str) {
    until(&format!("the webhook is {health}"), LONG, async || {
        (entity.listed(hook).await["health"] == health).then_some(())
    })
    .await;
}

#[contract_test]
async fn webhooks_that_fail_are_listed_across_entities(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let entities = [suite.entity().await, suite.entity().await, suite.entity().await, suite.entity().await];
    let [failing, gone, healthy, off] = &entities;
    let hook = async |entity: &Entity, path: &str, status| {
        entity.hook(&receiver.on(&format!("{path}?key=topsecret"), [Behaviour::status(status)])).await
    };
    let hooks = [
        hook(failing, "/failing", 500).await,
        hook(gone, "/gone", 410).await,
        hook(healthy, "/healthy", 204).await,
        hook(off, "/off", 500).await,
    ];
    tokio::join!(publish(failing, 2), publish(gone, 1), publish(healthy, 1), publish(off, 2));
    until_health(failing, &hooks[0], "failing").await;
    until_health(off, &hooks[3], "failing").await;
    gone.until_gone(&hooks[1]).await;
    off.call("PATCH", &format!("/webhook/{}", hooks[3].id)).json(&json!({ "enabled": false })).expect(200).await;

    let found = listed(&suite, &["webhook", "list", "--failing"]).await;
    let of = |hook: &Hook| found.iter().find(|found| found["id"] == hook.id.as_str());
    let shown = of(&hooks[0]).expect("it fails");
    assert_eq!((&shown["ownerIdentifier"], &shown["state"]), (&json!(failing.id), &json!("failing")), "{shown}");
    assert!(shown["failuresInRow"].as_u64() >= Some(5) && shown["failingSince"].is_string(), "{shown}");
    let shown = of(&hooks[1]).expect("it is gone");
    assert_eq!((&shown["ownerIdentifier"], &shown["state"]), (&json!(gone.id), &json!("disabled")), "{shown}");
    assert!(text(shown, "disabledReason").contains("410"), "{shown}");
    assert!(of(&hooks[2]).is_none() && of(&hooks[3]).is_none(), "one webhook works, and the owner disabled the other");
    let words = suite.admin(&["webhook", "list", "--failing"]).await.done();
    assert!(words.contains(&hooks[0].id) && words.contains(&failing.id), "{words}");
    assert!(!words.contains("topsecret") && !found.iter().any(|found| found.to_string().contains("topsecret")));
}
