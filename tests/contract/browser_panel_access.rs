//! The panel's accessibility: by keyboard alone, on a phone, at 200 %, in dark mode, and as checked by axe
//! (<https://github.com/dequelabs/axe-core>). These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{Behaviour, Browser, ENTER, ESCAPE, Entity, LONG, RIGHT, Receiver, Suite, TAB, until};

/// Every kind of page, for an entity with all kinds of data, each with some text that it shows once loaded.
async fn pages(entity: &Entity, receiver: &Receiver) -> Vec<(String, &'static str)> {
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::answer(500, &[], "no such table")])).await;
    let failed = entity.publish(json!({ "bookingIdentifier": "B-20417" })).await;
    entity.until_status(&failed, &["failed"]).await;
    until("every attempt is counted", LONG, async || {
        let stats = entity.get(&format!("/webhook/{}/stats", hook.id)).expect(200).await.json();
        let is_counted = stats["last24Hours"]["attempts"].as_u64() >= Some(3);
        (is_counted && entity.webhook(&hook.id).await["failuresInRow"].as_u64() >= Some(3)).then_some(())
    })
    .await;
    let application = json!({ "name": "Night audit", "scopes": ["booking.read"] });
    let application = entity.post("/application").json(&application).expect(201).await.json();
    let application = application["clientId"].as_str().expect("openapi.yaml says so").to_owned();
    vec![
        ("deliveries".to_owned(), "booking.created"),
        ("deliveries?status=pending&type=booking.created".to_owned(), "No delivery matches these filters"),
        ("deliveries?subject=B-20417".to_owned(), "500 Internal Server Error"),
        (format!("deliveries/{failed}"), "What to do"),
        ("webhooks".to_owned(), "attempts failed"),
        ("webhooks/new".to_owned(), "More settings"),
        (format!("webhooks/{}", hook.id), "Performance"),
        (format!("webhooks/{}/edit", hook.id), "Custom headers"),
        ("event-types?search=booking".to_owned(), "booking.created"),
        ("providers".to_owned(), "Not connected"),
        ("applications".to_owned(), "Night audit"),
        ("applications/new".to_owned(), "Integrations"),
        (format!("applications/{application}"), "Secrets and keys"),
        ("links".to_owned(), "Create a link"),
        ("nothing/of/this/name".to_owned(), "Page not found"),
    ]
}

async fn inside(entity: &Entity) -> Browser {
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("Sign out").await;
    browser
}

#[contract_test(in_browser)]
async fn axe_finds_nothing_serious_on_any_page_in_any_colours(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let pages = pages(&entity, &receiver).await;
    let browser = inside(&entity).await;
    for (scheme, is_forced) in [("light", false), ("dark", false), ("light", true), ("dark", true)] {
        if is_forced {
            browser.force_colours(scheme).await;
        } else {
            browser.prefer(scheme).await;
        }
        for (page, words) in &pages {
            browser.go(&format!("{}/panel/{page}", suite.api.base_url())).await;
            browser.until_says(words).await;
            assert_eq!(browser.serious_faults().await, [""; 0], "{page}, {scheme}, forced: {is_forced}");
            assert_eq!(browser.complaints().await, "", "{page}");
        }
    }
    browser.close().await;
}

#[contract_test(in_browser)]
async fn axe_finds_nothing_serious_on_any_page_of_a_phone_and_in_dialogs(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let pages = pages(&entity, &receiver).await;
    let hook = entity.get("/webhook/list").expect(200).await.json()[0]["id"].clone();
    let hook = hook.as_str().expect("openapi.yaml says so");
    let browser = inside(&entity).await;
    browser.resize(390, 844).await;
    for (page, words) in &pages {
        browser.go(&format!("{}/panel/{page}", suite.api.base_url())).await;
        browser.until_says(words).await;
        assert_eq!(browser.serious_faults().await, [""; 0], "{page}");
        assert_eq!(browser.complaints().await, "", "{page}");
    }
    browser.go(&format!("{}/panel/webhooks/{hook}", suite.api.base_url())).await;
    for (button, words) in [
        ("Pause…", "Its deliveries are on hold until the pause ends"),
        ("Replay events…", "That the webhook subscribes to"),
    ] {
        browser.click(button).await;
        browser.until_says(words).await;
        assert_eq!(browser.serious_faults().await, [""; 0], "{button}");
        let wide = browser.whole_width().await;
        assert!(wide <= 390, "the dialog of {button} is {wide} wide");
        browser.click("Cancel").await;
    }
    browser.close().await;
}

#[contract_test(in_browser)]
async fn every_page_fits_a_phone_and_a_zoom_of_200_percent(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let pages = pages(&entity, &receiver).await;
    let browser = inside(&entity).await;
    // At 200 %, a window of 1280 × 860 has as many CSS pixels as one of 640 × 430.
    for (width, height) in [(360, 740), (640, 430)] {
        browser.resize(width, height).await;
        for (page, words) in &pages {
            browser.go(&format!("{}/panel/{page}", suite.api.base_url())).await;
            browser.until_says(words).await;
            let wide = browser.whole_width().await;
            assert!(wide <= u64::from(width), "{page} is {wide} wide in {width}");
        }
    }
    browser.close().await;
}

/// Presses Tab until the element with this name has the focus.
async fn tab_to(browser: &Browser, name: &str) {
    let mut passed = Vec::new();
    for _ in 0..80 {
        browser.press(&[TAB]).await;
        let focused = browser.focused().await;
        if focused == name {
            return;
        }
        passed.push(focused);
    }
    panic!("the keyboard does not reach `{name}`: {passed:?}");
}

#[contract_test(in_browser)]
async fn the_panel_is_used_by_the_keyboard_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::answer(500, &[], "no such table")]);
    entity.hook_with(json!({ "name": "test", "eventUrl": address, "eventList": ["booking.created"] })).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    receiver.on("/hook", [Behaviour::status(204)]);
    let browser = inside(&entity).await;
    browser.until_says("booking.created").await;
    browser.press(&[TAB]).await;
    assert_eq!(browser.focused().await, "Skip to content");
    browser.press(&[ENTER]).await;
    tab_to(&browser, "Booking created").await;
    browser.press(&[ENTER]).await;
    browser.until_says("What to do").await;
    browser.until_focused("Booking created").await;

    tab_to(&browser, "Response").await;
    browser.press(&[RIGHT]).await;
    browser.until_says("webhook-signature").await;
    assert_eq!(browser.focused().await, "Request");
    browser.run("document.querySelector('h1').focus()").await;
    tab_to(&browser, "Recover failed deliveries…").await;
    browser.press(&[ENTER]).await;
    browser.until_says("1 delivery in this range failed").await;
    browser.press(&[ESCAPE]).await;
    browser.until_focused("Recover failed deliveries…").await;
    browser.run("document.querySelector('h1').focus()").await;
    tab_to(&browser, "Resend").await;
    browser.press(&[ENTER]).await;
    browser.until_says("Delivered on attempt 4").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_focus_goes_to_the_title_of_a_page_and_back_from_a_dialog(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = inside(&entity).await;
    for title in ["Webhooks", "Event types", "Payment providers"] {
        browser.click(title).await;
        let expected = json!(["H1", title, format!("{title} · Waypost")]);
        let focus = "return [document.activeElement.tagName, document.activeElement.textContent, document.title]";
        until("the title has the focus", LONG, async || (browser.run(focus).await == expected).then_some(())).await;
    }
    browser.click("Connect a provider").await;
    let inside = "return document.activeElement.closest('dialog') !== null";
    until("a dialog takes the focus", LONG, async || (browser.run(inside).await == true).then_some(())).await;
    browser.click("Cancel").await;
    browser.until_focused("Connect a provider").await;
    browser.close().await;
}
