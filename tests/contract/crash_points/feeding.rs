//! A feed's functions are killed around each of their writes. The reader repeats its request: no delivery is lost, and
//! no answer counts twice.

use serde_json::{Value, json};

use super::stage::{Scene, Stage, writes};
use crate::harness::{
    Hook, LONG, Moment,
    feed::{confirm, items, pulled, read, read_some, reading},
    until,
};

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    for moment in [Moment::Before, Moment::After] {
        put_into_the_feed(stage, moment).await;
        handing_out(stage, moment).await;
        handing_out_for_a_key(stage, moment).await;
        answering(stage, moment).await;
        recording_an_unconfirmed_attempt(stage, moment).await;
    }
}

async fn scene(stage: &Stage<'_>) -> (Scene, Hook) {
    let scene = stage.scene(0, []).await;
    let hook = pulled(&scene.entity).await;
    (scene, hook)
}

/// The dispatcher dies around the write that adds a delivery to the feed.
async fn put_into_the_feed(stage: &Stage<'_>, moment: Moment) {
    let (scene, hook) = scene(stage).await;
    let point = format!("dispatch: {moment:?} a delivery is put into the feed");
    let key = format!("UNREAD#{}", hook.id);
    let mut held = stage.table().hold(&point, moment, move |call| writes(call, &key, ""));
    let publication = scene.publish_undisturbed();
    held.reached().await;
    stage.kill("dispatch-deliveries").await;
    held.lose();
    let delivery = super::stage::deliveries(&super::stage::acknowledged(publication).await).remove(0);
    let on_disk = stage.on_disk(&scene).await;
    assert_eq!(confirm(&scene.entity, &hook, &read_some(&scene.entity, &hook, json!({})).await).await, ["confirmed"]);
    ended(stage, &point, on_disk, &scene, &delivery).await;
}

/// The function that handles a read with an idempotency key dies around the write that gives the delivery to the
/// reader. Repeating the request returns the delivery, as its first attempt.
async fn handing_out_for_a_key(stage: &Stage<'_>, moment: Moment) {
    let (scene, hook) = scene(stage).await;
    let delivery = unread(&scene).await;
    let point = format!("read-feed: {moment:?} a delivery is given to a reader with a key");
    let id = delivery.clone();
    let mut held = stage.table().hold(&point, moment, move |call| writes(call, &id, "handedOutAt"));
    let keyed = || {
        let request = json!({ "visibility": 3600, "wait": 2 });
        reading(&scene.entity, &hook, &request).header("idempotency-key", "key")
    };
    let request = {
        let keyed = keyed();
        tokio::spawn(async move { keyed.attempt().await.is_ok_and(|answer| answer.status == 200) })
    };
    held.reached().await;
    stage.kill("read-feed").await;
    held.lose();
    assert!(!request.await.expect("no panic"), "{point}: answered by a dead function");
    let on_disk = stage.on_disk(&scene).await;
    let again = items(&keyed().expect(200).await);
    assert_eq!(again[0]["attemptNumber"], 1, "{point}: the repetition gets the delivery");
    assert_eq!(confirm(&scene.entity, &hook, &again).await, ["confirmed"]);
    ended(stage, &point, on_disk, &scene, &delivery).await;
}

/// The function that handles a read dies around the write that gives the delivery to the reader.
async fn handing_out(stage: &Stage<'_>, moment: Moment) {
    let (scene, hook) = scene(stage).await;
    let delivery = unread(&scene).await;
    let point = format!("read-feed: {moment:?} a delivery is given to a reader");
    let id = delivery.clone();
    let mut held = stage.table().hold(&point, moment, move |call| writes(call, &id, "handedOutAt"));
    let request = {
        let reading = reading(&scene.entity, &hook, &json!({ "visibility": 10 }));
        tokio::spawn(async move { reading.attempt().await.is_ok_and(|answer| answer.status == 200) })
    };
    held.reached().await;
    stage.kill("read-feed").await;
    held.lose();
    assert!(!request.await.expect("no panic"), "{point}: answered by a dead function");
    let on_disk = stage.on_disk(&scene).await;
    let again = until("the delivery comes again", LONG, async || {
        let found = read(&scene.entity, &hook, json!({ "wait": 2 })).await;
        (!found.is_empty()).then_some(found)
    })
    .await;
    let number = if moment == Moment::Before { 1 } else { 2 };
    assert_eq!(again[0]["attemptNumber"], number, "{point}: the attempt that was given out is in the history");
    assert_eq!(confirm(&scene.entity, &hook, &again).await, ["confirmed"]);
    ended(stage, &point, on_disk, &scene, &delivery).await;
}

/// The function that handles the reader's answer dies around the write that records it.
async fn answering(stage: &Stage<'_>, moment: Moment) {
    let (scene, hook) = scene(stage).await;
    let delivery = unread(&scene).await;
    let held_by_reader = read_some(&scene.entity, &hook, json!({})).await;
    let point = format!("acknowledge-feed: {moment:?} the attempt is recorded");
    let id = delivery.clone();
    let mut held = stage.table().hold(&point, moment, move |call| writes(call, &id, "attemptCount"));
    let request = {
        let (entity, at) = (scene.entity.clone(), format!("/webhook/{}/feed/ack", hook.id));
        let body = json!({ "confirmed": [held_by_reader[0]["receipt"]] });
        tokio::spawn(
            async move { entity.post(&at).json(&body).attempt().await.is_ok_and(|answer| answer.status == 200) },
        )
    };
    held.reached().await;
    stage.kill("acknowledge-feed").await;
    held.lose();
    assert!(!request.await.expect("no panic"), "{point}: answered by a dead function");
    let on_disk = stage.on_disk(&scene).await;
    assert_eq!(confirm(&scene.entity, &hook, &held_by_reader).await, ["confirmed"], "{point}: the repeated answer");
    assert_eq!(scene.entity.delivery(&delivery).await["attemptCount"], 1, "{point}");
    ended(stage, &point, on_disk, &scene, &delivery).await;
}

/// The function that handles the next reader's request dies around recording an unconfirmed attempt.
async fn recording_an_unconfirmed_attempt(stage: &Stage<'_>, moment: Moment) {
    let (scene, hook) = scene(stage).await;
    let delivery = unread(&scene).await;
    read_some(&scene.entity, &hook, json!({ "visibility": 10 })).await;
    let point = format!("read-feed: {moment:?} an unconfirmed attempt is recorded");
    let id = delivery.clone();
    let mut held = stage.table().hold(&point, moment, move |call| writes(call, &id, "unconfirmed"));
    let request = {
        let (entity, hook) = (scene.entity.clone(), hook.clone());
        tokio::spawn(async move {
            loop {
                let answer = reading(&entity, &hook, &json!({ "visibility": 10, "wait": 10 })).attempt().await;
                let Ok(answer) = answer.map(|answer| (answer.status == 200).then(|| answer.json())) else {
                    return false;
                };
                if answer.is_none_or(|page| page["items"] != Value::Array(Vec::new())) {
                    return false;
                }
            }
        })
    };
    held.reached().await;
    stage.kill("read-feed").await;
    held.lose();
    assert!(!request.await.expect("no panic"), "{point}: answered by a dead function");
    let on_disk = stage.on_disk(&scene).await;
    let again = read_some(&scene.entity, &hook, json!({})).await;
    assert_eq!(again[0]["attemptNumber"], 2, "{point}: one attempt more");
    assert_eq!(confirm(&scene.entity, &hook, &again).await, ["confirmed"]);
    ended(stage, &point, on_disk, &scene, &delivery).await;
}

/// A delivery that is waiting in the feed.
async fn unread(scene: &Scene) -> String {
    let delivery = scene.acknowledged().await.remove(0);
    let in_feed = |shown: &Value| shown["waitingFor"] == "reader";
    scene.entity.until_delivery(&delivery, "waits for a reader", in_feed).await;
    delivery
}

/// Records a tested crash point whose delivery has succeeded. No endpoint received it, so its history is compared here.
async fn ended(stage: &Stage<'_>, point: &str, on_disk: String, scene: &Scene, delivery: &str) {
    let shown = scene.entity.delivery(delivery).await;
    let attempts = shown["attempts"].as_array().expect("openapi.yaml says so");
    let confirmed = attempts.iter().filter(|attempt| attempt["confirmed"] == true).count();
    assert_eq!((&shown["status"], confirmed), (&json!("delivered"), 1), "{point}: {shown:#}");
    stage.played(point, on_disk, scene, Vec::new(), "delivered");
}
