//! Renewing panel links: an application extends a person's session.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    applications::{forged, made_with, text, token},
    harness::{Suite, invalid_values, now, time},
    panel_links::{MadeLink, link},
    panel_sessions::{cookie_of, open, opened, renew},
};

fn renewal(link: &MadeLink) -> String {
    format!("/panel/link/{}/renew", link.id)
}

/// Whether a time is this many seconds after some moment between `before` and now.
fn is_in(value: &Value, seconds: i64, before: i64) -> bool {
    (before..=now()).contains(&(time(value).as_second() - seconds))
}

#[contract_test]
async fn a_session_lasts_up_to_a_day_from_each_renewal(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({ "lifetimeSeconds": 300, "name": "Ada" })).await;
    let before = now();
    let first = open(api, &made.code).expect(200).await;
    assert!(is_in(&first.json()["sessionEndsDate"], 300, before), "{}", first.exchange);
    let before = now();
    let hour = entity.post(&renewal(&made)).json(&json!({ "lifetimeSeconds": 3600 })).expect(200).await.json();
    assert!(is_in(&hour["sessionEndsDate"], 3600, before), "{hour:#}");
    assert_eq!((&hour["id"], &hour["name"], &hour["lifetimeSeconds"]), (&json!(made.id), &json!("Ada"), &json!(300)));
    assert_eq!(hour.get("url"), None);
    // The page learns the new end with its next token, which still lasts ten minutes.
    let renewed = renew(api, &cookie_of(&first)).expect(200).await;
    assert_eq!(renewed.json()["sessionEndsDate"], hour["sessionEndsDate"]);
    assert_eq!(renewed.json()["expiresIn"], 600);
    // Without a body, the link's own lifetime applies; renewing never shortens a session.
    let same = entity.post(&renewal(&made)).expect(200).await.json();
    assert_eq!(same, hour);
    let before = now();
    let day = entity.post(&renewal(&made)).json(&json!({ "lifetimeSeconds": 86_400 })).expect(200).await.json();
    assert!(is_in(&day["sessionEndsDate"], 86_400, before), "{day:#}");
    assert_eq!(entity.panel_links().await[0], day);
    renew(api, &cookie_of(&renewed)).expect(200).await;
}

#[contract_test]
async fn only_an_open_session_is_renewed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({})).await;
    entity.post(&renewal(&made)).json(&json!({})).refused(409, "panel-link-unopened").await;
    let session = opened(api, &made.code).await;
    let other = suite.entity().await;
    other.post(&renewal(&made)).json(&json!({})).refused(404, "panel-link-not-found").await;
    for bad in
        [json!({ "lifetimeSeconds": 86_401 }), json!({ "lifetimeSeconds": 59 }), json!({ "lifetimeSeconds": "1" })]
    {
        let problem = entity.post(&renewal(&made)).json(&bad).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/lifetimeSeconds"], "{bad}");
    }
    entity.call("DELETE", &format!("/panel/link/{}", made.id)).expect(200).await;
    entity.post(&renewal(&made)).json(&json!({})).refused(404, "panel-link-not-found").await;
    renew(api, &session.cookie).refused(403, "no-panel-session").await;

    let over = link(&entity, json!({})).await;
    opened(api, &over.code).await;
    let pk = format!("PANEL#{}", entity.id);
    let mut item = suite.table().item(&pk, &over.id).await.expect("the link is there");
    item["session"]["M"]["endsDate"] = json!({ "S": "2026-01-01T00:00:00.000Z" });
    suite.table().put(item).await;
    entity.post(&renewal(&over)).json(&json!({})).refused(404, "panel-link-not-found").await;
}

#[contract_test]
async fn a_session_does_not_renew_itself(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let made = link(&entity, json!({})).await;
    let session = opened(&suite.api, &made.code).await;
    let call = suite.api.post(entity.path(&renewal(&made))).bearer(&session.token).json(&json!({}));
    call.refused(403, "panel-link-refused").await;
}

#[contract_test]
async fn a_link_is_renewed_only_with_the_rights_that_it_gives(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({ "scopes": ["integrations.read", "payment.read"] })).await;
    opened(api, &made.code).await;
    let renewing = |token: &str| api.post(entity.path(&renewal(&made))).bearer(token).json(&json!({}));
    let weak = forged(&suite, "integrations.write integrations.read", &[&entity.id]);
    let problem = renewing(&weak).refused(403, "insufficient-scope").await;
    assert_eq!(problem["properties"]["requiredScope"], "payment.read");
    let reader = forged(&suite, "integrations.read payment.read", &[&entity.id]);
    renewing(&reader).refused(403, "insufficient-scope").await;
    // Any application that could create the link may also renew it.
    let scopes = ["integrations.read", "integrations.write", "payment.read"];
    let other = made_with(&entity, json!({ "name": "test", "scopes": scopes })).await;
    let strong = token(api, &other.id, &other.secret).await;
    let renewed = renewing(&strong).expect(200).await.json();
    assert_eq!(text(&renewed, "id"), made.id);
}

#[contract_test]
async fn a_link_for_publishing_is_renewed_only_by_publishers(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let scopes = ["integrations.read", "integrations.write"];
    let made = link(&entity, json!({ "scopes": scopes, "mayPublish": true })).await;
    opened(&suite.api, &made.code).await;
    let subscriber = made_with(&entity, json!({ "name": "test", "scopes": scopes })).await;
    let subscriber = token(&suite.api, &subscriber.id, &subscriber.secret).await;
    let call = suite.api.post(entity.path(&renewal(&made))).bearer(&subscriber).json(&json!({}));
    call.refused(403, "may-not-publish").await;
}
