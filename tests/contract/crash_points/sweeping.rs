//! sweep-deliveries is killed while it opens and announces deliveries, publishes the outbox, and works on jobs.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::{Value, json};

use super::{
    dispatching::{listener, transaction_on},
    stage::{Scene, Stage, acknowledged, deliveries, writes},
};
use crate::harness::{AwsCall, Behaviour, Held, Interposer, LONG, Moment, Table, announced, until};

/// More deliveries than one call changes, but fewer than a page.
const MANY: usize = 60;

/// Tests each crash point in turn: a sweep does all its work concurrently, and is killed during one part at a time.
pub async fn play(stage: &Stage<'_>) {
    let recovered = recovery(stage, "recover: a page done in part").await;
    let cancelled = cancellation(stage, "cancel: a page done in part").await;

    let kept = |event: &str| event.to_owned();
    let outbox = |event: &str| format!("OUTBOX#{event}");
    let events = [
        outbox_at(stage, "outbox: read, not published", Moment::Before, "'targets': ?", kept).await,
        outbox_at(stage, "outbox: published, answer lost", Moment::After, "'targets': ?", kept).await,
        outbox_at(stage, "outbox: published, not removed", Moment::Before, "", outbox).await,
        outbox_at(stage, "outbox: removed, answer lost", Moment::After, "", outbox).await,
    ];

    let table = stage.table();
    let queue = stage.queue();
    let opened = |delivery: &str| {
        let delivery = delivery.to_owned();
        Box::new(move |call: &AwsCall| writes(call, &delivery, "'dueAt': ?")) as Wanted
    };
    let postponed = |delivery: &str| {
        let delivery = delivery.to_owned();
        Box::new(move |call: &AwsCall| writes(call, &delivery, "SET dueAt=? SET sweeps=?")) as Wanted
    };
    let announced = |delivery: &str| {
        let delivery = delivery.to_owned();
        Box::new(move |call: &AwsCall| announces(call, &delivery)) as Wanted
    };
    overdue_at(stage, "sweep: new, not opened", table, Moment::Before, &opened).await;
    overdue_at(stage, "sweep: opened, answer lost", table, Moment::After, &opened).await;
    overdue_at(stage, "sweep: overdue, not postponed", table, Moment::Before, &postponed).await;
    overdue_at(stage, "sweep: postponed, answer lost", table, Moment::After, &postponed).await;
    overdue_at(stage, "sweep: postponed, not announced", queue, Moment::Before, &announced).await;
    overdue_at(stage, "sweep: announced, answer lost", queue, Moment::After, &announced).await;

    recovered_once(stage, &recovered).await;
    until_heads(stage, &cancelled, "cancelled", MANY).await;
    for event in &events {
        published_once(stage, event).await;
    }
}

type Wanted = Box<dyn Fn(&AwsCall) -> bool + Send + Sync>;

fn announces(call: &AwsCall, delivery: &str) -> bool {
    announced(call).iter().any(|due| due.delivery == delivery)
}

/// The first announcement is lost; then, the sweep that opens and announces the delivery is killed.
async fn overdue_at(
    stage: &Stage<'_>,
    point: &str,
    proxy: &Interposer,
    moment: Moment,
    wanted: &impl Fn(&str) -> Wanted,
) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let (delivery, first, publication) = stage.publish_and_hold(&scene).await;
    let lost = delivery.clone();
    stage.queue().swallow(1, move |call| announces(call, &lost));
    first.release();
    acknowledged(publication).await;
    kill_sweep(stage, proxy.hold(point, moment, wanted(&delivery))).await;
    stage.note(point, &scene, vec![delivery], "delivered").await;
}

async fn kill_sweep(stage: &Stage<'_>, mut held: Held) {
    held.reached().await;
    stage.kill("sweep-deliveries").await;
    held.lose();
}

/// An event about a failed delivery, and the webhook that subscribes to it.
struct Announced {
    point: &'static str,
    listener: Scene,
    delivery: String,
}

/// A delivery finally fails, and the sweep that publishes the event about it is killed.
async fn outbox_at(
    stage: &Stage<'_>,
    point: &'static str,
    moment: Moment,
    words: &'static str,
    item: impl Fn(&str) -> String,
) -> Announced {
    let scene = stage.scene(1, [Behaviour::status(500)]).await;
    let listener = listener(stage, &scene).await;
    let (delivery, first, publication) = stage.publish_and_hold(&scene).await;
    let mut last_attempt = stage.table().hold("the last attempt", Moment::Before, transaction_on(&delivery));
    first.release();
    acknowledged(publication).await;
    let item = item(&event_in(&last_attempt.reached().await));
    let held = stage.table().hold(point, moment, move |call| {
        call.operation != "GetItem" && call.operation != "BatchGetItem" && writes(call, &item, words)
    });
    last_attempt.release();
    kill_sweep(stage, held).await;
    stage.note(point, &scene, vec![delivery.clone()], "failed").await;
    Announced { point, listener, delivery }
}

/// Checks that the subscribed webhook receives one event, and that the outbox is empty.
async fn published_once(stage: &Stage<'_>, announced: &Announced) {
    let Announced { point, listener, delivery } = announced;
    let requests = stage.until_received(listener, 1).await;
    let one = requests[0].header("webhook-id").to_owned();
    assert_eq!(requests[0].json()["data"]["deliveryIdentifier"], **delivery, "{point}");
    until("the outbox is empty", LONG, async || {
        let items = Table::of(&stage.setup.api.env).scan().await;
        let mut outbox = items.iter().filter(|item| item["pk"]["S"] == format!("OUTBOX#{one}"));
        outbox.next().is_none().then_some(())
    })
    .await;
    let requests = stage.until_received(listener, 1).await;
    assert!(
        requests.iter().all(|request| request.header("webhook-id") == one),
        "{point}: announced by more than one event"
    );
    assert!(requests.iter().all(|request| request.body == requests[0].body), "{point}: the bodies differ");
}

/// The event that a transaction puts into the outbox.
fn event_in(call: &AwsCall) -> String {
    let text = call.body.to_string();
    // The key of the outbox's shard has the same prefix, but does not contain an event.
    let start = text.split("OUTBOX#evt_").nth(1).unwrap_or_else(|| panic!("nothing for the outbox in {text}"));
    format!("evt_{}", start.chars().take_while(char::is_ascii_alphanumeric).collect::<String>())
}

/// Holds the second of the calls that change many deliveries.
fn hold_second(stage: &Stage<'_>, point: &str, wanted: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Held {
    let before = AtomicUsize::new(0);
    stage.table().hold(point, Moment::Before, move |call| {
        call.statements().into_iter().any(&wanted) && before.fetch_add(1, Ordering::Relaxed) == 1
    })
}

/// Publishes many events, each with its own key; returns the deliveries.
async fn publish_many(scene: &Scene) -> Vec<String> {
    let publications = (0..MANY).map(|number| async move {
        let body = json!({ "type": "booking.created", "data": { "number": number } });
        let key = format!("{}-{number}", scene.entity.id);
        let call = || scene.entity.post("/webhook/event").header("idempotency-key", &key).json(&body);
        let answer = until("a publication is acknowledged", LONG, async || {
            call().attempt().await.ok().filter(|answer| answer.status == 202)
        });
        deliveries(&answer.await)
    });
    join_all(publications).await.concat()
}

/// Waits until at least this many of a scene's heads have this status; returns their number.
async fn until_heads(stage: &Stage<'_>, scene: &Scene, status: &str, at_least: usize) -> usize {
    until(&format!("{at_least} heads are {status}"), LONG, async || {
        let items = Table::of(&stage.setup.api.env).scan().await;
        let heads = items
            .iter()
            .filter(|item| item["webhookIdentifier"]["S"] == *scene.hooks[0].id && item["status"]["S"] == status);
        Some(heads.count()).filter(|count| *count >= at_least)
    })
    .await
}

async fn recovery(stage: &Stage<'_>, point: &str) -> Scene {
    let scene = stage.scene(1, [Behaviour::status(500)]).await;
    let deliveries = publish_many(&scene).await;
    until_heads(stage, &scene, "failed", MANY).await;
    stage.receiver_does(&scene, [Behaviour::status(200)]);
    let held = hold_second(stage, point, |statement| {
        let text = statement.to_string().replace("\\\"", "");
        text.contains("SET scheduleBase=?") && text.contains("SET sweeps=?")
    });
    let hook = &scene.hooks[0].id;
    let since = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let asked = scene.entity.post(&format!("/webhook/{hook}/recover")).json(&since).expect(202).await;
    // The recovery may have begun before a repetition.
    assert!(asked.is_repetition || asked.json()["count"] == MANY, "{point}: {}", asked.exchange);
    kill_sweep(stage, held).await;
    let on_disk = stage.on_disk(&scene).await;
    stage.played(point, on_disk, &scene, deliveries, "delivered");
    scene
}

/// The next sweep continues after the job's lease has expired, and leaves finished deliveries unchanged.
async fn recovered_once(stage: &Stage<'_>, scene: &Scene) {
    until_heads(stage, scene, "delivered", MANY).await;
    let again = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
    let again = scene.entity.post(&format!("/webhook/{}/recover", scene.hooks[0].id)).json(&again).expect(202).await;
    assert_eq!(again.json()["count"], 0, "nothing is left to recover");
}

async fn cancellation(stage: &Stage<'_>, point: &str) -> Scene {
    let busy = Behaviour::answer(503, &[("Retry-After", "600")], "");
    let scene = stage.scene(1, [busy]).await;
    let deliveries = publish_many(&scene).await;
    until_heads(stage, &scene, "retrying", MANY).await;
    let held = hold_second(stage, point, |statement| statement.to_string().contains("\"cancelled\""));
    scene.entity.remove(&scene.hooks[0].id).expect(200).await;
    kill_sweep(stage, held).await;
    let on_disk = stage.on_disk(&scene).await;
    stage.played(point, on_disk, &scene, deliveries, "cancelled");
    scene
}
