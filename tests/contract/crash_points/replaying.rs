//! sweep-deliveries is killed while replaying events to a webhook: before and after the transaction that adds a
//! delivery, and between two chunks of a page while the table throttles. Every event gets one delivery, which succeeds.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use super::stage::{Scene, Stage, writes};
use crate::{
    harness::{AwsCall, Behaviour, LONG, Moment, Table, until},
    replays::aged,
};

/// The number of events, enough for two chunks.
const EVENTS: usize = 30;
/// The number of events whose deliveries are added together.
const CHUNK: usize = 25;

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    replayed(stage, "replay: a target not added", Moment::Before).await;
    replayed(stage, "replay: target and head added, answer lost", Moment::After).await;
    killed_between_chunks(stage).await;
}

/// Events published while the webhook was disabled, oldest first.
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
    events.sort();
    events
}

async fn request(scene: &Scene) {
    let at = format!("/webhook/{}/replay", scene.hooks[0].id);
    scene.entity.post(&at).json(&json!({ "createdFrom": "2020-01-01T00:00:00Z" })).expect(202).await;
}

/// Matches transactions that add a delivery for one of these events.
fn additions(events: &[String]) -> impl Fn(&AwsCall) -> bool + Send + Sync + Clone + use<> {
    let events = events.to_vec();
    move |call: &AwsCall| {
        call.operation == "TransactWriteItems" && events.iter().any(|event| writes(call, event, "SET"))
    }
}

async fn replayed(stage: &Stage<'_>, point: &str, moment: Moment) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let events = missed(stage, &scene).await;
    let last = events[EVENTS - 1].clone();
    let mut held = stage.table().hold(point, moment, additions(&[last]));
    request(&scene).await;
    held.reached().await;
    stage.kill("sweep-deliveries").await;
    held.lose();
    all_are_replayed(stage, point, &scene, &events).await;
}

/// In the first chunk, some transactions are throttled and repeated; in the second, all are throttled until the kill.
async fn killed_between_chunks(stage: &Stage<'_>) {
    const THROTTLED: &str = "ProvisionedThroughputExceededException";
    let point = "replay: between two chunks, throttled";
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let events = missed(stage, &scene).await;
    let (first, second) = events.split_at(CHUNK);
    stage.table().refuse(10, THROTTLED, additions(first));
    let is_over = Arc::new(AtomicBool::new(false));
    let throttles = {
        let is_over = Arc::clone(&is_over);
        let is_of_second = additions(second);
        move |call: &AwsCall| !is_over.load(Ordering::SeqCst) && is_of_second(call)
    };
    stage.table().refuse(usize::MAX, THROTTLED, throttles);
    let mut held = stage.table().hold(point, Moment::Before, additions(second));
    request(&scene).await;
    held.reached().await;
    stage.kill("sweep-deliveries").await;
    let table = Table::of(&stage.setup.api.env);
    for (number, event) in events.iter().enumerate() {
        let item = table.event(event).await.expect("it is kept");
        let targets = item["targets"]["L"].as_array().map_or(0, Vec::len);
        assert_eq!(targets, usize::from(number < CHUNK), "{point}: event {number}");
    }
    is_over.store(true, Ordering::SeqCst);
    held.lose();
    all_are_replayed(stage, point, &scene, &events).await;
}

/// Waits until every event has been replayed, and checks that it has one delivery.
async fn all_are_replayed(stage: &Stage<'_>, point: &str, scene: &Scene, events: &[String]) {
    let mut deliveries = Vec::new();
    for event in events {
        let path = format!("/webhook/event/{event}");
        let id = until("the event is replayed", LONG, async || {
            let shown = scene.entity.get(&path).expect(200).await.json();
            shown["deliveries"][0]["id"].as_str().map(str::to_owned)
        })
        .await;
        deliveries.push(id);
    }
    stage.note(point, scene, deliveries, "delivered").await;
    for event in events {
        let shown = scene.entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
        assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(1), "{point}: {shown:#}");
    }
}
