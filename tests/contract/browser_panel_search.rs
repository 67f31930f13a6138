//! The panel's search, and its handling of long text. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{Behaviour, Browser, Entity, Receiver, Suite};

const FIELD: &str = "Subject, identifier, webhook or type";

/// A browser with an open session at this address within the panel.
async fn at(entity: &Entity, place: &str) -> Browser {
    let browser = Browser::open().await;
    browser.resize(1366, 768).await;
    browser.go(&entity.panel_link(json!({ "place": place })).await).await;
    browser
}

#[contract_test(in_browser)]
async fn a_search_finds_other_capitals_names_of_webhooks_and_types(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::status(204)]);
    let hook = json!({ "name": "Zephyr sync", "eventUrl": address, "eventList": ["booking.created"] });
    let hook = entity.hook_with(hook).await;
    let delivery = entity.publish(json!({ "bookingIdentifier": "B-1001" })).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.until_says("B-1001").await;
    let webhook = format!("webhook={}", hook.id);
    for (text, place) in [
        ("b-1001", "subject=B-1001"),
        ("#B-1001", "subject=B-1001"),
        ("Booking b-1001", "subject=B-1001"),
        ("zephyr SYNC", webhook.as_str()),
        ("zephyr s", webhook.as_str()),
        ("Booking.Created", "type=booking.created"),
    ] {
        browser.fill(FIELD, &format!("{text}\u{e007}")).await;
        browser.until_at(place).await;
        browser.until_says("1 delivery in total").await;
    }
    browser.fill(FIELD, "1001\u{e007}").await;
    browser.until_says("a part is not enough").await;
    browser.fill(FIELD, "booking.\u{e007}").await;
    browser.until_says("Did you mean Booking created (booking.created)").await;
    browser.until_says(" others?").await;
    assert_eq!(browser.serious_faults().await, [""; 0]);
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_search_without_a_match_names_the_subjects_other_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::status(204)]);
    entity.hook_with(json!({ "name": "Front desk", "eventUrl": address, "eventList": ["booking.created"] })).await;
    let delivery = entity.publish(json!({ "bookingIdentifier": "B-1001" })).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let event = json!({ "type": "booking.cancelled", "data": { "bookingIdentifier": "B-2002" } });
    entity.publish_event(&event).await;
    let browser = at(&entity, "/panel/deliveries?subject=B-1001&status=failed").await;
    browser.until_says("No delivery about B-1001 has failed").await;
    browser.until_says("Without the other filters: 1 delivery about B-1001").await;
    browser.click("1 delivery about B-1001").await;
    browser.until_says("1 delivery in total").await;
    browser.fill(FIELD, "B-2002\u{e007}").await;
    browser.until_says("no enabled webhook matched").await;
    browser.until_says("No delivery about B-2002 was found").await;
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.close().await;
}

#[contract_test(in_browser)]
async fn control_and_k_move_the_focus_to_the_search_from_any_page(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = at(&entity, "/panel/webhooks").await;
    browser.until_says("No webhooks yet").await;
    browser.press(&["k", "/"]).await;
    let place = browser.run("return location.pathname").await;
    assert_eq!(place, "/panel/webhooks", "a character alone is no shortcut");
    browser.press_with_control("k").await;
    browser.until_at("/panel/deliveries").await;
    browser.until_focused(FIELD).await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_deliveries_of_a_booking_are_grouped_by_event(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = async |name: &str, address: String| {
        entity.hook_with(json!({ "name": name, "eventUrl": address, "eventList": [] })).await;
    };
    hook("Bookkeeping", receiver.on("/works", [Behaviour::status(204)])).await;
    hook("Housekeeping", receiver.on("/fails", [Behaviour::answer(500, &[], "no such room")])).await;
    for _ in 0..2 {
        let event = json!({ "type": "booking.created", "data": { "bookingIdentifier": "B-1" } });
        entity.publish_event(&event).await;
    }
    let browser = at(&entity, "/panel/deliveries?subject=B-1&live=on").await;
    browser.until_says("4 deliveries in total").await;
    let rows = "return [...document.querySelectorAll('.list tbody')].map((event) => event.rows.length)";
    assert_eq!(browser.run(rows).await, json!([3, 3]), "a heading, and a row for each webhook");
    browser.until_says("500 Internal Server Error").await;
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.click("Housekeeping").await;
    browser.until_says("The endpoint responded: no such room").await;
    let title = "return [document.querySelector('h1').textContent, document.title.includes('B-1, ')]";
    assert_eq!(browser.run(title).await, json!(["Booking created · B-1", true]), "the title names the booking");
    browser.run("document.querySelector('.above a').click()").await;
    browser.until_at("/panel/deliveries?subject=B-1").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_long_text_is_folded_and_copied_whole(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let lines: Vec<u32> = (1..=150).collect();
    let id = entity.publish(json!({ "lines": lines, "zone": "the last line" })).await;
    entity.until_status(&id, &["delivered"]).await;
    let browser = at(&entity, &format!("/panel/deliveries/{id}")).await;
    browser.until_says("Details").await;
    let last = "return document.body.innerText.includes('the last line')";
    assert_eq!(browser.run(last).await, false, "the end is folded");
    let button = "return [...document.querySelectorAll('.fold button')].map((button) => button.textContent.trim())[0]";
    let button = browser.run(button).await;
    browser.click(button.as_str().expect("a long text has the button")).await;
    browser.until_says("the last line").await;
    browser.until_says("Show the first 100 lines").await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}
