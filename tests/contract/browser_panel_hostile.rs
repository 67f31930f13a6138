//! The panel shows untrusted values as text on every page. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{Behaviour, Browser, Receiver, Suite};

/// An untrusted name, response or value.
const HOSTILE: &str = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>";

#[contract_test(in_browser)]
async fn untrusted_texts_are_shown_as_text_on_every_page(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let answer = Behaviour::answer(422, &[("Content-Type", "text/html")], HOSTILE);
    let hook = json!({ "name": HOSTILE, "eventUrl": receiver.on("/hook", [answer]), "eventList": [] });
    let hook = entity.hook_with(hook).await;
    let id = entity.publish(json!({ HOSTILE: HOSTILE, "__proto__": { "polluted": HOSTILE }, "huge": 1.0e300 })).await;
    entity.until_status(&id, &["failed"]).await;
    let application = json!({ "name": HOSTILE, "scopes": ["booking.read"] });
    let application = entity.post("/application").json(&application).expect(201).await.json();
    let named = json!({ "name": HOSTILE });
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(named).await).await;
    browser.until_says("<script>").await;

    let application = application["clientId"].as_str().expect("openapi.yaml says so");
    let escaped = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    for (page, words) in [
        ("deliveries".to_owned(), "<script>"),
        (format!("deliveries/{id}"), "polluted"),
        ("webhooks".to_owned(), "<script>"),
        (format!("webhooks/{}", hook.id), "<script>"),
        (format!("webhooks/{}/edit", hook.id), "<script>"),
        (format!("applications/{application}"), "<script>"),
        ("links".to_owned(), "<script>"),
        (format!("deliveries/{escaped}"), "If you ask for help"),
        (
            format!("deliveries?type={escaped}&webhook={escaped}&event={escaped}&from={escaped}&status={escaped}"),
            "If you ask for help",
        ),
        (format!("event-types?search={escaped}"), "No matching type"),
        (format!("providers?outcome=connected&provider={escaped}&error={escaped}"), "Connect a provider"),
        (format!("{escaped}/{escaped}"), "Page not found"),
    ] {
        browser.go(&format!("{}/panel/{page}", suite.api.base_url())).await;
        browser.until_says(words).await;
        let strange = "const count = (what) => document.querySelectorAll(what).length;
                       return [count('#panel :is(img, script, iframe, [onerror], [onload])'), count('a[href^=\"javascript:\"]'),
                               document.title === 'taken', {}.polluted === undefined]";
        assert_eq!(browser.run(strange).await, json!([0, 0, false, true]), "{page}");
        assert_eq!(browser.complaints().await, "", "{page}: no script was attempted");
    }
    browser.close().await;
}
