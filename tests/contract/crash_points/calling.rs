//! An agent calls a tool with an idempotency key to create or send something. `mcp` is killed before and after the
//! transaction that writes the effect and the key's record. The agent repeats the call, which takes effect only once.

use serde_json::{Value, json};

use super::{
    creating::hold,
    stage::{Scene, Stage},
};
use crate::harness::{Agent, ApiResponse, Behaviour, Call, LONG, Moment, until};

/// Tests each crash point in turn.
pub async fn play(stage: &Stage<'_>) {
    for moment in [Moment::Before, Moment::After] {
        creation_killed_at(stage, moment).await;
        resend_killed_at(stage, moment).await;
    }
}

async fn creation_killed_at(stage: &Stage<'_>, moment: Moment) {
    let scene = stage.scene(0, [Behaviour::status(200)]).await;
    let agent = Agent::of(&scene.entity).await;
    let url = stage.receiver_does(&scene, [Behaviour::status(200)]);
    let arguments = json!({ "name": "n", "eventUrl": url, "eventList": [], "idempotencyKey": "key" });
    let call = || call(&agent, "create_webhook", arguments.clone());
    let [first, again] = killed_at(stage, &scene, moment, call).await;
    assert_eq!((&first["id"], &first["signingSecret"]), (&again["id"], &again["signingSecret"]), "{moment:?}");
    let webhooks = agent.call("list_webhooks", json!({})).await["webhooks"].as_array().cloned().unwrap_or_default();
    assert_eq!(webhooks.iter().map(|webhook| &webhook["id"]).collect::<Vec<_>>(), [&first["id"]], "{moment:?}");
}

async fn resend_killed_at(stage: &Stage<'_>, moment: Moment) {
    let scene = stage.scene(1, [Behaviour::status(200)]).await;
    let agent = Agent::of(&scene.entity).await;
    let delivery = scene.acknowledged().await.remove(0);
    scene.entity.until_status(&delivery, &["delivered"]).await;
    let arguments = json!({ "deliveryIdentifier": delivery, "idempotencyKey": "key" });
    let call = || call(&agent, "resend_delivery", arguments.clone());
    killed_at(stage, &scene, moment, call).await;
    let is_sent = |delivery: &Value| delivery["attemptCount"] == 2 && delivery["status"] == "delivered";
    scene.entity.until_delivery(&delivery, "is delivered once more", is_sent).await;
    assert_eq!(stage.until_received(&scene, 2).await.len(), 2, "{moment:?}");
    stage.note(&format!("mcp: resend, {moment:?} its transaction"), &scene, vec![delivery], "delivered").await;
}

fn call(agent: &Agent, tool: &str, arguments: Value) -> Call {
    agent.message("tools/call", Some(tool), agent.arguments(arguments, tool))
}

/// Kills `mcp` during the call's transaction and repeats the call twice; returns the results of the repetitions.
async fn killed_at(stage: &Stage<'_>, scene: &Scene, moment: Moment, call: impl Fn() -> Call) -> [Value; 2] {
    let mut held = hold(stage.table(), &format!("mcp: {moment:?} the transaction of a call"), moment, scene);
    let request = call();
    let request = tokio::spawn(async move { acknowledged(request).await });
    held.reached().await;
    stage.kill("mcp").await;
    held.lose();
    assert!(request.await.expect("no panic").is_none(), "{moment:?}: answered by a dead function");
    let mut tries = 0;
    let first = until("the call is answered", LONG, async || {
        tries += 1;
        acknowledged(call()).await
    })
    .await;
    // An earlier repetition without an acknowledgement may have been carried out.
    let repeated = first["repeated"] == true;
    let is_expected = if moment == Moment::Before { !repeated || tries > 1 } else { repeated };
    assert!(is_expected, "{moment:?}: {first:#}");
    let again = until("the repeated call is answered", LONG, async || acknowledged(call()).await).await;
    assert_eq!(again["repeated"], true, "{moment:?}: {again:#}");
    [first, again]
}

/// A call's result, unless the service fails.
async fn acknowledged(call: Call) -> Option<Value> {
    let answer: ApiResponse = call.attempt().await.ok().filter(|answer| answer.status < 500)?;
    if answer.asks_for_repetition() {
        return None;
    }
    let result = answer.json()["result"].clone();
    assert_eq!(result["isError"], false, "{}", answer.exchange);
    Some(result["structuredContent"].clone())
}
