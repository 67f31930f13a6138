//! Panel sessions when their function is killed during a write: a link never has two sessions, and no browser loses its
//! session.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::{
    harness::{AwsCall, Entity, Interposed, LONG, Moment, Settings, Suite, until, until_gone},
    panel_links::{MadeLink, link},
    panel_sessions::{Session, cookie_of, open, opened, renew},
};

const FUNCTION: &str = "panel-session";

/// Holds the write of a link's session, kills the function, and drops the call.
async fn killed_at(setup: &Interposed, link: &MadeLink, moment: Moment, call: crate::harness::Call) {
    let id = link.id.clone();
    let writes = move |call: &AwsCall| call.operation == "UpdateItem" && call.mentions(&id);
    let mut held = setup.table.hold("the write of a session", moment, writes);
    let request = tokio::spawn(call.attempt());
    held.reached().await;
    let process = setup.bundle.process(FUNCTION).await;
    process.kill();
    until_gone(std::slice::from_ref(&process)).await;
    held.lose();
    let died = request.await.expect("no panic");
    assert!(!died.is_ok_and(|answer| answer.status < 500), "a dead function acknowledged the request");
}

#[contract_test]
async fn a_code_is_spent_or_good_wherever_a_crash_comes(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let api = &setup.api;
    let entity = Entity::new(&setup.api, "killed".to_owned()).await;
    for (moment, status) in [(Moment::Before, 200), (Moment::After, 400)] {
        // The function is already running, so the crash hits the intended write.
        opened(api, &link(&entity, json!({})).await.code).await;
        let made = link(&entity, json!({})).await;
        killed_at(&setup, &made, moment, open(api, &made.code)).await;
        let again = until("the function answers again", LONG, async || {
            let answer = open(api, &made.code).attempt().await.ok()?;
            (answer.status < 500).then_some(answer)
        });
        let again = again.await;
        assert_eq!(again.status, status, "{moment:?} its write: {}", again.exchange);
        // The session is listed and can be ended, even if no browser has it.
        entity.call("DELETE", &format!("/panel/link/{}", made.id)).expect(200).await;
    }
}

#[contract_test]
async fn a_browser_keeps_its_session_wherever_a_crash_comes(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let api = &setup.api;
    let entity = Entity::new(&setup.api, "killed".to_owned()).await;
    for moment in [Moment::Before, Moment::After] {
        let made = link(&entity, json!({})).await;
        let Session { cookie, .. } = opened(api, &made.code).await;
        killed_at(&setup, &made, moment, renew(api, &cookie)).await;
        let again = until("the function answers again", LONG, async || {
            let answer = renew(api, &cookie).attempt().await.ok()?;
            (answer.status < 500).then_some(answer)
        });
        let again = again.await;
        assert_eq!(again.status, 200, "{moment:?} its write: {}", again.exchange);
        renew(api, &cookie_of(&again)).expect(200).await;
    }
}
