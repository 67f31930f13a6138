//! cancel-delivery is killed before and after its write. The client repeats the request, and nothing is sent.

use super::stage::{Stage, writes};
use crate::harness::{Behaviour, LONG, Moment, until};

/// Tests each crash point in turn. Attempts are made after an hour, unless requested earlier.
pub async fn play(stage: &Stage<'_>) {
    for moment in [Moment::Before, Moment::After] {
        killed_at(stage, "unclaimed", moment, 0).await;
        killed_at(stage, "waiting", moment, 1).await;
    }
}

/// The delivery has already had this many attempts.
async fn killed_at(stage: &Stage<'_>, state: &str, moment: Moment, attempts: u64) {
    let point = format!("cancel: {moment:?} the write, {state}");
    let scene = stage.scene(1, [Behaviour::status(500)]).await;
    let delivery = scene.acknowledged().await.remove(0);
    if attempts > 0 {
        scene.entity.post(&format!("/webhook/delivery/{delivery}/resend")).once().expect(202).await;
    }
    scene.entity.until_delivery(&delivery, state, |shown| shown["attemptCount"] == attempts).await;
    let id = delivery.clone();
    let mut held = stage.table().hold(&point, moment, move |call| writes(call, &id, "cancelReason"));
    let path = format!("/webhook/delivery/{delivery}/cancel");
    let cancel = || scene.entity.post(&path).attempt();
    let request = tokio::spawn(cancel());
    held.reached().await;
    stage.kill("cancel-delivery").await;
    held.lose();
    let died = request.await.expect("no panic");
    assert!(!died.is_ok_and(|answer| answer.status < 300), "{point}: acknowledged by a dead function");
    let status =
        if moment == Moment::Before { ["pending", "retrying"][usize::from(attempts > 0)] } else { "cancelled" };
    assert_eq!(scene.entity.delivery(&delivery).await["status"], status, "{point}");
    let again = until("the cancellation is acknowledged", LONG, async || {
        cancel().await.ok().filter(|answer| answer.status == 200)
    });
    let again = again.await.json();
    assert_eq!((&again["attemptCount"], &again["cancelReason"]), (&attempts.into(), &"owner".into()), "{point}");
    // No requests need to be accounted for if the delivery was not claimed.
    let accounted = if attempts == 0 { Vec::new() } else { vec![delivery] };
    stage.note(&point, &scene, accounted, "cancelled").await;
}
