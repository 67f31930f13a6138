//! The webhook and application pages in a real browser: each page says only what it knows. These tests run on demand
//! only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::json;

use crate::{
    applications::{KEY, made, of, shown},
    harness::{Behaviour, Browser, LONG, Receiver, Suite, until},
    replays::aged,
};

/// Replaces every list of deliveries with an empty page that is not the last one.
const UNFINISHED: &str = "const real = window.fetch;
    window.fetch = (to, how) => String(to).includes('/delivery/list')
        ? Promise.resolve(new Response(JSON.stringify({ items: [], nextCursor: 'more' }))) : real(to, how);";

#[contract_test(in_browser)]
async fn a_count_that_was_not_finished_never_means_none(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.hook("https://hooks.example.com/").await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": "/panel/webhooks" })).await).await;
    browser.until_says("No attempts in the last 24 hours").await;
    browser.run(UNFINISHED).await;
    browser.click("test").await;
    let page = browser.until_says("No recent deliveries were found").await;
    assert!(!page.contains("No deliveries yet"), "{page}");
    browser.click("Remove…").await;
    browser.until_says("The webhook may have open deliveries").await;
    browser.click("Cancel").await;
    browser.click("Disable…").await;
    browser.until_says("The webhook may have open deliveries").await;
    browser.click("Cancel").await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_disabled_webhook_offers_enable_and_no_test_event(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/webhooks/{}", hook.id) })).await).await;
    browser.until_says("Send a test event").await;
    browser.click("Disable…").await;
    browser.until_says("The webhook has no open deliveries").await;
    browser.click("Disable webhook").await;
    browser.until_says("It receives nothing.").await;
    let offers = async || {
        let page = browser.text().await;
        (page.contains("Enable") && !page.contains("Send a test event")).then_some(())
    };
    until("the page offers Enable, and no test event", LONG, offers).await;
    // The button that was pressed is gone.
    browser.until_focused("test").await;
    browser.click("Enable").await;
    browser.until_says("Send a test event").await;
    browser.until_focused("test").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_failed_delivery_of_a_disabled_webhook_says_what_comes_before_a_resend(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(500)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/deliveries/{id}") })).await).await;
    browser.until_says("Enable it before you resend this delivery.").await;
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    browser.go(&format!("{}/panel/deliveries/{id}", suite.api.base_url())).await;
    let page = browser.until_says("Not delivered after 3 attempts").await;
    assert!(!page.contains("Enable it"), "{page}");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_webhook_is_paused_and_resumed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/webhooks/{}", hook.id) })).await).await;
    browser.click("Pause…").await;
    browser.choose("Duration", "One day").await;
    browser.click("Pause webhook").await;
    browser.until_says("Paused: deliveries on hold").await;
    let page = browser.until_says("owner paused it").await;
    assert!(!page.contains("Pause…") && page.contains("Resume webhook"), "{page}");
    assert!(entity.webhook(&hook.id).await.get("pausedUntil").is_some());
    let delivery = entity.publish(json!({})).await;
    entity.until_delivery(&delivery, "waits for the end of the pause", |shown| shown["waitingFor"] == "pause").await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/deliveries/{delivery}") })).await).await;
    browser.until_says("Waiting for the webhook’s pause to end").await;
    browser.click("test").await;
    browser.click("Resume webhook").await;
    browser.until_says("The pause has ended").await;
    entity.until_status(&delivery, &["delivered"]).await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn events_of_chosen_types_are_counted_replayed_and_counted_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    let event = published["eventIdentifier"].as_str().expect("openapi.yaml says so");
    aged(&suite.table(), event).await;
    entity.changed(&hook.id, json!({ "enabled": true })).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/webhooks/{}", hook.id) })).await).await;
    browser.click("Replay events…").await;
    browser.tick("Selected types").await;
    let page = browser.until_says("0 selected").await;
    assert!(!page.contains("Count events"), "no types would mean every type: {page}");
    browser.fill("Search event types", "booking.created").await;
    browser.tick("Booking created").await;
    browser.click("Count events").await;
    browser.until_says("1 event in this range matches the webhook and has no delivery to it.").await;
    browser.click("Replay events").await;
    browser.until_says("1 event is being delivered.").await;
    receiver.until("/hook", 1).await;
    browser.click("Count remaining events").await;
    browser.until_says("already has a delivery to it").await;
    browser.click("Close").await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_filter_is_tried_saved_and_shown_to_the_last_digit(suite: Arc<Suite>) {
    const FILTER: &str = r#"{"bookingNumber": [1152921504606846977]}"#;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    for number in [1_152_921_504_606_846_977_u64, 1_152_921_504_606_846_976] {
        let delivery = entity.publish(json!({ "bookingNumber": number })).await;
        entity.until_status(&delivery, &["delivered"]).await;
    }
    let browser = Browser::open().await;
    let place = format!("/panel/webhooks/{}/edit", hook.id);
    browser.go(&entity.panel_link(json!({ "place": place })).await).await;
    browser.until_says("Custom headers").await;
    browser.fill("Filter", "{").await;
    browser.click("Save").await;
    browser.until_says("Filter must be JSON").await;
    browser.fill("Filter", r#"{"bookingNumber": "1"}"#).await;
    browser.click("Try on past events").await;
    browser.until_says("Filter bookingNumber must be a list").await;
    browser.fill("Filter", FILTER).await;
    browser.click("Try on past events").await;
    let page = browser.until_says("1 of 2 events").await;
    assert!(page.contains("Does not match"), "{page}");
    browser.choose("Event type", "Booking · Booking cancelled").await;
    browser.click("Try on past events").await;
    browser.until_says("There are no such events to try the filter on").await;
    browser.choose("Event type", "All event types").await;
    browser.choose("Created", "The last 24 hours").await;
    browser.click("Try on past events").await;
    browser.until_says("1 of 2 events").await;
    browser.click("Save").await;
    browser.until_says("Only events whose data matches this filter").await;
    let shown = entity.get(&format!("/webhook/{}", hook.id)).expect(200).await;
    assert!(shown.text().contains(r#""eventFilter":{"bookingNumber":[1152921504606846977]}"#), "{}", shown.exchange);
    browser.click("Edit").await;
    browser.until_says("Custom headers").await;
    let kept = browser.run("return document.querySelector('textarea').value").await;
    assert_eq!(kept.as_str().map(|text| text.replace(char::is_whitespace, "")), Some(FILTER.replace(' ', "")));
    browser.fill("Filter", " ").await;
    browser.click("Save").await;
    // The page may still be showing that the filter was saved.
    let is_removed = async || entity.webhook(&hook.id).await.get("eventFilter").is_none().then_some(());
    until("the filter is removed", LONG, is_removed).await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

/// Loses the response to the first request that creates a webhook.
const LOSING: &str = "const real = window.fetch;
    let isLost = false;
    window.fetch = async (to, how) => {
        const answer = await real(to, how);
        if (isLost || how?.method !== 'POST' || !String(to).endsWith('/webhook')) return answer;
        isLost = true;
        throw new TypeError('lost');
    };";

#[contract_test(in_browser)]
async fn a_webhook_whose_response_was_lost_is_created_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": "/panel/webhooks/new" })).await).await;
    browser.fill("Name", "Once").await;
    browser.fill("Address", "https://hooks.example.com/waypost").await;
    browser.run(LOSING).await;
    browser.click("Create webhook").await;
    browser.until_says("The service cannot be reached").await;
    browser.click("Create webhook").await;
    browser.until_says("Once was created").await;
    let list = entity.get("/webhook/list").expect(200).await.json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list:#}");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_header_that_would_be_lost_is_marked_and_nothing_is_saved(suite: Arc<Suite>) {
    const FAULT: &str = "Headers must each have a unique name";
    let entity = suite.entity().await;
    let hook = entity.hook("https://hooks.example.com/").await;
    let version = entity.webhook(&hook.id).await["version"].clone();
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/webhooks/{}/edit", hook.id) })).await).await;
    browser.until_says("Custom headers").await;
    browser.click("Add a header").await;
    browser.fill("Name of header 1", "X-Api-Key").await;
    browser.fill("Value of header 1", "one").await;
    browser.click("Add a header").await;
    browser.fill("Value of header 2", "two").await;
    browser.click("Save").await;
    browser.until_says(FAULT).await;
    browser.until_focused("Name of header 2").await;
    browser.fill("Name of header 2", "x-api-key").await;
    let is_forgiven = async || (!browser.text().await.contains(FAULT)).then_some(());
    until("a change removes the error", LONG, is_forgiven).await;
    browser.click("Save").await;
    browser.until_says(FAULT).await;
    assert_eq!(entity.webhook(&hook.id).await["version"], version, "nothing was sent");
    browser.fill("Name of header 2", "X-Tenant").await;
    browser.click("Save").await;
    let is_saved = async || (entity.webhook(&hook.id).await["headers"].as_object()?.len() == 2).then_some(());
    until("both headers are saved", LONG, is_saved).await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_key_pair_is_chosen_and_its_public_key_stays_visible(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("https://hooks.example.com/").await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/webhooks/{}/edit", hook.id) })).await).await;
    browser.until_says("Signature").await;
    browser.choose("Signature", "Signing secret and key pair (Ed25519)").await;
    browser.click("Save").await;
    browser.until_says("Public key").await;
    let webhook = entity.webhook(&hook.id).await;
    let key = webhook["publicKeys"][0]["key"].as_str().expect("a key pair was chosen");
    let page = browser.text().await;
    assert!(page.contains(key), "{page}");
    browser.click("Rotate secret").await;
    browser.until_says("The key pair is replaced in the same way").await;
    browser.click("Rotate secret").await;
    browser.until_says("Old public key").await;
    browser.click("I have copied it").await;
    let page = browser.until_says("Requests are signed with the new secret").await;
    assert!(page.contains("Old public key") && page.contains(key), "{page}");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_list_and_the_page_agree_on_the_health_of_a_webhook(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::status(500), Behaviour::status(204)]);
    let hook = entity.hook(&address).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    until("both attempts are counted", LONG, async || {
        let stats = entity.get(&format!("/webhook/{}/stats", hook.id)).expect(200).await.json();
        (stats["last24Hours"]["attempts"] == 2).then_some(())
    })
    .await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": "/panel/webhooks" })).await).await;
    let list = browser.until_says("of 2 attempts succeeded").await;
    assert!(list.contains("Some failures") && list.contains("50%"), "{list}");
    browser.click("test").await;
    let page = browser.until_says("of 2 attempts succeeded").await;
    assert!(page.contains("Some failures") && page.contains("50%"), "{page}");
    let chart = browser.run("return document.querySelector('.trend svg').getAttribute('aria-label')").await;
    assert!(chart.as_str().is_some_and(|words| words.contains("some failed in")), "{chart}");
    browser.click("Show as a table").await;
    let rows = "return [...document.querySelectorAll('.hours tbody tr')].map(
                    (row) => [...row.querySelectorAll('td')].map((cell) => Number(cell.textContent)))
                .reduce(([attempts, failed], [more, others]) => [attempts + more, failed + others], [0, 0])";
    assert_eq!(browser.run(rows).await, json!([2, 1]), "the table has the numbers of the bars");

    let empty = "return getComputedStyle(document.querySelector('.trend .area')).fill";
    assert_eq!(browser.run(empty).await, "rgba(0, 0, 0, 0)", "an empty hour has no bar");
    browser.force_colours("light").await;
    let colours = "const of = (path, name) => getComputedStyle(document.querySelector(path))[name];
                   const bars = ['.trend', '.chart'].map((chart) => ['share', 'rest'].map((part) => of(`${chart} rect.${part}`, 'fill')));
                   return bars.map((pair) => new Set([...pair, of('.card', 'backgroundColor')]).size)";
    assert_eq!(browser.run(colours).await, json!([3, 3]), "both parts of a bar differ from the background");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_session_opens_the_first_page_that_it_may_see(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    for (scope, words) in [("payment.read", "Connect Stripe"), ("account.read", "Programs that can access the API")] {
        browser.go(&entity.panel_link(json!({ "scopes": [scope] })).await).await;
        let page = browser.until_says(words).await;
        assert!(!page.contains("It lacks the scope") && !page.contains("Deliveries"), "{page}");
        browser.go(&format!("{}/panel/deliveries", suite.api.base_url())).await;
        let page = browser.until_says("It lacks the scope integrations.read").await;
        assert!(!page.contains("token") && !page.contains("Try again"), "a person has no token: {page}");
    }
    browser.close().await;
}

/// The first characters of an Ed25519 key in DER form (RFC 8410 §4), in Base64.
const PREFIX: &str = "MCowBQYDK2VwAyEA";

#[contract_test(in_browser)]
async fn an_application_is_renamed_and_narrowed_and_gets_a_key_in_pem_form(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let browser = Browser::open().await;
    let place = format!("/panel/applications/{}", application.id);
    browser.go(&entity.panel_link(json!({ "place": place })).await).await;
    browser.click("Rename…").await;
    browser.fill("Name", "Night audit").await;
    browser.click("Rename").await;
    browser.until_says("The application was renamed").await;
    assert_eq!(shown(&entity, &application).await["name"], "Night audit");
    browser.click("Change scopes…").await;
    browser.until_says("Select only the scopes that are needed").await;
    browser.run("document.querySelector('.picker [aria-label=Account] input').click()").await;
    browser.until_says("The application loses a scope").await;
    browser.click("Change scopes").await;
    browser.until_says("The scopes were changed").await;
    assert_eq!(shown(&entity, &application).await["scopes"], json!(["integrations.read"]));

    let pem = |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
    let key = format!("{PREFIX}{}=", KEY.replace('-', "+").replace('_', "/"));
    browser.click("Add public key…").await;
    browser.fill("Public key", &pem("PRIVATE KEY", &key)).await;
    browser.click("Add key").await;
    browser.until_says("Public key must not be a private key").await;
    let focused = "return document.activeElement.tagName";
    assert_eq!(browser.run(focused).await, "TEXTAREA", "the field with the error has the focus");
    browser.fill("Public key", &pem("PUBLIC KEY", &key)).await;
    browser.click("Add key").await;
    browser.until_says("The public key was added").await;
    let keys = entity.get(&of(&application, "")).expect(200).await.json()["publicKeys"].clone();
    assert_eq!((&keys[0]["kty"], &keys[0]["x"]), (&json!("OKP"), &json!(KEY)), "{keys}");
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}
