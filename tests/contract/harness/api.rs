//! A client for the service. In every test, it checks each response against openapi.yaml and against the contract's
//! promises for all responses.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use tokio::{sync::Mutex, time::sleep};

use super::{Application, Bundle, Contract, LONG, promises::common_faults, stack::needs_bundle};

/// How long to wait before repeating a request after a 503.
const BEFORE_REPETITION: Duration = Duration::from_secs(1);

/// A client for one bundle.
#[derive(Clone)]
pub struct Api {
    /// The variables in `service.env`.
    pub env: Arc<std::collections::BTreeMap<String, String>>,
    http: reqwest::Client,
    contract: Arc<Contract>,
    tokens: Arc<Mutex<HashMap<(Application, String), String>>>,
    /// The responses so far about payments and from the panel: the path without the query, the head and the body.
    seen: Arc<std::sync::Mutex<Vec<(String, String)>>>,
}

/// A request that is being built.
#[derive(Clone)]
#[must_use]
pub struct Call {
    api: Api,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

/// A response that conforms to openapi.yaml.
#[derive(Debug)]
pub struct ApiResponse {
    /// The request's method and path, and the complete response, for messages.
    pub exchange: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Whether an earlier try got a 503 but may have been carried out.
    pub is_repetition: bool,
}

impl Api {
    /// A client for this bundle, with separate connections.
    pub fn of(bundle: &Bundle, contract: &Arc<Contract>) -> Self {
        Self::with(Arc::new(bundle.service_env()), contract)
    }

    /// A client for the service that these variables describe.
    pub fn with(env: Arc<std::collections::BTreeMap<String, String>>, contract: &Arc<Contract>) -> Self {
        Self {
            env,
            http: client(Ipv4Addr::LOCALHOST),
            contract: Arc::clone(contract),
            tokens: Arc::default(),
            seen: Arc::default(),
        }
    }

    /// This client, with another source address on the loopback interface.
    pub fn at_address(&self, address: Ipv4Addr) -> Self {
        if self.env.contains_key("API_ADDRESS") {
            needs_bundle("a gateway that passes on the source address of a request");
        }
        Self { http: client(address), ..self.clone() }
    }

    /// The service's public address.
    pub fn base_url(&self) -> &str {
        &self.env["BASE_URL"]
    }

    /// The address that receives requests for the public address.
    pub fn address(&self) -> &str {
        self.env.get("API_ADDRESS").map_or(self.base_url(), String::as_str)
    }

    /// All responses about payments and from the panel that this client and its clones received: the path, and the head
    /// with the body.
    pub fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().expect("no holder panics").clone()
    }

    /// A request with this method to this path.
    pub fn call(&self, method: &str, path: impl Into<String>) -> Call {
        let method = method.parse().expect("the tests use valid verbs");
        Call { api: self.clone(), method, path: path.into(), headers: HeaderMap::new(), body: None }
    }

    pub fn get(&self, path: impl Into<String>) -> Call {
        self.call("GET", path)
    }

    pub fn post(&self, path: impl Into<String>) -> Call {
        self.call("POST", path)
    }

    /// An access token for these scopes (for all of the application's, if none are given), issued only once.
    pub async fn token(&self, application: Application, scope: &str) -> String {
        let mut tokens = self.tokens.lock().await;
        if let Some(token) = tokens.get(&(application, scope.to_owned())) {
            return token.clone();
        }
        let token = self.new_token(application, scope).await;
        tokens.insert((application, scope.to_owned()), token.clone());
        token
    }

    /// A new access token for these scopes, for tests that revoke it.
    pub async fn new_token(&self, application: Application, scope: &str) -> String {
        let mut form = vec![("grant_type", "client_credentials")];
        if !scope.is_empty() {
            form.push(("scope", scope));
        }
        let answer = self.as_client("/oauth2/token", application, &form).expect(200).await;
        answer.json()["access_token"].as_str().expect("openapi.yaml says so").to_owned()
    }

    /// An application's request to the token issuer, with the credentials in the form.
    pub fn as_client(&self, path: &str, application: Application, parameters: &[(&str, &str)]) -> Call {
        let (id, secret) = application.variables();
        let credentials = [("client_id", self.env[id].as_str()), ("client_secret", self.env[secret].as_str())];
        self.post(path).form(&[parameters, &credentials].concat())
    }
}

/// How long the client keeps an idle connection: less than the gateway does, so that no request arrives just as the
/// gateway closes the connection.
const IDLE: Duration = Duration::from_secs(5);

fn client(address: Ipv4Addr) -> reqwest::Client {
    let plain =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).pool_idle_timeout(IDLE);
    plain.local_address(IpAddr::V4(address)).build().expect("a client without TLS needs nothing")
}

impl Call {
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name: HeaderName = name.parse().expect("the tests use valid header names");
        let value = HeaderValue::from_bytes(value.as_ref()).expect("the tests use valid header values");
        self.headers.append(name, value);
        self
    }

    /// Adds a separate idempotency key, so that repeating the request after a 503 has no second effect.
    pub fn once(self) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        self.header("idempotency-key", format!("call-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Adds a form as the body.
    pub fn form(self, parameters: &[(&str, &str)]) -> Self {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        self.body("application/x-www-form-urlencoded", form)
    }

    /// Adds a body with this content type.
    pub fn body(self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.header("content-type", content_type).untyped_body(body)
    }

    /// Adds a body without a content type.
    pub fn untyped_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends the request as [`Self::answered`] does; asserts this status (other than 503).
    pub async fn expect(self, status: u16) -> ApiResponse {
        let answer = if status == 503 { self.send().await } else { self.answered().await };
        assert!(answer.status == status, "expected {status}: {}", answer.exchange);
        answer
    }

    /// Sends the request. If the machine stalls for seconds, the service responds with 503 and asks the client to try
    /// again, so this method repeats the request. Most requests that get a 503 have had no effect.
    pub async fn answered(self) -> ApiResponse {
        let began = Instant::now();
        let mut is_repetition = false;
        loop {
            let answer = self.clone().send().await;
            if !answer.asks_for_repetition() || began.elapsed() > LONG {
                return ApiResponse { is_repetition, ..answer };
            }
            is_repetition = true;
            sleep(BEFORE_REPETITION).await;
        }
    }

    /// Sends the request; asserts that the response is a Problem of this kind.
    pub async fn refused(self, status: u16, kind: &str) -> Value {
        let answer = self.expect(status).await;
        let problem = answer.json();
        assert!(problem["kind"] == kind, "expected {kind}: {}", answer.exchange);
        problem
    }

    /// Sends the request; asserts that the response conforms to openapi.yaml.
    pub async fn send(self) -> ApiResponse {
        let exchange = format!("{} {}", self.method, self.path);
        self.attempt().await.unwrap_or_else(|error| panic!("{exchange}: no response: {error:?}"))
    }

    /// Sends the request to a service that may have ended; asserts that any response conforms to openapi.yaml.
    pub async fn attempt(self) -> Result<ApiResponse, reqwest::Error> {
        let url = format!("{}{}", self.api.address(), self.path);
        let mut request = self.api.http.request(self.method.clone(), url).headers(self.headers);
        if let Some(body) = self.body {
            request = request.body(body);
        }
        let exchange = format!("{} {}", self.method, self.path);
        let response = request.send().await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.bytes().await?.to_vec();
        let start = String::from_utf8_lossy(&body[..body.len().min(2_000)]).into_owned();
        let exchange = format!("{exchange}: {status}\n{headers:#?}\n{start}");

        let path = self.path.split('?').next().unwrap_or_default();
        if ["/payment/", "/api/public/", "/panel/"].iter().any(|part| path.contains(part)) {
            let text = format!("{headers:?}\n{}", String::from_utf8_lossy(&body));
            self.api.seen.lock().expect("no holder panics").push((path.to_owned(), text));
        }
        let mut faults = self.api.contract.faults(&self.method, &self.path, status, &headers, &body);
        // The callback and the tasks respond with 500 and either an empty object or a page, not with a Problem.
        let mute = status == 500 && (self.path.contains("/oauth2/callback") || self.path.starts_with("/task/"));
        let is_json = headers.get("content-type").is_some_and(|value| value == "application/json");
        let is_rpc = path == "/mcp" && is_json; // a JSON-RPC error
        let no_problem = mute || is_rpc || self.method == Method::HEAD;
        faults.extend(common_faults(self.api.base_url(), no_problem, status, &headers, &body));
        let is_page = headers.get("content-type").is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
        if mute && !is_page && body != b"{}" {
            faults.push("the body of a failed callback or task is not {}".to_owned());
        }
        assert!(faults.is_empty(), "the response violates the contract: {faults:#?}\n{exchange}");
        Ok(ApiResponse { exchange, status, headers, body, is_repetition: false })
    }
}

impl ApiResponse {
    /// Whether this is a 503, or a response to an agent that reports one.
    pub fn asks_for_repetition(&self) -> bool {
        let reported = || {
            let message: Value = serde_json::from_slice(&self.body).unwrap_or_default();
            let (result, error) = (&message["result"], &message["error"]["data"]);
            let text = result["content"][0]["text"].as_str().filter(|_| result["isError"] == true);
            let problem: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            problem["status"] == 503 || error["status"] == 503
        };
        self.status == 503 || self.status == 200 && self.exchange.starts_with("POST /mcp:") && reported()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.exchange))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap_or_else(|_| panic!("not UTF-8: {}", self.exchange))
    }

    /// A header's value, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
