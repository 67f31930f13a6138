//! The queue: it says "look now" or "look then", and nothing depends on it.

use std::time::Duration;

use aws_sdk_sqs::{Client, error::DisplayErrorContext, types::SendMessageBatchRequestEntry};
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use crate::{auth::entity::EntityId, aws::Aws, clock::Time, ids::DeliveryId};

/// The longest delay of a message. What is due later waits in the table, where the sweep finds it.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
/// As many as one call of SQS takes.
const BATCH: usize = 10;
const CALLS_AT_ONCE: usize = 8;

/// "This attempt of this delivery is due."
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DueMessage {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The number of the attempt. A message for one that was made already is dropped.
    pub attempt: u32,
}

/// The queue of due deliveries.
#[derive(Debug, Clone)]
pub struct Queue {
    client: Client,
    url: String,
}

/// A message could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue did not answer, or refused.
    #[error("the queue did not take a batch: {0}")]
    Batch(String),
    /// The queue did not answer in time.
    #[error("the queue did not answer in time")]
    Late,
    /// The queue took a batch but some of its messages.
    #[error("the queue did not take {0} messages of a batch")]
    Messages(usize),
}

impl Queue {
    /// The queue at this address.
    pub fn connect(aws: &Aws, url: impl Into<String>) -> Self {
        Self { client: aws.sqs(), url: url.into() }
    }

    /// Announces attempts of one entity's deliveries that are due at this time; nothing when that is too far away.
    ///
    /// The entity is the group of SQS's fair queues, so that one with a backlog does not hold up the others.
    pub async fn announce(
        &self,
        entity: &EntityId,
        messages: impl IntoIterator<Item = DueMessage>,
        due: Time,
        now: Time,
    ) -> Result<(), QueueError> {
        let wait = due.since(now);
        if wait > MAX_DELAY {
            return Ok(());
        }
        // Rounded up: a message that comes too early would be dropped.
        let delay = i32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(900);
        let entries: Vec<_> = messages
            .into_iter()
            .enumerate()
            .filter_map(|(number, message)| entry(number, &message, entity, delay))
            .collect();
        let batches: Vec<_> = entries.chunks(BATCH).map(<[_]>::to_vec).collect();
        let outcomes = stream::iter(batches).map(|batch| self.send(batch)).buffer_unordered(CALLS_AT_ONCE);
        // All are sent before the first error is told.
        outcomes.collect::<Vec<_>>().await.into_iter().collect()
    }

    async fn send(&self, batch: Vec<SendMessageBatchRequestEntry>) -> Result<(), QueueError> {
        let answer = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(batch)).send().await;
        let answer = answer.map_err(|error| QueueError::Batch(DisplayErrorContext(&error).to_string()))?;
        match answer.failed().len() {
            0 => Ok(()),
            failed => Err(QueueError::Messages(failed)),
        }
    }
}

fn entry(number: usize, message: &DueMessage, entity: &EntityId, delay: i32) -> Option<SendMessageBatchRequestEntry> {
    let body = serde_json::to_string(message).expect("an identifier and a number can always be written");
    let entry = SendMessageBatchRequestEntry::builder().id((number % BATCH).to_string()).message_body(body);
    entry.message_group_id(entity.as_str()).delay_seconds(delay).build().ok()
}
