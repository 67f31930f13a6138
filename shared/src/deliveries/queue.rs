//! The queue: it says "look now" or "look then", and nothing depends on it.

use std::time::Duration;

use aws_sdk_sqs::{Client, error::DisplayErrorContext, types::SendMessageBatchRequestEntry};
use serde::{Deserialize, Serialize};

use crate::{
    aws::Aws,
    clock::Time,
    gather::{Calls, Gather, Unanswered},
    ids::{DeliveryId, WebhookId},
};

/// The longest delay of a message. What is due later waits in the table, where the sweep finds it.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
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
pub struct Queue(Gather<Messages>);

/// A message could not be sent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueueError {
    /// The queue did not answer, or refused.
    #[error("the queue did not take a batch: {0}")]
    Batch(String),
    /// The queue took a batch but this message.
    #[error("the queue did not take a message of a batch")]
    Message,
    /// The queue did not answer in time.
    #[error("the queue did not answer in time")]
    Late,
    /// The call that carried the message ended without an answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

impl Queue {
    /// The queue at this address.
    pub fn connect(aws: &Aws, url: impl Into<String>) -> Self {
        Self(Gather::new(Messages { client: aws.sqs(), url: url.into() }))
    }

    /// Announces an attempt that is due at this time; does nothing when that is too far away.
    ///
    /// The webhook is the group of SQS's fair queues, so that one with a backlog does not hold up the others.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>
    pub async fn announce(
        &self,
        webhook: &WebhookId,
        message: DueMessage,
        due: Time,
        now: Time,
    ) -> Result<(), QueueError> {
        let wait = due.since(now);
        if wait > MAX_DELAY {
            return Ok(());
        }
        // Rounded up: a message that comes too early would be dropped.
        let delay = i32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(900);
        self.0.ask(Announcement { group: webhook.clone(), message, delay }).await?
    }
}

/// A message with what SQS is to do with it.
struct Announcement {
    group: WebhookId,
    message: DueMessage,
    delay: i32,
}

/// Messages that share a call.
struct Messages {
    client: Client,
    url: String,
}

impl Calls for Messages {
    type Ask = Announcement;
    type Answer = Result<(), QueueError>;
    /// As many as one call of SQS takes.
    const LIMIT: usize = 10;

    async fn call(&self, announcements: Vec<Announcement>) -> Vec<Self::Answer> {
        let entries: Vec<_> =
            announcements.iter().enumerate().filter_map(|(number, announcement)| announcement.entry(number)).collect();
        let answer = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries)).send().await;
        match answer {
            Ok(answer) => {
                let taken = |number: usize| answer.successful().iter().any(|entry| entry.id() == number.to_string());
                let outcome = |number| if taken(number) { Ok(()) } else { Err(QueueError::Message) };
                (0..announcements.len()).map(outcome).collect()
            }
            Err(error) => {
                let error = QueueError::Batch(DisplayErrorContext(&error).to_string());
                announcements.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }
}

impl Announcement {
    fn entry(&self, number: usize) -> Option<SendMessageBatchRequestEntry> {
        let body = serde_json::to_string(&self.message).expect("an identifier and a number can always be written");
        let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(body);
        entry.message_group_id(self.group.as_str()).delay_seconds(self.delay).build().ok()
    }
}
