//! The tools of the endpoint for agents: their arguments, results and permissions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use contract_test::contract_test;
use functions_agents::tools;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Agent, Application, Behaviour, Choice, Hook, Receiver, Suite, invalid_values};

/// A value that is a string.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// The arguments that identify a webhook.
pub fn of(hook: &Hook) -> Value {
    json!({ "webhookIdentifier": hook.id })
}

/// The arguments for each tool that acts on a webhook or a delivery.
fn about(webhook: &str, delivery: &str) -> Vec<(&'static str, Value)> {
    let webhook = json!({ "webhookIdentifier": webhook });
    let delivery = json!({ "deliveryIdentifier": delivery });
    let mut since = webhook.clone();
    since["createdFrom"] = json!("2026-01-01T00:00:00Z");
    vec![
        ("show_webhook", webhook.clone()),
        ("diagnose_webhook", webhook.clone()),
        ("show_delivery", delivery.clone()),
        ("change_webhook", webhook.clone()),
        ("rotate_webhook_secret", webhook.clone()),
        ("pause_webhook", webhook.clone()),
        ("resume_webhook", webhook.clone()),
        ("remove_webhook", webhook.clone()),
        ("publish_test_event", webhook),
        ("resend_delivery", delivery),
        ("recover_deliveries", since.clone()),
        ("replay_events", since),
    ]
}

#[contract_test]
async fn every_tool_answers_as_its_schema_says(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let listed = agent.asked("tools/list", None, json!({})).await;
    assert!(!listed["tools"].to_string().contains(r#""type":["#), "some clients refuse an array of types: {listed:#}");
    let listed: Vec<_> = listed["tools"].as_array().expect("a list").iter().map(|tool| text(&tool["name"])).collect();
    assert_eq!(listed, tools::ALL.iter().map(|tool| tool.name).collect::<Vec<_>>());

    let types = agent.call("list_event_types", json!({})).await;
    let one = agent.call("list_event_types", json!({ "type": "booking.created" })).await;
    assert_eq!(one["eventTypes"].as_array().map(Vec::len), Some(1), "{one:#}");
    let shown = entity.get("/webhook/event/type/booking.created").expect(200).await.json();
    assert_eq!(one["details"], shown);
    assert!(types["eventTypes"].as_array().expect("a list").len() > 100);
    let url = receiver.on("/", [Behaviour::answer(500, &[], "no"), Behaviour::status(204)]);
    let new = json!({ "name": "n", "eventUrl": url, "eventList": ["booking.*"], "headers": { "X-Key": "secret" } });
    let created = agent.call("create_webhook", new).await;
    assert!(text(&created["signingSecret"]).starts_with("whsec_"));
    assert_eq!(created["headers"], json!({ "untrusted": r#"{"X-Key":"***"}"# }));
    let webhook = json!({ "webhookIdentifier": created["id"] });
    let shown = agent.call("show_webhook", webhook.clone()).await;
    assert_eq!(agent.call("list_webhooks", json!({})).await["webhooks"], json!([shown]));
    let change = json!({ "webhookIdentifier": created["id"], "name": "renamed", "version": shown["version"] });
    assert_eq!(agent.call("change_webhook", change.clone()).await["name"], json!({ "untrusted": "renamed" }));
    assert_eq!(agent.refused("change_webhook", change).await["kind"], "version-conflict");
    let rotated = agent.call("rotate_webhook_secret", webhook.clone()).await;
    assert_ne!(rotated["signingSecret"], created["signingSecret"]);

    let delivery = text(&agent.call("publish_test_event", webhook.clone()).await["deliveryIdentifier"]);
    let delivered = agent.until_status(&delivery, &["delivered"]).await;
    assert_eq!(delivered["attempts"][0]["responseBody"], json!({ "untrusted": "no" }));
    assert_eq!(delivered["event"]["type"], "webhook.test");
    let event = agent.call("show_event", json!({ "eventIdentifier": delivered["event"]["id"] })).await;
    assert_eq!(event["data"], delivered["event"]["data"]);
    assert_eq!(event["deliveries"][0]["id"], delivery.as_str(), "{event:#}");
    let events = agent.call("list_events", json!({ "type": "webhook.test" })).await;
    assert_eq!(events["items"][0]["id"], event["id"], "{events:#}");
    assert_eq!(agent.call("pause_webhook", webhook.clone()).await["pausedBy"], "owner");
    assert_eq!(agent.call("resume_webhook", webhook.clone()).await["deliveryState"], "active");
    let resend = json!({ "deliveryIdentifier": delivery, "idempotencyKey": "again" });
    let resent = agent.call("resend_delivery", resend).await;
    assert!(resent.get("event").is_none(), "{resent:#}");
    let again = entity.until_delivery(&delivery, "is sent again", |shown| shown["attemptCount"] == 3).await;
    assert_eq!(again["status"], "delivered", "{again:#}");
    let filtered = json!({ "status": ["delivered", "pending", "retrying"], "type": "webhook.test", "limit": 1 });
    let page = agent.call("list_deliveries", filtered).await;
    assert_eq!(page["items"][0]["id"], delivery.as_str());
    assert_eq!(agent.call("list_deliveries", json!({ "status": ["pending"] })).await["items"], json!([]));
    let since = json!({ "webhookIdentifier": created["id"], "createdFrom": "2026-01-01T00:00:00Z" });
    assert_eq!(agent.call("recover_deliveries", since.clone()).await["count"], 0);
    assert_eq!(agent.call("replay_events", since).await["count"], 0);
    agent.call("diagnose_webhook", webhook.clone()).await;
    entity.visit("sim-basic", Choice::ALLOW).await.arrive("connected").await;
    let connections = agent.call("list_connections", json!({})).await;
    assert_eq!(connections["items"][0]["provider"], "sim-basic");
    assert!(connections["items"][0]["account"]["untrusted"].is_string(), "{connections:#}");
    let explained = agent.call("explain_problem", json!({ "kind": "webhook-disabled" })).await;
    assert!(text(&explained["explanation"]).contains("Enable it first"));
    assert_eq!(agent.call("remove_webhook", webhook.clone()).await["removed"], true);
    assert_eq!(agent.refused("remove_webhook", webhook).await["kind"], "webhook-not-found");
    assert_eq!(*agent.called.lock().await, listed.into_iter().collect::<BTreeSet<_>>(), "every tool was called");
}

#[contract_test]
async fn a_test_event_of_an_agent_may_have_its_data(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let agent = Agent::of(&entity).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let mut test = of(&hook);
    test["type"] = json!("managing_entity.brand.removed");
    test["data"] = json!({ "brandIdentifier": 4711 });
    let sent = agent.call("publish_test_event", test).await;
    let warnings = sent["warnings"].as_array().expect("the data do not conform");
    assert!(warnings.len() == 2 && warnings[0]["pointer"]["untrusted"].is_string(), "{sent:#}");
    agent.until_status(&text(&sent["deliveryIdentifier"]), &["delivered"]).await;
    let event = receiver.until("/", 1).await.remove(0).json();
    assert_eq!((&event["test"], &event["data"]), (&json!(true), &json!({ "brandIdentifier": 4711 })));
}

#[contract_test]
async fn a_call_needs_each_scope_of_its_tool_and_the_refusal_names_them_all(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let arguments: BTreeMap<_, _> =
        about("whk_01m74zy5eva3kj3s4w04zg1hhc", "dlv_01m7w5gmev32p3wwt3y0b8j32h").into_iter().collect();
    for tool in tools::ALL {
        let needed: Vec<&str> =
            ["mcp.read"].into_iter().chain(tool.scopes.iter().map(|scope| scope.as_str())).collect();
        let params = |agent: &Agent| {
            let arguments = arguments.get(tool.name).cloned().unwrap_or_else(|| json!({}));
            agent.arguments(arguments, tool.name)
        };
        for missing in &needed {
            let others: Vec<&str> = needed.iter().copied().filter(|scope| scope != missing).collect();
            // The issuer does not grant tokens without a scope.
            let others = if others.is_empty() { "content.read".to_owned() } else { others.join(" ") };
            let agent = Agent::with_scopes(&entity, &others).await;
            let answer = agent.send("tools/call", Some(tool.name), params(&agent)).await;
            assert_eq!(answer.status, 403, "{} without {missing}: {}", tool.name, answer.exchange);
            assert_eq!(answer.json()["kind"], "insufficient-scope");
            let challenge = answer.header("www-authenticate");
            assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
            let (_, scopes) = challenge.split_once("scope=\"").expect("the challenge names scopes");
            let named: BTreeSet<_> = scopes.split('"').next().unwrap_or_default().split(' ').collect();
            // The scope that the endpoint itself needs is checked before the tool is known.
            let all: BTreeSet<_> =
                if *missing == "mcp.read" { ["mcp.read"].into() } else { needed.iter().copied().collect() };
            assert_eq!(named, all, "{} without {missing}", tool.name);
        }
        let agent = Agent::with_scopes(&entity, &needed.join(" ")).await;
        let answer = agent.send("tools/call", Some(tool.name), params(&agent)).await;
        assert_eq!(answer.status, 200, "{}", answer.exchange);
    }
}

#[contract_test]
async fn another_entitys_identifiers_look_missing(suite: Arc<Suite>) {
    let owner = suite.entity().await;
    let stranger = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = owner.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let delivery = owner.publish(json!({})).await;
    owner.until_status(&delivery, &["delivered"]).await;
    let agent = Agent::of(&stranger).await;
    let made_up = about("whk_01m74zy5eva3kj3s4w04zg1hhc", "dlv_01m7w5gmev32p3wwt3y0b8j32h");
    let malformed = about("my webhook", "../../webhook/list");
    for (((tool, foreign), (_, made_up)), (_, malformed)) in
        about(&hook.id, &delivery).into_iter().zip(made_up).zip(malformed)
    {
        let refused = [foreign, made_up, malformed].map(|arguments| agent.refused(tool, arguments));
        let mut problems = join_all(refused).await;
        let is_missing = ["webhook-not-found", "delivery-not-found"].iter().any(|kind| problems[0]["kind"] == *kind);
        problems.iter_mut().for_each(|problem| drop(problem["instance"].take()));
        assert!(is_missing && problems.iter().all(|problem| *problem == problems[0]), "{tool}: {problems:#?}");
    }
    let event = &owner.delivery(&delivery).await["event"]["id"];
    for event in [event, &json!("evt_01m7w5gmev7xwvpyt3bc2k45jh"), &json!("x")] {
        let problem = agent.refused("show_event", json!({ "eventIdentifier": event })).await;
        assert_eq!(problem["kind"], "event-not-found", "{problem:#}");
    }
    assert_eq!(agent.call("list_webhooks", json!({})).await["webhooks"], json!([]));
    let filtered = agent.call("list_deliveries", of(&hook)).await;
    assert_eq!(filtered["items"], json!([]));
    assert_eq!(agent.call("list_events", json!({})).await, json!({ "items": [] }));
    let shown = owner.webhook(&hook.id).await;
    assert_eq!(shown["version"], 1, "the webhook is unchanged");
    assert_eq!(receiver.everything().len(), 1, "nothing was sent again");
}

#[contract_test]
async fn an_invalid_input_gets_the_problem_that_the_api_gives(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let violations = |problem: &Value| {
        assert_eq!(problem["kind"], "invalid-request", "{problem:#}");
        problem["properties"]["violations"].clone()
    };
    // Only the wording differs, since a tool has no query and no path.
    let fields = |problem: &Value| -> Vec<String> {
        let violations = violations(problem);
        violations.as_array().expect("a list").iter().map(|violation| text(&violation["pointer"])).collect()
    };
    let bad = json!({
        "name": " ", "eventUrl": "http://10.0.0.1/#x", "eventList": ["booking.creatd"], "headers": { "Host": "x" },
        "eventlist": [],
    });
    let of_api = entity.post("/webhook").json(&bad).refused(400, "invalid-request").await;
    assert_eq!(fields(&agent.refused("create_webhook", bad.clone()).await), fields(&of_api));
    let of_api = entity.change(&hook.id, &bad).refused(400, "invalid-request").await;
    let mut change = bad;
    change["webhookIdentifier"] = json!(hook.id);
    assert_eq!(fields(&agent.refused("change_webhook", change).await), fields(&of_api));
    let query = "?status=failed&status=gone&limit=0&createdFrom=yesterday&state=x";
    let of_api = entity.get(&format!("/webhook/delivery/list{query}")).refused(400, "invalid-request").await;
    let bad = json!({ "status": ["failed", "gone"], "limit": 0, "createdFrom": "yesterday", "state": "x" });
    assert_eq!(fields(&agent.refused("list_deliveries", bad).await), fields(&of_api));
    for (tool, arguments, argument) in [
        ("recover_deliveries", json!({ "webhookIdentifier": hook.id }), "createdFrom"),
        ("replay_events", json!({ "webhookIdentifier": hook.id }), "createdFrom"),
        ("rotate_webhook_secret", json!({ "webhookIdentifier": hook.id, "overlapSeconds": -1 }), "overlapSeconds"),
        ("publish_test_event", json!({ "webhookIdentifier": hook.id, "data": {} }), "data"),
        ("publish_test_event", json!({ "webhookIdentifier": hook.id, "idempotencyKey": "é" }), "idempotencyKey"),
        ("publish_test_event", json!({ "webhookIdentifier": hook.id, "idempotencyKey": 1 }), "idempotencyKey"),
        ("show_webhook", json!({}), "webhookIdentifier"),
        ("show_webhook", json!({ "webhookIdentifier": 7 }), "webhookIdentifier"),
        ("show_delivery", json!({ "deliveryIdentifier": null }), "deliveryIdentifier"),
        ("list_webhooks", json!({ "limit": 1 }), "limit"),
        ("list_events", json!({ "limit": 51 }), "limit"),
        ("list_events", json!({ "status": ["failed"] }), "status"),
        ("list_events", json!({ "cursor": 1 }), "cursor"),
        ("list_connections", json!({ "provider": "stripe" }), "provider"),
        ("list_event_types", json!({ "area": "booking" }), "area"),
        ("explain_problem", json!({ "kind": "webhook-disable" }), "kind"),
        ("explain_problem", json!({}), "kind"),
    ] {
        let problem = agent.refused(tool, arguments).await;
        assert_eq!(invalid_values(&problem)[0], format!("body/{argument}"), "{tool}: {problem:#}");
    }
    assert_eq!(receiver.everything().len(), 0);
}

#[contract_test]
async fn an_error_speaks_of_tools_and_lists_every_wrong_argument(suite: Arc<Suite>) {
    // The call names no managing entity, so no use case reads the arguments.
    let several = Agent::of_application(&suite.api, Application::Platform).await;
    let wrong = json!({ "name": 1, "eventUrl": "https://example.com", "eventList": [], "enabled": "yes", "hook": "x" });
    let problem = several.refused("create_webhook", wrong).await;
    let expected = ["enabled", "hook", "managingEntity", "name"].map(|argument| format!("body/{argument}"));
    assert_eq!(BTreeSet::from_iter(invalid_values(&problem)), expected.into(), "{problem:#}");

    let agent = Agent::of(&suite.entity().await).await;
    let wrong = json!({ "name": "n", "eventUrl": "https://example.com", "eventList": ["booking.made"], "type": 1 });
    let problem = agent.refused("create_webhook", wrong).await["properties"].to_string();
    assert!(problem.contains("`list_event_types`") && problem.contains("not an argument"), "{problem}");
    assert!(!problem.contains("/api/") && !problem.contains("member"), "{problem}");
    let problem = agent.refused("list_deliveries", json!({ "status": ["gone"] })).await["properties"].to_string();
    assert!(problem.contains("an array of one or more") && !problem.contains("comma"), "{problem}");
    let problem = agent.refused("recover_deliveries", json!({ "webhookIdentifier": 1, "limit": 1 })).await;
    let expected = ["limit", "createdFrom", "webhookIdentifier"].map(|argument| format!("body/{argument}"));
    assert_eq!(BTreeSet::from_iter(invalid_values(&problem)), expected.into(), "{problem:#}");

    let params = json!({ "name": "lists_webhooks", "arguments": {} });
    let unknown = agent.send("tools/call", Some("lists_webhooks"), params).await;
    assert_eq!(unknown.status, 200, "{}", unknown.exchange);
    assert!(text(&unknown.json()["error"]["message"]).contains("`lists_webhooks`"), "{}", unknown.exchange);

    let listed = agent.asked("tools/list", None, json!({})).await;
    let listed = listed["tools"].as_array().expect("a list").clone();
    let entry = |name: &str| listed.iter().find(|tool| tool["name"] == name).expect("it is listed");
    assert_eq!(
        entry("create_webhook")["annotations"]["destructiveHint"],
        true,
        "a webhook sends data to an address of the caller's choice"
    );
    for (name, shows_strangers) in [("show_delivery", true), ("list_webhooks", true), ("list_event_types", false)] {
        let description = text(&entry(name)["description"]);
        assert_eq!(description.contains("untrusted"), shows_strangers, "{name}: {description}");
    }
}

#[contract_test]
async fn an_argument_that_a_model_means_to_leave_out_is_left_out(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let new = json!({
        "name": "n", "eventUrl": url, "eventList": [], "enabled": null, "headers": null, "idempotencyKey": null,
    });
    let created = agent.call("create_webhook", new).await;
    let change = json!({ "webhookIdentifier": created["id"], "name": null, "enabled": false, "version": 1.0 });
    let changed = agent.call("change_webhook", change).await;
    assert_eq!((&changed["name"]["untrusted"], &changed["enabled"]), (&json!("n"), &json!(false)));
    let rotation = json!({ "webhookIdentifier": created["id"], "overlapSeconds": 0.0 });
    assert!(agent.call("rotate_webhook_secret", rotation).await["signingSecret"].is_string());
    let filters = json!({
        "status": null, "type": null, "webhookIdentifier": null, "eventIdentifier": null, "createdFrom": null,
        "createdUntil": null, "cursor": "", "limit": 2.0,
    });
    assert_eq!(agent.call("list_deliveries", filters).await["items"], json!([]));

    let params = json!({ "name": "list_event_types", "arguments": null });
    assert_eq!(agent.asked("tools/call", Some("list_event_types"), params).await["isError"], false);
    for cursor in [json!(""), Value::Null] {
        assert!(agent.asked("tools/list", None, json!({ "cursor": cursor })).await["tools"].is_array());
    }
    let own = Agent::of_application(&suite.api, Application::Demo).await;
    own.call("list_webhooks", json!({ "managingEntity": null })).await;
    // Some forms send strings for all values, and n8n adds arguments.
    let texts = json!({
        "limit": "5", "subject": "", "type": "", "createdFrom": "", "toolCallId": "call_1", "sessionId": "s",
    });
    assert_eq!(agent.call("list_deliveries", texts).await["items"], json!([]));
    let change = json!({ "webhookIdentifier": created["id"], "enabled": "true", "name": "", "toolCallId": "call_2" });
    let changed = agent.call("change_webhook", change).await;
    assert_eq!((&changed["name"]["untrusted"], &changed["enabled"]), (&json!("n"), &json!(true)));
    // Some clients send arrays and objects as texts of JSON.
    let change = json!({
        "webhookIdentifier": created["id"], "eventList": r#"["booking.*"]"#, "eventFilter": r#"{"currency":["EUR"]}"#,
    });
    let changed = agent.call("change_webhook", change).await;
    assert_eq!(changed["eventList"], json!(["booking.*"]));
    assert_eq!(changed["eventFilter"]["untrusted"], r#"{"currency":["EUR"]}"#);
    assert_eq!(agent.call("list_deliveries", json!({ "status": r#"["failed"]"# })).await["items"], json!([]));
    // Wrong values are refused anyway.
    let bad = json!({ "limit": 2.5, "type": "booking.made", "unknown": null });
    let problem = agent.refused("list_deliveries", bad).await;
    assert_eq!(problem["properties"]["violations"].as_array().map(Vec::len), Some(3), "{problem:#}");
}

#[contract_test]
async fn a_webhook_is_created_changed_and_shown_with_every_member_of_the_api(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let filter = json!({ "currency": ["EUR"] });
    let new = json!({
        "name": "n", "eventUrl": receiver.on("/", [Behaviour::status(204)]), "eventList": [], "eventFilter": filter,
        "order": "subject", "payload": "thin", "signature": "ed25519", "maxAttemptsPerSecond": "5",
        "timeoutSeconds": "5", "retries": "short",
    });
    let created = agent.call("create_webhook", new).await;
    assert_eq!(created["eventFilter"], json!({ "untrusted": filter.to_string() }));
    let shown = agent.call("show_webhook", json!({ "webhookIdentifier": created["id"] })).await;
    let settings = ["order", "payload", "signature", "maxAttemptsPerSecond", "timeoutSeconds", "retries", "delivery"]
        .map(|name| shown[name].clone());
    assert_eq!(json!(settings), json!(["subject", "thin", "ed25519", 5, 5, "short", "push"]));
    assert_eq!(shown["publicKeys"].as_array().map(Vec::len), Some(1), "{shown:#}");
    let change = json!({ "webhookIdentifier": created["id"], "eventFilter": null, "maxAttemptsPerSecond": null });
    let changed = agent.call("change_webhook", change).await;
    assert!(changed.get("eventFilter").is_none() && changed.get("maxAttemptsPerSecond").is_none(), "{changed:#}");
    // The schema omits this member, but the API accepts it.
    let change = json!({ "webhookIdentifier": created["id"], "entity": { "identifier": entity.id } });
    let problem = agent.refused("change_webhook", change).await;
    let detail = text(&problem["detail"]);
    assert!(detail.starts_with("`entity` is not an argument of this tool"), "{detail}");
    let change = json!({ "webhookIdentifier": created["id"], "x": 1 });
    let detail = text(&agent.refused("change_webhook", change).await["detail"]);
    assert!(detail.contains("webhookIdentifier") && !detail.contains("entity,"), "{detail}");

    let exact = r#"{"bookingNumber":[1152921504606846977,{"numeric":[">=",10.50]}]}"#;
    let path = format!("/webhook/{}", text(&created["id"]));
    let change = format!(r#"{{"eventFilter":{exact}}}"#);
    entity.call("PATCH", &path).body("application/json", change).expect(200).await;
    let listed = agent.call("list_webhooks", json!({})).await;
    assert_eq!(listed["webhooks"][0]["eventFilter"]["untrusted"], exact, "numbers keep every digit");
}

#[contract_test]
async fn a_filter_of_another_type_is_refused_and_not_left_out(suite: Arc<Suite>) {
    let agent = Agent::of(&suite.entity().await).await;
    for (name, value) in [
        ("webhookIdentifier", json!([])),
        ("createdFrom", json!([])),
        ("type", json!(["booking.created"])),
        ("cursor", json!(["x"])),
        ("limit", json!("many")),
        ("limit", json!([5])),
        ("status", json!("failed")),
        ("status", json!([])),
        ("status", json!(["failed", "failed"])),
        ("status", json!(vec!["failed"; 90_000])),
        ("unknown", json!([])),
    ] {
        let problem = agent.refused("list_deliveries", json!({ name: value })).await;
        assert_eq!(problem["kind"], "invalid-request", "{problem:#}");
        assert_eq!(invalid_values(&problem)[0], format!("body/{name}"), "{problem:#}");
    }
    agent.call("list_deliveries", json!({ "status": ["failed"], "limit": 25 })).await;
}

#[contract_test]
async fn a_call_with_a_key_is_carried_out_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let new = json!({ "name": "n", "eventUrl": url, "eventList": [], "idempotencyKey": "k" });
    let first = agent.call("create_webhook", new.clone()).await;
    assert!(first.get("repeated").is_none());
    let mut again = agent.call("create_webhook", new.clone()).await;
    assert_eq!(again["repeated"].take(), true);
    again.as_object_mut().expect("an object").remove("repeated");
    assert_eq!(again, first);
    let mut other = new.clone();
    other["name"] = json!("other");
    assert_eq!(agent.refused("create_webhook", other).await["kind"], "idempotency-conflict");
    let neighbour = suite.entity().await;
    let theirs = Agent::of(&neighbour).await.call("create_webhook", new).await;
    assert!(theirs.get("repeated").is_none() && theirs["id"] != first["id"], "each entity has its own keys");

    let test = json!({ "webhookIdentifier": first["id"], "idempotencyKey": "k" });
    let sent = agent.call("publish_test_event", test.clone()).await;
    let repeated = agent.call("publish_test_event", test).await;
    assert_eq!((&repeated["repeated"], &repeated["deliveryIdentifier"]), (&json!(true), &sent["deliveryIdentifier"]));
    let delivery = text(&sent["deliveryIdentifier"]);
    agent.until_status(&delivery, &["delivered"]).await;
    for (tool, mut arguments) in about(&text(&first["id"]), &delivery) {
        if !["rotate_webhook_secret", "resend_delivery", "recover_deliveries", "replay_events"].contains(&tool) {
            continue;
        }
        arguments["idempotencyKey"] = json!("k");
        assert!(agent.call(tool, arguments.clone()).await.get("repeated").is_none(), "{tool}");
        assert_eq!(agent.call(tool, arguments).await["repeated"], true, "{tool}");
    }
    receiver.until("/", 2).await;
    assert_eq!(receiver.everything().len(), 2, "one test event, and its delivery once more");
}
