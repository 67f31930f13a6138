//! A support person's work in the panel: finding deliveries, reading requests and responses, resending some, and
//! continuing after losing the connection. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Browser, Entity, LONG, Receiver, Suite, until};

/// JSON whose numbers, order and repetitions a parser would change.
const EXACT: &str = r#"{"b":1152921506151679042,"price":10.50,"10":1,"2":0,"twice":1,"twice":2,"it's":"\u00e9"}"#;

/// A webhook that subscribes to new bookings.
async fn hook(entity: &Entity, name: &str, address: &str) -> String {
    entity.hook_with(json!({ "name": name, "eventUrl": address, "eventList": ["booking.created"] })).await.id
}

async fn published(entity: &Entity, booking: &str) -> Vec<String> {
    let data = json!({ "bookingIdentifier": booking });
    let published = entity.publish_of_type("booking.created", data).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so").iter();
    deliveries
        .map(|delivery| delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned())
        .collect()
}

/// Publishes a booking, and waits until all its deliveries have failed.
async fn fail(entity: &Entity, booking: &str) -> Vec<String> {
    let ids = published(entity, booking).await;
    for id in &ids {
        entity.until_status(id, &["failed"]).await;
    }
    ids
}

/// A browser with an open session at this address within the panel.
async fn at(entity: &Entity, place: &str) -> Browser {
    let browser = Browser::open().await;
    browser.resize(1366, 768).await;
    browser.go(&entity.panel_link(json!({ "place": place })).await).await;
    browser
}

async fn set_offline(browser: &Browser, offline: bool) {
    let line = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
    browser.command("Network.enable", json!({})).await;
    browser.command("Network.emulateNetworkConditions", line).await;
}

/// Regression test: 1152921506151679042 was shown and sent as 1152921506151679000, and members were reordered.
#[contract_test(in_browser)]
async fn bodies_are_shown_and_copied_byte_for_byte(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook(&entity, "Exact", &receiver.on("/hook", [Behaviour::answer(500, &[], EXACT)])).await;
    let event = format!(r#"{{"type":"booking.created","data":{EXACT}}}"#);
    let published = entity.post("/webhook/event").body("application/json", event).expect(202).await.json();
    let id = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    entity.until_status(&id, &["failed"]).await;
    let browser = at(&entity, &format!("/panel/deliveries/{id}")).await;
    let page = browser.until_says("What to do").await;
    let lines = [
        "\"b\": 1152921506151679042,",
        "\"price\": 10.50,",
        "\"10\": 1,",
        "\"2\": 0,",
        "\"twice\": 1,",
        "\"twice\": 2,",
        "\"it's\": \"é\"",
    ];
    for line in lines {
        assert_eq!(page.matches(line).count(), 2, "{line} in the response and in the event: {page}");
    }
    let positions = lines.map(|line| page.find(line));
    assert!(positions.is_sorted(), "the members keep their order: {page}");
    browser.click("Raw").await;
    browser.until_says(EXACT).await;

    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }").await;
    browser.click("Copy as curl").await;
    browser.until_says("Copied: the request as a curl command").await;
    let command = browser.run("return window.copied").await;
    let sent = String::from_utf8(receiver.received("/hook")[0].body.clone()).expect("JSON is text");
    let quoted = sent.replace('\'', r"'\''");
    assert!(command.as_str().is_some_and(|text| text.contains(&format!("--data-binary '{quoted}'"))), "{command}");
    assert!(command.as_str().is_some_and(|text| text.starts_with("curl --globoff -i -X POST 'http")), "{command}");
    let copied = async |shell: &str| {
        browser.choose("Shell", shell).await;
        browser.run("window.copied = null").await;
        browser.click("Copy as curl").await;
        let copied = async || browser.run("return window.copied").await.as_str().map(str::to_owned);
        until("the command is copied", LONG, copied).await
    };
    let command = copied("cmd").await;
    let quoted = sent.replace('"', "\\^\"");
    assert!(command.contains(&format!("--data-binary ^\"{quoted}^\"")), "{command}");
    let command = copied("PowerShell").await;
    let quoted = sent.replace('\'', "''");
    assert!(command.contains(&format!("WriteAllText($body, '{quoted}')")), "{command}");
    let address = browser.address().await;
    browser.go(&address).await;
    browser.until_says("Copy as curl").await;
    let kept = "return document.querySelector('.copy-curl select').value";
    assert_eq!(browser.run(kept).await, "powershell", "the browser keeps the choice");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_support_person_finds_the_cause_of_a_failure_in_one_click(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook(&entity, "Bookkeeping", &receiver.on("/works", [Behaviour::status(204)])).await;
    hook(&entity, "Housekeeping", &receiver.on("/fails", [Behaviour::answer(500, &[], "no such room")])).await;
    let ids = published(&entity, "B-1001").await;
    for id in ids.iter().chain(&published(&entity, "B-2002").await) {
        entity.until_status(id, &["failed", "delivered"]).await;
    }
    let browser = at(&entity, "/panel/deliveries").await;
    browser.fill("Subject, identifier, webhook or type", "B-1001\u{e007}").await;
    browser.until_says("2 deliveries in total").await;
    browser.run("document.querySelectorAll('tbody .badge.bad').forEach((badge) => badge.closest('tr').querySelector('a').click())").await;
    let page = browser.until_says("What to do").await;
    for words in ["to Housekeeping", "after 3 attempts: 500 Internal Server Error", "no such room"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    browser.click("Housekeeping").await;
    let page = browser.until_says("Last result: 500 Internal Server Error").await;
    assert_eq!(page.matches("Recover failed deliveries…").count(), 1, "{page}");
    let guide = "return document.querySelector('main a[href=\"/receiving\"]').target";
    assert_eq!(browser.run(guide).await, "_blank", "the guide for receivers opens beside the panel");
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn an_attempt_shows_the_address_and_headers_that_it_had(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let before = receiver.on("/before", [Behaviour::status(500)]);
    let headers = json!({ "name": "Moved", "eventUrl": before, "eventList": [], "headers": { "x-before": "1" } });
    let moved = entity.hook_with(headers).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["failed"]).await;
    let after = receiver.on("/after", [Behaviour::status(204)]);
    entity.changed(&moved.id, json!({ "eventUrl": after, "headers": { "x-after": "1" } })).await;
    let browser = at(&entity, &format!("/panel/deliveries/{id}")).await;
    browser.until_says("What to do").await;
    browser.click("Request").await;
    let page = browser.until_says("webhook-signature").await;
    let request = &page[page.find("POST").expect("the request has a method")..];
    assert!(request.contains("/before") && request.contains("x-before"), "{page}");
    assert!(!request[..request.find("Event").expect("the event follows")].contains("after"), "{page}");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_wait_that_an_endpoint_asked_for_is_named(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::answer(429, &[("Retry-After", "7200")], "")]);
    hook(&entity, "Busy", &address).await;
    let id = entity.publish(json!({})).await;
    entity.until_delivery(&id, "waits", |delivery| delivery["attempts"][0].is_object()).await;
    let browser = at(&entity, &format!("/panel/deliveries/{id}")).await;
    browser.until_says("because the endpoint asked to wait 2 h (Retry-After)").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn an_open_delivery_is_cancelled_after_a_question_and_can_be_resent(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::answer(429, &[("Retry-After", "7200")], "")]);
    hook(&entity, "Busy", &address).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["retrying"]).await;
    let browser = at(&entity, &format!("/panel/deliveries/{id}")).await;
    browser.click("Cancel…").await;
    browser.until_says("Cancel this delivery?").await;
    browser.click("Keep").await;
    assert_eq!(entity.delivery(&id).await["status"], "retrying");
    browser.click("Cancel…").await;
    browser.click("Cancel delivery").await;
    let page = browser.until_says("Cancelled on request, after 1 attempt").await;
    assert!(!page.contains("Cancel…") && page.contains("You can resend this delivery."), "{page}");
    assert_eq!(entity.delivery(&id).await["cancelReason"], "owner");
    receiver.on("/hook", [Behaviour::status(204)]);
    browser.click("Resend").await;
    browser.until_says("Delivered on attempt 2").await;
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn selected_deliveries_are_resent_with_a_result_for_each(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::status(404)]);
    hook(&entity, "Kept", &address).await;
    let removed = hook(&entity, "Removed", &receiver.on("/removed", [Behaviour::status(404)])).await;
    let mut deliveries = fail(&entity, "B-1001").await;
    deliveries.extend(fail(&entity, "B-1001").await);
    fail(&entity, "B-2002").await;
    entity.call("DELETE", &format!("/webhook/{removed}")).expect(200).await;
    receiver.on("/hook", [Behaviour::status(204)]);
    let browser = at(&entity, "/panel/deliveries").await;
    browser.until_says("B-2002").await;
    browser.fill("Subject, identifier, webhook or type", "B-1001\u{e007}").await;
    browser.until_at("subject=B-1001").await;
    until("the list has only this subject", LONG, async || (!browser.text().await.contains("B-2002")).then_some(()))
        .await;
    browser.run("document.querySelector('thead input').click()").await;
    browser.click("Resend 4 deliveries").await;
    let page = browser.until_says("2 deliveries resent.").await;
    assert!(page.contains("2 deliveries not resent: ") && page.contains("2 deliveries still selected"), "{page}");
    // The panel follows a resend for a minute. If a slow machine takes longer, the list shows the outcome.
    until("both are delivered", LONG, async || {
        let page = browser.text().await;
        (page.contains("2 delivered.") || page.matches("· resent").count() == 2).then_some(())
    })
    .await;
    let focused = "return document.activeElement.innerText.includes('deliveries resent')";
    assert_eq!(browser.run(focused).await, true, "the focus moves to the outcome");
    for id in &deliveries {
        let delivery = entity.delivery(id).await;
        let is_kept = delivery["webhookIdentifier"] != removed.as_str();
        if is_kept {
            entity.until_status(id, &["delivered"]).await;
        }
        assert!(is_kept || delivery["attemptCount"] == 3, "{delivery}");
    }
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_laptop_shows_fifteen_deliveries_and_going_back_returns_to_them(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook(&entity, "Many", &receiver.on("/hook", [Behaviour::status(204)])).await;
    for number in 0..40 {
        entity.publish(json!({ "bookingIdentifier": format!("B-{number}") })).await;
    }
    let browser = at(&entity, "/panel/deliveries?type=booking.created").await;
    browser.until_says("B-39").await;
    let rows = "return [...document.querySelectorAll('.list tbody tr')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length";
    let count = browser.run(rows).await.as_u64().expect("a number");
    assert!(count >= 15, "{count} rows");

    browser.run("scrollTo(0, 400)").await;
    let followed = "const link = [...document.querySelectorAll('.list tbody a')][25]; link.click(); return link.getAttribute('href')";
    let followed = browser.run(followed).await;
    browser.until_says("Details").await;
    browser.back().await;
    browser.until_at("/panel/deliveries?type=booking.created").await;
    let position = "return [scrollY, document.activeElement.getAttribute('href')]";
    until("the page returns to its position", LONG, async || {
        (browser.run(position).await == json!([400, followed])).then_some(())
    })
    .await;
    browser.close().await;
}

/// Regression test: a narrow column cut off the beginning of a name in a right-to-left script, next to empty space.
#[contract_test(in_browser)]
async fn a_name_in_a_right_to_left_script_keeps_its_beginning(suite: Arc<Suite>) {
    const NAME: &str = "ערוץ ההזמנות הראשי של המלון בתל אביב";
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook(&entity, NAME, &receiver.on("/hook", [Behaviour::status(204)])).await;
    published(&entity, "B-1001").await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.resize(1920, 1080).await;
    browser.until_says("B-1001").await;
    browser.until_says(NAME).await;
    let cell = "const cell = document.querySelector('tbody .webhook-cell');
                return [getComputedStyle(cell).direction, cell.scrollWidth <= cell.clientWidth]";
    assert_eq!(browser.run(cell).await, json!(["rtl", true]), "the direction, and whether the whole name is shown");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_page_without_a_connection_stays_and_continues(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook(&entity, "Kept", &receiver.on("/hook", [Behaviour::status(404)])).await;
    fail(&entity, "B-1001").await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.until_says("B-1001").await;
    browser.run("window.isSamePage = true").await;
    set_offline(&browser, true).await;
    browser.until_says("You are offline").await;
    browser.click("Delivered").await;
    let page = browser.until_says("This page keeps its content, as of").await;
    assert!(page.contains("B-1001"), "the page keeps its content: {page}");
    set_offline(&browser, false).await;
    let page = browser.until_says("No delivery matches these filters").await;
    assert!(!page.contains("You are offline"), "{page}");
    assert_eq!(browser.run("return window.isSamePage").await, true, "the page was not loaded again");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn an_empty_page_looks_further_back_until_it_is_stopped(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.until_says("Start with a webhook").await;
    // Every response is empty but has a cursor.
    let endless = "const real = window.fetch;
        window.pause = 1000;
        const empty = () => new Promise((found) =>
            setTimeout(() => found(Response.json({ items: [], nextCursor: 'c' })), window.pause));
        window.fetch = (to, how) => String(to).includes('/delivery/list') ? empty() : real(to, how);";
    browser.run(endless).await;
    browser.click("Failed").await;
    browser.until_says("Looking further back").await;
    browser.click("Stop").await;
    let page = browser.until_says("No match so far").await;
    assert!(page.contains("Search older deliveries"), "{page}");
    browser.run("window.pause = 300").await;
    browser.click("Cancelled").await;
    browser.until_says("Looking further back").await;
    browser.until_says("No match so far").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_phone_folds_the_filters_and_has_fields_that_do_not_zoom(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = at(&entity, "/panel/deliveries").await;
    browser.resize(390, 844).await;
    browser.until_says("Start with a webhook").await;
    let fields =
        "return [...document.querySelectorAll('main :is(input, select)')].filter((field) => field.checkVisibility())
                      .map((field) => parseFloat(getComputedStyle(field).fontSize))";
    let shown = async |sizes: Value| (browser.run(fields).await == sizes).then_some(());
    until("only the search is shown", LONG, async || shown(json!([16])).await).await;
    browser.click("Filters").await;
    until("the filters are shown", LONG, async || shown(json!([16, 16, 16, 16, 16])).await).await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn forced_colours_show_the_selection(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook(&entity, "Kept", &receiver.on("/hook", [Behaviour::status(404)])).await;
    let ids = fail(&entity, "B-1001").await;
    let browser = at(&entity, "/panel/deliveries?status=failed").await;
    browser.force_colours("light").await;
    browser.until_says("B-1001").await;
    browser.run("document.querySelector('tbody input').click()").await;
    browser.until_says("1 delivery selected").await;
    let differ = async |one: &str, other: &str| {
        let script = format!(
            "return ['{one}', '{other}'].map((path) => getComputedStyle(document.querySelector(path)).backgroundColor)"
        );
        let colours = browser.run(&script).await;
        assert_ne!(colours[0], colours[1], "{one} looks like {other}");
    };
    differ(".chips [aria-pressed=true]", ".chips [aria-pressed=false]").await;
    differ("tbody tr.chosen td", "thead th").await;
    differ("nav a[aria-current]", "nav a:not([aria-current])").await;
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.go(&format!("{}/panel/deliveries/{}", suite.api.base_url(), ids[0])).await;
    browser.until_says("What to do").await;
    differ("[role=tab][aria-selected=true]", "[role=tab][aria-selected=false]").await;
    assert_eq!(browser.serious_faults().await, [""; 0]);
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_person_erases_the_content_of_an_event_after_a_question(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    hook(&entity, "Front desk", &receiver.on("/hook", [Behaviour::answer(200, &[], "Welcome, Marlene")])).await;
    let id = entity.publish(json!({ "bookingIdentifier": "B-1", "guest": "Marlene" })).await;
    entity.until_status(&id, &["delivered"]).await;
    let browser = at(&entity, &format!("/panel/deliveries/{id}")).await;
    browser.until_says("Welcome, Marlene").await;
    browser.click("Erase content…").await;
    browser.until_says("This cannot be undone").await;
    assert_eq!(entity.delivery(&id).await.get("erasedDate"), None, "it asks first");
    browser.click("Erase content").await;
    let page = browser.until_says("Content erased on").await;
    assert!(!page.contains("Marlene") && !page.contains("B-1") && !page.contains("Resend"), "{page}");
    assert!(page.contains("200 OK"), "the outcome stays: {page}");
    browser.close().await;
}
