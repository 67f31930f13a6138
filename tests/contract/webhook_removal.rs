//! Removing a webhook, and what becomes of its deliveries.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Receiver, Suite, tests};

tests![
    a_removed_webhook_is_gone,
    of_many_removals_at_once_one_is_made,
    a_removed_webhook_is_told_of_nothing_more,
    open_deliveries_of_a_removed_webhook_become_cancelled_soon_and_others_stay,
    what_is_published_while_a_webhook_is_removed_comes_to_an_end,
];

/// The next attempt is hours away, so that whatever happens sooner is not its doing.
fn later() -> Behaviour {
    Behaviour::answer(503, &[("Retry-After", "36000")], "")
}

async fn a_removed_webhook_is_gone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (removed, kept) = (entity.hook("http://127.0.0.1:9/").await, entity.hook("http://127.0.0.1:9/").await);
    let answer = entity.remove(&removed.id).expect(200).await.json();
    assert_eq!((&answer["id"], &answer["success"]), (&json!(removed.id), &json!(true)), "{answer:#}");
    entity.get(&format!("/webhook/{}", removed.id)).refused(404, "webhook-not-found").await;
    entity.remove(&removed.id).refused(404, "webhook-not-found").await;
    let listed = entity.get("/webhook/list").expect(200).await.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(listed[0]["id"], kept.id.as_str());
}

async fn of_many_removals_at_once_one_is_made(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let answers = join_all((0..10).map(|_| entity.remove(&hook.id).send())).await;
    let with = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((with(200), with(404)), (1, 9));
}

async fn a_removed_webhook_is_told_of_nothing_more(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let removed = entity.hook(&receiver.on("/removed", [Behaviour::status(200)])).await;
    let first = entity.publish(json!({ "number": 1 })).await;
    entity.until_status(&first, &["delivered"]).await;
    entity.remove(&removed.id).expect(200).await;
    entity.hook(&receiver.on("/kept", [Behaviour::status(200)])).await;
    let second = entity.publish(json!({ "number": 2 })).await;
    entity.until_status(&second, &["delivered"]).await;
    assert_eq!((receiver.received("/removed").len(), receiver.received("/kept").len()), (1, 1));
    // What was delivered before can still be read.
    let delivery = entity.delivery(&first).await;
    assert_eq!((&delivery["status"], &delivery["webhookIdentifier"]), (&json!("delivered"), &json!(removed.id)));
}

async fn open_deliveries_of_a_removed_webhook_become_cancelled_soon_and_others_stay(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let removed = entity.hook(&receiver.on("/removed", [Behaviour::status(500), later()])).await;
    let kept = entity.hook(&receiver.on("/kept", [later()])).await;
    let of = |published: &Value, webhook: &str| {
        let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
        let delivery = deliveries.iter().find(|delivery| delivery["webhookIdentifier"] == webhook);
        let delivery = delivery.expect("both webhooks want every type");
        delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned()
    };
    let published =
        join_all((0..20).map(|number| entity.publish_of_type("booking.created", json!({ "number": number })))).await;
    let published: Vec<Value> = published.iter().map(crate::harness::Answer::json).collect();
    for event in &published {
        for webhook in [&removed, &kept] {
            let waits = "waits for hours";
            entity.until_delivery(&of(event, &webhook.id), waits, |delivery| delivery["lastHttpStatus"] == 503).await;
        }
    }
    entity.remove(&removed.id).expect(200).await;
    for event in &published {
        let delivery = entity.until_status(&of(event, &removed.id), &["cancelled"]).await;
        assert!(delivery.get("nextAttemptDate").is_none(), "{delivery:#}");
        assert_eq!(entity.delivery(&of(event, &kept.id)).await["status"], "retrying");
    }
    let partition = format!("ENT#{}", entity.id);
    for sort_key in [format!("WHK#{}", removed.id), format!("HLT#{}", removed.id)] {
        assert_eq!(suite.table().item(&partition, &sort_key).await, None, "{sort_key} is still there");
    }
}

async fn what_is_published_while_a_webhook_is_removed_comes_to_an_end(suite: Arc<Suite>) {
    let (entity, receiver) = (suite.entity().await, Receiver::start().await);
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200), Behaviour::status(500)])).await;
    let publications = join_all((0..40).map(|number| {
        let entity = entity.clone();
        async move { entity.publish_of_type("booking.created", json!({ "number": number })).await.json() }
    }));
    let (published, _) = tokio::join!(publications, entity.remove(&hook.id).expect(200));
    for delivery in published.iter().flat_map(|event| event["deliveries"].as_array().into_iter().flatten()) {
        let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
        entity.until_status(id, &["cancelled", "delivered", "failed"]).await;
    }
}
