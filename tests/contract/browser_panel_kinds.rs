//! The pages for every kind of webhook and its deliveries in a real browser, and the page that is shown if one cannot
//! be drawn. These tests run on demand only: `make browser-test`.

use std::{collections::BTreeMap, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{
    Behaviour, Browser, Entity, Receiver, Suite,
    feed::{confirm, read_some},
    order::later,
};

/// Publishes an event about the same subject, and returns its deliveries by webhook.
async fn published(entity: &Entity) -> BTreeMap<String, String> {
    let event = json!({ "type": "booking.created", "subject": "B-1", "data": { "bookingIdentifier": "B-1" } });
    let published = entity.publish_event(&event).await.json();
    let text = |value: &Value| value.as_str().expect("openapi.yaml says so").to_owned();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so").iter();
    deliveries.map(|one| (text(&one["webhookIdentifier"]), text(&one["deliveryIdentifier"]))).collect()
}

/// Regression test: a delivery without an address had a blank page.
#[contract_test(in_browser)]
async fn every_page_of_every_kind_of_webhook_is_drawn(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let fine = receiver.on("/fine", [Behaviour::status(204)]);
    let busy = receiver.on("/busy", [later()]);
    let hook = async |name: &str, more: Value| {
        let mut body = json!({ "name": name, "eventList": ["booking.created"] });
        body.as_object_mut().expect("it is an object").extend(more.as_object().expect("it is an object").clone());
        entity.hook_with(body).await
    };
    let push = hook("Push", json!({ "eventUrl": fine })).await;
    let unread = hook("Unread", json!({ "delivery": "pull" })).await;
    let read = hook("Read", json!({ "delivery": "pull" })).await;
    let listen = hook("Listen", json!({ "delivery": "pull", "temporary": true })).await;
    let disabled = hook("Disabled", json!({ "eventUrl": fine })).await;
    let ordered = hook("Ordered", json!({ "eventUrl": busy, "order": "subject" })).await;
    let filter = json!({ "bookingIdentifier": ["B-1"] });
    let filtered = hook("Filtered", json!({ "eventUrl": fine, "eventFilter": filter })).await;
    let first = published(&entity).await;
    let confirmed = read_some(&entity, &read, json!({})).await;
    confirm(&entity, &read, &confirmed).await;
    let second = published(&entity).await;
    for delivered in [&push, &read, &disabled, &filtered] {
        entity.until_status(&first[&delivered.id], &["delivered"]).await;
    }
    entity.until_status(&first[&ordered.id], &["retrying"]).await;
    // Disabling a webhook cancels its open deliveries, so wait for this one.
    entity.until_status(&second[&disabled.id], &["delivered"]).await;
    entity.changed(&disabled.id, json!({ "enabled": false })).await;

    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("Sign out").await;
    for (hook, deliveries, status) in [
        (&push, &first, "Delivered on attempt 1"),
        (&unread, &first, "Waiting for a program to read the webhook’s feed"),
        (&read, &first, "Delivered on attempt 1"),
        (&listen, &first, "Waiting for a program to read the webhook’s feed"),
        (&disabled, &first, "Delivered on attempt 1"),
        (&ordered, &first, "Not delivered yet, after 1 attempt"),
        (&ordered, &second, "Waiting for the previous delivery for the same subject"),
        (&filtered, &first, "Delivered on attempt 1"),
    ] {
        let is_pulled = hook.json["delivery"] == "pull";
        for (page, words) in [
            (format!("webhooks/{}", hook.id), "Performance"),
            (format!("webhooks/{}/edit", hook.id), "Signature"),
            (format!("deliveries/{}", deliveries[&hook.id]), status),
        ] {
            browser.go(&format!("{}/panel/{page}", suite.api.base_url())).await;
            let shown = browser.until_says(words).await;
            let is_delivery = page.starts_with("deliveries");
            assert_eq!(shown.contains("Copy as curl"), is_delivery && !is_pulled, "{page}: {shown}");
            let is_healthy = hook.id != ordered.id;
            assert!(!is_healthy || !shown.contains("Recover failed deliveries…"), "{page}: {shown}");
            assert!(!is_pulled || !is_delivery || shown.contains("Read from a feed"), "{page}: {shown}");
            if is_delivery {
                assert_eq!(browser.serious_faults().await, [""; 0], "{page}");
            }
            assert_eq!(browser.complaints().await, "", "{page}");
        }
    }
    browser.go(&format!("{}/panel/deliveries", suite.api.base_url())).await;
    browser.until_says("14 deliveries in total").await;
    browser.go(&format!("{}/panel/webhooks", suite.api.base_url())).await;
    browser.until_says("filtered by data").await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

/// Replaces the list of deliveries with one delivery that cannot be drawn, since it has no status.
const UNDRAWABLE: &str = "const real = window.fetch;
    const broken = { id: 'dlv_1', type: 'booking.created', subject: 'Confidential' };
    window.fetch = (to, how) => String(to).includes('/delivery/list')
        ? Promise.resolve(Response.json({ items: [broken] })) : real(to, how);
    navigator.clipboard.writeText = async (text) => { window.copied = text; };";

#[contract_test(in_browser)]
async fn a_page_that_cannot_be_drawn_offers_a_reload_and_a_report(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": "/panel/webhooks" })).await).await;
    browser.until_says("No webhooks yet").await;
    browser.run(UNDRAWABLE).await;
    browser.click("Deliveries").await;
    let page = browser.until_says("This page cannot be shown").await;
    for part in ["Reload the page", "TypeError", "Page: /panel/deliveries"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.click("Copy").await;
    browser.until_says("Copied: the report.").await;
    let report = browser.run("return window.copied").await;
    let is_clean = |report: &str| report.contains("TypeError") && !report.contains("Confidential");
    assert!(report.as_str().is_some_and(is_clean), "{report}");
    assert!(browser.complaints().await.contains("TypeError"), "the browser's console shows the fault");

    browser.click("Webhooks").await;
    browser.until_says("No webhooks yet").await;
    browser.click("Deliveries").await;
    browser.until_says("This page cannot be shown").await;
    browser.click("Reload the page").await;
    browser.until_says("Start with a webhook").await;
    browser.close().await;
}
