//! publish-event is killed at points between the request and the acknowledgement.

use std::time::Duration;

use base::{SystemRandom, random::uuid};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::stage::{Scene, Stage, deliveries, writes};
use crate::harness::{AwsCall, Behaviour, Interposer, LONG, Moment, Table, announced, stored, until};

/// The time after which the sweep no longer examines the first events.
const SWEPT: Duration = Duration::from_secs(22);
/// The age at which publishing counts as late, plus a margin.
const LATE: Duration = Duration::from_secs(11);

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    let table = stage.table();
    let queue = stage.queue();
    let on_disk = killed_at(stage, "publish: before the key is claimed", table, Moment::Before, key).await;
    assert_eq!(on_disk, "nothing");
    killed_at(stage, "publish: key claimed, answer lost", table, Moment::After, key).await;
    let on_disk = killed_at(stage, "publish: before the event is written", table, Moment::Before, event).await;
    assert!(!on_disk.contains("event") && on_disk.ends_with("key"), "{on_disk}");
    body_without_event(stage, "publish: large body written, no event").await;
    let on_disk = killed_at(stage, "publish: event written, answer lost", table, Moment::After, event).await;
    assert!(has_event_and_key(&on_disk), "{on_disk}");
    killed_at(stage, "publish: before it is announced", queue, Moment::Before, announcement).await;
    killed_at(stage, "publish: announced, answer lost", queue, Moment::After, announcement).await;
    never_repeated(stage, "publish: before it is announced, and never repeated").await;
    written_late(stage, "publish: event written late, and announced in vain").await;
    late_without_event(stage, "publish: late, deliveries opened, no event").await;
    answer_lost(stage, "publish: key claimed, answer lost, no process killed", table, key).await;
    answer_lost(stage, "publish: event written, answer lost, no process killed", table, event).await;
    answer_lost(stage, "publish: announced, answer lost, no process killed", queue, announcement).await;
}

/// Matches the write of the record for a scene's key.
fn key(scene: &Scene) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let key = format!("IDEMPOTENCY#{}#", scene.entity.id);
    move |call| writes(call, &key, "")
}

/// Matches the announcement of a scene's deliveries.
fn announcement(scene: &Scene) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let webhook = scene.hooks[0].id.clone();
    move |call| announced(call).iter().any(|due| due.webhook == webhook)
}

/// Matches the write of a scene's event. The record for the scene's key also names the webhooks.
fn event(scene: &Scene) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let webhook = scene.hooks[0].id.clone();
    move |call| writes(call, &webhook, "'targets': ?")
}

/// Whether these items are on disk. On a slow machine, the sweep has also opened the deliveries.
fn has_event_and_key(on_disk: &str) -> bool {
    on_disk.starts_with("event, ") && on_disk.contains("key")
}

/// Kills the function while this call is held; the client repeats its request. Returns the items that are on disk in
/// between.
async fn killed_at<W>(
    stage: &Stage<'_>,
    point: &str,
    proxy: &Interposer,
    moment: Moment,
    wanted: impl FnOnce(&Scene) -> W,
) -> String
where
    W: Fn(&AwsCall) -> bool + Send + Sync + 'static,
{
    let scene = stage.scene(2, [Behaviour::status(200)]).await;
    let mut held = proxy.hold(point, moment, wanted(&scene));
    let publication = scene.publish();
    held.reached().await;
    stage.kill("publish-event").await;
    held.lose();
    let on_disk = stage.on_disk(&scene).await;
    let first = publication.await.expect("no panic").as_ref().map(deliveries);
    // A function that has waited two seconds for the queue acknowledges the event, which the sweep will announce.
    let is_announcing = std::ptr::eq(proxy, stage.queue());
    assert!(is_announcing || first.is_none(), "{point}: acknowledged by a dead function");
    let deliveries = scene.acknowledged().await;
    assert!(first.is_none_or(|first| first == deliveries), "{point}: another answer to the same key");
    assert_eq!(deliveries.len(), 2, "{point}");
    stage.played(point, on_disk.clone(), &scene, deliveries, "delivered");
    on_disk
}

/// Performs the call but loses the response; the function survives and repeats the call.
async fn answer_lost<W>(stage: &Stage<'_>, point: &str, proxy: &Interposer, wanted: impl FnOnce(&Scene) -> W)
where
    W: Fn(&AwsCall) -> bool + Send + Sync + 'static,
{
    let scene = stage.scene(2, [Behaviour::status(200)]).await;
    let mut held = proxy.hold(point, Moment::After, wanted(&scene));
    let publication = scene.publish();
    held.reached().await;
    held.lose();
    let on_disk = stage.on_disk(&scene).await;
    let answer = publication.await.expect("no panic");
    let first = answer.as_ref().map(deliveries);
    let deliveries = scene.acknowledged().await;
    assert!(first.is_none_or(|first| first == deliveries), "{point}: another answer to the same key");
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}

/// A body that is too large for the event's item is written before the event. The repeated request finds the body.
async fn body_without_event(stage: &Stage<'_>, point: &str) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    // Even when compressed, this text takes more than 2 KB.
    let random: Vec<String> = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let scene = Scene { data: json!({ "random": random }), ..scene };
    let mut held = stage.table().hold(point, Moment::Before, event(&scene));
    let publication = scene.publish();
    let call = held.reached().await;
    stage.kill("publish-event").await;
    held.lose();
    let answer = publication.await.expect("no panic");
    assert!(answer.is_none(), "{point}: acknowledged by a dead function");
    let parameters = call.statements().into_iter().flat_map(|statement| statement["Parameters"].as_array()).flatten();
    let mut texts = parameters.filter_map(|parameter| parameter["S"].as_str());
    let event = texts.find(|text| text.starts_with("evt_")).expect("the event has an identifier");
    let table = Table::of(&stage.setup.api.env);
    let (pk, sk) = stored::body_key(event);
    assert!(table.item(&pk, &sk).await.is_some(), "{point}: the body is written first");
    assert_eq!(table.event(event).await, None, "{point}");
    let deliveries = scene.acknowledged().await;
    assert_eq!(stored::event_of(&deliveries[0]), event, "{point}: the repetition publishes the same event");
    stage.played(point, "key, body".to_owned(), &scene, deliveries, "delivered");
}

/// The client gives up. The event is stored, so the sweep opens its deliveries, and they are sent.
async fn never_repeated(stage: &Stage<'_>, point: &str) {
    let scene = stage.scene(2, [Behaviour::status(200)]).await;
    let mut held = stage.queue().hold(point, Moment::Before, announcement(&scene));
    let publication = scene.publish();
    let call = held.reached().await;
    stage.kill("publish-event").await;
    held.lose();
    let on_disk = stage.on_disk(&scene).await;
    assert!(has_event_and_key(&on_disk), "{point}: {on_disk}");
    let mut stored: Vec<_> = announced(&call).into_iter().map(|due| due.delivery).collect();
    stored.sort_unstable();
    assert_eq!(stored.len(), 2, "{point}");
    // A function that has waited two seconds for the queue acknowledges the event.
    if let Some(mut first) = publication.await.expect("no panic").as_ref().map(deliveries) {
        first.sort_unstable();
        assert_eq!(first, stored, "{point}: other deliveries are acknowledged");
    }
    stage.played(point, on_disk, &scene, stored, "delivered");
}

/// Writing the event takes so long that the sweep has already passed the event's time. The repeated request opens the
/// delivery.
async fn written_late(stage: &Stage<'_>, point: &str) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let mut held = stage.table().hold(point, Moment::Before, event(&scene));
    let publication = scene.publish();
    held.reached().await;
    stage.kill("publish-event").await;
    sleep(SWEPT).await;
    held.release();
    let look = async || Some(stage.on_disk(&scene).await).filter(|on_disk| has_event_and_key(on_disk));
    let on_disk = until("the event is written", LONG, look).await;
    assert!(publication.await.expect("no panic").is_none(), "{point}: acknowledged by a dead function");
    stage.queue().swallow(1, announcement(&scene));
    let deliveries = scene.acknowledged().await;
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}

/// A late repetition opens the delivery before writing the event, and the function dies in between. The sweep announces
/// the delivery before the client repeats the request again, and no dispatcher may abandon the delivery.
async fn late_without_event(stage: &Stage<'_>, point: &str) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let mut held = stage.table().hold(point, Moment::After, key(&scene));
    let publication = scene.publish();
    held.reached().await;
    stage.kill("publish-event").await;
    held.lose();
    assert!(publication.await.expect("no panic").is_none(), "{point}: acknowledged by a dead function");
    sleep(LATE).await;
    let mut held = stage.table().hold(point, Moment::Before, event(&scene));
    let publication = scene.publish();
    held.reached().await;
    stage.kill("publish-event").await;
    held.lose();
    let on_disk = stage.on_disk(&scene).await;
    assert!(on_disk.starts_with("head (pending, 0 attempts") && on_disk.ends_with(", key"), "{point}: {on_disk}");
    assert!(publication.await.expect("no panic").is_none(), "{point}: acknowledged by a dead function");
    until("the head without an event is postponed", LONG, async || {
        let items = Table::of(&stage.setup.api.env).scan().await;
        let of_scene = |item: &&Value| item["webhookIdentifier"]["S"] == *scene.hooks[0].id;
        let mut heads = items.iter().filter(|item| stored::is_head(item)).filter(of_scene);
        heads.any(|head| head["lastUpdate"] != head["createdDate"]).then_some(())
    })
    .await;
    let deliveries = scene.acknowledged().await;
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}
