//! The panel in a real browser, as a person with a link uses it. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    applications::made_with,
    harness::{Behaviour, Browser, ESCAPE, Entity, LONG, Receiver, Suite, is_signed_by, until},
};

#[contract_test(in_browser)]
async fn a_person_with_a_link_sees_why_a_delivery_failed_and_sends_it_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/hook", [Behaviour::answer(500, &[], "no such table")])).await;
    let id = entity.publish(json!({ "bookingIdentifier": "B-20417" })).await;
    entity.until_status(&id, &["failed"]).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/deliveries/{id}") })).await).await;

    let page = browser.until_says("Not delivered after 3 attempts: 500 Internal Server Error").await;
    for part in ["Booking created", "What to do", "no such table", "B-20417", "Attempt 3"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!browser.address().await.contains("code"), "the code does not stay in the address");
    receiver.on("/hook", [Behaviour::status(204)]);
    browser.click("Resend").await;
    browser.until_says("Delivered on attempt 4").await;
    browser.until_says("Attempt 4 succeeded: 204 No Content.").await;
    browser.click("Resend").await;
    browser.until_says("The endpoint has received this event").await;
    browser.click("Resend").await;
    browser.until_says("Delivered on attempt 5").await;
    assert_eq!(entity.delivery(&id).await["status"], "delivered");
    assert_eq!(browser.complaints().await, "");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_webhook_is_created_and_its_first_delivery_shown(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::answer(200, &[], "thank you")]);
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.click("Create the first webhook").await;
    browser.until_at("/panel/webhooks/new").await;
    browser.click("Create webhook").await;
    let refused = browser.until_says("must").await;
    assert!(refused.contains("Name "), "each error is shown at its field: {refused}");
    browser.fill("Name", "Channel manager").await;
    browser.fill("Address", &address).await;
    browser.tick("Selected types").await;
    browser.click("Booking 0 of 25").await;
    browser.tick("All of Booking").await;
    browser.click("Create webhook").await;
    let made = browser.until_says("Channel manager was created").await;
    assert!(made.contains("whsec_"), "{made}");

    browser.click("Send a test event").await;
    let question = browser.answer_question(true).await;
    assert!(question.contains("The signing secret is shown only once"), "{question}");
    let page = browser.until_says("Delivered on attempt 1").await;
    assert!(page.contains("thank you") && page.contains("webhook.test"), "{page}");
    let badges = browser.run("return [...document.querySelectorAll('.lead .badge')].map((badge) => badge.textContent)");
    assert_eq!(badges.await, json!(["Delivered", "Test"]));
    let webhooks = entity.get("/webhook/list").expect(200).await.json();
    assert_eq!(webhooks[0]["eventList"], json!(["booking.*"]));
    assert_eq!(receiver.received("/hook").len(), 1);
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_secret_is_rotated_and_both_sign(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/webhooks/{}", hook.id) })).await).await;
    browser.click("Rotate secret").await;
    browser.until_says("also with the old one").await;
    browser.click("Rotate secret").await;
    browser.until_says("New signing secret").await;
    let secret = browser.run("return document.querySelector('.secret-text code').textContent").await;
    let secret = secret.as_str().expect("a secret is a text").to_owned();
    assert!(secret.starts_with("whsec_") && secret != hook.secret);
    browser.click("I have copied it").await;
    let page = browser.until_says("Requests are signed with the new secret").await;
    assert!(!page.contains(&secret), "it is shown once");

    browser.click("Send a test event").await;
    browser.until_says("Delivered on attempt 1").await;
    let received = receiver.until("/hook", 1).await;
    assert!(is_signed_by(&received[0], &hook.secret) && is_signed_by(&received[0], &secret));
    browser.click("test").await;
    browser.click("Remove old secret…").await;
    browser.click("Remove old secret").await;
    browser.until_says("Requests are signed with one secret").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_conflicting_save_shows_both_versions_to_choose_from(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/webhooks/{}/edit", hook.id) })).await).await;
    browser.until_says("Custom headers").await;
    browser.fill("Name", "Named by me").await;
    entity.changed(&hook.id, json!({ "name": "Named by her", "eventList": ["booking.created"] })).await;
    browser.click("Save").await;
    let both = browser.until_says("Someone else changed this webhook").await;
    for part in ["Named by me", "Named by her", "changed by both", "changed by the other", "booking.created"] {
        assert!(both.contains(part), "{part}: {both}");
    }
    assert_eq!(entity.webhook(&hook.id).await["name"], "Named by her", "no value is overwritten before the choice");
    browser.click("Save selection").await;
    browser.until_says("Performance").await;
    let webhook = entity.webhook(&hook.id).await;
    assert_eq!((&webhook["name"], &webhook["eventList"]), (&json!("Named by me"), &json!(["booking.created"])));
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_payment_provider_is_connected_and_the_person_lands_in_the_panel(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": "/panel/providers" })).await).await;
    for (button, words) in [("Deny", "You did not allow access"), ("Allow", "is connected")] {
        browser.click("Connect a provider").await;
        browser.choose("Provider", "sim-pkce").await;
        browser.click("Continue to sim-pkce").await;
        browser.until_at("/oauth2/start").await;
        browser.click("Continue to sim-pkce").await;
        browser.until_at("/authorize").await;
        browser.click(button).await;
        browser.until_at("/panel/provider/sim-pkce").await;
        browser.click("Go to the panel").await;
        browser.until_at("/panel/providers").await;
        let page = browser.until_says(words).await;
        assert!(page.contains("sim-pkce"), "{page}");
    }
    assert_eq!(entity.connection("sim-pkce").await.expect("connected")["status"], "connected");
    browser.click("OK").await;
    browser.click("Disconnect…").await;
    browser.click("Disconnect").await;
    browser.until_says("No connections yet").await;
    assert!(entity.connections().await.is_empty());
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_reload_keeps_the_session_and_a_link_opens_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let link = entity.panel_link(json!({ "place": "/panel/event-types?search=booking" })).await;
    let browser = Browser::open().await;
    browser.go(&link).await;
    browser.until_says("booking.created").await;
    let address = browser.address().await;
    assert!(address.ends_with("/panel/event-types?search=booking"), "{address}");
    browser.go(&address).await;
    browser.until_says("booking.created").await;
    browser.go("about:blank").await;
    browser.go(&link).await;
    browser.until_says("Your open session in this browser continues").await;
    browser.click("Sign out").await;
    browser.until_says("You are signed out").await;
    browser.go("about:blank").await;
    browser.go(&link).await;
    let refused = browser.until_says("The panel link cannot be opened").await;
    assert!(refused.contains("If you ask for help"), "{refused}");
    browser.close().await;
}

/// The statuses of the page's session requests.
const STATUSES: &str = "return performance.getEntriesByType('resource')
    .filter(({ name }) => name.endsWith('/panel/session')).map(({ responseStatus }) => responseStatus)";

#[contract_test(in_browser)]
async fn a_first_visit_asks_for_a_link_without_an_error(suite: Arc<Suite>) {
    let browser = Browser::open().await;
    browser.go(&format!("{}/panel", suite.api.base_url())).await;
    browser.until_says("Sign in with a panel link").await;
    assert_eq!(browser.run(STATUSES).await, json!([204]));
    browser.close().await;
}

#[contract_test(in_browser)]
async fn the_panel_continues_by_itself_once_the_service_is_back(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("Sign out").await;
    browser.command("Network.enable", json!({})).await;
    let fail = async |addresses: Value| browser.command("Network.setBlockedURLs", json!({ "urls": addresses })).await;
    fail(json!(["*/panel/session"])).await;
    browser.go(&format!("{}/panel/webhooks", suite.api.base_url())).await;
    let page = browser.until_says("The panel cannot be opened yet").await;
    assert!(!page.contains("Sign in"), "the browser may have a session: {page}");
    assert_eq!(browser.serious_faults().await, [""; 0]);
    fail(json!([])).await;
    browser.until_says("No webhooks yet").await;

    fail(json!(["*/api/*"])).await;
    browser.click("Applications").await;
    browser.until_says("The service cannot be reached").await;
    fail(json!([])).await;
    browser.until_says("No applications yet").await;
    browser.close().await;
}

/// Regression test: without asking, any page could lead a browser into another entity's panel.
#[contract_test(in_browser)]
async fn a_followed_link_is_used_only_after_a_question(suite: Arc<Suite>) {
    let (entity, stranger) = (suite.entity().await, suite.entity().await);
    let link = stranger.panel_link(json!({})).await;
    let browser = Browser::open().await;
    browser.follow(&link).await;
    let asked = browser.until_says(&format!("Open the panel of {}?", stranger.id)).await;
    assert!(asked.contains(&format!("with access to {} can see", stranger.id)), "{asked}");
    browser.click("Do not open it").await;
    browser.until_says("Sign in with a panel link").await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("Sign out").await;
    browser.follow(&link).await;
    let asked = browser.until_says(&format!("Open the panel of {}?", stranger.id)).await;
    assert!(asked.contains(&format!("You are in the panel of {}", entity.id)), "{asked}");
    browser.click(&format!("Stay in {}", entity.id)).await;
    browser.until_says("Sign out").await;
    assert_eq!(entity.panel_links().await.len(), 1);
    // The link has not been used.
    browser.go("about:blank").await;
    browser.go(&link).await;
    browser.until_says("Sign out").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn an_ended_session_loses_no_typed_text(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    let first = entity.new_panel_link(json!({ "place": "/panel/webhooks/new" })).await;
    browser.go(first["url"].as_str().expect("openapi.yaml says so")).await;
    browser.fill("Name", "Typed before the end").await;
    browser.fill("Address", "https://hooks.example.com/waypost").await;
    entity.call("DELETE", &format!("/panel/link/{}", first["id"].as_str().expect("text"))).expect(200).await;
    // The token is still valid for another minute.
    browser.run_to_end(FORGET).await;
    browser.click("Create webhook").await;
    browser.until_says("Your session has ended").await;
    browser.fill("Panel link", &entity.panel_link(json!({})).await).await;
    browser.click("Open the link").await;
    browser.until_says("Typed before the end was created").await;
    browser.close().await;
}

/// Makes the page's next call fail as if its token had expired, so that the page discards the token and renews its
/// session.
const FORGET: &str = "const real = window.fetch;
    window.fetch = (to, how) => {
        if (!String(to).startsWith('/api/')) return real(to, how);
        window.fetch = real;
        return Promise.resolve(new Response('{}', { status: 401 }));
    };";

#[contract_test(in_browser)]
async fn a_page_keeps_typed_text_when_another_entitys_link_is_opened(suite: Arc<Suite>) {
    let (entity, other) = (suite.entity().await, suite.entity().await);
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": "/panel/webhooks/new" })).await).await;
    browser.fill("Name", "Typed before").await;
    browser.fill("Address", "https://hooks.example.com/waypost").await;
    // Send the requests that another tab would send when opening the link.
    let link = other.panel_link(json!({})).await;
    let code = link.split_once("#code=").expect("a link has its code").1;
    let open = format!(
        "await fetch('/panel/session', {{ method: 'POST', headers: {{ 'Content-Type': 'application/json' }}, body: JSON.stringify({{ code: '{code}' }}) }});"
    );
    browser.run_to_end(&open).await;
    browser.run_to_end(FORGET).await;
    browser.click("Create webhook").await;
    let said = browser.until_says("Another session is open in this browser").await;
    assert!(said.contains(&format!("Go to {}", other.id)), "{said}");
    let asked =
        "return performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/panel/session')).length";
    assert!(browser.run(asked).await.as_u64().expect("a number") <= 4, "the page asks once, and then waits");
    browser.fill("Panel link", &entity.panel_link(json!({})).await).await;
    browser.click("Open the link").await;
    browser.until_says("Typed before was created").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_person_is_signed_out_only_once_the_service_has_ended_the_session(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("Sign out").await;
    let offline = "const real = window.fetch;
                   window.fetch = (to, how) => how?.method === 'DELETE' ? Promise.reject(new TypeError('offline')) : real(to, how);
                   window.online = () => { window.fetch = real; };";
    browser.run(offline).await;
    browser.click("Sign out").await;
    browser.until_says("You are not signed out yet").await;
    browser.run("window.online()").await;
    browser.click("Try again").await;
    browser.until_says("You are signed out").await;
    assert_eq!(entity.panel_links().await, Vec::<Value>::new());
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_link_pasted_into_an_open_panel_is_opened(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    browser.go(&format!("{}/panel", suite.api.base_url())).await;
    browser.until_says("Sign in with a panel link").await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("Sign out").await;
    let link = entity.panel_link(json!({ "place": "/panel/webhooks" })).await;
    // Only the fragment differs, so the browser would not reload the page.
    browser.run("history.replaceState(null, '', '/panel')").await;
    browser.go(&link).await;
    browser.until_says("No webhooks yet").await;
    browser.until_at("/panel/webhooks").await;
    let address = browser.address().await;
    assert!(!address.contains("code="), "{address}");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn failed_deliveries_are_counted_and_then_recovered(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/hook", [Behaviour::status(404)]);
    entity.hook_with(json!({ "name": "test", "eventUrl": address, "eventList": ["booking.created"] })).await;
    let mut deliveries = Vec::new();
    for number in 0..3 {
        deliveries.push(entity.publish(json!({ "number": number })).await);
    }
    for delivery in &deliveries {
        entity.until_status(delivery, &["failed"]).await;
    }
    receiver.on("/hook", [Behaviour::status(200)]);
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": format!("/panel/deliveries/{}", deliveries[1]) })).await).await;
    browser.click("Recover failed deliveries…").await;
    browser.until_says("2 deliveries in this range failed or were cancelled").await;
    browser.click("Recover 2 deliveries").await;
    browser.until_says("Delivered on attempt 4").await;
    entity.until_status(&deliveries[2], &["delivered"]).await;
    assert_eq!(entity.delivery(&deliveries[0]).await["status"], "failed", "it is older than the start of the recovery");
    browser.go(&format!("{}/panel/deliveries/{}", suite.api.base_url(), deliveries[2])).await;
    browser.click("Recover failed deliveries…").await;
    browser.until_says("1 delivery in this range failed or was cancelled").await;
    let range = browser.run("return document.querySelector('dialog select').selectedOptions[0].text").await;
    assert_eq!(range, "Since the webhook was created", "none failed from this delivery on");
    browser.choose("Created", "Custom range").await;
    browser.until_says("Empty: until now.").await;
    browser.run(RANGE_OF_2020).await;
    browser.until_says("This range has no failed or cancelled deliveries to recover").await;
    browser.close().await;
}

/// Enters a range in the dialog. The way to type in such fields depends on the browser's language.
const RANGE_OF_2020: &str = "for (const [at, value] of ['2020-01-01T00:00', '2020-02-01T00:00'].entries()) {
                                 const field = document.querySelectorAll('dialog [type=datetime-local]')[at];
                                 field.value = value;
                                 field.dispatchEvent(new Event('input', { bubbles: true }));
                             }";

/// A browser signed in as an application, since a session from a link cannot create links.
async fn signed_in(entity: &Entity) -> Browser {
    let scopes = ["account.read", "integrations.read", "integrations.write", "payment.read"];
    let application = made_with(entity, json!({ "name": "test", "scopes": scopes })).await;
    let browser = Browser::open().await;
    browser.go(&format!("{}/panel/webhooks", entity.api().base_url())).await;
    browser.click("Sign in with an application’s id and secret").await;
    browser.fill("Application (client id)", &application.id).await;
    browser.fill("Secret", &application.secret).await;
    browser.click("Sign in").await;
    browser.until_says("Sign out").await;
    browser
}

#[contract_test(in_browser)]
async fn leaving_a_link_that_is_shown_once_needs_a_confirmation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = signed_in(&entity).await;
    browser.click("Panel links").await;
    let make = async |name: &str, access: &str| {
        browser.click("New panel link").await;
        browser.fill("Name", name).await;
        browser.choose("Access", access).await;
        browser.click("Create link").await;
        browser.until_says("The link was created").await;
    };
    make("Ada of support", "Support: view, recover and resend").await;
    // A browser lets a page cancel the first Escape key press, but not the second.
    for _ in 0..2 {
        browser.press(&[ESCAPE]).await;
        let question = browser.answer_question(false).await;
        assert!(question.contains("The panel link is shown only once"), "{question}");
        assert!(browser.until_says("The link was created").await.contains("/panel#code="));
    }
    browser.back().await;
    browser.answer_question(false).await;
    assert!(browser.until_at("/panel/links").await.contains("/panel#code="));
    browser.press(&[ESCAPE]).await;
    browser.answer_question(true).await;
    let gone = async || (!browser.text().await.contains("/panel#code=")).then_some(());
    until("the link is not shown any more", LONG, gone).await;

    make("Grace of finance", "Read only").await;
    browser.click("Copy").await;
    browser.until_says("Copied: panel link.").await;
    browser.press(&[ESCAPE]).await;
    until("no question is asked after the link was copied", LONG, gone).await;
    let links = entity.panel_links().await;
    let scopes_of = |name: &str| links.iter().find(|link| link["name"] == name);
    let scopes_of = |name: &str| scopes_of(name).map(|link| link["scopes"].clone());
    assert_eq!(scopes_of("Ada of support"), Some(json!(["integrations.read", "integrations.write"])));
    let reading = json!(["account.read", "integrations.read", "payment.read"]);
    assert_eq!(scopes_of("Grace of finance"), Some(reading), "each link has the scopes of its preset");
    browser.close().await;
}

#[contract_test(in_browser)]
async fn an_application_gets_only_the_chosen_rights(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({ "place": "/panel/applications/new" })).await).await;
    browser.fill("Name", "Night audit").await;
    browser.run("document.querySelector('[aria-label=Booking] input').click()").await;
    browser.click("Create application").await;
    let made = browser.until_says("Night audit was created").await;
    assert!(made.contains("Client secret"), "{made}");
    browser.click("Sign out").await;
    let question = browser.answer_question(false).await;
    assert!(question.contains("The client secret is shown only once"), "{question}");
    browser.click("Copy").await;
    browser.until_says("Copied: client secret.").await;
    browser.click("Open application").await;
    browser.until_says("never").await;
    let listed = entity.get("/application/list").expect(200).await.json();
    let of_ours: Vec<&Value> =
        listed.as_array().into_iter().flatten().filter(|one| one["name"] == "Night audit").collect();
    assert_eq!(of_ours.len(), 1, "{listed}");
    assert_eq!(of_ours[0]["scopes"], json!(["booking.read"]));
    browser.click("Rotate secret").await;
    // The dialog contains a button with the same text.
    browser.until_says("Rotate the client secret").await;
    browser.click("Rotate secret").await;
    browser.until_says("New client secret").await;
    browser.click("I have copied it").await;
    browser.until_says("expires in").await;
    browser.click("Remove…").await;
    browser.click("Remove application").await;
    let id = of_ours[0]["clientId"].as_str().expect("openapi.yaml says so").to_owned();
    until("the application is removed", LONG, async || {
        let listed = entity.get("/application/list").expect(200).await.json();
        (!listed.to_string().contains(&id)).then_some(())
    })
    .await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn a_missing_scope_is_explained(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let only_reading = json!({ "scopes": ["integrations.read"], "place": format!("/panel/webhooks/{}", hook.id) });
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(only_reading).await).await;
    let page = browser.until_says("Performance").await;
    assert!(!page.contains("Payment providers"), "pages beyond the session's rights are not offered: {page}");
    browser.click("Send a test event").await;
    browser.until_says("Your session lacks the scope integrations.write").await;
    assert!(receiver.everything().is_empty());
    browser.close().await;
}
