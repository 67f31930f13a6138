//! Validating published data against its type's schema (`EventValidation`).

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Bus, Entity, Receiver, Settings, Suite, invalid_values};

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
    assert_eq!(pointers, ["/brandIdentifier", "/removedAt"].into());
    let codes: BTreeSet<_> = warnings.iter().map(|warning| warning["code"].as_str().expect("a text")).collect();
    assert_eq!(codes, ["invalid-type", "required"].into());
    assert!(warnings.iter().all(|warning| warning["in"] == "data"), "{odd:#}");
    assert!(!odd.to_string().contains("4711"), "a warning has no value: {odd:#}");
    assert_eq!(publish("odd", data).await, odd, "a repetition gets the same answer");
    for (published, count) in [(&conforming, None), (&odd, Some(2))] {
        let event = published["eventIdentifier"].as_str().expect("openapi.yaml says so");
        let shown = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
        assert_eq!(shown["warnings"].as_array().map(Vec::len), count, "{shown:#}");
        assert_eq!(shown["warnings"], published["warnings"], "they have one shape everywhere");
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
    let mut invalid = invalid_values(&problem);
    invalid.sort();
    assert_eq!(invalid, ["body/data/brandIdentifier", "body/data/removedAt"], "{problem:#}");
    let with_key = published(json!({ "brandIdentifier": 4711 })).header("idempotency-key", "new");
    with_key.refused(400, "invalid-request").await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let body = json!({ "type": "managing_entity.brand.removed", "data": { "brandIdentifier": 4711 } });
    let of_test = entity.test(&hook.id).json(&body).refused(400, "invalid-request").await;
    let mut invalid_in_test = invalid_values(&of_test);
    invalid_in_test.sort();
    assert_eq!(invalid_in_test, invalid, "{of_test:#}");
    let data = r#"{"brandIdentifier":4711}"#;
    let detail = format!(
        r#"{{"type":"managing_entity.brand.removed","managingEntityIdentifier":"{}","data":{data}}}"#,
        entity.id
    );
    let rejected = Bus::of(&api.env).hand_over(Bus::event("refused", &detail)).await.expect("taken");
    assert_eq!(rejected["rejected"]["reason"], "invalid-request", "{rejected:#}");
    let answer = published(json!({ "brandIdentifier": "BR-1", "removedAt": "2026-11-05T10:00:00Z" })).expect(202).await;
    assert_eq!(answer.json().get("warnings"), None);
}

/// A client repeats a request until it gets a response, even if the operator has made the deployment strict since then.
#[contract_test]
async fn an_accepted_event_that_is_repeated_gets_its_answer_if_strict(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "lenient".to_owned()).await;
    let bus = Bus::of(&api.env);
    let of_bus = |id: &str| {
        let data = r#"{"brandIdentifier":4711}"#;
        let kind = "managing_entity.brand.removed";
        Bus::event(id, &format!(r#"{{"type":"{kind}","managingEntityIdentifier":"{}","data":{data}}}"#, entity.id))
    };
    let published = |key: &str, brand: u32| {
        let body = json!({ "type": "managing_entity.brand.removed", "data": { "brandIdentifier": brand } });
        entity.post("/webhook/event").header("idempotency-key", key).json(&body)
    };
    let first = published("key", 4711).expect(202).await.json();
    assert_eq!(first["warnings"].as_array().map(Vec::len), Some(2), "{first:#}");
    let first_of_bus = bus.hand_over(of_bus("first")).await.expect("taken");
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default().with("EVENT_VALIDATION", "strict")).await;
    let bus = Bus::of(&Arc::new(bundle.service_env()));

    let again = published("key", 4711).expect(202).await;
    assert_eq!((again.header("idempotency-replayed"), again.json()), ("true", first));
    published("key", 4712).refused(409, "idempotency-conflict").await;
    published("another key", 4711).refused(400, "invalid-request").await;
    assert_eq!(bus.hand_over(of_bus("first")).await.expect("taken"), first_of_bus);
    let rejected = bus.hand_over(of_bus("second")).await.expect("taken");
    assert_eq!(rejected["rejected"]["reason"], "invalid-request", "{rejected:#}");
    assert!(bundle.stop().await.success());
}
