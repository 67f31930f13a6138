//! The panel's loading time, as measured by the browser's clock. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::harness::{Behaviour, Browser, Entity, LONG, Receiver, Suite, until};

const WEBHOOKS: usize = 20;
const EVENTS: usize = 100;
/// The maximum compressed size of the page, style and script together.
const MOST_BYTES: u64 = 90 * 1024;

/// Creates `WEBHOOKS * EVENTS` deliveries for one entity.
async fn deliver(entity: &Entity, receiver: &Receiver) {
    let address = receiver.on("/hook", [Behaviour::status(204)]);
    for _ in 0..WEBHOOKS {
        entity.hook(&address).await;
    }
    let events =
        stream::iter(0..EVENTS).map(|number| entity.publish_of_type("booking.created", json!({ "number": number })));
    events.buffer_unordered(16).for_each(async |_| ()).await;
    until("every delivery is over", 4 * LONG, async || {
        let open = entity.get("/webhook/delivery/list?status=pending,retrying").expect(200).await.json();
        open["items"].as_array().is_some_and(Vec::is_empty).then_some(())
    })
    .await;
}

/// The browser's measurements of the current page: milliseconds since the page was opened, and bytes transferred.
pub const MEASURE: &str = "
    const last = (kind) => new Promise((found) => {
        new PerformanceObserver((list) => found(list.getEntries().at(-1).startTime)).observe({ type: kind, buffered: true });
    });
    const busy = await new Promise((found) => {
        let end = 0;
        new PerformanceObserver((list) => { for (const { startTime, duration } of list.getEntries()) end = Math.max(end, startTime + duration); })
            .observe({ type: 'longtask', buffered: true });
        setTimeout(() => found(end), 100);
    });
    const largest = await last('largest-contentful-paint');
    const [page] = performance.getEntriesByType('navigation');
    const files = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/panel/assets/'));
    return {
        firstPaint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
        shown: largest, interactive: Math.max(largest, busy),
        bytes: [page, ...files].reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0), files: files.length,
    };";

/// The slow line's latency, in milliseconds: so high that a slow machine's delays are small in comparison.
const LATENCY: f64 = 6_000.0;

/// Page, files, session and data follow each other, with one round trip each and no others. A busy machine may spoil a
/// visit, but a page with more round trips is late on every visit.
#[contract_test(in_browser)]
async fn a_line_with_a_high_latency_shows_the_list_in_four_trips(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity
        .hook_with(
            json!({ "name": "Slow line", "eventUrl": receiver.on("/hook", [Behaviour::status(204)]), "eventList": [] }),
        )
        .await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("Slow line").await;
    browser.command("Network.enable", json!({})).await;
    let line = json!({ "offline": false, "latency": LATENCY, "downloadThroughput": -1, "uploadThroughput": -1 });
    browser.command("Network.emulateNetworkConditions", line).await;
    until("the list is shown in four trips", LONG, async || {
        browser.go("about:blank").await;
        browser.command("Network.clearBrowserCache", json!({})).await;
        browser.go(&format!("{}/panel/deliveries", suite.api.base_url())).await;
        browser.until_says("booking.created").await;
        let shown = browser.run("return performance.now()").await.as_f64().expect("a time");
        let first = "return performance.getEntriesByName('first-contentful-paint')[0].startTime";
        let first = browser.run(first).await.as_f64().expect("a time");
        println!(
            "with a latency of {LATENCY} ms, the page is shown after {first} ms, and its list after {shown:.0} ms"
        );
        (first < 2.75 * LATENCY && shown < 4.75 * LATENCY).then_some(())
    })
    .await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_first_page_is_small_with_two_thousand_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    deliver(&entity, &receiver).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "name": "first" })).await).await;
    browser.until_says("booking.created").await;
    let first = browser.run_to_end(MEASURE).await;
    browser.go("about:blank").await;
    browser.go(&format!("{}/panel/deliveries", suite.api.base_url())).await;
    browser.until_says("booking.created").await;
    let again = browser.run_to_end(MEASURE).await;
    println!("The first page with {} deliveries behind it, in ms: {first}; opened again: {again}", WEBHOOKS * EVENTS);
    let bytes =
        |measured: &Value| measured["bytes"].as_u64().unwrap_or_else(|| panic!("nothing was measured: {measured}"));
    assert!((1..MOST_BYTES).contains(&bytes(&first)), "{first}");
    browser.close().await;
}
