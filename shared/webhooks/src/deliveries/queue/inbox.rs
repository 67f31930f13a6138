//! The receiving side of a queue.

use aws_sdk_sqs::{Client, types::DeleteMessageBatchRequestEntry};

use crate::deliveries::queue::{
    Lane, MESSAGES_AT_ONCE, QueueError, QueueSettings,
    message::{AttemptMessage, MalformedMessage},
};
use base::batcher::{Batcher, Calls};
use storage::aws::Aws;

/// How long a receive call waits for messages: less than a call's timeout, and short, since a run cannot end during the
/// call.
const WAIT_SECONDS: i32 = 1;

/// A message in the batch that Lambda passed to the dispatcher.
#[derive(Debug)]
pub struct BatchMessage {
    /// Identifies the message in the response to Lambda, which names the messages to deliver again.
    pub message_id: String,
    /// The attempts that it announces; an error if the service did not send the message.
    pub attempts: Result<Vec<AttemptMessage>, MalformedMessage>,
}

/// A message that a run itself received, with its attempts as in [`BatchMessage`] and the receipt for deleting it.
pub(crate) struct Received {
    /// The attempts that it announces; an error if the service did not send the message.
    pub(crate) attempts: Result<Vec<AttemptMessage>, MalformedMessage>,
    pub(crate) receipt: String,
}

/// The receiving side of a lane.
pub struct Inbox {
    lane: Lane,
    client: Client,
    url: String,
    handled: Batcher<Deletions>,
}

impl Inbox {
    /// The receiving sides of both lanes.
    pub fn connect(aws: &Aws, settings: &QueueSettings) -> [Self; 2] {
        let client = aws.sqs();
        [(Lane::Quick, &settings.url), (Lane::Slow, &settings.slow_url)].map(|(lane, url)| {
            let handled = Batcher::new(Deletions { client: client.clone(), url: url.clone() });
            Self { lane, client: client.clone(), url: url.clone(), handled }
        })
    }

    /// The lane of this queue.
    pub(crate) const fn lane(&self) -> Lane {
        self.lane
    }

    /// Whether this is the queue with that ARN: its address and its ARN both end with the queue's name.
    pub(crate) fn is_of(&self, arn: &str) -> bool {
        self.url.rsplit('/').next() == arn.rsplit(':').next()
    }

    /// Waits up to a second for messages, and takes at most `most`. If the future is dropped, its messages stay hidden
    /// until their visibility timeout.
    pub(crate) async fn receive(&self, most: usize) -> Result<Vec<Received>, QueueError> {
        let most = i32::try_from(most.clamp(1, MESSAGES_AT_ONCE)).unwrap_or(1);
        let request = self.client.receive_message().queue_url(&self.url).max_number_of_messages(most);
        let response = request.wait_time_seconds(WAIT_SECONDS).send().await;
        let messages = response.map_err(|error| QueueError::batch(&error))?.messages.unwrap_or_default();
        let messages = messages.into_iter().filter_map(|received| {
            let attempts = AttemptMessage::read(received.body.as_deref().unwrap_or_default());
            Some(Received { attempts, receipt: received.receipt_handle? })
        });
        Ok(messages.collect())
    }

    /// Deletes a handled message. A message that is not deleted is delivered again and dropped at that point.
    pub(crate) async fn delete(&self, receipt: String) -> Result<(), QueueError> {
        self.handled.submit(receipt).await?
    }
}

/// Deletions that share a call.
struct Deletions {
    client: Client,
    url: String,
}

impl Calls for Deletions {
    type Request = String;
    type Response = Result<(), QueueError>;
    const LIMIT: usize = MESSAGES_AT_ONCE;
    const STAGE: &'static str = "calls: messages deleted";

    async fn call(&self, receipts: Vec<String>) -> Vec<Self::Response> {
        let entries = receipts.iter().enumerate().filter_map(|(number, receipt)| {
            DeleteMessageBatchRequestEntry::builder().id(number.to_string()).receipt_handle(receipt).build().ok()
        });
        let request = self.client.delete_message_batch().queue_url(&self.url).set_entries(Some(entries.collect()));
        match request.send().await {
            Ok(response) => {
                let kept = |number: usize| response.failed().iter().any(|entry| entry.id() == number.to_string());
                let numbers = 0..receipts.len();
                numbers.map(|number| if kept(number) { Err(QueueError::Entry) } else { Ok(()) }).collect()
            }
            Err(error) => vec![Err(QueueError::batch(&error)); receipts.len()],
        }
    }
}
