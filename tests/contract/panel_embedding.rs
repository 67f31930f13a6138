//! The settings for showing the panel within a platform's page: the permitted frames, its name and its colour.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::{
    harness::{Entity, Settings, Suite},
    panel_links::link,
    panel_sessions::{cookie_of, open, renew},
};

#[contract_test]
async fn the_panel_is_framed_only_by_the_listed_pages_and_looks_as_set(suite: Arc<Suite>) {
    let ancestors = "https://app.example.com http://localhost:3000";
    let settings = Settings::default()
        .with("PANEL_FRAME_ANCESTORS", ancestors)
        .with("PANEL_NAME", "Hotels & more")
        .with("PANEL_ACCENT_COLOR", "#7A1FA2");
    let (_bundle, api, _permit) = suite.other_bundle(settings).await;
    for path in ["/panel", "/panel/deliveries"] {
        let page = api.get(path).expect(200).await;
        let policy = page.header("content-security-policy");
        assert!(policy.contains(&format!("; frame-ancestors {ancestors}; ")), "{policy}");
        assert_eq!(page.header("x-frame-options"), "");
        let text = page.text();
        for part in [
            "<title>Hotels &amp; more</title>",
            "<meta name=\"application-name\" content=\"Hotels &amp; more\">",
            "<meta name=\"accent-color\" content=\"#7a1fa2\">",
            "/brand.css\">",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // Other pages, including the panel's error pages, must not be framed.
    for path in ["/", "/problems", "/panel/assets/0123456789abcdef/main.js", "/panel/provider/stripe"] {
        let page = api.get(path).header("accept", "text/html").send().await;
        let policy = page.header("content-security-policy");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
    }

    let entity = Entity::new(&api, "framed".to_owned()).await;
    let first = open(&api, &link(&entity, json!({})).await.code).expect(200).await;
    let cookie = first.header("set-cookie");
    assert!(cookie.starts_with("waypost-panel-framed="), "{cookie}");
    assert!(cookie.ends_with("; Path=/panel/session; HttpOnly; SameSite=None; Secure; Partitioned"), "{cookie}");
    renew(&api, &cookie_of(&first)).expect(200).await;
    // The cookie that other sites may send authorizes nothing, and their requests are refused.
    for site in ["cross-site", "same-site", "none"] {
        for method in ["POST", "DELETE"] {
            let call = api.call(method, "/panel/session").header("cookie", cookie_of(&first));
            call.header("sec-fetch-site", site).refused(403, "foreign-origin").await;
        }
    }
    let call = api.get(entity.path("/webhook/list")).header("cookie", cookie_of(&first));
    call.refused(401, "unauthorized").await;
}

#[contract_test]
async fn without_the_settings_the_panel_has_its_own_name_and_colours(suite: Arc<Suite>) {
    let page = suite.api.get("/panel").expect(200).await.text();
    assert!(page.contains("<title>Waypost</title>"), "{page}");
    for absent in ["frame-ancestors", "accent-color", "brand.css"] {
        assert!(!page.contains(absent), "{absent}: {page}");
    }
    let made = link(&suite.entity().await, json!({})).await;
    let cookie = open(&suite.api, &made.code).expect(200).await.header("set-cookie").to_owned();
    assert!(cookie.starts_with("waypost-panel=") && cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
}
