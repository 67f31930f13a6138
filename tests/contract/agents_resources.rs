//! The resources and prompts that the endpoint for agents offers.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    agents_tools::text,
    harness::{Agent, Behaviour, Receiver, Suite},
};

#[contract_test]
async fn a_resource_shows_what_the_tool_shows(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({ "say": "something" })).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let read = async |agent: &Agent, uri: &str| {
        let result = agent.asked("resources/read", Some(uri), json!({ "uri": uri })).await;
        assert_eq!(result["contents"][0]["uri"], uri);
        text(&result["contents"][0]["text"])
    };
    let uri = format!("waypost://{}/delivery/{delivery}", entity.id);
    let shown: Value = serde_json::from_str(&read(&agent, &uri).await).expect("JSON");
    assert_eq!(shown, agent.call("show_delivery", json!({ "deliveryIdentifier": delivery })).await);
    let types: Value = serde_json::from_str(&read(&agent, "waypost://catalogue/events").await).expect("JSON");
    assert_eq!(types, agent.call("list_event_types", json!({})).await);
    for resource in agent.asked("resources/list", None, json!({})).await["resources"].as_array().expect("a list") {
        assert!(!read(&agent, &text(&resource["uri"])).await.is_empty());
    }
    let templates = agent.asked("resources/templates/list", None, json!({})).await;
    assert_eq!(templates["resourceTemplates"].as_array().map(Vec::len), Some(2));
    assert!(read(&agent, "waypost://problems").await.contains("waypost://problems/webhook-disabled"));
    assert!(read(&agent, "waypost://problems/webhook-disabled").await.contains("Enable it first"));

    let stranger = suite.entity().await;
    for uri in [
        format!("waypost://{}/delivery/{delivery}", stranger.id),
        format!("waypost://{}/delivery/dlv_01m7w5gmev32p3wwt3y0b8j32h", entity.id),
        "waypost://problems/nothing".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let answer = agent.send("resources/read", Some(&uri), json!({ "uri": uri })).await;
        assert_eq!(answer.json()["error"]["code"], -32602, "{}", answer.exchange);
    }
    let narrow = Agent::with_scopes(&entity, "mcp.read").await;
    assert!(read(&narrow, "waypost://problems/webhook-disabled").await.contains("Enable it first"));
    let answer = narrow.send("resources/read", Some(&uri), json!({ "uri": uri })).await;
    assert_eq!(answer.status, 403, "{}", answer.exchange);
    assert!(
        answer.header("www-authenticate").contains("scope=\"mcp.read integrations.read\"")
            || answer.header("www-authenticate").contains("scope=\"integrations.read mcp.read\""),
        "{}",
        answer.exchange
    );
}

#[contract_test]
async fn a_prompt_brings_what_the_person_filled_in(suite: Arc<Suite>) {
    let agent = Agent::of(&suite.entity().await).await;
    let listed = agent.asked("prompts/list", None, json!({})).await;
    let listed: Vec<_> =
        listed["prompts"].as_array().expect("a list").iter().map(|prompt| text(&prompt["name"])).collect();
    assert_eq!(listed, ["why_webhook_fails", "set_up_webhook"]);
    let why = json!({ "name": "why_webhook_fails", "arguments": { "webhook": "Bookings" } });
    let message = agent.asked("prompts/get", Some("why_webhook_fails"), why).await["messages"][0].clone();
    assert_eq!(message["role"], "user");
    let said = text(&message["content"]["text"]);
    assert!(said.contains("`diagnose_webhook`") && said.contains("\"webhook\": \"Bookings\""), "{said}");
    let missing = json!({ "name": "set_up_webhook", "arguments": { "events": "bookings" } });
    let answer = agent.send("prompts/get", Some("set_up_webhook"), missing).await;
    assert_eq!(answer.json()["error"]["code"], -32602, "{}", answer.exchange);
}

#[contract_test]
async fn a_resource_is_offered_only_with_a_tool_that_shows_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({ "say": "something" })).await;
    let delivery = format!("waypost://{}/delivery/{delivery}", entity.id);
    let uris = ["waypost://catalogue/events", "waypost://problems", "waypost://problems/not-found", &delivery];
    for (header, value, resources, templates, readable) in [
        ("x-mcp-tools", "list_webhooks", &[][..], &[][..], &[][..]),
        ("x-mcp-tools", "list_event_types", &["event_types"], &[], &uris[..1]),
        ("x-mcp-tools", "explain_problem", &["problems"], &["problem"], &uris[1..3]),
        ("x-mcp-tools", "show_delivery", &[], &["delivery"], &uris[3..]),
        ("x-mcp-readonly", "true", &["event_types", "problems"], &["delivery", "problem"], &uris),
    ] {
        let names = async |method: &str, member: &str| -> Vec<String> {
            let answer = agent.message(method, None, json!({})).header(header, value).expect(200).await;
            let listed = answer.json()["result"][member].as_array().expect("a list").clone();
            listed.iter().map(|resource| text(&resource["name"])).collect()
        };
        assert_eq!(names("resources/list", "resources").await, resources, "{value}");
        assert_eq!(names("resources/templates/list", "resourceTemplates").await, templates, "{value}");
        for uri in uris {
            let read = agent.message("resources/read", Some(uri), json!({ "uri": uri })).header(header, value);
            let answer = read.expect(200).await.json();
            let shown = answer["result"]["contents"][0]["uri"] == uri;
            assert_eq!(shown, readable.contains(&uri), "{value}: {answer:#}");
            assert!(shown || answer["error"]["code"] == -32602, "{value}: {answer:#}");
        }
    }
}
