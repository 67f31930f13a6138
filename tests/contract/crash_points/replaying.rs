//! sweep-deliveries is killed while it replays events to a webhook: before and after the transaction that adds a
//! delivery. Every event gets one delivery, which arrives.

use serde_json::json;

use super::stage::{Scene, Stage, writes};
use crate::{
    harness::{AwsCall, Behaviour, LONG, Moment, Table, until},
    replays::aged,
};

/// Enough events for several transactions at once.
const EVENTS: usize = 30;

/// Tests every crash point, one after the other.
pub async fn play(stage: &Stage<'_>) {
    replayed(stage, "replay: a target not added", Moment::Before).await;
    replayed(stage, "replay: target and head added, answer lost", Moment::After).await;
}

/// Events that were published while the webhook was disabled.
async fn missed(stage: &Stage<'_>, scene: &Scene) -> Vec<String> {
    let table = Table::of(&stage.setup.api.env);
    let hook = &scene.hooks[0].id;
    scene.entity.changed(hook, json!({ "enabled": false })).await;
    let mut events = Vec::new();
    for number in 0..EVENTS {
        let published = scene.entity.publish_of_type("booking.created", json!({ "number": number })).await.json();
        events.push(aged(&table, published["eventIdentifier"].as_str().expect("openapi.yaml says so")).await);
    }
    scene.entity.changed(hook, json!({ "enabled": true })).await;
    events
}

async fn replayed(stage: &Stage<'_>, point: &str, moment: Moment) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let events = missed(stage, &scene).await;
    let last = events[EVENTS - 1].clone();
    let mut held = stage.table().hold(point, moment, move |call: &AwsCall| {
        call.operation == "TransactWriteItems" && writes(call, &last, "SET")
    });
    let at = format!("/webhook/{}/replay", scene.hooks[0].id);
    let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    scene.entity.post(&at).json(&range).expect(202).await;
    held.reached().await;
    stage.kill("sweep-deliveries").await;
    held.lose();
    let mut deliveries = Vec::new();
    for event in &events {
        let path = format!("/webhook/event/{event}");
        let id = until("the event is replayed", LONG, async || {
            let shown = scene.entity.get(&path).expect(200).await.json();
            shown["deliveries"][0]["id"].as_str().map(str::to_owned)
        })
        .await;
        deliveries.push(id);
    }
    stage.note(point, &scene, deliveries, "delivered").await;
    for event in &events {
        let shown = scene.entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
        assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(1), "{point}: {shown:#}");
    }
}
