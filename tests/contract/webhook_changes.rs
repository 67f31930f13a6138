//! Existing webhooks: show and change.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Map, Value, json};

use crate::{
    harness::{Behaviour, Entity, Hook, LONG, Receiver, Suite, is_signed_by, time, until},
    webhooks::fields,
};

fn all_types(url: &str) -> Value {
    json!({ "name": "test", "eventUrl": url, "eventList": [] })
}

/// A webhook with a value in every member.
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

/// A webhook without the members that change with every update.
fn settled(webhook: &Value) -> Map<String, Value> {
    let mut members = webhook.as_object().expect("openapi.yaml says so").clone();
    for changing in ["version", "lastUpdate", "signingSecret"] {
        members.remove(changing);
    }
    members
}

/// The fields of the violations of a refused change.
pub async fn violations(entity: &Entity, hook: &Hook, change: &Value) -> Vec<String> {
    fields(&entity.change(&hook.id, change).refused(400, "invalid-request").await)
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
        // Values of headers and of the query are not shown.
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
            !fields.is_empty() && fields.iter().all(|field| field.starts_with(member)),
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
        "enabled",
        "entity.identifier",
        "eventList[0]",
        "eventUrl",
        "evnetList",
        "headers.Host",
        "headers.X-Bad",
        "name",
        "version",
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
        assert_eq!(violations(&entity, &hook, &json!({ "eventUrl": url })).await, ["eventUrl"], "{url}");
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
        assert_eq!(fields, [format!("headers.{name}")]);
    }
    let headers =
        |count: usize| (0..count).map(|number| (format!("X-{number}"), Value::from("x"))).collect::<Map<_, _>>();
    assert_eq!(violations(&entity, &hook, &json!({ "headers": headers(21) })).await, ["headers"]);
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

#[contract_test]
async fn a_change_of_another_version_is_refused_with_the_current_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let second = entity.changed(&hook.id, json!({ "name": "second", "version": 1 })).await;
    assert_eq!(second["version"], 2);
    for version in [1u64, 3, 4_294_967_298, u64::MAX] {
        for change in [json!({ "name": "third", "version": version }), json!({ "version": version })] {
            let problem = entity.change(&hook.id, &change).refused(409, "version-conflict").await;
            assert_eq!(problem["properties"]["currentVersion"], 2);
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(" 2 ")), "{problem}");
        }
    }
    assert_eq!(entity.webhook(&hook.id).await, second);
    // Values are checked before the version.
    let fields = violations(&entity, &hook, &json!({ "version": 1, "name": "" })).await;
    assert_eq!(fields, ["name"]);
}

#[contract_test]
async fn of_fifty_changes_of_one_version_one_is_made(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let changes = (0..50).map(|number| {
        let entity = entity.clone();
        let id = hook.id.clone();
        async move { entity.change(&id, &json!({ "name": format!("number {number}"), "version": 1 })).send().await }
    });
    let answers = join_all(changes).await;
    let made: Vec<Value> =
        answers.iter().filter(|answer| answer.status == 200).map(crate::harness::ApiResponse::json).collect();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((made.len(), refused), (1, 49));
    assert_eq!(entity.webhook(&hook.id).await, made[0]);
    assert_eq!(made[0]["version"], 2);
}

#[contract_test]
async fn changes_at_once_without_a_version_are_all_made_and_lose_no_secret(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let kinds = ["booking.created", "booking.cancelled", "booking.expired"];
    let changes = (0..30).map(|number| {
        let entity = entity.clone();
        let id = hook.id.clone();
        let change = match number % 3 {
            0 => json!({ "name": format!("number {number}") }),
            1 => json!({ "headers": { "X-Number": number.to_string() } }),
            _ => json!({ "eventList": [kinds[0], kinds[number % 2 + 1]] }),
        };
        async move { entity.changed(&id, change).await }
    });
    let answers = join_all(changes).await;
    let versions: BTreeSet<u64> = answers.iter().filter_map(|answer| answer["version"].as_u64()).collect();
    assert_eq!(versions, (2..=31).collect(), "each change has created a separate version");
    let after = entity.webhook(&hook.id).await;
    assert_eq!(after["version"], 31);
    assert!(after["name"].as_str().is_some_and(|name| name.starts_with("number ")), "{after:#}");
    assert_eq!(after["headers"].as_object().map(Map::len), Some(1), "{after:#}");
    assert_eq!(after["eventList"].as_array().map(Vec::len), Some(2), "{after:#}");
    let last = answers.iter().find(|answer| answer["version"] == 31).expect("versions were checked");
    assert_eq!(settled(last), settled(&after));
    entity.publish(json!({})).await;
    assert!(is_signed_by(&receiver.until("/", 1).await[0], &hook.secret));
}

#[contract_test]
async fn a_change_and_a_new_secret_at_once_are_both_made(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let (secret, changed) = tokio::join!(
        entity.new_secret(&hook.id),
        join_all((0..20).map(|number| entity.changed(&hook.id, json!({ "name": format!("number {number}") })))),
    );
    assert_eq!(changed.len(), 20);
    assert_eq!(entity.webhook(&hook.id).await["version"], 21);
    entity.publish(json!({})).await;
    let received = receiver.until("/", 1).await.remove(0);
    for secret in [&secret, &hook.secret] {
        assert!(is_signed_by(&received, secret), "a secret was lost");
    }
}

#[contract_test]
async fn a_change_never_makes_a_removed_webhook_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for _ in 0..5 {
        let hook = entity.hook("http://127.0.0.1:9/").await;
        let changes = join_all((0..8).map(|number| {
            let change = json!({ "name": format!("number {number}"), "enabled": number % 2 == 0 });
            entity.change(&hook.id, &change).send()
        }));
        let (answers, _) = tokio::join!(changes, entity.remove(&hook.id).expect(200));
        assert!(answers.iter().all(|answer| answer.status == 200 || answer.status == 404), "{answers:#?}");
        entity.get(&format!("/webhook/{}", hook.id)).refused(404, "webhook-not-found").await;
    }
    assert_eq!(entity.get("/webhook/list").expect(200).await.json(), json!([]));
}

#[contract_test]
async fn a_disabled_webhook_gets_no_event_until_it_is_enabled_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let disabled = entity.changed(&hook.id, json!({ "enabled": false })).await;
    assert!(disabled.get("disabledReason").is_none(), "its owner disabled it");
    assert_eq!((&disabled["deliveryState"], &disabled["disabledDate"]), (&json!("disabled"), &disabled["lastUpdate"]));
    let published = entity.publish_of_type("booking.created", json!({ "number": 1 })).await.json();
    assert_eq!(published["deliveries"], json!([]));
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    let second = entity.publish(json!({ "number": 2 })).await;
    entity.until_status(&second, &["delivered"]).await;
    let received = receiver.everything();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].json()["data"]["number"], 2);
}

#[contract_test]
async fn an_open_delivery_of_a_disabled_webhook_becomes_cancelled(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    // A little later than it takes to disable the webhook.
    let script = [Behaviour::answer(503, &[("Retry-After", "3")], "")];
    let hook = entity.hook(&receiver.on("/", script)).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    let delivery = entity.until_status(&id, &["cancelled"]).await;
    assert_eq!(delivery["attemptCount"], 1, "{delivery:#}");
    assert_eq!(receiver.everything().len(), 1);
}

#[contract_test]
async fn a_new_list_of_types_holds_from_the_next_event_on(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let told_of = async |kind: &str| {
        let published = entity.publish_of_type(kind, json!({})).await.json();
        published["deliveries"].as_array().is_some_and(|deliveries| deliveries.len() == 1)
    };
    assert!(told_of("booking.created").await && told_of("booking.expired").await);
    entity.changed(&hook.id, json!({ "eventList": ["booking.expired"] })).await;
    assert!(!told_of("booking.created").await && told_of("booking.expired").await);
    entity.changed(&hook.id, json!({ "eventList": [] })).await;
    assert!(told_of("booking.created").await);
}

#[contract_test]
async fn the_next_attempt_goes_to_the_new_address_with_the_new_headers(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let old = receiver.on("/old", [Behaviour::answer(503, &[("Retry-After", "3")], "")]);
    let new = receiver.on("/new", [Behaviour::status(200)]);
    let hook = entity.hook_with(all_types(&old)).await;
    let id = entity.publish(json!({ "x": 1 })).await;
    entity.until_status(&id, &["retrying"]).await;
    entity.changed(&hook.id, json!({ "eventUrl": new, "headers": { "X-New": "yes" } })).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("delivered"), &json!(2)), "{delivery:#}");
    assert_eq!(delivery["url"], old, "the address at creation");
    assert_eq!((receiver.received("/old").len(), receiver.received("/new").len()), (1, 1));
    let first = receiver.received("/old").remove(0);
    let second = receiver.received("/new").remove(0);
    assert_eq!(second.header("x-new"), "yes");
    assert_eq!(first.body, second.body);
    assert!(is_signed_by(&second, &hook.secret));
}

/// Each attempt was once shown with the webhook's first address, and with its current headers.
#[contract_test]
async fn each_attempt_shows_the_address_and_the_headers_that_it_was_sent_with(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let old = receiver.on("/old", [Behaviour::answer(503, &[("Retry-After", "3")], "")]);
    let new = receiver.on("/new?key=secret", [Behaviour::status(200)]);
    let before = json!({ "name": "test", "eventUrl": old, "eventList": [], "headers": { "X-Old": "yes" } });
    let hook = entity.hook_with(before).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    let after = json!({ "eventUrl": new, "headers": { "X-New": "yes", "Accept": "text/plain" } });
    entity.changed(&hook.id, after).await;
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
    let urls: Vec<_> = attempts.iter().map(|attempt| attempt["url"].as_str().expect("an address")).collect();
    assert_eq!(urls, [old, new.replace("secret", "***")]);
    for (attempt, path) in attempts.iter().zip(["/old", "/new?key=secret"]) {
        let names = attempt["requestHeaders"].as_array().expect("openapi.yaml says so").iter();
        let shown: BTreeSet<_> = names.map(|name| name.as_str().expect("a text").to_owned()).collect();
        let request = receiver.received(path).remove(0);
        let sent: BTreeSet<_> = request.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        assert_eq!(shown, sent, "{path}");
    }
    assert_eq!(receiver.received("/new?key=secret").remove(0).header("accept"), "text/plain");
    assert_eq!(receiver.received("/old").remove(0).header("accept"), "*/*");
}

#[contract_test]
async fn enabling_again_takes_the_reason_and_the_failures_away(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    for _ in 0..2 {
        let id = entity.publish(json!({})).await;
        entity.until_status(&id, &["failed"]).await;
    }
    until("the webhook is failing", LONG, async || {
        (entity.webhook(&hook.id).await["health"] == "failing").then_some(())
    })
    .await;
    receiver.on("/", [Behaviour::status(410)]);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    let disabled = until("the webhook is disabled", LONG, async || {
        Some(entity.webhook(&hook.id).await).filter(|webhook| webhook["enabled"] == false)
    })
    .await;
    assert_eq!(disabled["disabledReason"], "The endpoint answered 410 Gone.");
    assert_eq!((&disabled["deliveryState"], &disabled["health"]), (&json!("disabled"), &json!("failing")));
    assert_eq!(disabled["disabledDate"], disabled["lastUpdate"]);
    assert!(disabled["failuresInRow"].as_u64() >= Some(5) && disabled.get("failingSince").is_some(), "{disabled:#}");
    assert_eq!(disabled["version"], 2, "the service's change counts, too");

    // Other changes of a disabled webhook keep the reason, and so does disabling it again.
    let renamed = entity.changed(&hook.id, json!({ "name": "renamed", "enabled": false })).await;
    assert_eq!(renamed["disabledDate"], disabled["disabledDate"]);
    assert_eq!((&renamed["disabledReason"], &renamed["health"]), (&disabled["disabledReason"], &json!("failing")));

    let enabled = entity.changed(&hook.id, json!({ "enabled": true, "version": renamed["version"] })).await;
    for gone in ["disabledReason", "disabledDate", "failuresInRow", "failingSince", "lastHttpStatus", "lastError"] {
        assert!(enabled.get(gone).is_none(), "{enabled:#}");
    }
    assert_eq!(enabled["deliveryState"], "active");
    assert_eq!((&enabled["enabled"], &enabled["health"]), (&json!(true), &json!("healthy")), "{enabled:#}");
    receiver.on("/", [Behaviour::status(200)]);
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
}
