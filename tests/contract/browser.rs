//! A person's path through the start page and the consent page in a real browser. These tests run on demand only: `make
//! browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{Browser, Entity, Suite, TAB, hash_of, state_of};

/// Goes to the provider and makes this choice; returns the open browser and the landing page's text.
async fn land(entity: &Entity, button: &str, outcome: &str) -> (Browser, String) {
    let address = entity.authorization_url("sim-pkce").await;
    let browser = Browser::open().await;
    browser.go(&address).await;
    let words = browser.until_at("/oauth2/start").await;
    assert!(words.contains(&entity.id), "{words}");
    browser.screenshot("start.png").await;
    browser.click("Continue to sim-pkce").await;
    browser.until_at("/authorize").await;
    browser.click(button).await;
    let words = browser.until_at(&format!("/panel/provider/sim-pkce?outcome={outcome}")).await;
    (browser, words)
}

#[contract_test(in_browser)]
async fn a_person_who_allows_lands_on_a_page_that_says_connected(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (browser, words) = land(&entity, "Allow", "connected").await;
    browser.screenshot("connected.png").await;
    assert!(words.to_lowercase().contains("connected") && words.contains("sim-pkce"), "{words}");
    assert!(words.contains(&entity.id) && words.contains("acct_"), "{words}");
    assert_eq!(entity.connection("sim-pkce").await.expect("connected")["status"], "connected");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_person_who_declines_sees_a_page_that_says_so(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (browser, words) = land(&entity, "Deny", "denied").await;
    browser.screenshot("denied.png").await;
    assert!(words.contains("sim-pkce") && words.to_lowercase().contains("not connected"), "{words}");
    assert!(entity.connections().await.is_empty());
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_page_explains_that_a_link_has_expired(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let address = entity.authorization_url("sim-pkce").await;
    let browser = Browser::open().await;
    browser.go(&address).await;
    browser.until_at("/oauth2/start").await;
    browser.click("Continue to sim-pkce").await;
    browser.until_at("/authorize").await;
    let key = format!("STATE#{}", hash_of(&state_of(&address)));
    assert!(
        suite.table().set(&key, "STATE", "expiresDate", "2026-01-01T00:00:00.000Z").await,
        "the end of the link is moved into the past"
    );
    browser.click("Allow").await;
    let words = browser.until_at("/oauth2/callback").await;
    browser.screenshot("expired.png").await;
    for part in ["This link has expired", "sim-pkce", &entity.id, "ask for a new link"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains('{'), "{words}");
    assert_eq!(browser.width_of_page().await, "704px");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_reference_and_the_problem_pages_are_styled_and_linked(suite: Arc<Suite>) {
    let browser = Browser::open().await;
    let base = suite.api.base_url();
    browser.go(&format!("{base}/")).await;
    let words = browser.until_at(base).await;
    browser.screenshot("reference.png").await;
    assert!(words.contains("Publish an event") && words.contains("Introduction"), "{words}");
    browser.click("all kinds of Problems").await;
    browser.until_at("/problems").await;
    browser.screenshot("problems.png").await;
    browser.click("webhook-limit").await;
    let words = browser.until_at("/problems/webhook-limit").await;
    browser.screenshot("problem.png").await;
    assert!(words.contains("Example") && words.contains("Create a webhook"), "{words}");
    assert_eq!(browser.width_of_page().await, "704px");
    browser.click("Create a webhook").await;
    browser.until_at("/#createWebhook").await;
    browser.screenshot("operation.png").await;
    browser.close().await;
}

/// The pages outside the panel, one of each kind: its address, and some text that it shows.
async fn pages(suite: &Suite) -> Vec<(String, &'static str)> {
    let base = suite.api.base_url();
    let start = suite.entity().await.authorization_url("stripe").await;
    let over = format!("{base}/api/public/square/oauth2/callback?code=c&state={}", "A".repeat(43));
    vec![
        (format!("{start}&go=x"), "again."),
        (start, "What happens next"),
        (over, "This link is not valid"),
        (format!("{base}/panel/provider/stripe"), "list of connections"),
        (format!("{base}/nowhere"), "Address not found"),
        (format!("{base}/problems"), "webhook-limit"),
        (format!("{base}/problems/webhook-limit"), "Create a webhook"),
        (format!("{base}/"), "Introduction"),
        (format!("{base}/receiving"), "In short"),
    ]
}

#[contract_test(in_browser)]
async fn axe_finds_nothing_serious_on_any_page_in_light_and_dark(suite: Arc<Suite>) {
    let browser = Browser::open().await;
    let pages = pages(&suite).await;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await;
        for (address, words) in &pages {
            browser.go(address).await;
            browser.until_says(words).await;
            assert_eq!(browser.serious_faults().await, [""; 0], "{address}, {scheme}");
        }
    }
    browser.close().await;
}

#[contract_test(in_browser)]
async fn every_page_fits_a_phone_and_shows_where_the_keyboard_is(suite: Arc<Suite>) {
    let browser = Browser::open().await;
    let pages = pages(&suite).await;
    browser.resize(360, 740).await;
    for (address, words) in &pages {
        browser.go(address).await;
        browser.until_says(words).await;
        let wide = browser.whole_width().await;
        assert!(wide <= 360, "{address} is {wide} wide");
        let has_link = browser.run("return document.querySelector('a[href]') !== null").await;
        if has_link == true {
            browser.press(&[TAB]).await;
            let outline =
                "return [document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]";
            assert_eq!(browser.run(outline).await, json!(["A", "solid"]), "{address}");
        }
    }
    browser.close().await;
}
