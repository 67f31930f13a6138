//! Lambda's event source mapping: receives messages from a queue, invokes the function with them, and deletes those
//! that succeed.
//!
//! The queue is in this process and can wake the pump. While the machine has idle processors, each message is passed to
//! the function immediately and alone. While it has none, the pump gathers messages for a moment or until an invocation
//! ends: one invocation with ten messages costs a fraction of ten invocations, and each message would have to wait for
//! a processor anyway.
//!
//! On Lambda, each invocation has its own processor. Here, invocations share the machine's processors, so only a few
//! may work at once: with more, every attempt would take so long that the dispatcher would consider the endpoint slow.
//! An invocation that is only waiting for slow endpoints needs no processor. After a few seconds, such an invocation
//! gives up its permit as soon as the machine has idle processors, or half a minute later at the latest.

use std::{
    collections::{BTreeMap, HashSet},
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use base::logging;
use base64::{Engine, prelude::BASE64_STANDARD};
use queue::{AttributeValue, Queues, Receive, Received};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    select,
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{self, Instant},
};

use crate::{
    aws::{ACCOUNT, REGION},
    invoke::Invoker,
    processors,
};

/// The longest wait that an SQS receive allows.
const WAIT: Duration = Duration::from_secs(20);
/// The maximum number of messages that an SQS receive returns.
const RECEIVED_AT_ONCE: usize = 10;
/// The longest that the pump gathers messages while all processors are busy.
const GATHERING: Duration = Duration::from_millis(10);

/// How many of a queue's invocations may work at once per processor.
const WORKING_PER_PROCESSOR: usize = 3;
/// The age at which an invocation may give up its permit; one with fast exchanges ends sooner.
const WORKS_FOR: Duration = Duration::from_secs(3);
/// How much longer an invocation keeps its permit on a busy machine.
const KEEPS_FOR: Duration = Duration::from_secs(30);

/// Moves messages from one queue to one function.
#[derive(Clone)]
pub struct QueuePump {
    queue: String,
    function: String,
    batch_size: usize,
    batching_window: Duration,
    reports_failures: bool,
    queues: Queues,
    invoker: Invoker,
    /// One permit for each batch that the template allows, so that messages wait on the queue, not here.
    batches: Arc<Semaphore>,
    maximum_concurrency: usize,
    /// One permit for each invocation that may work concurrently with others.
    working: Arc<Semaphore>,
    /// Notified when an invocation ends.
    ended: Arc<Notify>,
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
    /// Pumps messages from the trigger's queue to the function that declares the trigger, until the process ends.
    pub fn start(function: &str, trigger: &template::QueueTrigger, queues: Queues, invoker: Invoker) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let maximum_concurrency = trigger.maximum_concurrency.try_into().unwrap_or(Semaphore::MAX_PERMITS);
        let pump = Self {
            queue: trigger.queue.clone(),
            function: function.to_owned(),
            batch_size: trigger.batch_size.try_into().unwrap_or(RECEIVED_AT_ONCE),
            batching_window: trigger.batching_window,
            reports_failures: trigger.reports_failures,
            queues,
            invoker,
            batches: Arc::new(Semaphore::new(maximum_concurrency)),
            maximum_concurrency,
            working: Arc::new(Semaphore::new(processors * WORKING_PER_PROCESSOR)),
            ended: Arc::default(),
        };
        tokio::spawn(pump.run());
    }

    async fn run(self) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        while let Ok(permit) = Arc::clone(&self.batches).acquire_owned().await {
            if self.maximum_concurrency - self.batches.available_permits() > processors {
                // The pump continues after a timeout, too.
                let _ = time::timeout(GATHERING, self.ended.notified()).await;
            }
            let Ok(working) = Arc::clone(&self.working).acquire_owned().await else { return };
            match self.batch().await {
                Ok(messages) if messages.is_empty() => {}
                Ok(messages) => drop(tokio::spawn(self.clone().handle(messages, permit, working))),
                Err(refusal) => {
                    return tracing::error!(
                        "messages cannot be received from the queue {}: \
                                                        {refusal}",
                        self.queue
                    );
                }
            }
        }
    }

    /// Waits for messages, and then for a full batch, but no longer than the batching window.
    async fn batch(&self) -> Result<Vec<Received>, queue::Refusal> {
        let mut batch = self.receive(self.batch_size, WAIT).await?;
        let end = Instant::now() + self.batching_window;
        while !batch.is_empty() && batch.len() < self.batch_size && Instant::now() < end {
            let missing = self.batch_size - batch.len();
            batch.extend(self.receive(missing, end.saturating_duration_since(Instant::now()).min(WAIT)).await?);
        }
        Ok(batch)
    }

    async fn receive(&self, most: usize, wait: Duration) -> Result<Vec<Received>, queue::Refusal> {
        let receive = Receive { most: most.min(RECEIVED_AT_ONCE), visibility: None, wait: Some(wait) };
        self.queues.receive(&self.queue, receive).await
    }

    async fn handle(self, messages: Vec<Received>, permit: OwnedSemaphorePermit, working: OwnedSemaphorePermit) {
        let mut failed = pin!(self.failed(&messages));
        let gives_up_its_place = async {
            time::sleep(WORKS_FOR).await;
            // The permit is given up after a timeout, too.
            let _ = time::timeout(KEEPS_FOR, processors::until_idle()).await;
        };
        let failed = select! {
            failed = &mut failed => failed,
            () = gives_up_its_place => {
                drop(working);
                failed.await
            }
        };
        match failed {
            Ok(failed) => {
                let handled = messages.iter().filter(|received| !failed.contains(&received.message.id));
                for received in handled {
                    if let Err(refusal) = self.queues.delete(&self.queue, &received.receipt) {
                        tracing::warn!("a handled message could not be deleted and will be received again: {refusal}");
                    }
                }
            }
            // The messages become visible again after their visibility timeout.
            Err(reason) => tracing::warn!("{}: {reason}", self.function),
        }
        drop(permit);
        self.ended.notify_one();
    }

    /// Invokes the function with these messages. Returns the identifiers of the messages that failed, or why all of
    /// them failed.
    async fn failed(&self, messages: &[Received]) -> Result<HashSet<String>, String> {
        let records: Vec<Value> = messages.iter().map(|received| self.record(received)).collect();
        let event = json!({ "Records": records }).to_string();
        let answer = self.invoker.invoke(&self.function, event).await;
        let answer = answer.map_err(|error| logging::chain(&error))?;
        if !self.reports_failures {
            return Ok(HashSet::new());
        }
        // An empty or null response means that nothing failed.
        let answer: Option<Answer> = serde_json::from_slice(&answer)
            .map_err(|error| format!("its answer is not a list of failed messages: {error}"))?;
        let failures = answer.unwrap_or_default().batch_item_failures;
        Ok(failures.into_iter().map(|failure| failure.item_identifier).collect())
    }

    /// A message in the format of Lambda's event. <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>
    fn record(&self, received: &Received) -> Value {
        let message = &received.message;
        let attributes = message.attributes.iter().map(|(name, attribute)| {
            let mut value = json!({ "dataType": attribute.data_type, "stringListValues": [], "binaryListValues": [] });
            match &attribute.value {
                AttributeValue::Text(text) => value["stringValue"] = text.as_str().into(),
                AttributeValue::Bytes(bytes) => value["binaryValue"] = BASE64_STANDARD.encode(bytes).into(),
            }
            (name.as_str(), value)
        });
        json!({
            "messageId": message.id,
            "receiptHandle": received.receipt,
            "body": message.body,
            "attributes": received.attributes(ACCOUNT),
            "messageAttributes": attributes.collect::<BTreeMap<_, _>>(),
            "md5OfBody": message.md5,
            "eventSource": "aws:sqs",
            "eventSourceARN": self.queues.arn(&self.queue),
            "awsRegion": REGION,
        })
    }
}
