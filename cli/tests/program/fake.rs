//! A fake service with tokens, one feed and one delivery, and an address to forward events to.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

pub const WEBHOOK: &str = "whk_1";
pub const SECRET: &str = "whsec_c2VjcmV0";
pub const EVENT_TIME: &str = "2026-11-20T09:45:00.123Z";
pub const PANEL_LINK: &str = "http://localhost/panel#code=hotel/plk_1/c2VjcmV0";

/// A request that the fake has received.
#[derive(Debug, Clone)]
pub struct Received {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[derive(Default)]
struct Shared {
    received: Mutex<Vec<Received>>,
    /// Responses by path, each of which replaces the usual one once.
    answers: Mutex<HashMap<String, VecDeque<(u16, Value)>>>,
    /// The feed's unread pages.
    feed: Mutex<VecDeque<Value>>,
}

/// The fake; it ends when it is dropped.
pub struct Fake {
    pub address: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test panics with it")
}

/// A Problem from the service.
pub fn problem(status: u16, kind: &str, detail: &str) -> (u16, Value) {
    let problem = json!({
        "type": format!("http://localhost/problems/{kind}"), "kind": kind, "title": "t", "status": status, "detail": detail,
        "instance": "urn:uuid:0c61d53d-c0bf-42ba-a39c-a9d72588fc86", "properties": { "requiredScope": "integrations.write" },
    });
    (status, problem)
}

impl Fake {
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = format!("http://{}", listener.local_addr().expect("it listens"));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { address, shared, serving }
    }

    /// Replaces the next response at a path.
    pub fn on(&self, path: &str, answer: (u16, Value)) {
        locked(&self.shared.answers).entry(path.to_owned()).or_default().push_back(answer);
    }

    /// Adds deliveries with these bodies to the feed, as one page.
    pub fn deliver(&self, bodies: &[&str]) {
        let deliveries = bodies.iter().enumerate().map(|(number, body)| {
            json!({
                "deliveryIdentifier": format!("dlv_{number}"), "attemptNumber": 1, "receipt": format!("rcp_{number}"),
                "visibleFrom": "2026-11-20T09:45:00.123Z", "body": body,
                "headers": { "content-type": "application/json", "webhook-id": "evt_1", "webhook-signature": "v1,abc=" },
            })
        });
        locked(&self.shared.feed).push_back(json!({ "items": deliveries.collect::<Vec<_>>() }));
    }

    /// The requests to a path so far.
    pub fn received(&self, path: &str) -> Vec<Received> {
        locked(&self.shared.received).iter().filter(|received| received.path == path).cloned().collect()
    }

    /// Waits for this many requests to a path.
    pub async fn until(&self, path: &str, count: usize) -> Vec<Received> {
        // Five minutes, enough even for a slow machine.
        for _ in 0..6_000 {
            let received = self.received(path);
            if received.len() >= count {
                return received;
            }
            #[expect(clippy::disallowed_methods, reason = "the program is another process")]
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("waited in vain for {count} requests to {path}: {:?}", locked(&self.shared.received));
    }

    pub fn everything(&self) -> Vec<Received> {
        locked(&self.shared.received).clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    let query = uri.query().unwrap_or_default().to_owned();
    let received = Received { method, path: path.clone(), query, headers, body };
    locked(&shared.received).push(received.clone());
    let replaced = locked(&shared.answers).get_mut(&path).and_then(VecDeque::pop_front);
    let (status, value) = replaced.unwrap_or_else(|| usual(&shared, &received));
    let status = StatusCode::from_u16(status).expect("a status");
    let mut response = (status, [("content-type", "application/json")], value.to_string()).into_response();
    if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status) {
        response.headers_mut().insert("retry-after", HeaderValue::from_static("1"));
    }
    response
}

fn usual(shared: &Shared, received: &Received) -> (u16, Value) {
    let path = received.path.strip_prefix("/api/managing-entity/hotel").unwrap_or(&received.path);
    match (received.method.as_str(), path) {
        ("GET", "/.well-known/oauth-protected-resource") => {
            let host = received.header("host");
            (200, json!({ "authorization_servers": [format!("http://{host}/issuer")] }))
        }
        ("POST", "/issuer/oauth2/token") => {
            let scope = "integrations.read integrations.write integrations.remove";
            (200, json!({ "access_token": "a.b.c", "token_type": "Bearer", "expires_in": 3600, "scope": scope }))
        }
        ("POST", "/issuer/oauth2/introspect") => {
            let scope = "integrations.read integrations.write integrations.remove";
            let rights = json!({
                "active": true, "scope": scope, "client_id": "app", "managing_entities": ["hotel"], "may_publish": false,
                "exp": 1_795_171_500,
            });
            (200, rights)
        }
        ("GET", "/webhook/event/list") => {
            let kind = |label: &str, value: &str| json!({ "label": label, "value": value });
            (200, json!([kind("Booking created", "booking.created"), kind("Payment refunded", "payment.refunded")]))
        }
        ("GET", "/webhook/event/type/booking.created") => {
            let details = json!({
                "label": "Booking created", "value": "booking.created", "description": "A booking was made.", "schema": {},
                "samples": [{ "nights": 3 }],
            });
            (200, details)
        }
        ("POST", "/webhook/event") => (202, published()),
        ("GET", "/webhook/event") => (200, json!({ "items": [] })),
        ("GET", "/webhook/event/evt_1") => (200, event()),
        ("POST", "/webhook/event/filter/check") => {
            let tried = json!({ "id": "evt_1", "type": "booking.created", "timestamp": EVENT_TIME, "matches": false });
            (200, json!({ "eventsRead": 1, "matchCount": 0, "countIsExact": true, "items": [tried] }))
        }
        ("POST", "/panel/link") => (201, json!({ "id": "plk_1", "url": PANEL_LINK })),
        ("GET", "/webhook/list") => (200, json!([webhook("active")])),
        ("POST", "/webhook") => {
            let mut created = webhook("active");
            created["signingSecret"] = json!(SECRET);
            (201, created)
        }
        ("GET" | "PATCH", "/webhook/whk_1") => (200, webhook("active")),
        ("DELETE", "/webhook/whk_1") => (200, json!({ "id": WEBHOOK, "success": true, "message": "It is removed." })),
        ("POST", "/webhook/whk_1/secret") => {
            (200, json!({ "signingSecret": SECRET, "previousSecretExpiresDate": "2026-11-21T09:45:00.123Z" }))
        }
        ("POST", "/webhook/whk_1/pause") => (200, webhook("paused")),
        ("POST", "/webhook/whk_1/resume") => (200, webhook("failing")),
        ("POST", "/webhook/whk_1/recover") => {
            (202, json!({ "count": 12, "countIsExact": true, "failed": 10, "waiting": 2 }))
        }
        ("POST", "/webhook/whk_1/replay") => (202, json!({ "count": 7, "countIsExact": true, "dryRun": true })),
        ("POST", "/webhook/whk_1/test") => (202, json!({ "deliveryIdentifier": "dlv_9" })),
        ("POST", "/webhook/whk_1/feed/read") => {
            (200, locked(&shared.feed).pop_front().unwrap_or_else(|| json!({ "items": [] })))
        }
        ("POST", "/webhook/whk_1/feed/ack") => {
            let body = received.json();
            let outcome = if body["confirmed"].is_null() { "failed" } else { "confirmed" };
            (200, json!({ "items": [{ "receipt": "r", "deliveryIdentifier": "dlv", "outcome": outcome }] }))
        }
        ("GET", "/webhook/delivery/list") => (200, page(received)),
        ("GET", "/webhook/delivery/dlv_1") => (200, delivery()),
        ("POST", "/webhook/delivery/dlv_1/cancel") => (200, delivery()),
        ("POST", "/webhook/delivery/dlv_1/resend") => (202, due()),
        ("POST", "/hooks") => (200, json!({})),
        _ => problem(404, "not-found", "There is nothing here."),
    }
}

fn published() -> Value {
    let delivery = json!({ "deliveryIdentifier": "dlv_1", "webhookIdentifier": WEBHOOK });
    json!({ "eventIdentifier": "evt_1", "kept": true, "deliveries": [delivery] })
}

pub fn webhook(state: &str) -> Value {
    json!({
        "id": WEBHOOK, "name": "Booking sync", "deliveryState": state, "eventUrl": "https://hooks.example.com/waypost",
        "eventList": ["booking.*"], "order": "none", "payload": "full", "signature": "hmac", "headers": {},
        "createdDate": EVENT_TIME, "lastUpdate": EVENT_TIME, "enabled": true,
    })
}

/// An event with two deliveries, one of them to a webhook that was removed.
fn event() -> Value {
    let delivery = |id: &str, webhook: &str| json!({ "id": id, "status": "delivered", "webhookIdentifier": webhook });
    json!({
        "id": "evt_1", "type": "booking.created", "subject": "B-1", "timestamp": EVENT_TIME, "data": { "nights": 3 },
        "managingEntityIdentifier": "hotel", "deliveries": [delivery("dlv_1", WEBHOOK), delivery("dlv_2", "whk_0")],
    })
}

fn page(received: &Received) -> Value {
    let listed = |id: &str, status: &str, last: Value| {
        json!({
            "id": id, "webhookIdentifier": WEBHOOK, "type": "booking.created", "subject": "B-1\u{1b}[31m", "status": status, "attemptCount": 2,
            "lastHttpStatus": last, "createdDate": "2026-11-20T09:45:00.123Z", "lastUpdate": "2026-11-20T09:45:10.499Z",
            "eventIdentifier": "evt_1",
        })
    };
    if received.query.contains("cursor=more") {
        json!({ "items": [listed("dlv_2", "failed", json!(410))] })
    } else {
        json!({ "items": [listed("dlv_1", "retrying", json!(500))], "nextCursor": "more" })
    }
}

fn delivery() -> Value {
    json!({
        "id": "dlv_1", "type": "booking.created", "status": "delivered", "url": "https://hooks.example.com",
        "webhookIdentifier": "whk_1", "createdDate": "2026-11-20T09:45:00.123Z", "attemptCount": 1,
        "eventIdentifier": "evt_1",
        "attempts": [{
            "attemptNumber": 1, "attemptDate": "2026-11-20T09:45:00.158Z", "durationMs": 87, "httpStatus": 204,
        }],
        "event": { "id": "evt_1", "type": "booking.created", "data": { "nights": 3 } },
    })
}

/// The delivery before its attempt.
fn due() -> Value {
    let mut due = delivery();
    due["status"] = json!("pending");
    due["attemptCount"] = json!(0);
    due["attempts"] = json!([]);
    due
}
