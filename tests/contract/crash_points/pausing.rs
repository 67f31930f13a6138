//! A pause ends early, through the response to an attempt that a person requested, through a new address or through its
//! owner, while dispatch-deliveries, change-webhook or resume-webhook is killed. No delivery waits until the pause
//! would originally have ended. The function is also killed while beginning a pause that has an end: there must be a
//! job for the end if and only if there is a pause.

use serde_json::{Value, json};

use super::stage::{Scene, Stage};
use crate::{
    harness::{AwsCall, Behaviour, Held, Moment, Table},
    pauses::{is_put_off, key, paused_in},
};

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    probed(stage, "pause: probe answered, breaker open and no job", Moment::Before, true).await;
    probed(stage, "pause: probe answered, breaker closed and job written, answer lost", Moment::After, true).await;
    probed(stage, "pause: breaker closed and job written, answer lost, no process killed", Moment::After, false).await;
    moved(stage, "pause: address not changed, breaker open and no job", Moment::Before, true).await;
    moved(stage, "pause: address changed, breaker closed and job written, answer lost", Moment::After, true).await;
    moved(stage, "pause: address changed, answer lost, no process killed", Moment::After, false).await;
    begun(stage, "pause: owner's pause not begun and no job", Moment::Before, true).await;
    begun(stage, "pause: owner's pause begun and job written, answer lost", Moment::After, true).await;
    resumed(stage, "pause: owner's pause not ended and no job", Moment::Before, true).await;
    resumed(stage, "pause: owner's pause ended and job written, answer lost", Moment::After, true).await;
    resumed(stage, "pause: owner's pause ended, answer lost, no process killed", Moment::After, false).await;
}

/// A paused webhook with waiting deliveries, and the held call that will end the pause.
struct Paused {
    scene: Scene,
    waiting: Vec<String>,
    held: Held,
}

async fn paused(stage: &Stage<'_>, point: &str, moment: Moment) -> Paused {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let table = Table::of(&stage.setup.api.env);
    paused_in(&table, &scene.entity, &scene.hooks[0], 6).await;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(scene.entity.publish(json!({})).await);
    }
    for id in &waiting {
        scene.entity.until_delivery(id, "waits for the breaker", is_put_off).await;
    }
    let parts = ["HLT#", "JOB#"].map(|part| format!("{part}{}", scene.hooks[0].id));
    let held = stage.table().hold(point, moment, move |call: &AwsCall| {
        call.operation == "TransactWriteItems" && parts.iter().all(|part| call.mentions(part))
    });
    Paused { scene, waiting, held }
}

/// Checks that either the breaker and the job are unchanged, or the breaker is closed and waiting deliveries are sent.
async fn ends(stage: &Stage<'_>, point: &str, moment: Moment, scene: &Scene, deliveries: Vec<String>) {
    let table = Table::of(&stage.setup.api.env);
    let (pk, sk) = key(&scene.entity, &scene.hooks[0]);
    if moment == Moment::Before {
        let health = table.item(&pk, &sk).await.expect("the breaker stays as it is");
        assert!(health.get("openUntil").is_some(), "{point}: {health:#}");
        assert_eq!(table.item(&format!("JOB#{}", scene.hooks[0].id), "RECOVER").await, None, "{point}");
        // A person requests another attempt.
        scene.entity.post(&format!("/webhook/{}/resume", scene.hooks[0].id)).expect(200).await;
    }
    stage.note(point, scene, deliveries, "delivered").await;
}

/// The endpoint responds to an attempt that a person requested.
async fn probed(stage: &Stage<'_>, point: &str, moment: Moment, kills: bool) {
    let Paused { scene, mut waiting, mut held } = paused(stage, point, moment).await;
    let asked = scene.entity.test(&scene.hooks[0].id).expect(202).await.json();
    waiting.push(asked["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned());
    held.reached().await;
    if kills {
        stage.kill("dispatch-deliveries").await;
    }
    held.lose();
    ends(stage, point, moment, &scene, waiting).await;
}

/// The webhook's address changes.
async fn moved(stage: &Stage<'_>, point: &str, moment: Moment, kills: bool) {
    let Paused { scene, waiting, mut held } = paused(stage, point, moment).await;
    let former = scene.entity.webhook(&scene.hooks[0].id).await["eventUrl"].clone();
    let at_new_address = Scene { path: format!("{}-moved", scene.path), ..scene.clone() };
    let url = stage.receiver_does(&at_new_address, [Behaviour::status(200)]);
    let change = scene.entity.call("PATCH", &format!("/webhook/{}", scene.hooks[0].id));
    let change = change.json(&json!({ "eventUrl": url }));
    let answer = tokio::spawn(async move { change.attempt().await.ok() });
    held.reached().await;
    if kills {
        stage.kill("change-webhook").await;
    }
    held.lose();
    drop(answer.await.expect("no panic"));
    if moment == Moment::Before {
        assert_eq!(scene.entity.webhook(&scene.hooks[0].id).await["eventUrl"], former, "{point}");
    }
    let scene = if moment == Moment::Before { scene } else { at_new_address };
    ends(stage, point, moment, &scene, waiting).await;
}

/// The owner pauses the webhook until some time, and resumes it early.
async fn begun(stage: &Stage<'_>, point: &str, moment: Moment, kills: bool) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let at = format!("/webhook/{}", scene.hooks[0].id);
    let mut held = hold_pause(stage, &scene, point, moment);
    let pause = scene.entity.post(&format!("{at}/pause")).json(&json!({ "until": "2100-01-01T00:00:00Z" }));
    let again = pause.clone();
    let answer = tokio::spawn(async move { pause.attempt().await.ok() });
    held.reached().await;
    if kills {
        stage.kill("resume-webhook").await;
    }
    held.lose();
    drop(answer.await.expect("no panic"));
    let job = Table::of(&stage.setup.api.env).item(&format!("JOB#{}", scene.hooks[0].id), "RESUME").await;
    let state = scene.entity.webhook(&scene.hooks[0].id).await["deliveryState"].clone();
    let begun = moment == Moment::After;
    assert_eq!((state == "paused", job.is_some()), (begun, begun), "{point}: {state}, {job:?}");
    again.expect(200).await;
    let waiting = scene.entity.publish(json!({})).await;
    scene.entity.until_delivery(&waiting, "waits for the end of the pause", waits_for_pause).await;
    scene.entity.post(&format!("{at}/resume")).expect(200).await;
    stage.note(point, &scene, vec![waiting], "delivered").await;
}

/// Holds the transaction that changes the webhook together with its job.
fn hold_pause(stage: &Stage<'_>, scene: &Scene, point: &str, moment: Moment) -> Held {
    let parts = ["WHK#", "JOB#"].map(|part| format!("{part}{}", scene.hooks[0].id));
    stage.table().hold(point, moment, move |call: &AwsCall| {
        call.operation == "TransactWriteItems" && parts.iter().all(|part| call.mentions(part))
    })
}

fn waits_for_pause(shown: &Value) -> bool {
    shown["waitingFor"] == "pause"
}

/// The owner resumes a webhook that the owner has paused.
async fn resumed(stage: &Stage<'_>, point: &str, moment: Moment, kills: bool) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let at = format!("/webhook/{}", scene.hooks[0].id);
    scene.entity.post(&format!("{at}/pause")).expect(200).await;
    let waiting = scene.entity.publish(json!({})).await;
    scene.entity.until_delivery(&waiting, "waits for the end of the pause", waits_for_pause).await;
    let mut held = hold_pause(stage, &scene, point, moment);
    let resume = scene.entity.post(&format!("{at}/resume"));
    let again = resume.clone();
    let answer = tokio::spawn(async move { resume.attempt().await.ok() });
    held.reached().await;
    if kills {
        stage.kill("resume-webhook").await;
    }
    held.lose();
    drop(answer.await.expect("no panic"));
    let state = scene.entity.webhook(&scene.hooks[0].id).await["deliveryState"].clone();
    if moment == Moment::Before {
        assert_eq!(state, "paused", "{point}");
        again.expect(200).await;
    } else {
        assert_eq!(state, "active", "{point}");
    }
    stage.note(point, &scene, vec![waiting], "delivered").await;
}
