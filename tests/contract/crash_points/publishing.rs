//! publish-event is killed between the request and the acknowledgement.

use serde_json::{Value, json};

use super::stage::{Scene, Stage, deliveries, writes};
use crate::harness::{AwsCall, Behaviour, Interposer, LONG, Moment, Table, until};

/// Plays every point, one after the other.
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
    let table = stage.table();
    let queue = stage.queue();
    killed_at(stage, "publish: before the key is claimed", table, Moment::Before, key).await;
    killed_at(stage, "publish: key claimed, answer lost", table, Moment::After, key).await;
    killed_at(stage, "publish: before body and heads are written", table, Moment::Before, heads).await;
    let second_head = |scene: &Scene| scene.hooks[1].id.clone();
    in_part(stage, "publish: body written, no head", 1, "BODY", |_| "HEAD".to_owned()).await;
    in_part(stage, "publish: head written, no body", 1, "HEAD", |_| "BODY".to_owned()).await;
    in_part(stage, "publish: one head of two written", 2, "HEAD", second_head).await;
    killed_at(stage, "publish: body and heads written, answer lost", table, Moment::After, heads).await;
    killed_at(stage, "publish: before it is announced", queue, Moment::Before, announcement).await;
    killed_at(stage, "publish: announced, answer lost", queue, Moment::After, announcement).await;
    answer_lost(stage, "publish: key claimed, answer lost, no process killed", table, key).await;
    answer_lost(stage, "publish: body and heads written, answer lost, no process killed", table, heads).await;
    answer_lost(stage, "publish: announced, answer lost, no process killed", queue, announcement).await;
}

/// Kills the function while this call is held; the client repeats its request.
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
    assert!(answer.is_none(), "{point}: acknowledged by a dead function");
    let deliveries = scene.acknowledged().await;
    assert_eq!(deliveries.len(), 2, "{point}");
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}

/// Carries out the call but loses its answer; the function lives and repeats the call.
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

/// Kills the function before the statements with this parameter are written. The other statements of the batch, or the
/// other batches, are written.
async fn in_part(stage: &Stage<'_>, point: &str, webhooks: usize, written: &str, lost: impl Fn(&Scene) -> String) {
    let scene = stage.scene(webhooks, [Behaviour::status(200)]).await;
    let lost = lost(&scene);
    let entity = scene.entity.id.clone();
    let is_lost = {
        let lost = format!("\"{lost}\"");
        move |statement: &Value| {
            let text = statement.to_string();
            text.contains("INSERT INTO") && text.contains(&lost) && text.contains(&entity)
        }
    };
    let mut held = stage.table().hold(point, Moment::Before, {
        let is_lost = is_lost.clone();
        move |call: &AwsCall| call.operation != "TransactWriteItems" && call.statements().into_iter().any(&is_lost)
    });
    let publication = scene.publish();
    let call = held.reached().await;
    let rest: Vec<&Value> = call.statements().into_iter().filter(|statement| !is_lost(statement)).collect();
    let rest_is_written = async || {
        let looked = async || on_disk_has(stage, &scene, written).await.then_some(());
        until(&format!("{written} is written"), LONG, looked).await;
    };
    if rest.is_empty() {
        // The rest is in a separate batch, which was not held.
        rest_is_written().await;
        stage.kill("publish-event").await;
        held.lose();
    } else {
        stage.kill("publish-event").await;
        let mut body = call.body.clone();
        body["Statements"] = json!(rest);
        held.carry_out_only(body);
        rest_is_written().await;
    }
    let on_disk = stage.on_disk(&scene).await;
    assert!(webhooks == 2 || !on_disk_has(stage, &scene, &lost).await, "{point}: {on_disk}");
    let answer = publication.await.expect("no panic");
    assert!(answer.is_none(), "{point}: acknowledged by a dead function");
    if lost == "BODY" {
        // The sweep must find the head before the client repeats, and must not give it up.
        until("the head without a body is put off", LONG, async || {
            let items = Table::of(&stage.setup.api.env).scan().await;
            let head =
                |item: &&Value| item["sk"]["S"] == "HEAD" && item["webhookIdentifier"]["S"] == *scene.hooks[0].id;
            items.iter().find(head).filter(|head| head["lastUpdate"] != head["createdDate"]).map(drop)
        })
        .await;
    }
    let deliveries = scene.acknowledged().await;
    assert_eq!(deliveries.len(), webhooks, "{point}");
    stage.played(point, on_disk, &scene, deliveries, "delivered");
}

/// Whether the table has an item of the scene with this sort key.
async fn on_disk_has(stage: &Stage<'_>, scene: &Scene, sort_key: &str) -> bool {
    let items = Table::of(&stage.setup.api.env).scan().await;
    items.iter().any(|item| item["sk"]["S"] == sort_key && item.to_string().contains(&scene.entity.id))
}
