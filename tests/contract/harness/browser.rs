//! A real browser: chromium, driven over the WebDriver protocol (<https://www.w3.org/TR/webdriver2/>).

use std::{fmt::Write as _, fs, path::Path, process::Stdio, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{LONG, Process, descendants, free_port, project, until, until_gone};

/// The driver's path on Debian.
const DRIVER: &str = "/usr/bin/chromedriver";

/// Chromium's arguments: no background traffic, and no sandbox, which root cannot use.
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

/// The driver's errors if the page has changed since an element was found.
const CHANGED_MEANWHILE: [&str; 3] =
    ["element click intercepted", "element not interactable", "stale element reference"];

/// Keys without a character, as WebDriver names them.
pub const ENTER: &str = "\u{E007}";
pub const ESCAPE: &str = "\u{E00C}";
pub const TAB: &str = "\u{E004}";
pub const RIGHT: &str = "\u{E014}";

/// A browser with one window.
pub struct Browser {
    http: reqwest::Client,
    session: String,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// Whether this machine has the browser's driver.
    pub fn is_installed() -> bool {
        Path::new(DRIVER).is_file()
    }

    /// Starts a browser with a new profile.
    pub async fn open() -> Self {
        assert!(
            Self::is_installed(),
            "{DRIVER} is missing: install chromium and its driver (on Debian: apt install chromium chromium-driver)"
        );
        let port = free_port();
        let profile = tempfile::tempdir().expect("a temporary folder");
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
        let logs = json!({ "browser": "ALL" });
        // On a busy machine, checking a page with axe takes a long time.
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": arguments },
                             "goog:loggingPrefs": logs, "timeouts": { "script": 295_000 } });
        let session = browser.post("/session", json!({ "capabilities": { "alwaysMatch": wanted } })).await;
        let id = session["sessionId"].as_str().expect("a session has an identifier");
        browser.session = format!("{base}/session/{id}");
        browser
    }

    /// Opens an address, and confirms the question that precedes a panel link.
    pub async fn go(&self, address: &str) {
        self.follow(address).await;
        if address.contains("#code=") {
            self.click("Open the panel").await;
        }
    }

    /// Opens an address, and leaves any question unanswered.
    pub async fn follow(&self, address: &str) {
        self.post("/url", json!({ "url": address })).await;
    }

    /// Directs the next commands to the page's first frame.
    pub async fn enter_frame(&self) {
        self.post("/frame", json!({ "id": 0 })).await;
    }

    /// Directs the next commands to the whole page again.
    pub async fn leave_frame(&self) {
        self.post("/frame", json!({ "id": null })).await;
    }

    /// Goes back, as the browser's button does.
    pub async fn back(&self) {
        self.post("/back", json!({})).await;
    }

    /// Waits for a browser dialog, answers it, and returns its text.
    pub async fn answer_question(&self, answer: bool) -> String {
        let question = until("the page opens a dialog", LONG, async || {
            let question = self.http.get(format!("{}/alert/text", self.session));
            self.answer(question).await.ok()
        });
        let question = question.await.as_str().expect("a question is a text").to_owned();
        self.post(if answer { "/alert/accept" } else { "/alert/dismiss" }, json!({})).await;
        question
    }

    /// Sets the preferred colour scheme, light or dark.
    pub async fn prefer(&self, scheme: &str) {
        self.emulate_colours(scheme, "none").await;
    }

    /// Makes the browser show only its own colours, light or dark, as with a Windows contrast theme.
    pub async fn force_colours(&self, scheme: &str) {
        self.emulate_colours(scheme, "active").await;
    }

    async fn emulate_colours(&self, scheme: &str, forced: &str) {
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "forced-colors", "value": forced },
        ] });
        self.command("Emulation.setEmulatedMedia", features).await;
    }

    /// The URL of the current page.
    pub async fn address(&self) -> String {
        self.get("/url").await.as_str().expect("an address is a text").to_owned()
    }

    /// Waits for the button, link or tab with this text and clicks it; if a dialog is open, looks in the dialog.
    pub async fn click(&self, button: &str) {
        let path = format!(
            "//*[(self::button or self::a or self::summary) and normalize-space()={button}]\
             [not(//dialog[@open]) or ancestor::dialog[@open]]",
            button = quoted(button)
        );
        self.click_at(&format!("there is a button or link `{button}`"), &path).await;
    }

    /// Replaces the text in the field with this label. Tries again if the page changes in the meantime.
    pub async fn fill(&self, label: &str, text: &str) {
        until(&format!("the field `{label}` is filled"), LONG, async || {
            let element = self.field(label).await;
            self.use_element(&element, "clear", json!({})).await?;
            self.use_element(&element, "value", json!({ "text": text })).await
        })
        .await;
    }

    /// Selects the checkbox or radio button with this label.
    pub async fn tick(&self, label: &str) {
        let path = format!("//label[span[starts-with(normalize-space(), {})]]", quoted(label));
        self.click_at(&format!("there is a choice `{label}`"), &path).await;
    }

    /// Selects an option in the list with this label.
    pub async fn choose(&self, label: &str, option: &str) {
        let path = format!(
            "//select[@id=//label[normalize-space()={}]/@for]/option[normalize-space()={}]",
            quoted(label),
            quoted(option)
        );
        self.click_at(&format!("`{label}` offers `{option}`"), &path).await;
    }

    /// Presses keys in the focused element.
    pub async fn press(&self, keys: &[&str]) {
        let strokes: Vec<Value> = keys
            .iter()
            .flat_map(|key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })])
            .collect();
        self.post("/actions", json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] })).await;
    }

    /// Presses a key while holding down the control key.
    pub async fn press_with_control(&self, key: &str) {
        const CONTROL: &str = "\u{e009}";
        let strokes = [("keyDown", CONTROL), ("keyDown", key), ("keyUp", key), ("keyUp", CONTROL)];
        let strokes = strokes.map(|(kind, key)| json!({ "type": kind, "value": key }));
        self.post("/actions", json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] })).await;
    }

    /// The accessible name of the focused element, or its text.
    pub async fn focused(&self) -> String {
        let script =
            "const e = document.activeElement; return (e.getAttribute('aria-label') ?? e.innerText ?? '').trim()";
        self.run(script).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the element with this name has the focus.
    pub async fn until_focused(&self, name: &str) {
        until(&format!("`{name}` has the focus"), LONG, async || (self.focused().await == name).then_some(())).await;
    }

    /// Waits until the URL contains this text, and returns the page's text.
    pub async fn until_at(&self, part: &str) -> String {
        until(&format!("the browser is at {part}"), LONG, async || {
            self.get("/url").await.as_str().is_some_and(|address| address.contains(part)).then_some(())
        })
        .await;
        self.text().await
    }

    /// Waits until the page contains this text, and returns all of its text.
    pub async fn until_says(&self, words: &str) -> String {
        let what = format!("the page says `{words}`");
        let mut last = String::new();
        let wait = until(&what, LONG, async || {
            last = self.text().await;
            last.contains(words).then(|| last.clone())
        });
        match tokio::time::timeout(LONG - Duration::from_secs(5), wait).await {
            Ok(text) => text,
            Err(_) => panic!("the page never says `{words}`: {last}"),
        }
    }

    /// The page's visible text.
    pub async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// The maximum width from the style that all pages share; without the style, there is none.
    pub async fn width_of_page(&self) -> String {
        let width = self.run("return getComputedStyle(document.body).maxWidth").await;
        width.as_str().expect("a width is a text").to_owned()
    }

    /// Runs a script in the page, and returns its result.
    pub async fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Runs a script in the page, and returns the result of its promise.
    pub async fn run_to_end(&self, script: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {script} }})().then(done, (error) => done(String(error)))"
        );
        self.post("/execute/async", json!({ "script": script, "args": [] })).await
    }

    /// Sends a DevTools protocol command (<https://chromedevtools.github.io/devtools-protocol/>).
    pub async fn command(&self, name: &str, parameters: Value) -> Value {
        self.post("/goog/cdp/execute", json!({ "cmd": name, "params": parameters })).await
    }

    /// The page's width in CSS pixels, which exceeds the window's if the page needs horizontal scrolling.
    pub async fn whole_width(&self) -> u64 {
        let width = self.run("return document.documentElement.scrollWidth").await;
        width.as_u64().expect("a width is a number")
    }

    /// The serious and critical problems that axe (<https://github.com/dequelabs/axe-core>) finds on the page.
    pub async fn serious_faults(&self) -> Vec<String> {
        let axe = project().join("tests/node/node_modules/axe-core/axe.min.js");
        self.run(&fs::read_to_string(axe).expect("`make tools` has installed axe-core")).await;
        let found = self.run_to_end("return (await axe.run()).violations").await;
        let found = found.as_array().unwrap_or_else(|| panic!("axe fails: {found}"));
        let grave =
            found.iter().filter(|fault| ["serious", "critical"].iter().any(|impact| fault["impact"] == *impact));
        grave.map(|fault| format!("{}: {}", fault["id"], fault["nodes"][0]["html"])).collect()
    }

    /// Resizes the window, in CSS pixels.
    pub async fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// The browser's errors since the last call: failed scripts, and violations of a page's content security policy.
    pub async fn complaints(&self) -> String {
        let log = self.post("/se/log", json!({ "type": "browser" })).await;
        let entries = log.as_array().into_iter().flatten();
        let severe = entries.filter(|entry| entry["level"] == "SEVERE" && entry["source"] != "network");
        severe.fold(String::new(), |mut all, entry| {
            writeln!(all, "{}", entry["message"]).expect("writing to a String cannot fail");
            all
        })
    }

    /// Saves a screenshot of the window in `target/browser`.
    pub async fn screenshot(&self, name: &str) {
        let image = self.get("/screenshot").await;
        let image = BASE64_STANDARD.decode(image.as_str().unwrap_or_default()).expect("an image comes in base64");
        let folder = project().join("target/browser");
        fs::create_dir_all(&folder).expect("the folder can be created");
        fs::write(folder.join(name), image).expect("the file can be written");
    }

    /// Closes the browser, and waits until its processes have ended.
    pub async fn close(self) {
        let processes = self.processes();
        drop(self);
        until_gone(&processes).await;
    }

    async fn field(&self, label: &str) -> String {
        let path = format!(
            "//*[(self::input or self::textarea) and (@aria-label={label} or @id=//label[normalize-space()={label}]/@for)]",
            label = quoted(label)
        );
        until(&format!("there is a field `{label}`"), LONG, async || self.find("xpath", &path).await).await
    }

    /// Waits until the element at this path exists and is not covered, then clicks it. Tries again if the page changes
    /// in the meantime, for example because a dialog opens.
    async fn click_at(&self, what: &str, path: &str) {
        until(what, LONG, async || {
            let element = self.find("xpath", path).await?;
            self.use_element(&element, "click", json!({})).await
        })
        .await;
    }

    /// Sends a command for an element; `None` if the page has changed since the element was found.
    async fn use_element(&self, element: &str, command: &str, body: Value) -> Option<()> {
        let used = self.http.post(format!("{}/element/{element}/{command}", self.session)).json(&body);
        match self.answer(used).await {
            Ok(_) => Some(()),
            Err(refusal) if CHANGED_MEANWHILE.contains(&refusal["value"]["error"].as_str()?) => None,
            Err(refusal) => panic!("the driver refuses: {refusal:#}"),
        }
    }

    async fn find(&self, using: &str, value: &str) -> Option<String> {
        let found = self.post("/elements", json!({ "using": using, "value": value })).await;
        found[0].as_object()?.values().next()?.as_str().map(str::to_owned)
    }

    /// The browser's processes, which the driver started and which survive the driver if it is killed.
    fn processes(&self) -> Vec<Process> {
        self.driver.id().and_then(|id| id.try_into().ok()).map(descendants).unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Value {
        self.value(self.http.get(format!("{}{path}", self.session))).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.value(self.http.post(format!("{}{path}", self.session)).json(&body)).await
    }

    async fn value(&self, request: reqwest::RequestBuilder) -> Value {
        self.answer(request).await.unwrap_or_else(|refusal| panic!("the driver refuses: {refusal:#}"))
    }

    /// The value in the driver's response, or the driver's error.
    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Value, Value> {
        let answer = request.send().await.expect("the driver answers");
        let status = answer.status();
        let mut answer: Value = answer.json().await.expect("it answers in JSON");
        if status.is_success() { Ok(answer["value"].take()) } else { Err(answer) }
    }
}

/// A string as an XPath literal; XPath has no escapes.
fn quoted(text: &str) -> String {
    assert!(!text.contains('"'), "XPath has no word for `{text}`");
    format!("\"{text}\"")
}

/// Kills the browser's processes, even after a panic. The driver itself is killed by its handle.
impl Drop for Browser {
    fn drop(&mut self) {
        self.processes().iter().for_each(Process::kill);
    }
}
