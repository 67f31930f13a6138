//! A request with an idempotency key creates a resource. The function is killed before and after the transaction that
//! writes the resource and the key's record. The client repeats the request, and exactly one resource exists.

use super::stage::{Scene, Stage, writes};
use crate::{
    harness::{AwsCall, Behaviour, Held, Interposer, LONG, Moment, announced, until},
    idempotency::asked::{Asked, Wanted},
};

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    for wanted in Wanted::ALL {
        for moment in [Moment::Before, Moment::After] {
            killed_at(stage, wanted, moment).await;
        }
    }
    resend_killed_before_it_is_announced(stage).await;
}

async fn killed_at(stage: &Stage<'_>, wanted: Wanted, moment: Moment) {
    let point = format!("{}: {moment:?} its transaction", wanted.function());
    let (scene, asked, before) = set(stage, wanted).await;
    let mut held = hold(stage.table(), &point, moment, &scene);
    let request = {
        let call = asked.call(&scene.entity, "key");
        tokio::spawn(async move { call.attempt().await.ok().filter(|answer| answer.status < 300) })
    };
    held.reached().await;
    stage.kill(wanted.function()).await;
    held.lose();
    assert!(request.await.expect("no panic").is_none(), "{point}: acknowledged by a dead function");
    let is_made = match moment {
        Moment::Before => 0,
        Moment::After => 1,
    };
    assert_eq!(asked.count(&scene.entity).await, before + is_made, "{point}");
    let repeat = async || asked.call(&scene.entity, "key").attempt().await.ok().filter(|answer| answer.status < 500);
    let mut tries = 0;
    let first = until("the request is acknowledged", LONG, async || {
        tries += 1;
        repeat().await
    })
    .await;
    let replayed = first.header("idempotency-replayed") == "true";
    // An earlier repetition without an acknowledgement may have been carried out.
    let is_expected = if moment == Moment::Before { !replayed || tries > 1 } else { replayed };
    assert!(first.status == asked.status && is_expected, "{point}: {}", first.exchange);
    let again = until("the repeated request is acknowledged", LONG, repeat).await;
    assert_eq!((again.status, again.text()), (asked.status, first.text()), "{point}: another answer to the same key");
    assert_eq!(asked.count(&scene.entity).await, before + 1, "{point}");
}

/// The change and the record are written but not announced: the sweep finds the delivery, and the repeated request does
/// not send it again.
async fn resend_killed_before_it_is_announced(stage: &Stage<'_>) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let delivery = scene.acknowledged().await.remove(0);
    scene.entity.until_status(&delivery, &["delivered"]).await;
    let announcement = {
        let webhook = scene.hooks[0].id.clone();
        move |call: &AwsCall| announced(call).iter().any(|due| due.webhook == webhook)
    };
    let mut held = stage.queue().hold("the announcement of a resend", Moment::Before, announcement);
    let resend = || {
        let path = format!("/webhook/delivery/{delivery}/resend");
        scene.entity.post(&path).header("idempotency-key", "key").attempt()
    };
    let request = tokio::spawn(resend());
    held.reached().await;
    stage.kill("resend-delivery").await;
    held.lose();
    // A function that has waited two seconds for the queue acknowledges the resend, which the sweep will announce.
    let died = request.await.expect("no panic");
    assert!(
        died.is_ok_and(|answer| answer.status >= 500 || answer.status == 202),
        "neither an error nor the acknowledgement"
    );
    let again =
        until("the resend is acknowledged", LONG, async || resend().await.ok().filter(|answer| answer.status == 202));
    assert_eq!(again.await.header("idempotency-replayed"), "true");
    let is_sent = |delivery: &serde_json::Value| delivery["attemptCount"] == 2 && delivery["status"] == "delivered";
    scene.entity.until_delivery(&delivery, "is delivered again", is_sent).await;
    stage.note("resend: killed before it is announced", &scene, vec![delivery], "delivered").await;
}

async fn set(stage: &Stage<'_>, wanted: Wanted) -> (Scene, Asked, usize) {
    let scene = stage.scene(0, [Behaviour::status(200)]).await;
    let url = stage.receiver_does(&scene, [Behaviour::status(200)]);
    let asked = wanted.asked(&scene.entity, &url).await;
    let before = asked.count(&scene.entity).await;
    (scene, asked, before)
}

/// Holds the transaction that writes the record for the scene's key.
pub fn hold(table: &Interposer, point: &str, moment: Moment, scene: &Scene) -> Held {
    let key = format!("IDEMPOTENCY#{}#", scene.entity.id);
    table.hold(point, moment, move |call: &AwsCall| call.operation == "TransactWriteItems" && writes(call, &key, ""))
}
