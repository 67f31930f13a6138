//! SQS's JSON protocol, as far as functions and tests speak it.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Operations.html>

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::{
    body::Bytes,
    http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use md5::{Digest, Md5};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Message, Queue, Queues, Received, Settings};
use crate::aws::ACCOUNT;

/// As many messages as one call carries.
const MOST: usize = 10;
/// The longest that a receiver waits.
const LONGEST_WAIT: u64 = 20;
/// The longest delay.
const LONGEST_DELAY: u64 = 900;

/// What SQS refuses: its code, and why.
#[derive(Debug)]
struct Refusal(&'static str, String);

type Outcome = Result<Value, Refusal>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(default)]
    id: String,
    #[serde(default)]
    message_body: String,
    #[serde(default)]
    delay_seconds: Option<u64>,
    #[serde(default)]
    message_attributes: Option<Value>,
    #[serde(default)]
    message_group_id: Option<String>,
    #[serde(default)]
    receipt_handle: String,
    #[serde(default)]
    visibility_timeout: u64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Request {
    queue_url: Option<String>,
    queue_name: String,
    attributes: BTreeMap<String, String>,
    entries: Vec<Value>,
    max_number_of_messages: Option<usize>,
    wait_time_seconds: Option<u64>,
    visibility_timeout: Option<u64>,
}

/// Answers one call. `address` is what queues' addresses begin with, and `path` the request's own, which may name the queue.
pub async fn answer(queues: &Queues, address: &str, path: &str, operation: &str, body: &Bytes) -> Response {
    let answered = match serde_json::from_slice::<Request>(body) {
        Ok(request) => call(queues, address, path, operation, &request, body).await,
        Err(error) => Err(Refusal("InvalidParameterValue", error.to_string())),
    };
    let (status, body, code) = match answered {
        Ok(body) => (StatusCode::OK, body, None),
        Err(Refusal(code, why)) => {
            let kind = format!("com.amazonaws.sqs#{code}");
            (StatusCode::BAD_REQUEST, json!({ "__type": kind, "message": why }), Some(code))
        }
    };
    let mut response = (status, body.to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    if let Some(code) = code.and_then(|code| HeaderValue::try_from(format!("{code};Sender")).ok()) {
        headers.insert(HeaderName::from_static("x-amzn-query-error"), code);
    }
    response
}

async fn call(queues: &Queues, address: &str, path: &str, operation: &str, request: &Request, body: &Bytes) -> Outcome {
    let url = |name: &str| format!("{address}/{ACCOUNT}/{name}");
    if operation == "CreateQueue" {
        let attributes = request.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        queues.create(&request.queue_name, Settings::default().with(attributes));
        return Ok(json!({ "QueueUrl": url(&request.queue_name) }));
    }
    let named = request.queue_url.as_deref().unwrap_or(path).rsplit('/').next().unwrap_or_default();
    let name = if request.queue_name.is_empty() { named } else { &request.queue_name };
    let unknown = || Refusal("QueueDoesNotExist", format!("there is no queue `{name}`"));
    let queue = queues.find(name).ok_or_else(unknown)?;
    match operation {
        "GetQueueUrl" => Ok(json!({ "QueueUrl": url(name) })),
        "GetQueueAttributes" => Ok(attributes(&queue)),
        "PurgeQueue" => {
            queue.purge();
            Ok(json!({}))
        }
        "SendMessage" => send(&queue, entry(body)?),
        "SendMessageBatch" => batch(request, |entry| send(&queue, entry)),
        "ReceiveMessage" => Ok(receive(&queue, request).await),
        "DeleteMessage" => delete(&queue, &entry(body)?),
        "DeleteMessageBatch" => batch(request, |entry| delete(&queue, &entry)),
        "ChangeMessageVisibility" => hide(&queue, &entry(body)?),
        "ChangeMessageVisibilityBatch" => batch(request, |entry| hide(&queue, &entry)),
        _ => Err(Refusal("UnsupportedOperation", format!("`{operation}` is not there on one machine"))),
    }
}

fn entry(body: &[u8]) -> Result<Entry, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal("InvalidParameterValue", error.to_string()))
}

/// Does the same with every entry, and says of each what came of it.
fn batch(request: &Request, each: impl Fn(Entry) -> Outcome) -> Outcome {
    let entries: Result<Vec<Entry>, _> = request.entries.iter().map(Entry::deserialize).collect();
    let entries = entries.map_err(|error| Refusal("InvalidParameterValue", error.to_string()))?;
    if entries.is_empty() {
        return Err(Refusal("EmptyBatchRequest", "a batch needs entries".to_owned()));
    }
    if entries.len() > MOST {
        return Err(Refusal("TooManyEntriesInBatchRequest", format!("{} are more than {MOST}", entries.len())));
    }
    let ids: HashSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    if ids.len() < entries.len() {
        return Err(Refusal("BatchEntryIdsNotDistinct", "entries need ids of their own".to_owned()));
    }
    let bytes: usize = entries.iter().map(size).sum();
    if bytes > Settings::default().largest {
        return Err(Refusal("BatchRequestTooLong", format!("{bytes} bytes are more than a batch may have")));
    }
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for entry in entries {
        let id = entry.id.clone();
        match each(entry) {
            Ok(mut done) => {
                done["Id"] = id.into();
                successful.push(done);
            }
            Err(Refusal(code, why)) => {
                failed.push(json!({ "Id": id, "Code": code, "Message": why, "SenderFault": true }));
            }
        }
    }
    Ok(json!({ "Successful": successful, "Failed": failed }))
}

fn send(queue: &Queue, entry: Entry) -> Outcome {
    let bytes = size(&entry);
    if bytes > queue.settings().largest || entry.message_body.is_empty() {
        let largest = queue.settings().largest;
        return Err(Refusal("InvalidParameterValue", format!("a message has 1 to {largest} bytes, not {bytes}")));
    }
    if !texts(&entry).all(|text| text.chars().all(acceptable)) {
        return Err(Refusal("InvalidMessageContents", "a message has characters that SQS does not take".to_owned()));
    }
    if entry.delay_seconds.is_some_and(|delay| delay > LONGEST_DELAY) {
        return Err(Refusal("InvalidParameterValue", format!("a delay is at most {LONGEST_DELAY} s")));
    }
    let md5 = md5(&entry.message_body);
    let id = queue.send(Message {
        body: entry.message_body,
        attributes: entry.message_attributes,
        group: entry.message_group_id,
        delay: entry.delay_seconds.map(Duration::from_secs),
    });
    Ok(json!({ "MessageId": id, "MD5OfMessageBody": md5 }))
}

async fn receive(queue: &Queue, request: &Request) -> Value {
    let most = request.max_number_of_messages.unwrap_or(1).clamp(1, MOST);
    let wait = Duration::from_secs(request.wait_time_seconds.unwrap_or(0).min(LONGEST_WAIT));
    let received = queue.receive(most, wait, request.visibility_timeout.map(Duration::from_secs)).await;
    if received.is_empty() {
        return json!({});
    }
    let messages: Vec<Value> = received.iter().map(message).collect();
    json!({ "Messages": messages })
}

fn message(received: &Received) -> Value {
    let mut message = json!({
        "MessageId": received.id,
        "ReceiptHandle": received.receipt,
        "Body": received.body,
        "MD5OfBody": md5(&received.body),
        "Attributes": system_attributes(received),
    });
    if let Some(attributes) = &received.attributes {
        message["MessageAttributes"] = attributes.clone();
    }
    message
}

/// What the queue itself says of a message.
pub fn system_attributes(received: &Received) -> Map<String, Value> {
    let attributes = [
        ("ApproximateReceiveCount", Some(received.receives.to_string())),
        ("SentTimestamp", Some(received.sent.as_millis().to_string())),
        ("SenderId", Some(ACCOUNT.to_owned())),
        ("ApproximateFirstReceiveTimestamp", Some(received.first_received.as_millis().to_string())),
        ("MessageGroupId", received.group.clone()),
    ];
    attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

fn delete(queue: &Queue, entry: &Entry) -> Outcome {
    queue.delete(&entry.receipt_handle);
    Ok(json!({}))
}

fn hide(queue: &Queue, entry: &Entry) -> Outcome {
    let in_hand = queue.hide(&entry.receipt_handle, Duration::from_secs(entry.visibility_timeout));
    in_hand.then(|| json!({})).ok_or_else(|| Refusal("MessageNotInflight", "nobody has that message".to_owned()))
}

fn attributes(queue: &Arc<Queue>) -> Value {
    let [visible, in_hand, delayed] = queue.counts();
    let settings = queue.settings();
    json!({ "Attributes": {
        "ApproximateNumberOfMessages": visible.to_string(),
        "ApproximateNumberOfMessagesNotVisible": in_hand.to_string(),
        "ApproximateNumberOfMessagesDelayed": delayed.to_string(),
        "VisibilityTimeout": settings.visibility.as_secs().to_string(),
        "DelaySeconds": settings.delay.as_secs().to_string(),
        "MessageRetentionPeriod": settings.retention.as_secs().to_string(),
        "MaximumMessageSize": settings.largest.to_string(),
    }})
}

/// The names, types and values of the attributes that are text.
fn attribute_texts(entry: &Entry) -> impl Iterator<Item = &str> {
    let attributes = entry.message_attributes.as_ref().and_then(Value::as_object).into_iter().flatten();
    attributes.flat_map(|(name, value)| {
        let texts = [value["DataType"].as_str(), value["StringValue"].as_str(), value["BinaryValue"].as_str()];
        std::iter::once(name.as_str()).chain(texts.into_iter().flatten())
    })
}

fn texts(entry: &Entry) -> impl Iterator<Item = &str> {
    attribute_texts(entry).chain([entry.message_body.as_str()])
}

/// What counts towards SQS's limits.
fn size(entry: &Entry) -> usize {
    texts(entry).map(str::len).sum()
}

/// The characters of XML 1.0.
fn acceptable(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// The checksum of a text, as SQS writes it.
pub fn md5(text: &str) -> String {
    Md5::digest(text).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shared::{clock::SystemClock, random::SystemRandom};

    use super::*;

    async fn ask(queues: &Queues, operation: &str, request: Value) -> (StatusCode, Value) {
        let body = request.to_string().into();
        let response = answer(queues, "http://127.0.0.1:1", "/", operation, &body).await;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("all of it");
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    fn queues() -> Queues {
        Queues::new(Arc::new(SystemClock), Arc::new(SystemRandom))
    }

    #[tokio::test]
    async fn what_is_sent_is_received_once_and_deleted() {
        let queues = queues();
        let (_, made) = ask(&queues, "CreateQueue", json!({ "QueueName": "q" })).await;
        let url = &made["QueueUrl"];
        assert_eq!(url, "http://127.0.0.1:1/000000000000/q");
        let entries = json!([{"Id": "0", "MessageBody": "ü", "MessageGroupId": "g", "MessageAttributes": {"a": {"DataType": "String", "StringValue": "b"}}}, {"Id": "1", "MessageBody": "\u{1}"}]);
        let (_, sent) = ask(&queues, "SendMessageBatch", json!({ "QueueUrl": url, "Entries": entries })).await;
        assert_eq!(sent["Successful"][0]["MD5OfMessageBody"], "c03410a5204b21cd8229ff754688d743");
        assert_eq!(
            (&sent["Failed"][0]["Id"], &sent["Failed"][0]["Code"]),
            (&json!("1"), &json!("InvalidMessageContents"))
        );
        let request = json!({ "QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 1 });
        let (_, received) = ask(&queues, "ReceiveMessage", request.clone()).await;
        let message = &received["Messages"][0];
        assert_eq!((&message["Body"], &message["Attributes"]["MessageGroupId"]), (&json!("ü"), &json!("g")));
        assert_eq!(message["MessageAttributes"]["a"]["StringValue"], "b");
        let entries = json!([{"Id": "x", "ReceiptHandle": message["ReceiptHandle"]}]);
        let (status, _) = ask(&queues, "DeleteMessageBatch", json!({ "QueueUrl": url, "Entries": entries })).await;
        assert_eq!(status, StatusCode::OK);
        let (_, left) = ask(&queues, "GetQueueAttributes", json!({ "QueueUrl": url })).await;
        assert_eq!(left["Attributes"]["ApproximateNumberOfMessagesNotVisible"], "0");
    }

    #[tokio::test]
    async fn what_sqs_would_refuse_is_refused_with_its_code() {
        let queues = queues();
        queues.create("q", Settings { largest: 10, ..Settings::default() });
        let eleven: Vec<Value> = (0..11).map(|id| json!({"Id": id.to_string(), "MessageBody": "x"})).collect();
        let twins = json!([{"Id": "0", "MessageBody": "x"}, {"Id": "0", "MessageBody": "x"}]);
        for (operation, request, code) in [
            ("SendMessage", json!({"QueueUrl": "http://h/0/nobody", "MessageBody": "x"}), "QueueDoesNotExist"),
            ("SendMessage", json!({"QueueUrl": "http://h/0/q", "MessageBody": "12345678901"}), "InvalidParameterValue"),
            (
                "SendMessage",
                json!({"QueueUrl": "http://h/0/q", "MessageBody": "x", "DelaySeconds": 901}),
                "InvalidParameterValue",
            ),
            ("SendMessageBatch", json!({"QueueUrl": "http://h/0/q", "Entries": []}), "EmptyBatchRequest"),
            (
                "SendMessageBatch",
                json!({"QueueUrl": "http://h/0/q", "Entries": eleven}),
                "TooManyEntriesInBatchRequest",
            ),
            ("SendMessageBatch", json!({"QueueUrl": "http://h/0/q", "Entries": twins}), "BatchEntryIdsNotDistinct"),
            ("TagQueue", json!({"QueueUrl": "http://h/0/q"}), "UnsupportedOperation"),
        ] {
            let (status, refused) = ask(&queues, operation, request).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{operation}");
            assert_eq!(refused["__type"], format!("com.amazonaws.sqs#{code}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_waits_has_what_comes_at_once_and_what_is_delayed_in_time() {
        let queue = queues().create("q", Settings::default());
        let begun = tokio::time::Instant::now();
        let waiting = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move { queue.receive(10, Duration::from_secs(20), None).await }
        });
        tokio::task::yield_now().await;
        queue.send(Message { body: "at once".to_owned(), ..Message::default() });
        assert_eq!(waiting.await.expect("no panic").len(), 1);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        queue.send(Message { delay: Some(Duration::from_secs(3)), ..Message::default() });
        assert_eq!(queue.receive(10, Duration::from_secs(20), None).await.len(), 1);
        assert!(begun.elapsed() < Duration::from_millis(3_100));
        assert!(queue.receive(10, Duration::from_secs(1), None).await.is_empty());
    }
}
