//! Inspecting one delivery from the terminal: an operator knows its identifier, but has neither its owner's name nor a
//! token.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Receiver, Suite};

const UNKNOWN: &str = "dlv_01m7wh697q3m7qqm482zyh9200";

#[contract_test]
async fn an_operator_sees_a_delivery_as_its_owner_does_without_bodies(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::answer(500, &[], "out of rooms")])).await;
    let id = entity.publish(json!({ "guest": "Ada", "price": 10.5 })).await;
    let mut owners = entity.until_status(&id, &["failed"]).await;

    let whole = suite.admin(&["delivery", "show", &id, "--body", "--json"]).await.json();
    assert_eq!(whole, owners);
    let shown = suite.admin(&["delivery", "show", &id, "--json"]).await.json();
    owners.as_object_mut().expect("an object").remove("event");
    for attempt in owners["attempts"].as_array_mut().expect("attempts") {
        attempt.as_object_mut().expect("an object").remove("responseBody");
    }
    assert_eq!(shown, owners);

    let words = suite.admin(&["delivery", "show", &id]).await.done();
    for word in [&id, "failed", &entity.id, &hook.id, &receiver.url("/"), "booking.created", "attempts   3", "  500  "]
    {
        assert!(words.contains(word), "{word}: {words}");
    }
    assert!(!words.contains("Ada") && !words.contains("out of rooms"), "{words}");
    let words = suite.admin(&["delivery", "show", &id, "--body"]).await.done();
    assert!(words.contains(r#""guest":"Ada""#) && words.contains("out of rooms"), "{words}");
}

#[contract_test]
async fn an_operator_resends_a_delivery_and_the_trail_has_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;

    receiver.on("/", [Behaviour::status(204)]);
    let run = suite.admin(&["delivery", "resend", &id, "--json"]).await;
    let line = run.err.lines().find(|line| line.starts_with('{')).expect("a line of the trail");
    let audit = serde_json::from_str::<Value>(line).expect("JSON")["audit"].clone();
    assert_eq!((&audit["action"], &audit["outcome"]), (&json!("delivery.resend"), &json!("done")));
    assert_eq!((&audit["entity"], &audit["subject"]), (&json!(entity.id), &json!(id)));
    assert_eq!(run.json()["status"], "pending");
    let delivered = entity.until_status(&id, &["delivered"]).await;
    assert_eq!(delivered["attemptCount"], 4, "{delivered:#}");

    entity.changed(&hook.id, json!({ "enabled": false })).await;
    let refused = suite.admin(&["delivery", "resend", &id]).await.failed(3);
    assert!(refused.contains("its owner must enable it first"), "{refused}");
    entity.call("DELETE", &format!("/webhook/{}", hook.id)).expect(200).await;
    let refused = suite.admin(&["delivery", "resend", &id]).await.failed(3);
    assert!(refused.contains("was removed") && !refused.contains("delivery.resend"), "{refused}");
}

#[contract_test]
async fn an_unknown_delivery_is_refused_and_another_identifier_wrong(suite: Arc<Suite>) {
    for command in ["show", "resend"] {
        let refused = suite.admin(&["delivery", command, UNKNOWN]).await.failed(3);
        assert!(refused.contains(&format!("there is no delivery {UNKNOWN}")), "{refused}");
        let wrong = suite.admin(&["delivery", command, "evt_01m7wh697q3m7qqm482zyh9200"]).await.failed(2);
        assert!(wrong.contains("`dlv_`"), "{wrong}");
    }
}
