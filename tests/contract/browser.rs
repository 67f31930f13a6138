//! A person's way through start page and consent page in a real browser: chromium, driven over the WebDriver protocol
//! (<https://www.w3.org/TR/webdriver2/>). It runs only when it is asked for: `make browser-test`.

use std::{fs, path::Path, process::Stdio, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::harness::{
    Entity, LONG, Process, Suite, descendants, free_port, hash_of, project, state_of, tests, until, until_gone,
};

tests![on demand:
    a_person_who_allows_lands_on_a_page_that_says_connected,
    a_person_who_declines_is_told_so,
    a_person_whose_link_has_expired_is_told_so_in_words,
    the_reference_and_the_problems_are_read_with_their_style_and_lead_to_each_other,
];

/// Where Debian has the driver.
const DRIVER: &str = "/usr/bin/chromedriver";

/// What chromium is started with: nothing of its own on the network, and no sandbox, which root cannot have.
const ARGUMENTS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// A browser with one window.
struct Browser {
    http: reqwest::Client,
    session: String,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    async fn open() -> Self {
        assert!(
            Path::new(DRIVER).is_file(),
            "{DRIVER} is missing: install chromium and its driver (on Debian: apt install chromium chromium-driver)"
        );
        let (port, profile) = (free_port(), tempfile::tempdir().expect("a temporary folder"));
        let driver = Command::new(DRIVER)
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the driver starts");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client needs nothing");
        let base = format!("http://127.0.0.1:{port}");
        let mut browser = Self { http, session: base.clone(), driver, _profile: profile };
        until("the driver listens", LONG, async || browser.http.get(format!("{base}/status")).send().await.ok()).await;
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments: Vec<&str> = ARGUMENTS.into_iter().chain([folder.as_str()]).collect();
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": arguments } });
        let session = browser.post("/session", json!({ "capabilities": { "alwaysMatch": wanted } })).await;
        let id = session["sessionId"].as_str().expect("a session has an identifier");
        browser.session = format!("{base}/session/{id}");
        browser
    }

    async fn go(&self, address: &str) {
        self.post("/url", json!({ "url": address })).await;
    }

    async fn click(&self, button: &str) {
        let path = format!("//*[(self::button or self::a) and normalize-space()='{button}']");
        let element = self.post("/element", json!({ "using": "xpath", "value": path })).await;
        let id = element.as_object().and_then(|members| members.values().next()).and_then(Value::as_str);
        let id = id.unwrap_or_else(|| panic!("there is no button or link `{button}`: {element}"));
        self.post(&format!("/element/{id}/click"), json!({})).await;
    }

    /// Waits until the window is at an address that contains this, and returns what its page says.
    async fn until_at(&self, part: &str) -> String {
        until(&format!("the browser is at {part}"), LONG, async || {
            self.get("/url").await.as_str().is_some_and(|address| address.contains(part)).then_some(())
        })
        .await;
        let body = self.post("/element", json!({ "using": "css selector", "value": "body" })).await;
        let id = body.as_object().and_then(|members| members.values().next()).and_then(Value::as_str);
        let text = self.get(&format!("/element/{}/text", id.expect("a page has a body"))).await;
        text.as_str().expect("a text is one").to_owned()
    }

    /// The width that the style of all pages gives them; a browser that refuses the style has none.
    async fn width_of_page(&self) -> String {
        let body = self.post("/element", json!({ "using": "css selector", "value": "body" })).await;
        let id = body.as_object().and_then(|members| members.values().next()).and_then(Value::as_str);
        let width = self.get(&format!("/element/{}/css/max-width", id.expect("a page has a body"))).await;
        width.as_str().expect("a width is a text").to_owned()
    }

    async fn screenshot(&self, name: &str) {
        let image = self.get("/screenshot").await;
        let image = BASE64_STANDARD.decode(image.as_str().unwrap_or_default()).expect("an image comes in base64");
        let folder = project().join("target/browser");
        fs::create_dir_all(&folder).expect("it can be made");
        fs::write(folder.join(name), image).expect("it can be written");
    }

    async fn get(&self, path: &str) -> Value {
        self.value(self.http.get(format!("{}{path}", self.session))).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.value(self.http.post(format!("{}{path}", self.session)).json(&body)).await
    }

    async fn value(&self, request: reqwest::RequestBuilder) -> Value {
        let answer = request.send().await.expect("the driver answers");
        let status = answer.status();
        let mut answer: Value = answer.json().await.expect("it answers in JSON");
        assert!(status.is_success(), "the driver refuses: {answer:#}");
        answer["value"].take()
    }
}

impl Browser {
    /// Ends it, and waits until nothing of it is left.
    async fn close(self) {
        let processes = self.processes();
        drop(self);
        until_gone(&processes).await;
    }

    /// The browser's processes, which the driver started; they stay when it is killed.
    fn processes(&self) -> Vec<Process> {
        self.driver.id().and_then(|id| id.try_into().ok()).map(descendants).unwrap_or_default()
    }
}

/// Whatever happened in between. The driver is killed by its own handle.
impl Drop for Browser {
    fn drop(&mut self) {
        self.processes().iter().for_each(Process::kill);
    }
}

/// Goes to the provider and chooses; what the page says on which the person lands, and the open browser.
async fn land(entity: &Entity, button: &str, outcome: &str) -> (Browser, String) {
    let address = entity.authorization_url("sim-pkce").await;
    let browser = Browser::open().await;
    browser.go(&address).await;
    let words = browser.until_at("/oauth2/start").await;
    assert!(words.contains(&entity.id), "{words}");
    browser.screenshot("start.png").await;
    browser.click("Go on to sim-pkce").await;
    browser.until_at("/authorize").await;
    browser.click(button).await;
    let words = browser.until_at(&format!("/panel/provider/sim-pkce?outcome={outcome}")).await;
    (browser, words)
}

async fn a_person_who_allows_lands_on_a_page_that_says_connected(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (browser, words) = land(&entity, "Allow", "connected").await;
    browser.screenshot("connected.png").await;
    assert!(words.to_lowercase().contains("connected") && words.contains("sim-pkce"), "{words}");
    assert!(words.contains(&entity.id) && words.contains("acct_"), "{words}");
    assert_eq!(entity.connection("sim-pkce").await.expect("connected")["status"], "connected");
    browser.close().await;
}

async fn a_person_who_declines_is_told_so(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (browser, words) = land(&entity, "Deny", "denied").await;
    browser.screenshot("denied.png").await;
    assert!(words.contains("sim-pkce") && words.to_lowercase().contains("not connected"), "{words}");
    assert!(entity.connections().await.is_empty());
    browser.close().await;
}

async fn a_person_whose_link_has_expired_is_told_so_in_words(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let address = entity.authorization_url("sim-pkce").await;
    let browser = Browser::open().await;
    browser.go(&address).await;
    browser.until_at("/oauth2/start").await;
    browser.click("Go on to sim-pkce").await;
    browser.until_at("/authorize").await;
    let key = format!("STATE#{}", hash_of(&state_of(&address)));
    assert!(
        suite.table().set(&key, "STATE", "expiresDate", "2026-01-01T00:00:00.000Z").await,
        "its end is brought forward"
    );
    browser.click("Allow").await;
    let words = browser.until_at("/oauth2/callback").await;
    browser.screenshot("expired.png").await;
    for part in ["This link has expired", "sim-pkce", &entity.id, "ask for a new link"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains('{'), "{words}");
    assert_eq!(browser.width_of_page().await, "704px");
    browser.close().await;
}

async fn the_reference_and_the_problems_are_read_with_their_style_and_lead_to_each_other(suite: Arc<Suite>) {
    let (browser, base) = (Browser::open().await, suite.api.base_url());
    browser.go(&format!("{base}/")).await;
    let words = browser.until_at(base).await;
    browser.screenshot("reference.png").await;
    assert!(words.contains("Publish an event") && words.contains("Introduction"), "{words}");
    browser.click("all kinds of Problems").await;
    browser.until_at("/problems").await;
    browser.screenshot("problems.png").await;
    browser.click("webhook-limit").await;
    let words = browser.until_at("/problems/webhook-limit").await;
    browser.screenshot("problem.png").await;
    assert!(words.contains("Example") && words.contains("Create a webhook"), "{words}");
    assert_eq!(browser.width_of_page().await, "704px");
    browser.click("Create a webhook").await;
    browser.until_at("/#createWebhook").await;
    browser.screenshot("operation.png").await;
    browser.close().await;
}
