//! Panel sessions when another tab is faster or the table is slow: the browser keeps its session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use contract_test::contract_test;
use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::{
    harness::{ApiResponse, AwsCall, Entity, Interposed, Moment, Settings, Suite},
    panel_links::{MadeLink, link},
    panel_sessions::{cookie_of, opened, renew},
};

/// Renews a session, and completes `other` while the write is held. If `other` takes longer than the service waits for
/// the table, the browser repeats the renewal, as the response asks.
async fn overtaken(setup: &Interposed, made: &MadeLink, cookie: &str, other: impl Future<Output = ()>) -> ApiResponse {
    let id = made.id.clone();
    let writes = move |call: &AwsCall| call.operation == "UpdateItem" && call.mentions(&id);
    let mut held = setup.table.hold("the write of a renewal", Moment::Before, writes);
    let meanwhile = async {
        held.reached().await;
        other.await;
        held.release();
    };
    let (late, ()) = join(renew(&setup.api, cookie).send(), meanwhile).await;
    if late.status == 503 { renew(&setup.api, cookie).answered().await } else { late }
}

#[contract_test]
async fn a_renewal_that_other_tabs_have_overtaken_gives_the_current_cookie(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let api = &setup.api;
    let entity = Entity::new(&setup.api, "overtaken".to_owned()).await;
    for renewals in [1, 2, 3] {
        let made = link(&entity, json!({})).await;
        let first = opened(api, &made.code).await.cookie;
        let mut present = first.clone();
        let others = async {
            for _ in 0..renewals {
                present = cookie_of(&renew(api, &present).expect(200).await);
            }
        };
        let late = overtaken(&setup, &made, &first, others).await;
        assert_eq!((late.status, cookie_of(&late)), (200, present), "{renewals} renewals: {}", late.exchange);
        renew(api, &cookie_of(&late)).expect(200).await;
    }
}

#[contract_test]
async fn a_prolonged_session_stays_so_when_its_page_renews_at_once(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let api = &setup.api;
    let entity = Entity::new(&setup.api, "prolonged".to_owned()).await;
    let made = link(&entity, json!({ "lifetimeSeconds": 3_600 })).await;
    let cookie = opened(api, &made.code).await.cookie;
    let mut prolonged = json!(null);
    let prolong = async {
        let day = json!({ "lifetimeSeconds": 86_400 });
        prolonged = entity.post(&format!("/panel/link/{}/renew", made.id)).json(&day).expect(200).await.json();
    };
    let late = overtaken(&setup, &made, &cookie, prolong).await;
    assert_eq!(
        (late.status, &late.json()["sessionEndsDate"]),
        (200, &prolonged["sessionEndsDate"]),
        "{}",
        late.exchange
    );
    assert_eq!(entity.panel_links().await[0], prolonged);
    renew(api, &cookie_of(&late)).expect(200).await;
}

#[contract_test]
async fn a_renewal_that_the_end_of_its_link_has_overtaken_gives_nothing(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let api = &setup.api;
    let entity = Entity::new(&setup.api, "ended".to_owned()).await;
    let made = link(&entity, json!({})).await;
    let cookie = opened(api, &made.code).await.cookie;
    let end = async {
        entity.call("DELETE", &format!("/panel/link/{}", made.id)).expect(200).await;
    };
    let late = overtaken(&setup, &made, &cookie, end).await;
    assert_eq!((late.status, &late.json()["kind"]), (403, &json!("no-panel-session")), "{}", late.exchange);
    assert!(late.header("set-cookie").starts_with("waypost-panel=; Max-Age=0;"), "{}", late.exchange);
    assert_eq!(entity.panel_links().await, Vec::<Value>::new(), "the write did not restore the link");
}

#[contract_test]
async fn a_renewal_against_a_slow_table_is_deferred_and_the_session_continues(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let api = &setup.api;
    let entity = Entity::new(&setup.api, "slow".to_owned()).await;
    // Test these concurrently, since the service waits ten seconds for the table.
    join_all(["BatchGetItem", "UpdateItem"].map(async |slow_operation| {
        let made = link(&entity, json!({})).await;
        let cookie = opened(api, &made.code).await.cookie;
        let is_slow = Arc::new(AtomicBool::new(true));
        let id = made.id.clone();
        let slow = Arc::clone(&is_slow);
        setup.table.delay(usize::MAX, Duration::from_secs(6), move |call| {
            slow.load(Ordering::Relaxed) && call.operation == slow_operation && call.mentions(&id)
        });
        // The function itself responds in time. If it took more than 15 s, it would be stopped, and the response would
        // be a 500. A machine that pauses may take that long once, but a function without a limit always does.
        let mut answer = renew(api, &cookie).send().await;
        if answer.status == 500 {
            answer = renew(api, &cookie).send().await;
        }
        assert_eq!(answer.status, 503, "{}", answer.exchange);
        assert_eq!(answer.json()["kind"], "service-unavailable", "{}", answer.exchange);
        assert!(!answer.header("retry-after").is_empty(), "{}", answer.exchange);
        assert_eq!(answer.header("set-cookie"), "", "the browser keeps its cookie: {}", answer.exchange);
        is_slow.store(false, Ordering::Relaxed);
        // The table may have applied the first write by now.
        let renewed = renew(api, &cookie).expect(200).await;
        renew(api, &cookie_of(&renewed)).expect(200).await;
    }))
    .await;
}
