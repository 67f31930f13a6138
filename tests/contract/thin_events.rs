//! Thin events: a webhook may receive each event without its data, and its owner can read the event with a token.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{
    Behaviour, Receiver, Suite,
    feed::{confirm, read_some},
    signature,
};

const DATA: &str = r#"{"bookingIdentifier":"B-1001","guest":"Ada"}"#;

#[contract_test]
async fn a_thin_event_has_no_data_and_is_signed_as_sent(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let body = json!({ "name": "n", "eventUrl": receiver.on("/", [Behaviour::status(200)]), "eventList": [],
                       "payload": "thin" });
    let hook = entity.hook_with(body).await;
    assert_eq!(hook.json["payload"], "thin");
    let data: Value = serde_json::from_str(DATA).expect("JSON");
    let delivery = entity.publish(data.clone()).await;
    let [request] = &receiver.until("/", 1).await[..] else { panic!("one request") };
    let signed =
        signature(&hook.secret, request.header("webhook-id"), request.header("webhook-timestamp"), &request.body);
    assert_eq!(request.header("webhook-signature"), signed);
    let event: Value = serde_json::from_slice(&request.body).expect("JSON");
    let shown = entity.until_status(&delivery, &["delivered"]).await;
    assert_eq!(shown["attempts"][0]["payload"], "thin");
    let expected = json!({
        "id": shown["event"]["id"], "type": shown["event"]["type"], "timestamp": shown["event"]["timestamp"],
        "managingEntityIdentifier": entity.id, "subject": "B-1001",
    });
    assert_eq!(event, expected);

    let id = event["id"].as_str().expect("a text");
    assert_eq!(entity.get(&format!("/webhook/event/{id}")).expect(200).await.json()["data"], data);
    let call = entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&json!({ "payload": "full" }));
    assert_eq!(call.expect(200).await.json()["payload"], "full");
    let delivery = entity.publish(data.clone()).await;
    let [_, request] = &receiver.until("/", 2).await[..] else { panic!("two requests") };
    assert_eq!(serde_json::from_slice::<Value>(&request.body).expect("JSON")["data"], data);
    let shown = entity.until_status(&delivery, &["delivered"]).await;
    assert!(shown["attempts"][0].get("payload").is_none(), "{shown:#}");
}

#[contract_test]
async fn a_feed_gives_thin_events(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook_with(json!({ "name": "n", "delivery": "pull", "eventList": [], "payload": "thin" })).await;
    entity.publish(serde_json::from_str(DATA).expect("JSON")).await;
    let given = read_some(&entity, &hook, json!({ "visibility": 600 })).await;
    let body: Value = serde_json::from_str(given[0]["body"].as_str().expect("a text")).expect("JSON");
    assert!(body.get("data").is_none() && body["subject"] == "B-1001", "{body:#}");
    assert_eq!(confirm(&entity, &hook, &given).await, ["confirmed"]);
}

#[contract_test]
async fn a_payload_is_full_or_thin(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for bad in [json!("Thin"), json!(null), json!(true)] {
        let body = json!({ "name": "n", "eventUrl": "https://example.com/", "eventList": [], "payload": bad });
        let refused = entity.post("/webhook").json(&body).expect(400).await.json();
        assert_eq!(refused["properties"]["violations"][0]["pointer"], "/payload", "{bad}: {refused:#}");
    }
}
