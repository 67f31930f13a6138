//! Validation of published data by the schema of their type (`EventValidation`).

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{Behaviour, Entity, Receiver, Settings, Suite},
    webhooks::fields,
};

#[contract_test]
async fn data_that_do_not_conform_are_published_with_warnings(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let publish = async |key: &str, data: Value| {
        let body = json!({ "type": "managing_entity.brand.removed", "data": data });
        entity.post("/webhook/event").header("idempotency-key", key).json(&body).expect(202).await.json()
    };
    let data = json!({ "brandIdentifier": "BR-1", "removedAt": "2026-11-05T10:00:00Z", "more": 1 });
    let conforming = publish("conforming", data).await;
    assert_eq!(conforming.get("warnings"), None);
    let data = json!({ "brandIdentifier": 4711 });
    let odd = publish("odd", data.clone()).await;
    let warnings = odd["warnings"].as_array().expect("there are some");
    let pointers: BTreeSet<_> = warnings.iter().map(|warning| warning["pointer"].as_str().expect("a text")).collect();
    assert_eq!(pointers, ["", "/brandIdentifier"].into());
    assert!(!odd.to_string().contains("4711"), "a warning has no value: {odd:#}");
    assert_eq!(publish("odd", data).await, odd, "a repetition gets the same answer");
    for (published, count) in [(&conforming, None), (&odd, Some(2))] {
        let event = published["eventIdentifier"].as_str().expect("openapi.yaml says so");
        let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
        assert_eq!(shown["warnings"].as_array().map(Vec::len), count, "{shown:#}");
        let delivery = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
        let delivery = entity.delivery(delivery).await;
        assert_eq!(delivery["eventWarnings"].as_array().map(Vec::len), count, "{delivery:#}");
        assert_eq!(delivery["event"].get("warnings"), None);
    }
}

#[contract_test]
async fn a_strict_deployment_refuses_data_that_do_not_conform(suite: Arc<Suite>) {
    let (_bundle, api, _permit) = suite.other_bundle(Settings::default().with("EVENT_VALIDATION", "strict")).await;
    let entity = Entity::new(&api, "strict".to_owned()).await;
    let published = |data: Value| {
        let body = json!({ "type": "managing_entity.brand.removed", "data": data });
        entity.post("/webhook/event").json(&body)
    };
    let problem = published(json!({ "brandIdentifier": 4711 })).refused(400, "invalid-request").await;
    let mut fields = fields(&problem);
    fields.sort();
    assert_eq!(fields, ["data", "data/brandIdentifier"], "{problem:#}");
    let answer = published(json!({ "brandIdentifier": "BR-1", "removedAt": "2026-11-05T10:00:00Z" })).expect(202).await;
    assert_eq!(answer.json().get("warnings"), None);
}
