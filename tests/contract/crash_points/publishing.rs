//! From the request to the acknowledgement: publish-event is killed.

use serde_json::Value;

use super::stage::{Scene, Stage, writes};
use crate::harness::{AwsCall, Behaviour, Interposer, LONG, Moment, Table, until};

/// Every point, one after the other.
pub async fn play(stage: &Stage<'_>) {
    let key = |scene: &Scene| {
        let key = format!("IDEMPOTENCY#{}#", scene.entity.id);
        move |call: &AwsCall| writes(call, &key, "")
    };
    let heads = |scene: &Scene| {
        let webhook = scene.hooks[0].id.clone();
        move |call: &AwsCall| writes(call, &webhook, "INSERT INTO") && call.mentions("HEAD")
    };
    let announcement = |scene: &Scene| {
        let webhook = scene.hooks[0].id.clone();
        move |call: &AwsCall| call.operation == "SendMessageBatch" && call.mentions(&webhook)
    };
    let (table, queue) = (stage.table(), stage.queue());
    killed_at(stage, "publish: before the key is claimed", table, Moment::Before, key).await;
    killed_at(stage, "publish: key claimed, answer lost", table, Moment::After, key).await;
    killed_at(stage, "publish: before body and heads are written", table, Moment::Before, heads).await;
    in_part(stage, "publish: body written, no head", |sk| sk == "BODY").await;
    in_part(stage, "publish: heads written, no body", |sk| sk == "HEAD").await;
    killed_at(stage, "publish: body and heads written, answer lost", table, Moment::After, heads).await;
    killed_at(stage, "publish: before the queue is told", queue, Moment::Before, announcement).await;
    killed_at(stage, "publish: queue told, answer lost", queue, Moment::After, announcement).await;
    answer_lost(stage, "publish: key claimed, answer lost, nobody killed", table, key).await;
    answer_lost(stage, "publish: body and heads written, answer lost, nobody killed", table, heads).await;
    answer_lost(stage, "publish: queue told, answer lost, nobody killed", queue, announcement).await;
}

/// The function is killed while this call is held; the client repeats.
async fn killed_at<W>(
    stage: &Stage<'_>,
    point: &str,
    proxy: &Interposer,
    moment: Moment,
    wanted: impl FnOnce(&Scene) -> W,
) where
    W: Fn(&AwsCall) -> bool + Send + Sync + 'static,
{
    let scene = stage.scene(2, [Behaviour::status(200)]).await;
    let mut held = proxy.hold(point, moment, wanted(&scene));
    let publication = scene.publish();
    held.reached().await;
    stage.kill("publish-event").await;
    held.lose();
    let on_disk = stage.on_disk(&scene).await;
    let answer = publication.await.expect("no panic");
    assert!(answer.is_none(), "{point}: acknowledged by nobody");
    let deliveries = scene.acknowledged().await;
    assert_eq!(deliveries.len(), 2, "{point}");
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}

/// The call is carried out and its answer never comes; the function lives and asks again.
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
    let first = answer.as_ref().map(super::stage::deliveries);
    let deliveries = scene.acknowledged().await;
    assert!(first.is_none_or(|first| first == deliveries), "{point}: another answer to the same key");
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}

/// Only the items with these sort keys are written before the function dies: of one batch those statements, and of several
/// those batches.
async fn in_part(stage: &Stage<'_>, point: &str, kept: impl Fn(&str) -> bool) {
    let scene = stage.scene(2, [Behaviour::status(200)]).await;
    let sort_key = |statement: &Value| -> String {
        let parameters = statement["Parameters"].as_array().into_iter().flatten();
        let mut texts = parameters.filter_map(|parameter| parameter["S"].as_str());
        texts.find(|text| ["BODY", "HEAD"].contains(text)).unwrap_or_default().to_owned()
    };
    let lost: &'static str = if kept("BODY") { "HEAD" } else { "BODY" };
    let written: &'static str = if lost == "HEAD" { "BODY" } else { "HEAD" };
    let mut held = stage.table().hold(point, Moment::Before, {
        let entity = scene.entity.id.clone();
        move |call: &AwsCall| writes(call, &entity, "INSERT INTO") && call.mentions(&format!("\"{lost}\""))
    });
    let publication = scene.publish();
    let call = held.reached().await;
    let statements: Vec<Value> = call.statements().into_iter().cloned().collect();
    let rest: Vec<Value> = statements.into_iter().filter(|statement| kept(&sort_key(statement))).collect();
    if rest.is_empty() {
        // It has a batch of its own, which nobody held.
        until(&format!("{written} is written"), LONG, async || on_disk_has(stage, &scene, written).await.then_some(()))
            .await;
        stage.kill("publish-event").await;
        held.lose();
    } else {
        stage.kill("publish-event").await;
        let mut body = call.body.clone();
        body["Statements"] = rest.into();
        held.carry_out_only(body);
        until(&format!("{written} is written"), LONG, async || on_disk_has(stage, &scene, written).await.then_some(()))
            .await;
    }
    let on_disk = stage.on_disk(&scene).await;
    assert!(!on_disk_has(stage, &scene, lost).await, "{point}: {on_disk}");
    let answer = publication.await.expect("no panic");
    assert!(answer.is_none(), "{point}: acknowledged by nobody");
    if lost == "BODY" {
        // The sweep must find the head before the client repeats, and must not give it up.
        until("the head without a body is put off", LONG, async || {
            let items = Table::of(&stage.stood.api.env).scan().await;
            let head =
                |item: &&Value| item["sk"]["S"] == "HEAD" && item["webhookIdentifier"]["S"] == *scene.hooks[0].id;
            items.iter().find(head).filter(|head| head["lastUpdate"] != head["createdDate"]).map(drop)
        })
        .await;
    }
    let deliveries = scene.acknowledged().await;
    assert_eq!(deliveries.len(), 2, "{point}");
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}

/// Whether the table has an item of the scene with this sort key.
async fn on_disk_has(stage: &Stage<'_>, scene: &Scene, sort_key: &str) -> bool {
    let items = Table::of(&stage.stood.api.env).scan().await;
    items.iter().any(|item| item["sk"]["S"] == sort_key && item.to_string().contains(&scene.entity.id))
}
