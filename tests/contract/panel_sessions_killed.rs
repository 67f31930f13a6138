//! Sessions of the panel when the function that opens and renews them dies in between: never two sessions of a link, and
//! never one that its browser has lost.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::{
    harness::{AwsCall, Entity, Interposed, LONG, Moment, Settings, Suite, until, until_gone},
    panel_links::{MadeLink, link},
    panel_sessions::{Session, cookie_of, open, opened, renew},
};

const FUNCTION: &str = "panel-session";

/// Holds the write of a link's session, kills the function there, and loses the call.
async fn killed_at(stood: &Interposed, link: &MadeLink, moment: Moment, call: crate::harness::Call) {
    let id = link.id.clone();
    let writes = move |call: &AwsCall| call.operation == "UpdateItem" && call.mentions(&id);
    let mut held = stood.table.hold("the write of a session", moment, writes);
    let request = tokio::spawn(call.attempt());
    held.reached().await;
    let process = stood.bundle.process(FUNCTION).await;
    process.kill();
    until_gone(std::slice::from_ref(&process)).await;
    held.lose();
    let died = request.await.expect("no panic");
    assert!(!died.is_ok_and(|answer| answer.status < 500), "acknowledged by a dead function");
}

#[contract_test]
async fn a_code_is_spent_or_good_wherever_a_crash_comes(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let (api, entity) = (&stood.api, Entity::new(&stood.api, "killed".to_owned()).await);
    for (moment, status) in [(Moment::Before, 200), (Moment::After, 400)] {
        // The function has run before, so that the crash comes where it is meant to.
        opened(api, &link(&entity, json!({})).await.code).await;
        let made = link(&entity, json!({})).await;
        killed_at(&stood, &made, moment, open(api, &made.code)).await;
        let again = until("the function answers again", LONG, async || {
            let answer = open(api, &made.code).attempt().await.ok()?;
            (answer.status < 500).then_some(answer)
        });
        let again = again.await;
        assert_eq!(again.status, status, "{moment:?} its write: {}", again.exchange);
        // Whether or not somebody has the session, it is listed, and can be ended.
        entity.call("DELETE", &format!("/panel/link/{}", made.id)).expect(200).await;
    }
}

#[contract_test]
async fn a_browser_keeps_its_session_wherever_a_crash_comes(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let (api, entity) = (&stood.api, Entity::new(&stood.api, "killed".to_owned()).await);
    for moment in [Moment::Before, Moment::After] {
        let made = link(&entity, json!({})).await;
        let Session { cookie, .. } = opened(api, &made.code).await;
        killed_at(&stood, &made, moment, renew(api, &cookie)).await;
        let again = until("the function answers again", LONG, async || {
            let answer = renew(api, &cookie).attempt().await.ok()?;
            (answer.status < 500).then_some(answer)
        });
        let again = again.await;
        assert_eq!(again.status, 200, "{moment:?} its write: {}", again.exchange);
        renew(api, &cookie_of(&again)).expect(200).await;
    }
}
