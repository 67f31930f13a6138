//! A proxy in front of the table that counts requests and the capacity units that DynamoDB would bill. It adds
//! `ReturnConsumedCapacity` to each request and sums the capacity units used by the table and its indexes.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ConsumedCapacity.html>

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{AUTHORIZATION, CONTENT_LENGTH, HOST},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use fakes::AwsCaller;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub struct CountingProxy {
    pub address: String,
    shared: Arc<Shared>,
}

struct Shared {
    client: Client<HttpConnector, Full<Bytes>>,
    table: OnceLock<String>,
    caller: OnceLock<AwsCaller>,
    counted: Mutex<Counted>,
}

/// The counts for each operation.
pub type Counted = BTreeMap<String, Count>;

/// The requests and the cost of one operation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    pub requests: u64,
    /// The number of statements, keys or items in the requests.
    pub parts: u64,
    pub writes: f64,
    pub reads: f64,
}

impl CountingProxy {
    /// Starts a proxy, which does not respond until it knows the table's address.
    pub async fn start() -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let client = Client::builder(TokioExecutor::new()).build_http();
        let shared =
            Arc::new(Shared { client, table: OnceLock::new(), caller: OnceLock::new(), counted: Mutex::default() });
        let service = Router::new().route("/", post(forward)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, service).await });
        Ok(Self { address, shared })
    }

    /// Sets the table's current or future address; further calls have no effect.
    pub fn forward_to(&self, table: &str) {
        self.shared.table.get_or_init(|| table.to_owned());
    }

    /// Sets the credentials for signing requests that the proxy has changed, since the original signatures are no
    /// longer valid. Without credentials, the proxy does not change requests and counts no capacity units.
    pub fn sign_as(&self, caller: AwsCaller) {
        self.shared.caller.get_or_init(|| caller);
    }

    /// The counts since the previous call.
    pub fn take(&self) -> Counted {
        std::mem::take(&mut *self.shared.counted())
    }
}

impl Shared {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().expect("no holder panics")
    }

    async fn ask(&self, mut headers: HeaderMap, body: Bytes) -> Result<(StatusCode, HeaderMap, Bytes), Box<dyn Error>> {
        let table = self.table.get().ok_or("there is no table yet")?;
        headers.remove(CONTENT_LENGTH);
        let body = match self.caller.get() {
            None => body,
            Some(caller) => {
                let mut request: Value = serde_json::from_slice(&body).unwrap_or_default();
                request["ReturnConsumedCapacity"] = json!("INDEXES");
                let body = request.to_string();
                for name in [AUTHORIZATION.as_str(), HOST.as_str(), "x-amz-date"] {
                    headers.remove(name);
                }
                let signed = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
                for (name, value) in caller.signature("POST", table, signed, body.as_bytes()) {
                    headers.insert(name, value.parse()?);
                }
                body.into()
            }
        };
        let mut request = Request::post(table).body(Full::from(body))?;
        *request.headers_mut() = headers;
        let answer = self.client.request(request).await.map_err(Box::new)?;
        let (parts, body) = answer.into_parts();
        Ok((parts.status, parts.headers, body.collect().await?.to_bytes()))
    }
}

async fn forward(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let operation = headers.get("x-amz-target").and_then(|target| target.to_str().ok()?.rsplit('.').next());
    let operation = operation.unwrap_or_default().to_owned();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answered = shared.ask(headers, body).await.ok();
    let Some((status, mut headers, body)) = answered else { return StatusCode::BAD_GATEWAY.into_response() };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let units = units(&answer["ConsumedCapacity"]);
    let mut counted = shared.counted();
    let count = counted.entry(name(&operation, &request)).or_default();
    count.requests += 1;
    count.parts += parts(&request);
    let unit = if reads(&operation, &request) { &mut count.reads } else { &mut count.writes };
    *unit += units;
    drop(counted);
    headers.remove(CONTENT_LENGTH);
    // The body is unchanged, so its checksum still matches.
    (status, headers, Body::from(body)).into_response()
}

/// The units used by all tables. A table's units include those of its indexes.
fn units(consumed: &Value) -> f64 {
    match consumed {
        Value::Array(tables) => tables.iter().map(units).sum(),
        table => table["CapacityUnits"].as_f64().unwrap_or_default(),
    }
}

fn statements(request: &Value) -> impl Iterator<Item = &str> {
    let several = request["Statements"].as_array().into_iter().flatten();
    several.chain([request]).filter_map(|statement| statement["Statement"].as_str())
}

fn reads(operation: &str, request: &Value) -> bool {
    let selects = statements(request).next().is_some_and(|statement| statement.trim_start().starts_with("SELECT"));
    selects || ["GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"].contains(&operation)
}

fn parts(request: &Value) -> u64 {
    let list = |value: &Value| value.as_array().map_or(0, Vec::len);
    let tables = request["RequestItems"].as_object().into_iter().flatten();
    let items = tables.map(|(_, table)| list(table).max(list(&table["Keys"]))).sum::<usize>();
    (list(&request["Statements"]) + list(&request["TransactItems"]) + items).max(1).try_into().unwrap_or(u64::MAX)
}

/// The operation's name, with its statements' verbs or its query's index.
fn name(operation: &str, request: &Value) -> String {
    let mut verbs: Vec<&str> =
        statements(request).filter_map(|statement| statement.split_whitespace().next()).collect();
    verbs.sort_unstable();
    verbs.dedup();
    match (request["IndexName"].as_str(), verbs.is_empty()) {
        (Some(index), _) => format!("{operation} {index}"),
        (None, false) => format!("{operation} {}", verbs.join("+")),
        (None, true) => operation.to_owned(),
    }
}
