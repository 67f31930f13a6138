//! The receiving end of a queue.

use aws_sdk_sqs::{Client, types::DeleteMessageBatchRequestEntry};

use crate::deliveries::queue::{
    Lane, MESSAGES_AT_ONCE, QueueError, QueueSettings,
    message::{AttemptMessage, MalformedMessage},
};
use base::batcher::{Batcher, Calls};
use storage::aws::Aws;

/// How long a receiver waits for messages: below the time-out of a call, and short, since a round cannot end while it
/// waits here.
const WAIT_SECONDS: i32 = 1;

/// A message as Lambda handed it to the dispatcher.
#[derive(Debug)]
pub struct BatchMessage {
    /// Its identifier, by which the response to Lambda names the messages that must come again.
    pub message_id: String,
    /// An error when the message is not one of ours.
    pub notice: Result<AttemptMessage, MalformedMessage>,
}

/// A message that a round received by itself, with the receipt that deletes it.
pub(crate) struct Received {
    /// An error when the message is not one of ours.
    pub(crate) notice: Result<AttemptMessage, MalformedMessage>,
    pub(crate) receipt: String,
}

/// The receiving end of a lane.
pub struct Inbox {
    lane: Lane,
    client: Client,
    url: String,
    handled: Batcher<Deletions>,
}

impl Inbox {
    /// Both lanes' receiving ends.
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

    /// Whether this is the queue of that ARN: both end with the queue's name.
    pub(crate) fn is_of(&self, arn: &str) -> bool {
        self.url.rsplit('/').next() == arn.rsplit(':').next()
    }

    /// Waits a second for messages, and takes `most` at most. A caller that drops the future hides the messages that it
    /// received until their visibility time-out.
    pub(crate) async fn receive(&self, most: usize) -> Result<Vec<Received>, QueueError> {
        let most = i32::try_from(most.clamp(1, MESSAGES_AT_ONCE)).unwrap_or(1);
        let request = self.client.receive_message().queue_url(&self.url).max_number_of_messages(most);
        let response = request.wait_time_seconds(WAIT_SECONDS).message_attribute_names("All").send().await;
        let messages = response.map_err(|error| QueueError::batch(&error))?.messages.unwrap_or_default();
        let received = messages.into_iter().filter_map(|message| {
            let attributes = message.message_attributes.unwrap_or_default();
            let attribute = |name: &str| attributes.get(name)?.string_value();
            let notice = AttemptMessage::read(message.body.as_deref().unwrap_or_default(), attribute);
            Some(Received { notice, receipt: message.receipt_handle? })
        });
        Ok(received.collect())
    }

    /// Deletes a message that was handled. A message that is not deleted comes again, and has nothing to do then.
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

    async fn call(&self, receipts: Vec<String>) -> Vec<Self::Response> {
        let entries = receipts.iter().enumerate().filter_map(|(number, receipt)| {
            DeleteMessageBatchRequestEntry::builder().id(number.to_string()).receipt_handle(receipt).build().ok()
        });
        let request = self.client.delete_message_batch().queue_url(&self.url).set_entries(Some(entries.collect()));
        let deleted = request.send().await.map(drop).map_err(|error| QueueError::batch(&error));
        vec![deleted; receipts.len()]
    }
}
