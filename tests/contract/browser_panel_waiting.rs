//! How the panel shows waiting deliveries, resends and outages. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    harness::{
        Behaviour, Browser, Entity, LONG, Receiver, Suite,
        order::{about, later, ordered},
        until,
    },
    pauses::{is_put_off, paused_in},
};

/// A browser with an open session at this address within the panel.
async fn at(entity: &Entity, place: &str) -> Browser {
    let browser = Browser::open().await;
    browser.resize(1366, 768).await;
    browser.go(&entity.panel_link(json!({ "place": place })).await).await;
    browser
}

/// Publishes a booking to every webhook.
async fn publish(entity: &Entity) {
    let event = json!({ "type": "booking.created", "subject": "B-1", "data": { "bookingIdentifier": "B-1" } });
    entity.publish_event(&event).await;
}

async fn block(browser: &Browser, addresses: Value) {
    browser.command("Network.enable", json!({})).await;
    browser.command("Network.setBlockedURLs", json!({ "urls": addresses })).await;
}

#[contract_test(in_browser)]
async fn every_wait_is_named_in_the_list_and_counted_on_the_webhook(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = async |name: &str, more: Value| {
        let mut body = json!({ "name": name, "eventList": ["booking.created"] });
        body.as_object_mut().expect("it is an object").extend(more.as_object().expect("it is an object").clone());
        entity.hook_with(body).await.id
    };
    let busy = receiver.on("/busy", [later()]);
    let ordered = hook("Ordered", json!({ "eventUrl": busy, "order": "subject" })).await;
    let read = hook("Read", json!({ "delivery": "pull" })).await;
    let paused = hook("Resting", json!({ "eventUrl": receiver.on("/fine", [Behaviour::status(204)]) })).await;
    entity
        .post(&format!("/webhook/{paused}/pause"))
        .json(&json!({ "until": "2099-06-15T12:00:00Z" }))
        .expect(200)
        .await;
    publish(&entity).await;
    publish(&entity).await;
    let browser = at(&entity, "/panel/deliveries?live=on").await;
    for words in ["after the previous one", "503 · next in", "waiting for a reader", "paused until 15 Jun 2099"] {
        browser.until_says(words).await;
    }
    browser.click("the previous one").await;
    browser.until_says("Not delivered yet, after 1 attempt").await;
    for (webhook, words) in [
        (&ordered, "1 is waiting for the previous delivery for the same subject"),
        (&ordered, "1 is waiting for the next attempt, on the retry schedule; the first in"),
        (&read, "2 are waiting for a program that reads the feed"),
        (&read, "The feed was never read"),
        (&paused, "2 are waiting for the pause to end, 15 Jun 2099"),
    ] {
        browser.go(&format!("{}/panel/webhooks/{webhook}", suite.api.base_url())).await;
        browser.until_says(words).await;
    }
    assert_eq!(browser.serious_faults().await, [""; 0]);
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_delivery_to_a_paused_webhook_names_the_check_instead_of_an_attempt(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::close()])).await;
    paused_in(&suite.table(), &entity, &hook, 1).await;
    let id = entity.publish(json!({})).await;
    entity.until_delivery(&id, "waits for the breaker", is_put_off).await;
    let browser = at(&entity, &format!("/panel/deliveries/{id}")).await;
    let page = browser.until_says("The paused webhook is checked again").await;
    assert!(!page.contains("Next attempt"), "{page}");
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_delivery_that_is_held_for_order_is_resent_after_a_question(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/busy", [later()]), &["booking.created"]).await;
    let first = about(&entity, "B-1").await;
    entity.until_status(&first, &["retrying"]).await;
    let held = about(&entity, "B-1").await;
    entity.until_delivery(&held, "waits for its turn", |delivery| delivery["waitingFor"] == "order").await;
    let browser = at(&entity, &format!("/panel/deliveries/{held}")).await;
    browser.click("Resend").await;
    browser.until_says("An earlier event about B-1 has not been delivered yet").await;
    browser.click("Cancel").await;
    assert_eq!(entity.delivery(&held).await["attemptCount"], 0, "it asks first");
    browser.go(&format!("{}/panel/deliveries?status=pending", suite.api.base_url())).await;
    browser.until_says("after the previous one").await;
    browser.run("document.querySelector('thead input').click()").await;
    browser.click("Resend 1 delivery").await;
    browser.until_says("1 of the selected deliveries is waiting for an earlier event").await;
    receiver.on("/busy", [Behaviour::status(204)]);
    browser.click("Resend 1 delivery").await;
    entity.until_status(&held, &["delivered"]).await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_resent_delivery_of_a_feed_is_waiting_for_a_reader(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.hook_with(json!({ "name": "Read", "delivery": "pull", "eventList": ["booking.created"] })).await;
    publish(&entity).await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.until_says("waiting for a reader").await;
    browser.run("document.querySelector('thead input').click()").await;
    browser.click("Resend 1 delivery").await;
    browser.until_says("1 delivery resent. 1 waiting for a reader.").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_resending_continues_while_the_person_is_on_another_page(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/hook", [Behaviour::status(404)])).await;
    for number in 0..6 {
        let delivery = entity.publish(json!({ "number": number })).await;
        entity.until_status(&delivery, &["failed"]).await;
    }
    receiver.on("/hook", [Behaviour::status(204)]);
    let browser = at(&entity, "/panel/deliveries?status=failed").await;
    browser.until_says("6 deliveries in total").await;
    // The requests wait until the person is on the other page.
    let waiting = "const real = window.fetch;
        const released = new Promise((release) => { window.release = release; });
        window.fetch = (to, how) => String(to).endsWith('/resend')
            ? released.then(() => real(to, how)) : real(to, how);";
    browser.run(waiting).await;
    browser.run("document.querySelector('thead input').click()").await;
    browser.click("Resend 6 deliveries").await;
    browser.until_says("You can leave this page").await;
    browser.click("Event types").await;
    browser.until_at("/panel/event-types").await;
    browser.run("window.release()").await;
    browser.until_says("6 deliveries resent.").await;
    browser.until_says("6 delivered.").await;
    browser.click("Show them").await;
    browser.until_says("6 delivered.").await;
    browser.click("Close").await;
    until("the outcome is closed", LONG, async || (!browser.text().await.contains("6 delivered.")).then_some(())).await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn an_outage_is_reported_once_and_the_page_keeps_its_content(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.hook("https://hooks.example.com/").await;
    let browser = at(&entity, "/panel/webhooks").await;
    browser.until_says("No attempts in the last 24 hours").await;
    block(&browser, json!(["*/api/*"])).await;
    let page = browser.until_says("This page keeps its content, as of").await;
    assert_eq!(page.matches("The service cannot be reached").count(), 1, "{page}");
    assert!(page.contains("https://hooks.example.com/"), "{page}");
    assert_eq!(browser.serious_faults().await, [""; 0]);
    block(&browser, json!([])).await;
    let over = async || (!browser.text().await.contains("The service cannot be reached")).then_some(());
    until("the page continues", LONG, over).await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_menu_counts_the_webhooks_that_need_attention(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.hook("https://hooks.example.com/fine").await;
    let paused = entity.hook("https://hooks.example.com/paused").await;
    entity.post(&format!("/webhook/{}/pause", paused.id)).json(&json!({})).expect(200).await;
    let browser = at(&entity, "/panel/event-types").await;
    browser.until_says("booking.created").await;
    let count = "return document.querySelector('nav .number')?.textContent ?? ''";
    until("the menu has the number", LONG, async || (browser.run(count).await == "1, 1 needs attention").then_some(()))
        .await;
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.close().await;
}
