//! dispatch-deliveries is killed at points between the message, the attempt's record, and the next attempt.

use futures::join;
use serde_json::json;

use super::stage::{Scene, Stage, acknowledged, deliveries, writes};
use crate::harness::{
    AwsCall, Behaviour, Interposer, Moment, Table, announced, outcomes, purge, stored, until_a_round_counts,
};

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    let table = stage.table();
    let queue = stage.queue();
    let fine = || vec![Behaviour::status(200)];
    // The endpoint fails once, then always succeeds.
    let fails_once = || vec![Behaviour::status(500), Behaviour::status(200)];
    let large = || vec![Behaviour::answer(200, &[], "x".repeat(5_000))];
    // The first claim inserts the head, unless the announcement was late and a sweep has already inserted it.
    let claim = |delivery: &str| {
        let (inserted, changed) = (statement_on(delivery, "'lease': ?"), statement_on(delivery, "lease IS MISSING"));
        move |call: &AwsCall| inserted(call) || changed(call)
    };
    let record = |delivery: &str| statement_on(delivery, "SET attemptCount=?");
    let transaction = |delivery: &str| transaction_on(delivery);

    killed_at(stage, "dispatch: before the claim", fine(), table, Moment::Before, claim).await;
    killed_at(stage, "dispatch: claimed, answer lost", fine(), table, Moment::After, claim).await;
    killed_with_the_request_under_way(stage, "dispatch: request sent, not answered").await;
    killed_at(stage, "dispatch: answered, not recorded", fine(), table, Moment::Before, record).await;
    killed_at(stage, "dispatch: recorded, answer lost", fine(), table, Moment::After, record).await;
    killed_at(stage, "dispatch: failed, not recorded", fails_once(), table, Moment::Before, record).await;
    killed_at(stage, "dispatch: failed and recorded, answer lost", fails_once(), table, Moment::After, record).await;
    killed_at(stage, "dispatch: large answer, not recorded", large(), table, Moment::Before, transaction).await;
    killed_at(stage, "dispatch: large answer recorded, answer lost", large(), table, Moment::After, transaction).await;
    let second = |delivery: &str| announcement_of(delivery, 2);
    killed_at(stage, "dispatch: recorded, next not announced", fails_once(), queue, Moment::Before, second).await;
    killed_at(stage, "dispatch: next announced, answer lost", fails_once(), queue, Moment::After, second).await;
    queue_forgets_a_retry(stage, "dispatch: next announced, not due, and the queue forgets everything").await;

    let scene = stage.scene(1, fine()).await;
    answer_lost(stage, "dispatch: claimed, answer lost, no process killed", scene, table, claim).await;
    let scene = stage.scene(1, fine()).await;
    answer_lost(stage, "dispatch: recorded, answer lost, no process killed", scene, table, record).await;
    let point = "dispatch: large answer recorded, answer lost, no process killed";
    let scene = stage.scene(1, large()).await;
    answer_lost(stage, point, scene, table, transaction).await;

    killed_while_counting(stage, "dispatch: recorded, not counted", Moment::Before).await;
    killed_while_counting(stage, "dispatch: counted, answer lost", Moment::After).await;
    // Test these concurrently, since each has to wait for a schedule and a lease.
    join!(
        exhausted(stage, "dispatch: exhausted, record and event not written", Moment::Before),
        exhausted(stage, "dispatch: exhausted, record and event written, answer lost", Moment::After),
    );
    join!(
        announced_meanwhile(
            stage,
            "dispatch: exhausted, and another dispatcher announces it meanwhile",
            500,
            "webhook.delivery.exhausted"
        ),
        announced_meanwhile(
            stage,
            "dispatch: 410, and another dispatcher announces it meanwhile",
            410,
            "webhook.disabled"
        ),
    );
}

/// Matches a write to a delivery's head that contains these words.
fn statement_on(delivery: &str, words: &'static str) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let key = delivery.to_owned();
    move |call| call.operation != "TransactWriteItems" && writes(call, &key, words)
}

/// Matches a transaction that records an attempt for a delivery.
pub fn transaction_on(delivery: &str) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let (pk, sk) = stored::head_key(delivery);
    move |call| call.operation == "TransactWriteItems" && call.mentions(&pk) && call.mentions(&sk)
}

/// Matches the message for a delivery's attempt.
fn announcement_of(delivery: &str, attempt: u64) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let delivery = delivery.to_owned();
    move |call| announced(call).iter().any(|due| due.delivery == delivery && due.number == attempt)
}

/// Kills the function while this call is held.
async fn killed_at<W>(
    stage: &Stage<'_>,
    point: &str,
    script: Vec<Behaviour>,
    proxy: &Interposer,
    moment: Moment,
    wanted: impl FnOnce(&str) -> W,
) where
    W: Fn(&AwsCall) -> bool + Send + Sync + 'static,
{
    let scene = stage.scene(1, script).await;
    let (delivery, announced, publication) = stage.publish_and_hold(&scene).await;
    let mut held = proxy.hold(point, moment, wanted(&delivery));
    announced.release();
    acknowledged(publication).await;
    held.reached().await;
    stage.kill("dispatch-deliveries").await;
    held.lose();
    stage.note(point, &scene, vec![delivery], "delivered").await;
}

/// Performs the call but loses the response. The function survives and repeats the call, but makes the attempt only
/// once.
async fn answer_lost<W>(
    stage: &Stage<'_>,
    point: &str,
    scene: Scene,
    proxy: &Interposer,
    wanted: impl FnOnce(&str) -> W,
) where
    W: Fn(&AwsCall) -> bool + Send + Sync + 'static,
{
    let (delivery, announced, publication) = stage.publish_and_hold(&scene).await;
    let mut held = proxy.hold(point, Moment::After, wanted(&delivery));
    announced.release();
    acknowledged(publication).await;
    held.reached().await;
    held.lose();
    let shown = scene.entity.until_status(&delivery, &["delivered", "failed"]).await;
    assert_eq!(outcomes(&shown), 1, "{point}: {shown:#}");
    assert_eq!(stage.until_received(&scene, 1).await.len(), 1, "{point}");
    stage.note(point, &scene, vec![delivery], "delivered").await;
}

async fn killed_with_the_request_under_way(stage: &Stage<'_>, point: &str) {
    let scene = stage.scene(1, [Behaviour::hang()]).await;
    let publication = scene.publish_undisturbed();
    stage.until_received(&scene, 1).await;
    stage.receiver_does(&scene, [Behaviour::status(200)]);
    stage.kill("dispatch-deliveries").await;
    let answer = acknowledged(publication).await;
    stage.note(point, &scene, deliveries(&answer), "delivered").await;
}

/// The queue loses the message for the second attempt.
async fn queue_forgets_a_retry(stage: &Stage<'_>, point: &str) {
    // The delay leaves enough time to lose the message.
    let busy = Behaviour::answer(503, &[("Retry-After", "4")], "");
    let scene = stage.scene(1, [busy, Behaviour::status(200)]).await;
    let (delivery, announced, publication) = stage.publish_and_hold(&scene).await;
    announced.release();
    acknowledged(publication).await;
    scene.entity.until_delivery(&delivery, "waits for its second attempt", |shown| shown["attemptCount"] == 1).await;
    purge(&stage.setup.api.env, "DeliveryQueue").await;
    stage.kill("dispatch-deliveries").await;
    stage.note(point, &scene, vec![delivery], "delivered").await;
}

/// The attempt is in the history; its count may be missing from the statistics.
async fn killed_while_counting(stage: &Stage<'_>, point: &str, moment: Moment) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let counter = format!("STA#{}", scene.hooks[0].id);
    let mut held = stage.table().hold(point, moment, move |call| call.mentions(&counter));
    let publication = scene.publish_undisturbed();
    let answer = acknowledged(publication).await;
    held.reached().await;
    stage.kill("dispatch-deliveries").await;
    held.lose();
    stage.note(point, &scene, deliveries(&answer), "delivered").await;
}

/// The last attempt fails, and the same transaction writes the event about it: either both are written once, or
/// neither.
async fn exhausted(stage: &Stage<'_>, point: &str, moment: Moment) {
    let scene = stage.scene(1, [Behaviour::status(500)]).await;
    let listener = listener(stage, &scene).await;
    let (delivery, announced, publication) = stage.publish_and_hold(&scene).await;
    // Of the three attempts, only the last uses a transaction.
    let mut held = stage.table().hold(point, moment, transaction_on(&delivery));
    announced.release();
    acknowledged(publication).await;
    held.reached().await;
    stage.kill("dispatch-deliveries").await;
    held.lose();
    stage.note(point, &scene, vec![delivery.clone()], "failed").await;
    scene.entity.until_status(&delivery, &["failed"]).await;
    let received = stage.until_received(&listener, 1).await;
    assert_eq!(received[0].json()["type"], "webhook.delivery.exhausted", "{point}");
    assert_eq!(received[0].json()["data"]["deliveryIdentifier"], *delivery, "{point}");
    let one = received[0].header("webhook-id");
    assert!(
        received.iter().all(|request| request.header("webhook-id") == one),
        "{point}: announced by more than one event"
    );
}

/// Another dispatcher announces the same event during the transaction. The change is then written without the event.
async fn announced_meanwhile(stage: &Stage<'_>, point: &str, status: u16, kind: &'static str) {
    let spoiled = format!("{point}: the change was not made");
    until_a_round_counts(3, &spoiled, async || is_changed_without_the_event(stage, point, status, kind).await).await;
}

/// Whether the change is made. The dispatcher gives up disabling a webhook after two seconds. On a slow machine, holding
/// the transaction may take that long.
async fn is_changed_without_the_event(stage: &Stage<'_>, point: &str, status: u16, kind: &'static str) -> bool {
    let scene = stage.scene(1, [Behaviour::status(status)]).await;
    let hook = &scene.hooks[0];
    let (delivery, announced, publication) = stage.publish_and_hold(&scene).await;
    let mark = format!("ANNOUNCED#{}", hook.id);
    let marks = mark.clone();
    let mut held = stage.table().hold(point, Moment::Before, move |call| {
        call.operation == "TransactWriteItems" && call.mentions(&marks) && call.mentions(kind)
    });
    announced.release();
    acknowledged(publication).await;
    held.reached().await;
    let item = json!({ "pk": { "S": mark }, "sk": { "S": kind }, "expiresAt": { "N": "4000000000" } });
    Table::of(&stage.setup.api.env).put(item).await;
    held.release();
    let shown = scene.entity.until_status(&delivery, &["failed", "cancelled"]).await;
    let made = if status == 410 { 1 } else { 3 };
    assert_eq!((&shown["status"], &shown["attemptCount"]), (&json!("failed"), &json!(made)), "{point}: {shown:#}");
    let is_enabled = scene.entity.listed(hook).await["enabled"] == true;
    if status == 410 && is_enabled {
        return false;
    }
    assert_eq!(is_enabled, status != 410, "{point}");
    let items = Table::of(&stage.setup.api.env).scan().await;
    let of_entity = items.iter().filter(|item| item["ownerIdentifier"]["S"] == *scene.entity.id);
    assert_eq!(of_entity.filter(|item| item["type"]["S"] == kind).count(), 0, "{point}: it was announced twice");
    stage.note(point, &scene, vec![delivery], "failed").await;
    true
}

/// A second webhook of the entity, which receives events about the first.
pub async fn listener(stage: &Stage<'_>, scene: &Scene) -> Scene {
    let path = format!("{}-listener", scene.path);
    let listener = Scene { path, ..scene.clone() };
    let url = stage.receiver_does(&listener, [Behaviour::status(200)]);
    let body = json!({ "name": "listener", "eventUrl": url, "eventList": ["webhook.delivery.exhausted"] });
    scene.entity.hook_with(body).await;
    listener
}
