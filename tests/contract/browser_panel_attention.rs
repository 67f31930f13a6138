//! The panel's strip of things that need attention. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{
    Behaviour, Browser, Entity, LONG, Receiver, Suite,
    feed::pulled,
    order::{later, ordered},
    until,
};

const CALM: &str = "No webhook needs attention, and no delivery failed in the last 24 hours";

/// A browser with an open session at this address within the panel.
async fn at(entity: &Entity, place: &str) -> Browser {
    let browser = Browser::open().await;
    browser.resize(1366, 768).await;
    browser.go(&entity.panel_link(json!({ "place": place })).await).await;
    browser
}

/// Waits until the list for this query shows a delivery of this kind, since the strip reads the list only once.
async fn until_listed(entity: &Entity, query: &str, is_wanted: impl Fn(&Value) -> bool) {
    until(&format!("{query} shows the delivery"), LONG, async || {
        let list = entity.get(&format!("/webhook/delivery/list?{query}")).expect(200).await.json();
        list["items"].as_array().is_some_and(|items| items.iter().any(&is_wanted)).then_some(())
    })
    .await;
}

/// The address of the list of a webhook's open deliveries.
fn open_of(webhook: &str) -> String {
    format!("/panel/deliveries?status=pending%2Cretrying&webhook={webhook}")
}

/// The links in the strip's lines.
const LINKS: &str = "const lines = [...document.querySelectorAll('.attention li')];
    return lines.map((line) => line.lastElementChild.getAttribute('href'))";

/// A webhook's state shows neither a failure without retries nor a blocked subject.
#[contract_test(in_browser)]
async fn the_first_page_names_failures_and_blocked_subjects(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let refusing = json!({ "name": "Refusing", "eventUrl": receiver.on("/refuses", [Behaviour::status(404)]),
                           "eventList": ["booking.cancelled"], "retries": "none" });
    entity.hook_with(refusing).await;
    let failed = entity.publish_of_type("booking.cancelled", json!({ "bookingIdentifier": "B-2" })).await.json();
    let failed = failed["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    entity.until_status(&failed, &["failed"]).await;
    let blocked = ordered(&entity, &receiver.on("/busy", [later()]), &["booking.created"]).await;
    let resting = json!({ "name": "Resting", "eventUrl": receiver.on("/fine", [Behaviour::status(204)]),
                          "eventList": ["booking.created"] });
    let resting = entity.hook_with(resting).await;
    entity.post(&format!("/webhook/{}/pause", resting.id)).json(&json!({})).expect(200).await;
    for _ in 0..2 {
        let event = json!({ "type": "booking.created", "subject": "B-1", "data": { "bookingIdentifier": "B-1" } });
        entity.publish_event(&event).await;
    }
    until_listed(&entity, "status=failed", |one| one["id"] == failed.as_str()).await;
    let open = format!("webhookIdentifier={}&status=pending,retrying", blocked.id);
    until_listed(&entity, &open, |one| one["status"] == "retrying").await;
    until_listed(&entity, &open, |one| one["waitingFor"] == "order").await;

    let browser = at(&entity, "/panel/deliveries").await;
    let page = browser.until_says("1 delivery failed in the last 24 hours").await;
    for words in ["1 subject is waiting for a delivery that failed", "Resting"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("No webhook needs attention"), "{page}");
    let expected = [
        "/panel/deliveries?status=failed&period=7d".to_owned(),
        open_of(&resting.id),
        format!("/panel/deliveries?status=retrying&webhook={}", blocked.id),
    ];
    assert_eq!(browser.run(LINKS).await, json!(expected));
    let count = "return document.querySelector('nav .number')?.textContent ?? ''";
    assert_eq!(browser.run(count).await, "1, 1 needs attention", "the menu counts webhooks by their state");
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.click("View deliveries").await;
    browser.until_at("status=failed&period=7d").await;
    browser.until_says("1 delivery in total").await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

/// Readers come every few minutes, so a delivery that is unread for less than an hour is no cause for concern.
#[contract_test(in_browser)]
async fn the_first_page_names_a_feed_that_is_unread_for_an_hour(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let feed = pulled(&entity).await;
    entity.publish(json!({})).await;
    let unread = async || entity.webhook(&feed.id).await.get("oldestUnreadDate").map(|_| ());
    until("the feed has a delivery", LONG, unread).await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.until_says(CALM).await;
    browser.click("Webhooks").await;
    browser.until_says("Endpoints that receive events").await;
    let aged = format!(
        "const real = window.fetch;
        window.fetch = async (to, how) => {{
            const answer = await real(to, how);
            if (!String(to).endsWith('/webhook/{}')) return answer;
            return Response.json({{ ...await answer.json(), oldestUnreadDate: '2026-01-01T00:00:00.000Z' }});
        }};",
        feed.id
    );
    browser.run(&aged).await;
    browser.click("Deliveries").await;
    browser.until_says("Unread").await;
    assert_eq!(browser.run(LINKS).await, json!([open_of(&feed.id)]));
    browser.close().await;
}

#[contract_test(in_browser)]
async fn one_calm_line_says_that_nothing_failed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.until_says(CALM).await;
    let strips = browser.run("return document.querySelectorAll('.attention').length").await;
    assert_eq!(strips, 0);
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.close().await;
}

/// Replaces the response to each request for failed deliveries with `window.answer`.
const UNKNOWN: &str = "const real = window.fetch;
    window.asked = 0;
    window.fetch = (to, how) => {
        if (!String(to).includes('status=failed')) return real(to, how);
        window.asked += 1;
        return Promise.resolve(Response.json(...window.answer));
    };";

/// Waits until the browser has drawn the page twice.
const DRAWN: &str = "await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))";

#[contract_test(in_browser)]
async fn a_reading_that_fails_or_does_not_end_is_never_calm(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let browser = at(&entity, "/panel/webhooks").await;
    browser.until_says("Endpoints that receive events").await;
    browser.run(UNKNOWN).await;
    let refused = "window.answer = [{ title: 'Too many requests' }, { status: 429 }]; window.asked = 0";
    let unfinished = "window.answer = [{ items: [], nextCursor: 'more' }]; window.asked = 0";
    for (answer, requests) in [(refused, 1), (unfinished, 3)] {
        browser.run(answer).await;
        browser.click("Deliveries").await;
        browser.until_says("1 delivery in total").await;
        until("the strip has read the list", LONG, async || {
            (browser.run("return window.asked").await == requests).then_some(())
        })
        .await;
        browser.run_to_end(DRAWN).await;
        let page = browser.text().await;
        assert!(!page.contains("No webhook needs attention") && !page.contains("the last 24 hours"), "{page}");
        browser.click("Webhooks").await;
        browser.until_says("Endpoints that receive events").await;
    }
    browser.close().await;
}
