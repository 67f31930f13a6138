//! Showing and changing existing webhooks.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Map, Value, json};

use crate::harness::{Entity, Hook, Suite, invalid_values, time};

pub fn all_types(url: &str) -> Value {
    json!({ "name": "test", "eventUrl": url, "eventList": [] })
}

/// A webhook that has a value for every member.
async fn full_hook(entity: &Entity) -> Hook {
    entity
        .hook_with(json!({
            "name": "before",
            "enabled": false,
            "eventUrl": "https://hooks.example.com/before",
            "eventList": ["booking.created", "booking.cancelled"],
            "headers": { "X-Tenant": "before", "X-Other": "x" },
        }))
        .await
}

/// A webhook without the members that change on every update.
pub fn settled(webhook: &Value) -> Map<String, Value> {
    let mut members = webhook.as_object().expect("openapi.yaml says so").clone();
    for changing in ["version", "lastUpdate", "signingSecret"] {
        members.remove(changing);
    }
    members
}

/// The invalid values in a refused change.
pub async fn violations(entity: &Entity, hook: &Hook, change: &Value) -> Vec<String> {
    invalid_values(&entity.change(&hook.id, change).refused(400, "invalid-request").await)
}

#[contract_test]
async fn a_webhook_is_shown_as_it_was_made_but_for_its_secret(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = full_hook(&entity).await;
    let mut made = hook.json.clone();
    made.as_object_mut().expect("an object").remove("signingSecret");
    assert_eq!(entity.webhook(&hook.id).await, made);
    assert_eq!(entity.listed(&hook).await, made);
    assert_eq!(made["version"], 1);
}

#[contract_test]
async fn a_missing_and_a_foreign_webhook_look_missing_to_every_operation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let other = suite.entity().await;
    let foreign = other.hook("http://127.0.0.1:9/").await;
    let removed = entity.hook("http://127.0.0.1:9/").await;
    entity.remove(&removed.id).expect(200).await;
    let before = other.webhook(&foreign.id).await;
    let ids = [
        foreign.id.as_str(),
        &removed.id,
        "whk_00000000000000000000000000",
        "whk_",
        "x",
        "WHK_00000000000000000000000000",
        "dlv_00000000000000000000000000",
        "%00",
        "..%2Fevent",
        &"x".repeat(1_000),
    ];
    for id in ids {
        let path = format!("/webhook/{id}");
        for call in [
            entity.get(&path),
            entity.change(id, &json!({ "name": "taken over" })),
            entity.change(id, &json!({})),
            entity.remove(id),
            entity.rotate(id),
            entity.end_previous_secret(id),
            entity.test(id),
        ] {
            call.refused(404, "webhook-not-found").await;
        }
    }
    assert_eq!(other.webhook(&foreign.id).await, before);
}

#[contract_test]
async fn a_change_sets_the_given_members_and_every_change_counts(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = full_hook(&entity).await;
    let mut before = entity.webhook(&hook.id).await;
    let changes = [
        json!({ "name": "Überblick" }),
        json!({ "eventUrl": "https://hooks.example.com/after?x=%20" }),
        json!({ "eventList": ["booking.expired"] }),
        json!({ "headers": { "X-Tenant": "after" } }),
        json!({ "enabled": true }),
        json!({ "entity": { "identifier": entity.id, "name": "any" }, "name": "n", "eventList": [], "headers": {} }),
    ];
    for (changed, change) in changes.iter().enumerate() {
        let after = entity.changed(&hook.id, change.clone()).await;
        let mut expected = settled(&before);
        expected
            .extend(change.as_object().expect("an object").clone().into_iter().filter(|(name, _)| name != "entity"));
        // The values of headers and of the query are not shown.
        if let Some(headers) = expected["headers"].as_object_mut() {
            headers.values_mut().for_each(|value| *value = "***".into());
        }
        if let Some(url) = change["eventUrl"].as_str() {
            expected.insert("eventUrl".to_owned(), url.replace("?x=%20", "?x=***").into());
        }
        if change["enabled"] == true {
            expected.insert("deliveryState".to_owned(), "active".into());
            expected.remove("disabledDate");
        }
        assert_eq!(settled(&after), expected, "{change}");
        assert_eq!(after["version"], changed + 2, "{change}");
        assert!(time(&after["lastUpdate"]) >= time(&before["lastUpdate"]), "{change}");
        assert_eq!(after["createdDate"], hook.json["createdDate"]);
        assert_eq!(entity.webhook(&hook.id).await, after);
        assert_eq!(entity.listed(&hook).await, after);
        before = after;
    }
}

#[contract_test]
async fn a_list_or_an_object_takes_the_place_of_the_old_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = full_hook(&entity).await;
    let change = json!({ "headers": { "X-New": "1" }, "eventList": ["booking.confirmed", "booking.confirmed"] });
    let after = entity.changed(&hook.id, change).await;
    assert_eq!(after["headers"], json!({ "X-New": "***" }));
    assert_eq!(after["eventList"], json!(["booking.confirmed"]));
    let after = entity.changed(&hook.id, json!({ "headers": {}, "eventList": [] })).await;
    assert_eq!((&after["headers"], &after["eventList"]), (&json!({}), &json!([])));
}

#[contract_test]
async fn an_empty_change_changes_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = full_hook(&entity).await;
    let before = entity.webhook(&hook.id).await;
    for nothing in [json!({}), json!({ "version": 1 }), json!({ "entity": { "identifier": entity.id } })] {
        assert_eq!(entity.changed(&hook.id, nothing).await, before);
    }
    assert_eq!(entity.webhook(&hook.id).await, before);
}

#[contract_test]
async fn a_wrong_value_is_a_violation_of_its_member_and_changes_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = full_hook(&entity).await;
    let before = entity.webhook(&hook.id).await;
    let members = ["name", "enabled", "eventUrl", "eventList", "headers", "version", "entity"];
    let mut wrong: Vec<(&str, Value)> = members.iter().map(|member| (*member, Value::Null)).collect();
    wrong.extend([
        ("name", json!(1)),
        ("name", json!("")),
        ("name", json!("   ")),
        ("name", json!("a\nb")),
        ("name", json!("x".repeat(201))),
        ("enabled", json!("true")),
        ("enabled", json!(0)),
        ("eventUrl", json!("")),
        ("eventUrl", json!(["https://hooks.example.com/"])),
        ("eventList", json!("booking.created")),
        ("eventList", json!(["booking.created", "nonsense"])),
        ("eventList", json!([null])),
        ("headers", json!([])),
        ("headers", json!({ "X-Number": 1 })),
        ("headers", json!({ "X-Null": null })),
        ("version", json!(0)),
        ("version", json!(-1)),
        ("version", json!(1.5)),
        ("version", json!("1")),
        ("version", json!([1])),
        ("version", json!(true)),
        ("entity", json!({ "identifier": "another" })),
        ("entity", json!({})),
        ("entity", json!([entity.id])),
        ("id", json!("whk_00000000000000000000000000")),
        ("ownerIdentifier", json!("another")),
        ("signingSecret", json!("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDM6hHCb0bUrQ=")),
        ("disabledReason", json!("mine")),
        ("health", json!("healthy")),
        ("Name", json!("x")),
        ("nmae", json!("x")),
    ]);
    for (member, value) in wrong {
        let mut change = json!({ "name": "after" });
        change[member] = value.clone();
        let fields = violations(&entity, &hook, &change).await;
        assert!(
            !fields.is_empty() && fields.iter().all(|field| field.starts_with(&format!("body/{member}"))),
            "{member} = {value}: {fields:?}"
        );
    }
    let twice = entity.call("PATCH", &format!("/webhook/{}", hook.id));
    twice.body("application/json", r#"{"name":"one","name":"two"}"#).refused(400, "invalid-request").await;
    assert_eq!(entity.webhook(&hook.id).await, before);
}

#[contract_test]
async fn every_violation_of_a_change_is_reported_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = full_hook(&entity).await;
    let change = json!({
        "name": "", "enabled": "yes", "eventUrl": "ftp://hooks.example.com/", "eventList": ["nonsense"], "version": 0,
        "headers": { "Host": "x", "X-Bad": "a\nb" }, "entity": { "identifier": "another" }, "evnetList": [],
    });
    let fields: BTreeSet<String> = violations(&entity, &hook, &change).await.into_iter().collect();
    let expected = [
        "body/enabled",
        "body/entity/identifier",
        "body/eventList/0",
        "body/eventUrl",
        "body/evnetList",
        "body/headers/Host",
        "body/headers/X-Bad",
        "body/name",
        "body/version",
    ];
    assert_eq!(fields, expected.map(str::to_owned).into());
}

#[contract_test]
async fn values_that_a_new_webhook_may_not_have_are_refused_in_a_change(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = full_hook(&entity).await;
    for url in [
        "hooks.example.com",
        "ftp://hooks.example.com/",
        "https://user:password@hooks.example.com/",
        "https://hooks.example.com/#fragment",
        "https://hooks.example.com:0/",
        "https://10.0.0.1/",
        "https://0x7f000002/",
        "https://[::ffff:169.254.169.254]/",
        "https://metadata.google.internal/",
    ] {
        assert_eq!(violations(&entity, &hook, &json!({ "eventUrl": url })).await, ["body/eventUrl"], "{url}");
    }
    for (name, value) in [
        ("Content-Length", "1"),
        ("webhook-signature", "v1,x"),
        ("Service-Delivery-Id", "x"),
        ("Transfer-Encoding", "chunked"),
        ("X-Split", "a\r\nX-Evil: 1"),
        ("X-Folded", "a\r\n b"),
        ("X-Nul", "a\u{0}"),
        ("a b", "x"),
    ] {
        let fields = violations(&entity, &hook, &json!({ "headers": { name: value } })).await;
        assert_eq!(fields, [format!("body/headers/{name}")]);
    }
    let headers =
        |count: usize| (0..count).map(|number| (format!("X-{number}"), Value::from("x"))).collect::<Map<_, _>>();
    assert_eq!(violations(&entity, &hook, &json!({ "headers": headers(21) })).await, ["body/headers"]);
    let after = entity.changed(&hook.id, json!({ "headers": headers(20) })).await;
    assert_eq!(after["headers"].as_object().map(Map::len), Some(20));
}

#[contract_test]
async fn a_body_is_needed_to_change_something(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let path = format!("/webhook/{}", hook.id);
    entity.call("PATCH", &path).refused(400, "invalid-request").await;
    for body in ["", " ", "null", "[]", "1", "{", "\"x\""] {
        entity.call("PATCH", &path).body("application/json", body).refused(400, "invalid-request").await;
    }
    for content_type in ["text/plain", "application/merge-patch+json"] {
        entity.call("PATCH", &path).body(content_type, "{}").refused(415, "unsupported-media-type").await;
    }
}
