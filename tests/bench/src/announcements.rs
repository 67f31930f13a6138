//! A queue for a function that is measured alone: it receives the function's messages, counts its calls, and forwards
//! the messages in Lambda's format. <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderName, header::CONTENT_TYPE},
    routing::post,
};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// The queue's name in its ARN and its URL.
const NAME: &str = "quick";

/// An emulated queue.
pub struct Announcements {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    messages: Mutex<VecDeque<Value>>,
    calls: AtomicU64,
}

impl Announcements {
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let service = Router::new().route("/", post(answer)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, service).await });
        Ok(Self { address, shared })
    }

    /// The variables that contain the queues' URLs.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        let address = |name: &str| format!("http://{}/000000000000/{name}", self.address);
        [("QUEUE_URL", address(NAME)), ("SLOW_QUEUE_URL", address("slow"))]
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// The next `size` messages, as the event of an invocation.
    pub fn batch(&self, size: usize) -> Result<String, String> {
        let mut messages = self.shared.messages.lock().expect("no holder panics");
        if messages.len() < size {
            return Err(format!("{size} messages are needed, but the queue has {}", messages.len()));
        }
        Ok(json!({ "Records": messages.drain(..size).collect::<Vec<_>>() }).to_string())
    }
}

/// A response in SQS's JSON protocol.
type Answer = ([(HeaderName, &'static str); 1], String);

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, request: Bytes) -> Answer {
    let request: Value = serde_json::from_slice(&request).unwrap_or_default();
    shared.calls.fetch_add(1, Ordering::Relaxed);
    let operation = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let entries = request["Entries"].as_array().cloned().unwrap_or_default();
    if operation == "AmazonSQS.SendMessageBatch" {
        shared.messages.lock().expect("no holder panics").extend(entries.iter().map(record));
    }
    let taken = |entry: &Value| json!({ "Id": entry["Id"], "MessageId": entry["Id"], "MD5OfMessageBody": "" });
    let body = json!({ "Successful": entries.iter().map(taken).collect::<Vec<_>>(), "Failed": [] });
    ([(CONTENT_TYPE, "application/x-amz-json-1.0")], body.to_string())
}

/// A message, in the format of Lambda's event.
fn record(entry: &Value) -> Value {
    let attributes = entry["MessageAttributes"].as_object().into_iter().flatten();
    let attributes: Map<_, _> = attributes.map(|(name, value)| (name.clone(), attribute(value))).collect();
    json!({
        "messageId": entry["Id"], "receiptHandle": "bench", "body": entry["MessageBody"], "attributes": {},
        "messageAttributes": attributes, "eventSource": "aws:sqs", "awsRegion": "us-east-1",
        "eventSourceARN": format!("arn:aws:sqs:us-east-1:000000000000:{NAME}"),
    })
}

fn attribute(value: &Value) -> Value {
    let mut attribute = Map::new();
    for (sent, handed) in [("DataType", "dataType"), ("StringValue", "stringValue"), ("BinaryValue", "binaryValue")] {
        if !value[sent].is_null() {
            attribute.insert(handed.to_owned(), value[sent].clone());
        }
    }
    attribute.into()
}
