//! The screenshots in docs/panel.md: each page, for an entity with data. They are stored in `target/browser`; `make
//! panel-pictures` copies them from there. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{Behaviour, Browser, Entity, LONG, Receiver, Suite, free_port, until};

async fn hook(entity: &Entity, name: &str, address: &str, types: &[&str]) -> String {
    entity.hook_with(json!({ "name": name, "eventUrl": address, "eventList": types })).await.id
}

/// The delivery and the webhooks that have their own pictures.
struct Pictured {
    delivery: String,
    failing: String,
    paused: String,
}

/// Creates data of every kind: healthy, failing, silent and paused webhooks, and their deliveries.
async fn create_data(entity: &Entity, receiver: &Receiver) -> Pictured {
    let fine = receiver.on("/sync", [Behaviour::answer(200, &[], "{\"received\": true}")]);
    hook(entity, "Channel manager", &fine, &["booking.*"]).await;
    let broken = "{\"error\": \"relation \\\"invoices\\\" does not exist\", \"at\": \"export.py:41\"}";
    let broken = receiver.on("/export", [Behaviour::answer(500, &[("Content-Type", "application/json")], broken)]);
    let failing = hook(entity, "Accounting export", &broken, &["payment.*"]).await;
    let nobody = format!("http://127.0.0.1:{}/hook", free_port());
    hook(entity, "Door locks", &nobody, &["booking.confirmed"]).await;
    let paused = hook(entity, "Housekeeping", &fine, &["booking.created"]).await;
    entity.post(&format!("/webhook/{paused}/pause")).expect(200).await;
    let guest = json!({ "name": "Ana Müller", "email": "ana@example.com" });
    for number in 0..9 {
        let stay = json!({ "bookingIdentifier": format!("B-{}", 20_417 + number), "arrivalDate": "2027-02-12", "guest": guest });
        for kind in ["booking.created", "booking.confirmed"] {
            entity.publish_of_type(kind, stay.clone()).await;
        }
    }
    let payment =
        json!({ "paymentIdentifier": "P-3381", "bookingIdentifier": "B-20417", "amount": 412.50, "currency": "EUR" });
    let published = entity.publish_of_type("payment.captured", payment).await.json();
    let delivery = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    entity.until_status(&delivery, &["failed"]).await;
    until("every attempt is counted", LONG, async || {
        let stats = entity.get(&format!("/webhook/{failing}/stats")).expect(200).await.json();
        let is_counted = stats["last24Hours"]["attempts"].as_u64() >= Some(3);
        (is_counted && entity.webhook(&failing).await["failuresInRow"].as_u64() >= Some(3)).then_some(())
    })
    .await;
    let application = json!({ "name": "Night audit", "scopes": ["booking.read", "payment.read", "accounting.read", "accounting.write"] });
    entity.post("/application").json(&application).expect(201).await;
    Pictured { delivery, failing, paused }
}

#[contract_test(in_browser)]
async fn every_page_is_pictured(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let Pictured { delivery, failing, paused } = create_data(&entity, &receiver).await;
    let browser = Browser::open().await;
    browser.resize(1280, 860).await;
    browser.go(&entity.panel_link(json!({ "name": "Ada of the front office" })).await).await;
    browser.until_says("Sign out").await;
    for (page, words, picture) in [
        ("deliveries".to_owned(), "booking.created", "deliveries"),
        (format!("deliveries/{delivery}"), "What to do", "delivery"),
        ("webhooks".to_owned(), "attempts failed", "webhooks"),
        (format!("webhooks/{failing}"), "Performance", "webhook"),
        (format!("webhooks/{paused}"), "for the pause to end", "paused"),
        ("webhooks/new".to_owned(), "More settings", "new-webhook"),
        ("event-types?search=cancel".to_owned(), "booking.cancelled", "event-types"),
        ("providers".to_owned(), "Not connected", "providers"),
        ("applications".to_owned(), "Night audit", "applications"),
        ("applications/new".to_owned(), "Integrations", "new-application"),
        ("links".to_owned(), "this session", "links"),
    ] {
        browser.go(&format!("{}/panel/{page}", suite.api.base_url())).await;
        browser.until_says(words).await;
        browser.screenshot(&format!("panel-{picture}.png")).await;
    }
    browser.go(&entity.authorization_url("stripe").await).await;
    browser.until_says("What happens next").await;
    browser.screenshot("panel-start.png").await;
    browser.prefer("dark").await;
    browser.resize(390, 844).await;
    browser.go(&format!("{}/panel/deliveries/{delivery}", suite.api.base_url())).await;
    browser.until_says("What to do").await;
    browser.screenshot("panel-phone.png").await;
    browser.close().await;
}
