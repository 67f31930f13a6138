//! erase-event is killed at each of its writes, and dispatch-deliveries finds an event erased when it claims and when
//! it records. In the end, none of the event's content remains.

use serde_json::json;

use super::stage::{Scene, Stage, acknowledged, writes};
use crate::{
    erasing::{erase, items_about, left_in},
    harness::{AwsCall, Behaviour, Held, LONG, Moment, Table, stored, until},
};

/// Tests each crash point. Each point ends later, once the sweep has completed the erasure.
pub async fn play(stage: &Stage<'_>) {
    let event = |event: &str, _: &str| transaction_on_event(event);
    let head = |_: &str, delivery: &str| statement_on(delivery, "SET erasedDate=?");
    let large = |_: &str, delivery: &str| statement_on(delivery, "REMOVE responseBody");
    let job = |event: &str, _: &str| removal_of_job(event);
    let (before, after) = (Moment::Before, Moment::After);
    let played = [
        killed_at(stage, "erase: before the transaction", before, event, true).await,
        killed_at(stage, "erase: event erased and job written, answer lost", after, event, true).await,
        killed_at(stage, "erase: event erased, answer lost, no process killed", after, event, false).await,
        killed_at(stage, "erase: delivery not marked", before, head, true).await,
        killed_at(stage, "erase: delivery marked, answer lost", after, head, true).await,
        killed_at(stage, "erase: large attempt not erased", before, large, true).await,
        killed_at(stage, "erase: large attempt erased, answer lost", after, large, true).await,
        killed_at(stage, "erase: all erased, job not removed", before, job, true).await,
        killed_at(stage, "erase: job removed, answer lost", after, job, true).await,
        unclaimed(stage, "erase: meanwhile, a worker begins the first claim").await,
        recorded(stage, "erase: meanwhile, a small answer waits for its record", GUEST.len(), false).await,
        recorded(stage, "erase: meanwhile, a large answer waits for its record", LARGE, false).await,
        recorded(stage, "erase: meanwhile, an answer is not recorded, and its worker dies", LARGE, true).await,
    ];
    for Played { point, scene, event, delivery, on_disk, ends } in played {
        scene.entity.until_status(&delivery, &[ends]).await;
        let table = Table::of(&stage.setup.api.env);
        let guest = guest_of(&scene);
        until(&format!("{point}: nothing is left"), LONG, async || {
            let items = items_about(&table, &event, &guest).await;
            let is_job = |pk: &str| pk.starts_with("JOB#");
            let has_job = items.iter().any(|item| item["pk"]["S"].as_str().is_some_and(is_job));
            assert!(!items.is_empty(), "{point}: the event itself stays");
            (!has_job && left_in(&items, &guest).is_empty()).then_some(())
        })
        .await;
        // If a delivery is cancelled before it is claimed, or its worker dies, no history contains its requests.
        let deliveries = if ends == "cancelled" { Vec::new() } else { vec![delivery] };
        stage.played(point, on_disk, &scene, deliveries, ends);
    }
}

/// The beginning of the guest's name in an event, which the entity's name follows.
const GUEST: &str = "guest-of";
/// The size in bytes of a response that does not fit into the head.
const LARGE: usize = 3_000;

/// A tested crash point whose erasure is not complete yet.
struct Played {
    point: &'static str,
    scene: Scene,
    event: String,
    delivery: String,
    on_disk: String,
    ends: &'static str,
}

fn guest_of(scene: &Scene) -> String {
    format!("{GUEST}-{}", scene.entity.id)
}

/// A scene with a guest's name in its event, and an endpoint that repeats the name in a response of this many bytes.
async fn scene(stage: &Stage<'_>, bytes: usize) -> Scene {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let guest = guest_of(&scene);
    stage.receiver_does(&scene, [Behaviour::answer(200, &[], format!("{guest}{}", "x".repeat(bytes)))]);
    Scene { data: json!({ "scene": scene.entity.id, "guest": guest }), ..scene }
}

fn content(event: &str) -> String {
    format!("/webhook/event/{event}/content")
}

/// Matches the transaction that erases an event.
fn transaction_on_event(event: &str) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let job = format!("JOB#{event}");
    move |call| call.operation == "TransactWriteItems" && call.mentions(&job)
}

/// Matches a write outside a transaction that contains these words.
fn statement_on(delivery: &str, words: &'static str) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let key = delivery.to_owned();
    move |call| call.operation != "TransactWriteItems" && writes(call, &key, words)
}

fn removal_of_job(event: &str) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let job = format!("JOB#{event}");
    move |call| call.operation == "DeleteItem" && call.mentions(&job)
}

/// Kills the function, or only loses the response, while this call for an erasure is held.
async fn killed_at<W>(
    stage: &Stage<'_>,
    point: &'static str,
    moment: Moment,
    wanted: impl FnOnce(&str, &str) -> W,
    kills: bool,
) -> Played
where
    W: Fn(&AwsCall) -> bool + Send + Sync + 'static,
{
    let scene = scene(stage, LARGE).await;
    let delivery = scene.acknowledged().await.remove(0);
    scene.entity.until_status(&delivery, &["delivered"]).await;
    let event = stored::event_of(&delivery);
    let mut held = stage.table().hold(point, moment, wanted(&event, &delivery));
    let erasing = {
        let call = scene.entity.call("DELETE", &content(&event));
        tokio::spawn(async move { call.attempt().await })
    };
    held.reached().await;
    if kills {
        stage.kill("erase-event").await;
    }
    held.lose();
    let _answer = erasing.await.expect("no panic");
    let on_disk = stage.on_disk(&scene).await;
    let shown = scene.entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
    if shown.get("erasedDate").is_none() {
        assert_eq!(shown["data"], scene.data, "{point}: all or nothing");
        erase(&scene.entity, &event).await;
    } else {
        assert_eq!(shown["data"], json!({}), "{point}");
    }
    // From the transaction on, no response shows the name, even if the job has not run yet.
    assert!(!scene.entity.delivery(&delivery).await.to_string().contains(&guest_of(&scene)), "{point}");
    Played { point, scene, event, delivery, on_disk, ends: "delivered" }
}

/// Waits until the function's process is running, since an earlier crash point may have killed it: the dispatcher
/// repeats a held call after a few seconds, and the event must be erased before then.
async fn start_erasing(scene: &Scene) {
    let nothing = content("evt_00000000000000000000000000");
    until("the function answers", LONG, async || {
        let answer = scene.entity.call("DELETE", &nothing).attempt().await.ok()?;
        (answer.status == 404).then_some(())
    })
    .await;
}

/// The event is erased after a worker has read it, but before the worker claims its delivery.
async fn unclaimed(stage: &Stage<'_>, point: &'static str) -> Played {
    let scene = scene(stage, LARGE).await;
    start_erasing(&scene).await;
    let (delivery, announced, publication) = stage.publish_and_hold(&scene).await;
    let claim = || statement_on(&delivery, "'lease': ?");
    let mut held = stage.table().hold(point, Moment::Before, claim());
    // A worker gives up a claim that takes five seconds, and the next ones claim as well.
    let next: Vec<_> = (0..4).map(|_| stage.table().hold(point, Moment::Before, claim())).collect();
    announced.release();
    acknowledged(publication).await;
    held.reached().await;
    let event = stored::event_of(&delivery);
    erase(&scene.entity, &event).await;
    let on_disk = stage.on_disk(&scene).await;
    held.release();
    next.into_iter().for_each(Held::release);
    Played { point, scene, event, delivery, on_disk, ends: "cancelled" }
}

/// The event is erased after the endpoint has responded and before the attempt is recorded.
async fn recorded(stage: &Stage<'_>, point: &'static str, bytes: usize, kills: bool) -> Played {
    let scene = scene(stage, bytes).await;
    start_erasing(&scene).await;
    let (delivery, announced, publication) = stage.publish_and_hold(&scene).await;
    let (pk, sk) = stored::head_key(&delivery);
    let key = delivery.clone();
    let record = move |call: &AwsCall| match call.operation.as_str() {
        "TransactWriteItems" => call.mentions(&pk) && call.mentions(&sk),
        _ => writes(call, &key, "SET attemptCount=?"),
    };
    let mut held = stage.table().hold(point, Moment::Before, record);
    announced.release();
    acknowledged(publication).await;
    held.reached().await;
    let event = stored::event_of(&delivery);
    erase(&scene.entity, &event).await;
    let on_disk = stage.on_disk(&scene).await;
    if kills {
        stage.kill("dispatch-deliveries").await;
        held.lose();
    } else {
        held.release();
    }
    Played { point, scene, event, delivery, on_disk, ends: if kills { "cancelled" } else { "delivered" } }
}
