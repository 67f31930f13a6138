//! The values in an endpoint's headers and in its URL's query are sent to the endpoint and appear nowhere else.

use std::{fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{Behaviour, Entity, Hook, Moment, Receiver, Settings, Suite},
    webhook_changes::violations,
};

const MASK: &str = "***";
/// A string that is part of every secret value here, and of no other value.
const SECRET: &str = "s3cretvalue";
const QUERY: &str = "?token=s3cretvalue1&x=&s3cretvalue2&token=s3cretvalue3";
const MASKED_QUERY: &str = "?token=***&x=***&***&token=***";

fn headers() -> Value {
    json!({ "Authorization": "Bearer s3cretvalue4", "X-Key": "s3cretvalue5", "X-Empty": "" })
}

fn masked_headers() -> Value {
    json!({ "Authorization": MASK, "X-Key": MASK, "X-Empty": MASK })
}

/// A webhook with secret values, at this path.
async fn secret_hook(entity: &Entity, receiver: &Receiver, path: &str, behaviour: Behaviour) -> Hook {
    let url = receiver.on(&format!("{path}{QUERY}"), [behaviour]);
    entity.hook_with(json!({ "name": path, "eventUrl": url, "eventList": [], "headers": headers() })).await
}

async fn item_of(suite: &Suite, entity: &Entity, hook: &Hook) -> Value {
    let item = suite.table().item(&format!("ENT#{}", entity.id), &format!("WHK#{}", hook.id)).await;
    item.expect("the webhook is there")
}

fn without(webhook: &Value, members: &[&str]) -> Value {
    let mut webhook = webhook.clone();
    members.iter().for_each(|member| drop(webhook.as_object_mut().expect("an object").remove(*member)));
    webhook
}

#[contract_test]
async fn values_of_headers_and_queries_are_seen_only_at_the_endpoint(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = secret_hook(&entity, &receiver, "/good", Behaviour::status(200)).await;
    assert_eq!(hook.json["eventUrl"], receiver.url(&format!("/good{MASKED_QUERY}")));
    assert_eq!(hook.json["headers"], masked_headers());
    let shown = without(&hook.json, &["signingSecret"]);
    assert_eq!((entity.webhook(&hook.id).await, entity.listed(&hook).await), (shown.clone(), shown));

    // One endpoint responds with an error, and the other does not respond.
    let failing = secret_hook(&entity, &receiver, "/bad", Behaviour::status(500)).await;
    let body = |url: &str| json!({ "name": "x", "eventUrl": url, "eventList": [], "headers": headers() });
    entity.hook_with(body(&format!("http://127.0.0.1:9/{QUERY}"))).await;
    let mut answers = Vec::new();
    let published = entity.publish_of_type("booking.created", json!({})).await;
    for delivery in published.json()["deliveries"].as_array().expect("openapi.yaml says so") {
        let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
        let delivery = entity.until_delivery(id, "was attempted", |delivery| delivery["attemptCount"] != 0).await;
        assert!(delivery["url"].as_str().is_some_and(|url| url.ends_with(MASKED_QUERY)), "{delivery:#}");
        answers.push(delivery.to_string());
        answers.push(entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await.text());
    }
    answers.push(entity.test(&failing.id).expect(202).await.text());
    answers.push(entity.get("/webhook/delivery/list").expect(200).await.text());
    answers.push(entity.get("/webhook/list").expect(200).await.text());
    answers.push(entity.changed(&hook.id, json!({ "name": "renamed" })).await.to_string());
    answers.push(entity.changed(&hook.id, json!({ "headers": headers() })).await.to_string());
    answers.push(entity.rotate(&hook.id).expect(200).await.text());
    let wrong = json!({ "eventUrl": format!("ftp://x{QUERY}"), "headers": { "Host": SECRET } });
    answers.push(entity.change(&hook.id, &wrong).refused(400, "invalid-request").await.to_string());
    let leaks: Vec<_> = answers.iter().filter(|answer| answer.contains(SECRET)).collect();
    assert!(leaks.is_empty(), "in an answer: {leaks:#?}");

    for path in ["/good", "/bad"] {
        let received = receiver.until(&format!("{path}{QUERY}"), 1).await.remove(0);
        for (name, value) in headers().as_object().expect("an object") {
            assert_eq!(received.header(name), value, "{name}");
        }
    }
    let items = suite.table().scan().await;
    let of_entity: Vec<_> = items.iter().filter(|item| item.to_string().contains(&entity.id)).collect();
    assert!(of_entity.len() > 8, "webhooks and deliveries are stored: {}", of_entity.len());
    let in_clear: Vec<_> = of_entity.iter().filter(|item| item.to_string().contains(SECRET)).collect();
    assert!(in_clear.is_empty(), "in the table: {in_clear:#?}");
    for log in fs::read_dir(suite.bundle().data().join("logs")).expect("there are logs").flatten() {
        let text = String::from_utf8_lossy(&fs::read(log.path()).expect("a log can be read")).into_owned();
        let line = text.lines().find(|line| line.contains(SECRET));
        assert!(line.is_none(), "in {}: {line:?}", log.path().display());
    }
}

#[contract_test]
async fn a_mask_that_comes_back_keeps_the_stored_value(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = secret_hook(&entity, &receiver, "/a", Behaviour::status(200)).await;
    let members = ["name", "enabled", "eventUrl", "eventList", "headers", "version"];
    let read = entity.webhook(&hook.id).await;
    let whole: serde_json::Map<String, Value> =
        members.iter().map(|member| ((*member).to_owned(), read[*member].clone())).collect();

    let after = entity.changed(&hook.id, whole.into()).await;
    assert_eq!(without(&after, &["version", "lastUpdate"]), without(&read, &["version", "lastUpdate"]));
    entity.publish(json!({})).await;
    let received = receiver.until(&format!("/a{QUERY}"), 1).await.remove(0);
    assert_eq!(received.header("authorization"), "Bearer s3cretvalue4");

    // Some values are new; the others are kept, even if the name is spelled differently and the path has changed.
    let new = "/b?new=1&token=***&token=%2A%2A%2A";
    let meant = "/b?new=1&token=s3cretvalue1&token=s3cretvalue3";
    receiver.on(meant, [Behaviour::status(200)]);
    let change = json!({ "eventUrl": receiver.url(new), "headers": { "authorization": MASK, "X-New": "n" } });
    let after = entity.changed(&hook.id, change).await;
    assert_eq!(after["headers"], json!({ "authorization": MASK, "X-New": MASK }));
    assert_eq!(after["eventUrl"], receiver.url("/b?new=***&token=***&token=***"));
    entity.publish(json!({})).await;
    let received = receiver.until(meant, 1).await.remove(0);
    assert_eq!((received.header("authorization"), received.header("x-new")), ("Bearer s3cretvalue4", "n"));
    assert_eq!(received.header("x-key"), "");

    // With no query and no headers, nothing is sealed or returned.
    let bare = receiver.on("/c", [Behaviour::status(200)]);
    let after = entity.changed(&hook.id, json!({ "eventUrl": bare, "headers": {} })).await;
    assert_eq!((&after["eventUrl"], &after["headers"]), (&json!(bare), &json!({})));
    let item = item_of(&suite, &entity, &hook).await;
    assert!(item.get("sealedEventUrl").is_none() && item.get("sealedHeaders").is_none(), "{item:#}");
    entity.publish(json!({})).await;
    assert_eq!(receiver.until("/c", 1).await[0].header("authorization"), "");
}

/// Regression test: a token with the right to change a webhook could redirect the stored values to any server.
#[contract_test]
async fn kept_values_do_not_follow_a_webhook_to_another_server(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let other = Receiver::start().await;
    let hook = secret_hook(&entity, &receiver, "/a", Behaviour::status(200)).await;
    let before = item_of(&suite, &entity, &hook).await;
    let moved = other.on("/?token=new", [Behaviour::status(200)]);
    for (change, fields) in [
        (json!({ "eventUrl": other.url("/?token=***") }), vec!["body/eventUrl", "body/headers"]),
        (json!({ "eventUrl": moved }), vec!["body/headers"]),
        (json!({ "eventUrl": moved, "headers": { "X-Key": MASK } }), vec!["body/headers/X-Key"]),
    ] {
        assert_eq!(violations(&entity, &hook, &change).await, fields, "{change}");
    }
    assert_eq!(item_of(&suite, &entity, &hook).await, before);
    entity.changed(&hook.id, json!({ "eventUrl": moved, "headers": { "X-Key": "new" } })).await;
    entity.publish(json!({})).await;
    let received = other.until("/?token=new", 1).await.remove(0);
    assert_eq!((received.header("x-key"), received.header("authorization")), ("new", ""));
}

/// A change that keeps values reads the webhook, then another change moves it, and then the first change is written.
#[contract_test]
async fn kept_values_do_not_follow_a_webhook_that_moves_meanwhile(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "moved".to_owned()).await;
    let receiver = Receiver::start().await;
    let other = Receiver::start().await;
    let hook = secret_hook(&entity, &receiver, "/a", Behaviour::status(200)).await;
    let mut write = setup.table.hold("the change that keeps values", Moment::Before, |call| {
        let text = call.body.to_string();
        text.contains("WHK#") && text.contains("headers") && text.contains("Update")
    });
    let kept = json!({ "headers": { "X-Key": MASK, "Authorization": MASK, "X-Empty": "y" } });
    // If the move takes longer than the service waits for the table, the change is repeated, and keeps nothing either.
    let kept = entity.change(&hook.id, &kept).answered();
    let moves = async {
        write.reached().await;
        let moved = other.on("/?token=new", [Behaviour::status(200)]);
        entity.changed(&hook.id, json!({ "eventUrl": moved, "headers": { "X-Key": "new" } })).await;
        write.release();
    };
    let (kept, ()) = tokio::join!(kept, moves);
    assert!(kept.status < 500, "{}", kept.exchange);
    entity.publish(json!({})).await;
    let received = other.until("/?token=new", 1).await.remove(0);
    assert_eq!((received.header("x-key"), received.header("authorization")), ("new", ""));
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_mask_without_a_kept_value_is_a_violation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = secret_hook(&entity, &receiver, "/", Behaviour::status(200)).await;
    let before = item_of(&suite, &entity, &hook).await;
    let url = |query: &str| receiver.url(&format!("/{query}"));
    for (change, fields) in [
        (
            json!({ "headers": { "X-Key": MASK, "X-Other": MASK, "X-More": MASK } }),
            vec!["body/headers/X-More", "body/headers/X-Other"],
        ),
        (json!({ "eventUrl": url("?other=***") }), vec!["body/eventUrl"]),
        (json!({ "eventUrl": url("?x=***&x=***") }), vec!["body/eventUrl"]),
        (json!({ "eventUrl": url("?***&***") }), vec!["body/eventUrl"]),
    ] {
        assert_eq!(violations(&entity, &hook, &change).await, fields, "{change}");
    }
    assert_eq!(item_of(&suite, &entity, &hook).await, before);
    let new = json!({ "name": "x", "eventUrl": url("?a=***"), "eventList": [], "headers": { "X-Key": MASK } });
    let problem = entity.post("/webhook").json(&new).refused(400, "invalid-request").await;
    assert_eq!(problem["properties"]["violations"].as_array().map(Vec::len), Some(2), "{problem}");
}

#[contract_test]
async fn the_values_behind_masks_count_for_the_limits(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let large = "x".repeat(2_000);
    let url = format!("https://hooks.example.com/?a={large}");
    let kept = json!({ "X-1": large, "X-2": large, "X-3": large });
    let hook = entity.hook_with(json!({ "name": "x", "eventUrl": url, "eventList": [], "headers": kept })).await;
    let more = json!({ "X-1": MASK, "X-2": MASK, "X-3": MASK, "X-4": large });
    assert_eq!(violations(&entity, &hook, &json!({ "headers": more })).await, ["body/headers"]);
    let longer = format!("https://hooks.example.com/?a=***&b={}", "y".repeat(100));
    assert_eq!(violations(&entity, &hook, &json!({ "eventUrl": longer })).await, ["body/eventUrl"]);
}

#[contract_test]
async fn masks_and_values_at_once_are_all_kept(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = secret_hook(&entity, &receiver, "/", Behaviour::status(200)).await;
    let moved = receiver.on("/new?token=s3cretvalue1&fresh=1", [Behaviour::status(200)]);
    let change = |change: Value| entity.changed(&hook.id, change);
    tokio::join!(
        change(json!({ "headers": { "Authorization": MASK, "X-Key": "new" } })),
        change(json!({ "eventUrl": moved.replace("s3cretvalue1", MASK) })),
        change(json!({ "name": "renamed", "headers": { "Authorization": MASK, "X-Key": "new" } })),
        entity.new_secret(&hook.id),
    );
    entity.publish(json!({})).await;
    let received = receiver.until("/new?token=s3cretvalue1&fresh=1", 1).await.remove(0);
    assert_eq!((received.header("authorization"), received.header("x-key")), ("Bearer s3cretvalue4", "new"));
    assert_eq!(entity.webhook(&hook.id).await["name"], "renamed");
}

#[contract_test]
async fn an_endpoint_with_a_query_that_answers_410_is_disabled(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = secret_hook(&entity, &receiver, "/", Behaviour::status(410)).await;
    entity.until_gone(&hook).await;
}
