//! A client of the service. Every answer is held against openapi.yaml and against what the contract says of all
//! answers, whatever the test is about.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{Application, Bundle, Contract};

/// A client of one bundle.
#[derive(Clone)]
pub struct Api {
    /// The variables of `service.env`.
    pub env: Arc<std::collections::BTreeMap<String, String>>,
    http: reqwest::Client,
    contract: Arc<Contract>,
    tokens: Arc<Mutex<HashMap<(Application, String), String>>>,
    /// Answers about payments that were seen so far: path without the query, and the whole text.
    seen: Arc<std::sync::Mutex<Vec<(String, String)>>>,
}

/// A request that is being put together.
#[must_use]
pub struct Call {
    api: Api,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

/// An answer, which is as openapi.yaml says.
#[derive(Debug)]
pub struct ApiResponse {
    /// The request's verb and path, and the whole answer, for messages.
    pub exchange: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Api {
    /// A client of this bundle, with connections of its own.
    pub fn of(bundle: &Bundle, contract: &Arc<Contract>) -> Self {
        Self {
            env: Arc::new(bundle.service_env()),
            http: client(Ipv4Addr::LOCALHOST),
            contract: Arc::clone(contract),
            tokens: Arc::default(),
            seen: Arc::default(),
        }
    }

    /// The same client at another address of the loopback interface.
    pub fn at_address(&self, address: Ipv4Addr) -> Self {
        Self { http: client(address), ..self.clone() }
    }

    pub fn base_url(&self) -> &str {
        &self.env["BASE_URL"]
    }

    /// Every answer about payments that any test has seen: the path, and head and body.
    pub fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().expect("no holder panics").clone()
    }

    /// A request with any verb to any path.
    pub fn call(&self, method: &str, path: impl Into<String>) -> Call {
        let method = method.parse().expect("the tests use verbs that HTTP could have");
        Call { api: self.clone(), method, path: path.into(), headers: HeaderMap::new(), body: None }
    }

    pub fn get(&self, path: impl Into<String>) -> Call {
        self.call("GET", path)
    }

    pub fn post(&self, path: impl Into<String>) -> Call {
        self.call("POST", path)
    }

    /// An access token for these scopes (all of the application's, when there are none), issued once.
    pub async fn token(&self, application: Application, scope: &str) -> String {
        let mut tokens = self.tokens.lock().await;
        if let Some(token) = tokens.get(&(application, scope.to_owned())) {
            return token.clone();
        }
        let token = self.new_token(application, scope).await;
        tokens.insert((application, scope.to_owned()), token.clone());
        token
    }

    /// The same, issued anew, for a test that does away with it.
    pub async fn new_token(&self, application: Application, scope: &str) -> String {
        let mut form = vec![("grant_type", "client_credentials")];
        if !scope.is_empty() {
            form.push(("scope", scope));
        }
        let answer = self.as_client("/oauth2/token", application, &form).expect(200).await;
        answer.json()["access_token"].as_str().expect("openapi.yaml says so").to_owned()
    }

    /// A request of an application to the token issuer, with its credentials in the form.
    pub fn as_client(&self, path: &str, application: Application, parameters: &[(&str, &str)]) -> Call {
        let (id, secret) = application.variables();
        let credentials = [("client_id", self.env[id].as_str()), ("client_secret", self.env[secret].as_str())];
        self.post(path).form(&[parameters, &credentials].concat())
    }
}

/// Connections from this address.
fn client(address: Ipv4Addr) -> reqwest::Client {
    let plain = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    plain.local_address(IpAddr::V4(address)).build().expect("a client without TLS needs nothing")
}

impl Call {
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name: HeaderName = name.parse().expect("the tests use names that headers can have");
        let value = HeaderValue::from_bytes(value.as_ref()).expect("the tests use values that headers can have");
        self.headers.append(name, value);
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Adds a form as the body.
    pub fn form(self, parameters: &[(&str, &str)]) -> Self {
        self.body("application/x-www-form-urlencoded", form_encoded(parameters))
    }

    /// Adds a body of this content type.
    pub fn body(self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.header("content-type", content_type).untyped_body(body)
    }

    /// Adds a body without saying of what type.
    pub fn untyped_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends it, and fails unless the answer has this status.
    pub async fn expect(self, status: u16) -> ApiResponse {
        let answer = self.send().await;
        assert!(answer.status == status, "expected {status}: {}", answer.exchange);
        answer
    }

    /// Sends it, and fails unless the answer is a Problem of this kind.
    pub async fn refused(self, status: u16, kind: &str) -> Value {
        let answer = self.expect(status).await;
        let problem = answer.json();
        let of_kind = problem["type"].as_str().is_some_and(|url| url.ends_with(&format!("/problems/{kind}")));
        assert!(of_kind, "expected {kind}: {}", answer.exchange);
        problem
    }

    /// Sends it, and fails unless there is an answer and it is as openapi.yaml says.
    pub async fn send(self) -> ApiResponse {
        let exchange = format!("{} {}", self.method, self.path);
        self.attempt().await.unwrap_or_else(|error| panic!("{exchange}: no answer: {error:?}"))
    }

    /// The same where the service may be gone: nothing is said of an answer that does not come.
    pub async fn attempt(self) -> Result<ApiResponse, reqwest::Error> {
        let url = format!("{}{}", self.api.base_url(), self.path);
        let mut request = self.api.http.request(self.method.clone(), url).headers(self.headers);
        if let Some(body) = self.body {
            request = request.body(body);
        }
        let exchange = format!("{} {}", self.method, self.path);
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await?.to_vec();
        let start = String::from_utf8_lossy(&body[..body.len().min(2_000)]).into_owned();
        let exchange = format!("{exchange}: {status}\n{headers:#?}\n{start}");

        let path = self.path.split('?').next().unwrap_or_default();
        if ["/payment/", "/api/public/", "/panel/"].iter().any(|part| path.contains(part)) {
            let text = format!("{headers:?}\n{}", String::from_utf8_lossy(&body));
            self.api.seen.lock().expect("no holder panics").push((path.to_owned(), text));
        }
        let mut faults = self.api.contract.faults(&self.method, &self.path, status, &headers, &body);
        // The contract has two answers that say nothing, whatever went wrong.
        let mute = status == 500 && (self.path.contains("/oauth2/callback") || self.path.starts_with("/task/"));
        let no_problem = mute || self.method == Method::HEAD;
        faults.extend(common_faults(self.api.base_url(), no_problem, status, &headers, &body));
        if mute && body != b"{}" {
            faults.push("the body of a failed callback or task is not {}".to_owned());
        }
        assert!(faults.is_empty(), "the answer breaks the contract: {faults:#?}\n{exchange}");
        Ok(ApiResponse { exchange, status, headers, body })
    }
}

impl ApiResponse {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.exchange))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap_or_else(|_| panic!("not UTF-8: {}", self.exchange))
    }

    /// A header's value, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The contract's promises for every answer.
fn common_faults(base_url: &str, no_problem: bool, status: u16, headers: &HeaderMap, body: &[u8]) -> Vec<String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut faults = Vec::new();
    if header("service-version") != "2.0" {
        faults.push("Service-Version is not 2.0".to_owned());
    }
    let request_id = header("x-request-id");
    if !is_uuid(request_id) {
        faults.push(format!("X-Request-Id is no UUID: {request_id}"));
    }
    for (name, value) in [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
        if header(name) != value {
            faults.push(format!("{name} is not {value}"));
        }
    }
    if header("content-type").starts_with("text/html") {
        page_faults(header("content-security-policy"), &mut faults);
    }
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return faults;
    };
    time_faults(&body, &mut faults);
    if status >= 400 && !no_problem {
        problem_faults(base_url, status, request_id, &body, &mut faults);
    }
    faults
}

/// What every page has: it loads and runs nothing, and stands in no frame.
fn page_faults(policy: &str, faults: &mut Vec<String>) {
    let directives: Vec<&str> = policy.split(';').map(str::trim).collect();
    for needed in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"] {
        if !directives.contains(&needed) {
            faults.push(format!("a page's Content-Security-Policy lacks {needed}: {policy}"));
        }
    }
    if policy.contains("script-src") {
        faults.push(format!("a page may run something: {policy}"));
    }
}

fn problem_faults(base_url: &str, status: u16, request_id: &str, body: &Value, faults: &mut Vec<String>) {
    let mut members: Vec<&str> = body.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    members.retain(|name| !name.starts_with("error"));
    members.sort_unstable();
    if members != ["detail", "instance", "properties", "status", "title", "type"] {
        faults.push(format!("a Problem has other members: {members:?}"));
    }
    if body["status"] != status {
        faults.push("a Problem's status is not the response's".to_owned());
    }
    if body["instance"] != format!("urn:uuid:{request_id}") {
        faults.push("a Problem's instance is not the request's id".to_owned());
    }
    if !body["type"].as_str().is_some_and(|url| url.starts_with(&format!("{base_url}/problems/"))) {
        faults.push("a Problem's type is not an address of this service".to_owned());
    }
}

/// Times are in UTC with milliseconds; what publishers say in `data` is theirs.
fn time_faults(value: &Value, faults: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| *name != "data") {
                let is_day = name == "lastUsedDate"; // of a credential; not even its owner needs to know more
                let is_time = name.ends_with("Date") && !is_day || name == "lastUpdate" || name == "timestamp";
                // openapi.yaml judges values that are no texts; the served document has members of these names, too.
                if is_time && member.as_str().is_some_and(|text| !is_timestamp(text)) {
                    faults.push(format!("{name} is no time as the contract writes them: {member}"));
                }
                time_faults(member, faults);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| time_faults(item, faults)),
        _ => {}
    }
}

fn is_timestamp(text: &str) -> bool {
    fits(text, "0000-00-00T00:00:00.000Z", |byte| byte.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    fits(text, "00000000-0000-0000-0000-000000000000", |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text has the form of a model, in which a zero stands for each byte that may vary.
fn fits(text: &str, model: &str, varies: fn(u8) -> bool) -> bool {
    text.len() == model.len()
        && text.bytes().zip(model.bytes()).all(|(byte, model)| if model == b'0' { varies(byte) } else { byte == model })
}

/// `application/x-www-form-urlencoded`, everything but letters and digits escaped.
fn form_encoded(parameters: &[(&str, &str)]) -> String {
    let encoded = |text: &str| -> String {
        text.bytes()
            .map(
                |byte| {
                    if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
                },
            )
            .collect()
    };
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}
