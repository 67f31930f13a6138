//! Panel sessions: opening, renewing, and every way in which a session ends.

use std::sync::Arc;

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    applications::{Made, claims, made_with, of, text, token},
    harness::{Api, ApiResponse, Application, Call, Entity, LONG_AGO, Suite, Table, time},
    panel_links::{MadeLink, link},
};

/// An open session.
pub struct Session {
    pub token: String,
    /// The cookie, as a browser sends it back.
    pub cookie: String,
}

/// Opens a link, as the panel's page does.
pub fn open(api: &Api, code: &str) -> Call {
    api.post("/panel/session").header("sec-fetch-site", "same-origin").json(&json!({ "code": code }))
}

/// Renews a session, as the panel's page does.
pub fn renew(api: &Api, cookie: &str) -> Call {
    api.post("/panel/session").header("sec-fetch-site", "same-origin").header("cookie", cookie)
}

/// The cookie that a response sets, as the browser sends it back.
pub fn cookie_of(answer: &ApiResponse) -> String {
    answer.header("set-cookie").split(';').next().unwrap_or_default().to_owned()
}

/// The session that a response starts or renews.
pub fn session_of(answer: &ApiResponse) -> Session {
    Session { token: text(&answer.json(), "accessToken"), cookie: cookie_of(answer) }
}

/// The session of a link.
pub async fn opened(api: &Api, code: &str) -> Session {
    session_of(&open(api, code).expect(200).await)
}

async fn with_session(entity: &Entity) -> (MadeLink, Session) {
    let made = link(entity, json!({})).await;
    let session = opened(entity.api(), &made.code).await;
    (made, session)
}

/// Whether introspection reports a token as valid.
async fn is_active(api: &Api, token: &str) -> bool {
    let asked = api.as_client("/oauth2/introspect", Application::Platform, &[("token", token)]);
    asked.expect(200).await.json()["active"] == true
}

async fn changed(suite: &Suite, entity: &Entity, link: &MadeLink, change: impl FnOnce(&mut Value)) {
    let (table, pk): (Table, _) = (suite.table(), format!("PANEL#{}", entity.id));
    let mut item = table.item(&pk, &link.id).await.expect("the link is there");
    change(&mut item);
    table.put(item).await;
}

#[contract_test]
async fn a_code_opens_one_session(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({})).await;
    let answers = join_all((0..8).map(|_| open(api, &made.code).answered())).await;
    let (good, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((good.len(), refused.len()), (1, 7), "one of eight concurrent requests opens it");
    assert!(refused.iter().all(|answer| answer.json()["kind"] == "invalid-panel-code"));
    let problem = open(api, &made.code).refused(400, "invalid-panel-code").await;
    assert!(text(&problem, "detail").contains("already been used"), "{problem:#}");
    let first = session_of(&good[0]);
    assert!(is_active(api, &first.token).await, "the existing session continues");
    renew(api, &first.cookie).expect(200).await;
}

#[contract_test]
async fn a_code_that_is_unknown_or_too_old_opens_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({})).await;
    let (place, secret) = made.code.rsplit_once('/').expect("a code has three parts");
    let other = format!("{place}/{}", secret.chars().rev().collect::<String>());
    for unknown in ["", "x", "//", place, &made.code[1..], &format!("{}x", made.code), &other, "PANEL#x/../y", "é/é/é"]
    {
        let answer = open(api, unknown).expect(400).await;
        assert_eq!(answer.json()["kind"], "invalid-panel-code", "{unknown}");
        assert_eq!(answer.header("set-cookie"), "", "{unknown}");
    }
    for body in [json!({ "code": 1 }), json!({ "code": null }), json!({ "token": "x" }), json!([])] {
        let call = api.post("/panel/session").json(&body);
        call.refused(400, "invalid-request").await;
    }
    changed(&suite, &entity, &made, |item| item["expiresDate"] = json!({ "S": LONG_AGO })).await;
    let problem = open(api, &made.code).refused(400, "invalid-panel-code").await;
    assert!(text(&problem, "detail").contains("ten minutes"), "{problem:#}");
}

#[contract_test]
async fn a_session_is_for_its_entity_and_its_scopes_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({ "scopes": ["integrations.read"], "lifetimeSeconds": 3600 })).await;
    let answer = open(api, &made.code).expect(200).await;
    let session = session_of(&answer);
    let body = answer.json();
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!((&body["linkIdentifier"], &body["expiresIn"]), (&json!(made.id), &json!(600)));
    let seconds = |member: &str| time(&body[member]).as_second();
    assert_eq!(seconds("sessionEndsDate") - seconds("expiresDate"), 3000, "{body:#}");

    let claims = claims(&session.token);
    assert_eq!(claims["client_id"], api.env["PLATFORM_CLIENT_ID"].as_str());
    assert_eq!((&claims["scope"], &claims["sid"]), (&json!("integrations.read"), &json!(made.id)));
    assert_eq!(claims["managing_entities"], json!([entity.id]), "although the creator's token is for every entity");
    assert_eq!(claims["exp"].as_i64().zip(claims["iat"].as_i64()).map(|(end, begin)| end - begin), Some(600));

    api.get(entity.path("/webhook/list")).bearer(&session.token).expect(200).await;
    let webhook = json!({ "name": "x", "eventUrl": "https://example.com", "eventList": [] });
    let write = api.post(entity.path("/webhook")).bearer(&session.token).json(&webhook);
    write.refused(403, "insufficient-scope").await;
    let elsewhere = suite.entity().await.path("/webhook/list");
    api.get(elsewhere).bearer(&session.token).refused(403, "entity-not-covered").await;
}

#[contract_test]
async fn a_session_continues_by_its_cookie_and_each_renewal_replaces_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({ "scopes": ["integrations.read"], "place": "/panel/webhooks" })).await;
    let first = open(api, &made.code).expect(200).await;
    let mut cookies = vec![cookie_of(&first)];
    for _ in 0..3 {
        let renewed = renew(api, cookies.last().expect("one")).expect(200).await;
        let before = first.json();
        let after = renewed.json();
        for same in ["sessionEndsDate", "scope", "managingEntity", "linkIdentifier", "place"] {
            assert_eq!(before[same], after[same]);
        }
        assert!(is_active(api, &session_of(&renewed).token).await);
        assert!(!cookies.contains(&cookie_of(&renewed)), "each renewal has another cookie");
        cookies.push(cookie_of(&renewed));
    }
    // A cookie with a different name does not count. The response deletes no cookie that the browser did not send,
    // since another tab may be receiving one at this moment.
    for none in [api.post("/panel/session"), renew(api, "other=1"), renew(api, "=;;,")] {
        let answer = none.expect(204).await;
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("set-cookie"), "", "{}", answer.exchange);
    }
    let answer = renew(api, "waypost-panel=x").expect(403).await;
    assert!(answer.header("set-cookie").starts_with("waypost-panel=; Max-Age=0;"), "{}", answer.exchange);
}

#[contract_test]
async fn a_session_continues_beside_cookies_of_any_bytes(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({ "scopes": ["integrations.read"], "place": "/panel/webhooks" })).await;
    let mut ours = cookie_of(&open(api, &made.code).expect(200).await);
    for other in ["name=José".as_bytes(), b"name=Jos\xe9"] {
        let cookies = [other, b"; ", ours.as_bytes(), b"; ", other].concat();
        let call = api.post("/panel/session").header("sec-fetch-site", "same-origin").header("cookie", cookies);
        ours = cookie_of(&call.expect(200).await);
    }
}

#[contract_test]
async fn tabs_that_renew_at_once_get_the_same_cookie(suite: Arc<Suite>) {
    let api = &suite.api;
    let (_, session) = with_session(&suite.entity().await).await;
    let answers = join_all((0..6).map(|_| renew(api, &session.cookie).expect(200))).await;
    let cookies: Vec<_> = answers.iter().map(cookie_of).collect();
    assert!(cookies.iter().all(|cookie| *cookie == cookies[0]), "{cookies:?}");
    assert_ne!(cookies[0], session.cookie);
    renew(api, &cookies[0]).expect(200).await;
}

#[contract_test]
async fn a_tab_two_renewals_behind_continues_with_the_current_cookie(suite: Arc<Suite>) {
    let api = &suite.api;
    let (_, first) = with_session(&suite.entity().await).await;
    let second = session_of(&renew(api, &first.cookie).expect(200).await);
    let third = session_of(&renew(api, &second.cookie).expect(200).await);
    for earlier in [&first, &second, &third] {
        let renewed = session_of(&renew(api, &earlier.cookie).expect(200).await);
        assert_eq!(renewed.cookie == third.cookie, earlier.cookie != third.cookie, "the latest cookie is replaced");
    }
}

#[contract_test]
async fn a_cookie_that_was_replaced_long_ago_ends_the_session(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    for renewals in [1, 2] {
        let (made, first) = with_session(&entity).await;
        let mut last = Session { token: String::new(), cookie: first.cookie.clone() };
        for _ in 0..renewals {
            last = session_of(&renew(api, &last.cookie).expect(200).await);
        }
        let long_ago = json!({ "L": vec![json!({ "S": LONG_AGO }); renewals] });
        changed(&suite, &entity, &made, |item| item["session"]["M"]["replacedDates"] = long_ago).await;
        let problem = renew(api, &first.cookie).refused(403, "no-panel-session").await;
        assert!(text(&problem, "detail").contains("may have been copied"), "{problem:#}");
        renew(api, &last.cookie).refused(403, "no-panel-session").await;
        for token in [&first.token, &last.token] {
            assert!(!is_active(api, token).await, "every token of the session has ended");
        }
    }
}

/// A page on another subdomain can set a second cookie with the same name.
#[contract_test]
async fn two_cookies_of_one_name_are_no_session(suite: Arc<Suite>) {
    let api = &suite.api;
    let (_, session) = with_session(&suite.entity().await).await;
    let (_, planted) = with_session(&suite.entity().await).await;
    let both = format!("{}; {}", planted.cookie, session.cookie);
    renew(api, &both).refused(403, "no-panel-session").await;
    renew(api, &session.cookie).expect(200).await;
}

#[contract_test]
async fn a_cookie_that_was_never_the_sessions_ends_nothing(suite: Arc<Suite>) {
    let api = &suite.api;
    let (made, session) = with_session(&suite.entity().await).await;
    let (place, secret) = session.cookie.rsplit_once('/').expect("a cookie has three parts");
    let guess = format!("{place}/{}", secret.chars().rev().collect::<String>());
    let code = format!("waypost-panel={}", made.code);
    for foreign in [&guess, &code] {
        renew(api, foreign).refused(403, "no-panel-session").await;
        let ended = api.call("DELETE", "/panel/session").header("cookie", foreign).expect(204).await;
        assert_eq!(cookie_of(&ended), "waypost-panel=");
    }
    assert!(is_active(api, &session.token).await);
    renew(api, &session.cookie).expect(200).await;
}

#[contract_test]
async fn a_session_ends_at_its_time(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({ "lifetimeSeconds": 60 })).await;
    let answer = open(api, &made.code).expect(200).await;
    let body = answer.json();
    assert_eq!(body["expiresDate"], body["sessionEndsDate"], "no token outlives its session");
    // The link's application may extend the session even while the page is idle.
    assert!(answer.header("set-cookie").contains("; Max-Age=86400;"), "{}", answer.exchange);
    changed(&suite, &entity, &made, |item| item["session"]["M"]["endsDate"] = json!({ "S": LONG_AGO })).await;
    let problem = renew(api, &cookie_of(&answer)).refused(403, "no-panel-session").await;
    assert!(text(&problem, "detail").contains("has expired"), "{problem:#}");
}

#[contract_test]
async fn the_end_of_a_link_is_the_end_of_its_session_and_its_tokens(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let ((made, session), (_, other)) = (with_session(&entity).await, with_session(&entity).await);
    let renewed = session_of(&renew(api, &session.cookie).expect(200).await);
    entity.call("DELETE", &format!("/panel/link/{}", made.id)).expect(200).await;
    renew(api, &renewed.cookie).refused(403, "no-panel-session").await;
    for token in [&session.token, &renewed.token] {
        assert!(!is_active(api, token).await);
    }
    assert!(is_active(api, &other.token).await, "another session continues");
    renew(api, &other.cookie).expect(200).await;
}

#[contract_test]
async fn a_person_who_signs_out_ends_the_session(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let (_, session) = with_session(&entity).await;
    let renewed = session_of(&renew(api, &session.cookie).expect(200).await);
    for _ in 0..2 {
        let ended = api.call("DELETE", "/panel/session").header("cookie", &renewed.cookie).expect(204).await;
        assert!(ended.header("set-cookie").starts_with("waypost-panel=; Max-Age=0;"), "{}", ended.exchange);
    }
    renew(api, &renewed.cookie).refused(403, "no-panel-session").await;
    assert!(!is_active(api, &session.token).await && !is_active(api, &renewed.token).await);
    assert_eq!(entity.panel_links().await, Vec::<Value>::new());
    api.call("DELETE", "/panel/session").expect(204).await;
    let said = api.call("DELETE", "/panel/session").json(&json!({ "all": true }));
    said.refused(400, "invalid-request").await;
}

/// One of the entity's applications, and a link that it created.
async fn link_of_application(entity: &Entity) -> (Made, MadeLink) {
    let scopes = ["integrations.read", "integrations.write", "account.read"];
    let application = made_with(entity, json!({ "name": "test", "scopes": scopes })).await;
    let token = token(entity.api(), &application.id, &application.secret).await;
    let made = entity.api().post(entity.path("/panel/link")).bearer(&token).json(&json!({})).expect(201).await;
    (application, MadeLink::of(&made.json()))
}

#[contract_test]
async fn without_its_application_a_session_is_not_renewed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let (application, made) = link_of_application(&entity).await;
    let session = opened(api, &made.code).await;
    let other = link_of_application(&entity).await;
    for application in [&application, &other.0] {
        entity.call("DELETE", &of(application, "")).expect(200).await;
    }
    let problem = renew(api, &session.cookie).refused(403, "no-panel-session").await;
    assert!(text(&problem, "detail").contains("was removed"), "{problem:#}");
    assert!(!is_active(api, &session.token).await);
    let problem = open(api, &other.1.code).refused(400, "invalid-panel-code").await;
    assert!(text(&problem, "detail").contains("was removed"), "{problem:#}");
}

#[contract_test]
async fn a_removed_credential_takes_its_links_along(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let (application, made) = link_of_application(&entity).await;
    let session = opened(api, &made.code).await;
    let credential = text(&claims(&session.token), "credential_id");
    let second = entity.post(&of(&application, "/secret")).json(&json!({})).expect(200).await.json();
    renew(api, &session.cookie).expect(200).await;
    entity.call("DELETE", &of(&application, &format!("/secret/{credential}"))).expect(200).await;
    assert!(!is_active(api, &session.token).await);
    renew(api, &session.cookie).refused(403, "no-panel-session").await;
    // The application itself is still valid.
    token(api, &application.id, &text(&second, "clientSecret")).await;
}

#[contract_test]
async fn an_operators_session_survives_the_removal_of_a_credential(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made_with(&entity, json!({ "name": "test", "scopes": ["integrations.read"] })).await;
    let credential = text(&claims(&token(api, &application.id, &application.secret).await), "credential_id");
    let made = suite.admin(&["panel", "link", &entity.id, "--application", &application.id, "--json"]).await.json();
    let session = opened(api, &MadeLink::of(&made).code).await;
    entity.post(&of(&application, "/secret")).json(&json!({})).expect(200).await;
    entity.call("DELETE", &of(&application, &format!("/secret/{credential}"))).expect(200).await;
    assert!(is_active(api, &session.token).await);
    let renewed = session_of(&renew(api, &session.cookie).expect(200).await);
    api.get(entity.path("/webhook/list")).bearer(&renewed.token).expect(200).await;
}

#[contract_test]
async fn a_page_of_another_origin_opens_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let made = link(&entity, json!({})).await;
    let body = json!({ "code": made.code });
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        for method in ["POST", "DELETE"] {
            let call = api.call(method, "/panel/session").header(name, value);
            let call = if method == "POST" { call.json(&body) } else { call };
            call.refused(403, "foreign-origin").await;
        }
    }
    let own = api.post("/panel/session").header("origin", api.base_url()).json(&body);
    own.expect(200).await;
}
