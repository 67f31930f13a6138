//! The functions are killed around each write that keeps the order by subject. Every delivery is sent after the
//! previous one, and none waits forever.

use super::stage::{Scene, Stage, acknowledged, deliveries, writes};
use crate::harness::{
    AwsCall, Behaviour, Moment,
    feed::{confirm, read_some},
    order::{later, ordered, resend, until_held_by},
};
use serde_json::json;

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    for moment in [Moment::Before, Moment::After] {
        accepted(stage, moment).await;
        held(stage, moment).await;
        woken(stage, moment).await;
        woken_in_a_feed(stage, moment).await;
    }
}

/// An ordered webhook whose endpoint postpones the first event about a subject, with that event's delivery. The scene's
/// next event is about the same subject.
async fn scene(stage: &Stage<'_>) -> (Scene, String) {
    let scene = stage.scene(0, [later(), Behaviour::status(200)]).await;
    let url = stage.receiver_does(&scene, [later(), Behaviour::status(200)]);
    let hook = ordered(&scene.entity, &url, &[]).await;
    let scene = Scene { hooks: vec![hook], data: json!({ "bookingNumber": "B-1001" }), ..scene };
    let first = scene.entity.publish(scene.data.clone()).await;
    scene.entity.until_status(&first, &["retrying"]).await;
    (scene, first)
}

/// Publishing dies around the transaction that writes the event and its position in the order.
async fn accepted(stage: &Stage<'_>, moment: Moment) {
    let (scene, first) = scene(stage).await;
    let point = format!("publish: {moment:?} an ordered event is written");
    let line = format!("LINE#{}", scene.entity.id);
    let mut write = stage.table().hold(&point, moment, move |call| writes(call, &line, ""));
    let publication = scene.publish();
    write.reached().await;
    stage.kill("publish-event").await;
    write.lose();
    let on_disk = stage.on_disk(&scene).await;
    let first_answer = publication.await.expect("no panic").as_ref().map(deliveries);
    // A function that has waited half a second for the table's response looks for the event, and finds it if the
    // transaction succeeded.
    let is_dead = moment == Moment::Before;
    assert!(!is_dead || first_answer.is_none(), "{point}: acknowledged by a dead function");
    let answer = scene.acknowledged().await;
    assert!(first_answer.is_none_or(|first| first == answer), "{point}: another response to the same key");
    let second = answer[0].clone();
    until_held_by(&scene.entity, &second, &first).await;
    resend(&scene.entity, &first).await;
    ended(stage, &point, on_disk, &scene, [first, second]).await;
}

/// Matches writes to a delivery's head that put it on hold for another delivery, or wake it.
fn holding(delivery: &str) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static + use<> {
    let delivery = delivery.to_owned();
    move |call| writes(call, &delivery, "heldBy")
}

/// The dispatcher dies around the write that makes a delivery wait for the previous one.
async fn held(stage: &Stage<'_>, moment: Moment) {
    let (scene, first) = scene(stage).await;
    let point = format!("dispatch: {moment:?} a delivery waits for the one before");
    let (second, announcement, publication) = stage.publish_and_hold(&scene).await;
    let mut write = stage.table().hold(&point, moment, holding(&second));
    announcement.release();
    assert_eq!(deliveries(&acknowledged(publication).await), [second.as_str()]);
    write.reached().await;
    stage.kill("dispatch-deliveries").await;
    write.lose();
    let on_disk = stage.on_disk(&scene).await;
    until_held_by(&scene.entity, &second, &first).await;
    resend(&scene.entity, &first).await;
    ended(stage, &point, on_disk, &scene, [first, second]).await;
}

/// The dispatcher records the previous delivery's last attempt, and dies around the write that wakes the next delivery.
async fn woken(stage: &Stage<'_>, moment: Moment) {
    let (scene, first) = scene(stage).await;
    let point = format!("dispatch: {moment:?} the next of a subject is woken");
    let second = scene.acknowledged().await.remove(0);
    until_held_by(&scene.entity, &second, &first).await;
    let mut write = stage.table().hold(&point, moment, holding(&second));
    resend(&scene.entity, &first).await;
    write.reached().await;
    stage.kill("dispatch-deliveries").await;
    write.lose();
    let on_disk = stage.on_disk(&scene).await;
    assert_eq!(scene.entity.delivery(&first).await["status"], "delivered", "{point}");
    ended(stage, &point, on_disk, &scene, [first, second]).await;
}

/// The reader's answer is recorded, and the function dies around the write that wakes the next delivery.
async fn woken_in_a_feed(stage: &Stage<'_>, moment: Moment) {
    let scene = stage.scene(0, []).await;
    let body = json!({ "name": "feed", "delivery": "pull", "eventList": [], "order": "subject" });
    let hook = scene.entity.hook_with(body).await;
    let scene = Scene { hooks: vec![hook.clone()], data: json!({ "bookingNumber": "B-1001" }), ..scene };
    let first = scene.entity.publish(scene.data.clone()).await;
    let second = scene.acknowledged().await.remove(0);
    until_held_by(&scene.entity, &second, &first).await;
    let page = read_some(&scene.entity, &hook, json!({})).await;
    assert_eq!(page.iter().map(|read| &read["deliveryIdentifier"]).collect::<Vec<_>>(), [&json!(first)]);
    let point = format!("acknowledge-feed: {moment:?} the next of a subject is woken");
    let mut write = stage.table().hold(&point, moment, holding(&second));
    let request = {
        let entity = scene.entity.clone();
        let at = format!("/webhook/{}/feed/ack", hook.id);
        let body = json!({ "confirmed": [page[0]["receipt"]] });
        tokio::spawn(
            async move { entity.post(&at).json(&body).attempt().await.is_ok_and(|answer| answer.status == 200) },
        )
    };
    write.reached().await;
    stage.kill("acknowledge-feed").await;
    write.lose();
    assert!(!request.await.expect("no panic"), "{point}: answered by a dead function");
    let on_disk = stage.on_disk(&scene).await;
    assert_eq!(confirm(&scene.entity, &hook, &page).await, ["confirmed"], "{point}: the repeated answer");
    let next = read_some(&scene.entity, &hook, json!({})).await;
    assert_eq!(next[0]["deliveryIdentifier"], second.as_str(), "{point}");
    assert_eq!(confirm(&scene.entity, &hook, &next).await, ["confirmed"]);
    for id in [&first, &second] {
        assert_eq!(scene.entity.delivery(id).await["status"], "delivered", "{point}");
    }
    stage.played(&point, on_disk, &scene, Vec::new(), "delivered");
}

/// Records a tested crash point whose deliveries were sent one by one.
async fn ended(stage: &Stage<'_>, point: &str, on_disk: String, scene: &Scene, pair: [String; 2]) {
    for id in &pair {
        let shown = scene.entity.until_status(id, &["delivered", "failed", "cancelled"]).await;
        assert_eq!(shown["status"], "delivered", "{point}: {shown:#}");
    }
    let received = stage.until_received(scene, 3).await;
    let sent: Vec<_> = received.iter().map(|request| request.header("service-delivery-id")).collect();
    let first_of_second = sent.iter().position(|id| *id == pair[1]);
    let last_of_first = sent.iter().rposition(|id| *id == pair[0]);
    assert!(last_of_first < first_of_second, "{point}: {sent:?}");
    stage.played(point, on_disk, scene, pair.to_vec(), "delivered");
}
