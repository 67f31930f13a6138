//! The event source mapping of Lambda: takes messages from a queue, invokes the function with them, and deletes those that it
//! handled.
//!
//! The local SQS looks for new messages only every 100 ms while a receiver waits, so waiting receivers are for delayed
//! messages. A message that a function has just sent is fetched at once: the invoker rings when a function that knows the
//! queue has answered. Every call costs the local SQS a third of a millisecond of its one thread, whether for one message or
//! for ten, so under load messages gather for a while: one call then takes ten, and one more deletes them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use aws_sdk_sqs::{
    Client,
    types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName},
};
use base::logging;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use storage::aws::CallError;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc},
    time::{self, Instant},
};

use crate::{
    aws::{REGION, queue_arn},
    invoke::Invoker,
};

/// Receivers that wait, each looking 25 ms after the one before: a message that becomes visible waits 13 ms on average.
const WAITING_RECEIVERS: u32 = 4;
/// How often the local SQS looks for a receiver that waits.
const LOOK: Duration = Duration::from_millis(100);
/// The longest that SQS lets a receiver wait.
const WAIT_SECONDS: i32 = 20;
/// The pause after a receive that took fewer messages than it could: so many times as long as the receive took, within these
/// bounds. A receive is short while the machine is idle.
const GATHERING: (u32, Duration, Duration) = (3, Duration::from_millis(4), Duration::from_millis(20));
/// As many messages as one call deletes, and how long the first of them waits for others.
const DELETED_AT_ONCE: usize = 10;
const COMPANY: Duration = Duration::from_millis(50);
/// The pause after a receive that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Moves messages from one queue to one function.
#[derive(Clone)]
pub struct QueuePump {
    queue: String,
    url: String,
    function: String,
    batch_size: i32,
    reports_failures: bool,
    client: Client,
    invoker: Invoker,
    /// Rings when there may be new messages on the queue.
    bell: Arc<Notify>,
    /// One permit for each batch that the template allows, so that messages wait on the queue and not here.
    batches: Arc<Semaphore>,
    /// Receipts of messages that were handled.
    handled: mpsc::UnboundedSender<String>,
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
    /// Pumps from the queue at `url` to the function that declares the trigger, until the process ends.
    pub fn start(function: &str, trigger: &template::QueueTrigger, url: String, client: Client, invoker: Invoker) {
        let (handled, receipts) = mpsc::unbounded_channel();
        let pump = Self {
            queue: trigger.queue.clone(),
            url,
            function: function.to_owned(),
            batch_size: i32::try_from(trigger.batch_size).unwrap_or(i32::MAX),
            reports_failures: trigger.reports_failures,
            client,
            bell: invoker.bell(),
            invoker,
            batches: Arc::new(Semaphore::new(trigger.maximum_concurrency.try_into().unwrap_or(Semaphore::MAX_PERMITS))),
            handled,
        };
        for receiver in 0..WAITING_RECEIVERS {
            tokio::spawn(pump.clone().receive_waiting(LOOK / WAITING_RECEIVERS * receiver));
        }
        tokio::spawn(pump.clone().delete_handled(receipts));
        tokio::spawn(pump.receive_at_bell());
    }

    async fn receive_waiting(self, offset: Duration) {
        time::sleep(offset).await;
        while let Some(messages) = self.receive(WAIT_SECONDS).await {
            if messages == self.batch_size {
                // There may be many more, for which the bell does not ring.
                self.bell.notify_one();
            }
            if messages > 0 {
                // While there is work, a receiver that waits would only take parts of batches away.
                time::sleep(LOOK).await;
            }
        }
    }

    async fn receive_at_bell(self) {
        let bell = Arc::clone(&self.bell);
        let (times, least, most) = GATHERING;
        loop {
            bell.notified().await;
            let begun = Instant::now();
            match self.receive(0).await {
                None => return,
                // There may be more, so that there is no pause.
                Some(messages) if messages == self.batch_size => bell.notify_one(),
                Some(_) => time::sleep_until(begun + (begun.elapsed() * times).clamp(least, most)).await,
            }
        }
    }

    /// Receives once, and starts a batch with the messages. Returns their number; none at the end.
    async fn receive(&self, wait: i32) -> Option<i32> {
        let permit = Arc::clone(&self.batches).acquire_owned().await.ok()?;
        let received = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(self.batch_size)
            .wait_time_seconds(wait)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await;
        let messages = match received {
            Ok(received) => received.messages.unwrap_or_default(),
            Err(error) => {
                tracing::warn!("the queue {} did not answer: {}", self.queue, CallError::of(&error));
                time::sleep(PAUSE).await;
                Vec::new()
            }
        };
        let count = i32::try_from(messages.len()).unwrap_or(i32::MAX);
        if count > 0 {
            tokio::spawn(self.clone().handle(messages, permit));
        }
        Some(count)
    }

    async fn handle(self, messages: Vec<Message>, _permit: OwnedSemaphorePermit) {
        let records: Vec<Value> = messages.iter().map(|message| self.record(message)).collect();
        let event = json!({ "Records": records }).to_string();
        let failed = match self.invoker.invoke(&self.function, event).await {
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
            // The messages come again after their visibility time-out.
            Err(error) => return tracing::warn!("{}: {}", self.function, logging::chain(&error)),
        };
        let handled = messages.iter().filter(|message| !failed.contains(message.message_id().unwrap_or_default()));
        for receipt in handled.filter_map(Message::receipt_handle) {
            // The receiver is dropped only with the process.
            let _ = self.handled.send(receipt.to_owned());
        }
    }

    /// Deletes the messages that invocations handled, as many in a call as it takes.
    async fn delete_handled(self, mut handled: mpsc::UnboundedReceiver<String>) {
        while let Some(first) = handled.recv().await {
            let mut receipts = vec![first];
            let company = async {
                while receipts.len() < DELETED_AT_ONCE {
                    receipts.extend(handled.recv().await);
                }
            };
            // The messages are invisible for minutes, so that a short wait does no harm.
            let _ = time::timeout(COMPANY, company).await;
            self.delete(receipts).await;
        }
    }

    async fn delete(&self, receipts: Vec<String>) {
        let entries: Vec<_> = receipts
            .into_iter()
            .enumerate()
            .filter_map(|(index, receipt)| {
                let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string());
                entry.receipt_handle(receipt).build().ok()
            })
            .collect();
        let deleted = self.client.delete_message_batch().queue_url(&self.url).set_entries(Some(entries)).send().await;
        if let Err(error) = deleted {
            tracing::warn!("handled messages could not be deleted and come again: {}", CallError::of(&error));
        }
    }

    /// A message as Lambda puts it into an event.
    fn record(&self, message: &Message) -> Value {
        let attributes: Map<String, Value> = message
            .attributes()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str().to_owned(), value.as_str().into()))
            .collect();
        let message_attributes: Map<String, Value> = message
            .message_attributes()
            .into_iter()
            .flatten()
            .map(|(name, value)| {
                let value = json!({
                    "stringValue": value.string_value(),
                    "dataType": value.data_type(),
                    "stringListValues": [],
                    "binaryListValues": [],
                });
                (name.clone(), value)
            })
            .collect();
        json!({
            "messageId": message.message_id(),
            "receiptHandle": message.receipt_handle(),
            "body": message.body(),
            "attributes": attributes,
            "messageAttributes": message_attributes,
            "md5OfBody": message.md5_of_body(),
            "eventSource": "aws:sqs",
            "eventSourceARN": queue_arn(&self.queue),
            "awsRegion": REGION,
        })
    }
}
