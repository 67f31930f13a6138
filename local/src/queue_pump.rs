//! What Lambda's event source mapping does on AWS: takes messages from a queue, invokes the function with them, and
//! deletes those that it handled.
//!
//! A message is taken as soon as it is visible. Under load messages are left to gather for a few milliseconds, so that
//! one invocation handles several.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::logging;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{self, Instant},
};

use crate::{
    aws::REGION,
    invoke::Invoker,
    queues::{Queue, Received, md5, system_attributes},
    services::queue_arn,
    workers,
};

/// The least time between two batches, the first of which was not full. Shorter than anybody notices; when less comes
/// than a message in this time, nothing waits at all.
const GATHERING: Duration = Duration::from_millis(4);
/// How long one receive waits; then the next one does.
const WAIT: Duration = Duration::from_secs(20);

/// Moves messages from one queue to one function.
#[derive(Clone)]
pub struct QueuePump {
    name: String,
    queue: Arc<Queue>,
    function: String,
    batch_size: usize,
    reports_failures: bool,
    invoker: Invoker,
    /// One permit for each batch that the function can take, so that messages wait on the queue and not here.
    batches: Arc<Semaphore>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    batch_item_failures: Vec<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

impl QueuePump {
    /// A pump from this queue to the function that declares the trigger.
    pub fn new(function: &str, trigger: &deployment::QueueTrigger, queue: Arc<Queue>, invoker: Invoker) -> Self {
        Self {
            name: trigger.queue.clone(),
            queue,
            function: function.to_owned(),
            batch_size: usize::try_from(trigger.batch_size).unwrap_or(usize::MAX),
            reports_failures: trigger.reports_failures,
            invoker,
            batches: Arc::new(Semaphore::new(workers::concurrency(function))),
        }
    }

    /// Pumps until the process ends.
    pub async fn run(self) {
        let mut next = Instant::now();
        while let Ok(permit) = Arc::clone(&self.batches).acquire_owned().await {
            time::sleep_until(next).await;
            let messages = self.queue.receive(self.batch_size, WAIT, None).await;
            if messages.is_empty() {
                continue;
            }
            let full = messages.len() == self.batch_size;
            next = Instant::now() + if full { Duration::ZERO } else { GATHERING };
            tokio::spawn(self.clone().handle(messages, permit));
        }
    }

    async fn handle(self, messages: Vec<Received>, _permit: OwnedSemaphorePermit) {
        let records: Vec<Value> = messages.iter().map(|message| self.record(message)).collect();
        let event = json!({ "Records": records }).to_string();
        let failed: HashSet<String> = match self.invoker.invoke(&self.function, event).await {
            Ok(answer) if self.reports_failures => {
                // An empty answer, or null, means that nothing failed.
                let answer = serde_json::from_slice::<Option<Answer>>(&answer);
                let failures = match answer {
                    Ok(answer) => answer.unwrap_or_default().batch_item_failures,
                    Err(error) => return tracing::warn!("{} did not report in the right form: {error}", self.function),
                };
                failures.into_iter().map(|failure| failure.item_identifier).collect()
            }
            Ok(_) => HashSet::new(),
            // All of them come again when their visibility time-out is over.
            Err(error) => return tracing::warn!("{}: {}", self.function, logging::chain(&error)),
        };
        for message in messages.iter().filter(|message| !failed.contains(&message.id)) {
            self.queue.delete(&message.receipt);
        }
    }

    /// A message as Lambda puts it into an event.
    fn record(&self, message: &Received) -> Value {
        let given = message.attributes.as_ref().and_then(Value::as_object).into_iter().flatten();
        let attribute = |(name, value): (&String, &Value)| {
            let value = json!({
                "stringValue": value["StringValue"],
                "dataType": value["DataType"],
                "stringListValues": [],
                "binaryListValues": [],
            });
            (name.clone(), value)
        };
        let message_attributes: Map<String, Value> = given.map(attribute).collect();
        json!({
            "messageId": message.id,
            "receiptHandle": message.receipt,
            "body": message.body,
            "attributes": system_attributes(message),
            "messageAttributes": message_attributes,
            "md5OfBody": md5(&message.body),
            "eventSource": "aws:sqs",
            "eventSourceARN": queue_arn(&self.name),
            "awsRegion": REGION,
        })
    }
}
