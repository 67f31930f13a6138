//! The terminal output of `make run`, and its startup log.

use std::{fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Bundle, Entity, LONG, Receiver, Settings, Suite, until};

/// The lines that functions have written to the audit trail.
fn trail(bundle: &Bundle) -> Vec<Value> {
    let logs = fs::read_dir(bundle.data().join("logs")).expect("it is a folder").flatten();
    let texts = logs.map(|log| fs::read_to_string(log.path()).expect("a log is text"));
    let lines: Vec<Value> = texts
        .flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>())
        .collect();
    lines.into_iter().filter(|line| line["audit"].is_object()).collect()
}

#[contract_test]
async fn requests_attempts_and_faults_are_shown_without_secrets(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("QUIET", "0")).await;
    let trail = until("the start got a token", LONG, async || Some(trail(&bundle)).filter(|lines| !lines.is_empty()));
    let trail: Vec<_> = trail.await.into_iter().map(|line| line["audit"]["outcome"].clone()).collect();
    assert!(trail.iter().all(|outcome| outcome == "done"), "no client was refused anything: {trail:?}");
    assert!(!bundle.output().contains(" GET "), "the start's own requests are not shown: {}", bundle.output());

    let entity = Entity::new(&api, "shown".to_owned()).await;
    let receiver = Receiver::start().await;
    let endpoint = receiver.on("/hook?key=hush", [Behaviour::status(500), Behaviour::status(204)]);
    let hook = entity.hook(&endpoint).await;
    let delivery = entity.publish(json!({ "note": "hush" })).await;
    entity.until_status(&delivery, &["delivered"]).await;
    api.get("/nowhere?token=hush").expect(404).await;
    api.get("/api/public/demo/oauth2/callback?code=hush&state=hush").send().await;
    let refused = json!({ "name": 1, "eventUrl": endpoint, "eventList": [] });
    entity.post("/webhook").json(&refused).expect(400).await;

    let shown = until("both attempts and the last request on the terminal", LONG, async || {
        let output = bundle.output();
        (output.contains(&format!("attempt 2 of {delivery}")) && output.contains(" POST   400 ")).then_some(output)
    });
    let shown = shown.await;
    for part in [
        format!(" POST   201 {} ", entity.path("/webhook")),
        format!(" POST   400 {} invalid-request ", entity.path("/webhook")),
        " GET    404 /nowhere ".to_owned(),
        " /api/public/demo/oauth2/callback ".to_owned(),
        format!(" ->     500 booking.created, attempt 1 of {delivery} "),
        ", next attempt at ".to_owned(),
        format!(" ->     204 booking.created, attempt 2 of {delivery} "),
    ] {
        assert!(shown.contains(&part), "no line has `{part}`: {shown}");
    }
    assert!(!shown.contains("hush") && !shown.contains(&hook.secret), "{shown}");
    assert!(!shown.contains('\u{1b}'), "a file has no colours: {shown}");

    let log = fs::read_to_string(bundle.data().join("logs/create-webhook.log")).expect("the function was called");
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let refusal =
        lines.into_iter().find(|line| line["kind"] == "invalid-request").expect("the function refused a request");
    assert_eq!((&refusal["message"], &refusal["fields"]), (&json!("refused"), &json!("name")), "{refusal}");
}

#[contract_test]
async fn a_quiet_service_shows_no_requests(suite: Arc<Suite>) {
    suite.api.get("/openapi.json").expect(200).await;
    let shown = suite.bundle().output();
    assert!(shown.contains("Waypost answers at") && !shown.contains(" 200 /openapi.json"), "{shown}");
    assert!(!shown.contains(" GET    200"), "{shown}");
}
