//! The part of the platform's event bus that exists on one machine: the tests pass events to the ingesting function,
//! and read the queue with rejected events.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{LONG, aws_call, invocation, queue_url, until, violations};

/// All messages received so far from the bundles' queues, by queue URL: a reader also receives other tests' messages.
static TAKEN: Mutex<BTreeMap<String, Vec<Rejected>>> = Mutex::const_new(BTreeMap::new());

/// One bundle's bus.
#[derive(Debug, Clone)]
pub struct Bus {
    env: Arc<BTreeMap<String, String>>,
}

/// A message on the queue with rejected events.
#[derive(Debug, Clone)]
pub struct Rejected {
    pub body: String,
    /// The message's attributes.
    pub attributes: BTreeMap<String, String>,
}

impl Bus {
    /// The bus of a bundle with this `service.env`.
    pub fn of(env: &Arc<BTreeMap<String, String>>) -> Self {
        Self { env: Arc::clone(env) }
    }

    /// An event with this detail, in EventBridge's format.
    pub fn event(id: &str, detail: &str) -> String {
        format!(
            r#"{{"version":"0","id":"{id}","detail-type":"waypost.local.event","source":"platform.tests","account":"000000000000","time":"2026-11-20T09:45:00Z","region":"us-east-1","resources":[],"detail":{detail}}}"#
        )
    }

    /// Passes an event to the function, as the bus does through a rule. If the table did not respond in time, tries
    /// again, as Lambda would.
    pub async fn hand_over(&self, event: impl Into<String>) -> Result<Value, String> {
        let event = event.into();
        let began = Instant::now();
        loop {
            let answer = self.hand_over_once(&event).await;
            let is_late =
                answer.as_ref().is_err_and(|fault| fault.contains("a DynamoDB request for an event from the bus"));
            if !is_late || began.elapsed() > LONG {
                return answer;
            }
        }
    }

    async fn hand_over_once(&self, event: &str) -> Result<Value, String> {
        let invoked = invocation(&self.env, "ingest-event", event).send().await;
        let answer = invoked.expect("functions can be invoked");
        let failed = !answer.status().is_success() || answer.headers().contains_key("x-amz-function-error");
        let text = answer.text().await.expect("the answer is text");
        if failed { Err(text) } else { Ok(serde_json::from_str(&text).expect("the answer is JSON")) }
    }

    /// The rejected events so far that contain this text.
    pub async fn rejected(&self, text: &str) -> Vec<Rejected> {
        let url = queue_url(&self.env, "RejectedEvents");
        let mut all = TAKEN.lock().await;
        let taken = all.entry(url.clone()).or_default();
        loop {
            let received = self.call(&url, "ReceiveMessage", json!({ "MaxNumberOfMessages": 10 })).await;
            let messages = received["Messages"].as_array().cloned().unwrap_or_default();
            for message in &messages {
                let request = json!({ "ReceiptHandle": message["ReceiptHandle"] });
                self.call(&url, "DeleteMessage", request).await;
            }
            taken.extend(messages.iter().map(Rejected::read));
            if messages.is_empty() {
                return taken.iter().filter(|rejected| rejected.body.contains(text)).cloned().collect();
            }
        }
    }

    /// Waits for the only rejected event that contains this text.
    pub async fn until_rejected(&self, text: &str) -> Rejected {
        let mut found = until(&format!("a rejected event with {text}"), LONG, async || {
            Some(self.rejected(text).await).filter(|found| !found.is_empty())
        })
        .await;
        assert_eq!(found.len(), 1, "the event was rejected once: {found:#?}");
        found.remove(0)
    }

    async fn call(&self, url: &str, operation: &str, mut request: Value) -> Value {
        request["QueueUrl"] = url.into();
        request["MessageAttributeNames"] = json!(["All"]);
        let sent = aws_call(&self.env, url, &format!("AmazonSQS.{operation}"), &request);
        let answer = sent.send().await.expect("the queue answers");
        let status = answer.status();
        let text = answer.text().await.expect("the answer is text");
        assert!(status.is_success(), "{operation}: {status}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Rejected {
    fn read(message: &Value) -> Self {
        let attributes = message["MessageAttributes"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Self {
            body: text(&message["Body"]),
            attributes: attributes.map(|(name, value)| (name.clone(), text(&value["StringValue"]))).collect(),
        }
    }

    /// The invalid values in the message's attributes.
    pub fn invalid_values(&self) -> Vec<String> {
        let violations: Value = serde_json::from_str(&self.attributes["violations"]).expect("a JSON list");
        violations.as_array().expect("a JSON list").iter().map(violations::value).collect()
    }
}
