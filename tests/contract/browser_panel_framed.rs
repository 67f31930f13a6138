//! The panel in a frame on a platform's page, in a real browser. These tests run on demand only: `make browser-test`.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Browser, Entity, LONG, Receiver, Settings, Suite, until};

/// A page on another site that contains the panel in a frame. The page counts the messages about sessions that have
/// ended.
fn platform(panel: &str, entity: &str) -> String {
    format!(
        "<!DOCTYPE html><title>Platform</title><iframe src=\"{panel}/panel#entity={entity}\" width=\"1000\" height=\"700\">\
         </iframe><script>window.ended = 0; addEventListener('message', ({{ data, origin }}) => {{\
         if (origin === '{panel}' && data.type === 'waypost.session-ended') window.ended += 1; }});</script>"
    )
}

/// Waits for this many messages about ended sessions, then gives the panel this link.
async fn hand_over(browser: &Browser, messages: u64, url: &str) {
    browser.leave_frame().await;
    until("the panel asks for a link", LONG, async || {
        (browser.run("return window.ended").await == json!(messages)).then_some(())
    })
    .await;
    let message = json!({ "type": "waypost.open-link", "url": url });
    browser.run(&format!("frames[0].postMessage({message}, '*')")).await;
    browser.enter_frame().await;
}

async fn cookies(browser: &Browser) -> Vec<(Value, Value)> {
    let all = browser.command("Network.getAllCookies", json!({})).await;
    let all = all["cookies"].as_array().expect("a list").iter();
    all.map(|cookie| (cookie["name"].clone(), cookie["partitionKey"]["topLevelSite"].clone())).collect()
}

/// `localhost` and `127.0.0.1` are different sites.
#[contract_test(in_browser)]
async fn the_panel_works_in_a_frame_of_a_listed_page_of_another_site(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let origin = format!("http://localhost:{}", receiver.address.port());
    let settings = Settings::default()
        .with("PANEL_FRAME_ANCESTORS", &origin)
        .with("PANEL_NAME", "Hotels")
        .with("PANEL_ACCENT_COLOR", "#7a1fa2");
    let (_bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "framed".to_owned()).await;
    let page = platform(api.base_url(), &entity.id);
    receiver.on("/", [Behaviour::answer(200, &[("Content-Type", "text/html")], page)]);

    let browser = Browser::open().await;
    browser.follow(&origin).await;
    let first = entity.new_panel_link(json!({ "name": "Ada" })).await;
    hand_over(&browser, 1, first["url"].as_str().expect("openapi.yaml says so")).await;
    browser.until_says("Event types").await;
    browser.click("Webhooks").await;
    let text = browser.until_says("New webhook").await;
    assert!(!text.contains("Sign out") && !text.contains("Waypost"), "the platform signs people out: {text}");
    let accent = "return getComputedStyle(document.documentElement).getPropertyValue('--accent')";
    assert_eq!(
        (browser.run(accent).await, browser.run("return document.title").await),
        (json!("#7a1fa2"), json!("Webhooks · Hotels"))
    );
    let partition = (json!("waypost-panel-framed"), json!("http://localhost"));
    assert_eq!(cookies(&browser).await, [partition]);

    // After a reload, the cookie continues the session without a new link.
    browser.follow(&origin).await;
    browser.enter_frame().await;
    browser.until_says("Event types").await;
    browser.leave_frame().await;
    assert_eq!(browser.run("return window.ended").await, json!(0));

    // When a session ends, the page asks for a link, then continues with the same content.
    browser.enter_frame().await;
    browser.click("Webhooks").await;
    browser.click("New webhook").await;
    browser.fill("Name", "Channel manager").await;
    browser.fill("Address", &receiver.url("/hook")).await;
    entity.call("DELETE", &format!("/panel/link/{}", first["id"].as_str().expect("an identifier"))).expect(200).await;
    // The page gets a new token before its current one expires; here, it does so immediately, as if the expiry were
    // near.
    browser.run("const now = Date.now(); Date.now = () => now + 3600000 + performance.now()").await;
    browser.click("Create webhook").await;
    let second = entity.panel_link(json!({})).await;
    hand_over(&browser, 1, &second).await;
    browser.until_says("Channel manager was created").await;

    // If the fragment names another entity, its panel replaces the previous one without a page load.
    browser.follow(&origin).await;
    browser.enter_frame().await;
    browser.until_says("Event types").await;
    browser.leave_frame().await;
    let other = Entity::new(&api, "other-framed".to_owned()).await;
    let address = format!("{}/panel#entity={}", api.base_url(), other.id);
    browser.run(&format!("document.querySelector('iframe').src = '{address}'")).await;
    hand_over(&browser, 1, &other.panel_link(json!({})).await).await;
    browser.until_says(&other.id).await;
    browser.leave_frame().await;
    assert_eq!(browser.complaints().await, "");

    // The browser has no session outside the frame.
    browser.follow(&format!("{}/panel", api.base_url())).await;
    browser.until_says("Sign in with a panel link").await;
    browser.close().await;
}

#[contract_test(in_browser)]
async fn no_page_frames_the_panel_unless_the_deployment_lists_it(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let entity = suite.entity().await;
    let page = platform(suite.api.base_url(), &entity.id);
    receiver.on("/", [Behaviour::answer(200, &[("Content-Type", "text/html")], page)]);
    let browser = Browser::open().await;
    browser.follow(&receiver.url("/")).await;
    let complaint = until("the browser refuses the frame", LONG, async || {
        Some(browser.complaints().await).filter(|complaints| !complaints.is_empty())
    });
    assert!(complaint.await.contains("frame-ancestors 'none'"));
    browser.enter_frame().await;
    let address = browser.run("return location.href").await;
    assert!(address.as_str().is_some_and(|address| address.starts_with("chrome-error:")), "{address}");
    browser.close().await;
}
