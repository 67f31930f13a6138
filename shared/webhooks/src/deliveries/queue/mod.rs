//! The queues: they say "look now" or "look then", and no delivery depends on them.
//!
//! There are two lanes. The quick lane is for deliveries that are expected to be answered soon. The slow lane is for
//! webhooks whose recent exchanges were slow, and for deliveries that got no permit in the quick lane. A
//! message names entity and webhook, so that a dispatcher can choose the lane before it reads the table.

pub mod inbox;
pub mod message;

use std::time::Duration;

use aws_sdk_sqs::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry},
};
use futures::{
    FutureExt,
    future::{BoxFuture, try_join_all},
};
use tokio::time::timeout;

use crate::deliveries::{lease_times::MAX_DELAY, queue::message::AttemptMessage};
use base::batcher::{Batcher, Calls, Unanswered};
use base::{Environment, FromEnvironment, Time, logging};
use storage::aws::{Aws, CallError};

/// The most messages that one call of SQS takes or gives.
pub(crate) const MESSAGES_AT_ONCE: usize = 10;
/// How long a request of a client waits for the queue.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The two queues, by how soon their deliveries are expected to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// They are answered soon.
    Quick,
    /// They are answered late, or wait for a slot.
    Slow,
}

impl Lane {
    /// The lane of a webhook that is slow, or is not.
    pub const fn of(is_slow: bool) -> Self {
        if is_slow { Self::Slow } else { Self::Quick }
    }
}

/// The queues of due deliveries, one for each lane.
#[derive(Debug, Clone)]
pub struct Queue {
    client: Client,
    lanes: [String; 2],
    quick: Batcher<Messages>,
    slow: Batcher<Messages>,
}

/// A call to a queue failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum QueueError {
    #[error("the queue did not answer a call, or refused it")]
    Batch(#[source] CallError),
    #[error("the queue did not take a message of a batch")]
    Message,
    #[error("the queue did not answer in time")]
    Late,
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

impl QueueError {
    pub(crate) fn batch<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> Self {
        Self::Batch(CallError::of(error))
    }
}

impl Queue {
    /// The queues at these addresses.
    pub fn connect(aws: &Aws, settings: &QueueSettings) -> Self {
        let client = aws.sqs();
        let lane = |url: &str| Batcher::new(Messages { client: client.clone(), url: url.to_owned() });
        let quick = lane(&settings.url);
        let slow = lane(&settings.slow_url);
        Self { lanes: [settings.url.clone(), settings.slow_url.clone()], client, quick, slow }
    }

    /// Opens a connection, so that a first message does not wait for the handshake. A batch of no messages takes no other
    /// right than messages do; SQS refuses it, and the connection stays. A failure is left to the first message.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
    pub fn open_connection(&self) -> BoxFuture<'static, ()> {
        let (client, [quick, _]) = (self.client.clone(), self.lanes.clone());
        async move {
            let _refused = client.send_message_batch().queue_url(quick).set_entries(Some(Vec::new())).send().await;
        }
        .boxed()
    }

    /// Announces an attempt that is due at this time, unless that is too far away. An error is logged: the sweep
    /// announces the delivery then.
    pub async fn announce(&self, lane: Lane, notice: AttemptMessage, due: Time, now: Time) {
        let delivery = notice.message.delivery.clone();
        if let Err(error) = self.send(lane, notice, due, now).await {
            tracing::warn!(error = %logging::chain(&error), deliveryId = %delivery, "not announced; the sweep will find it");
        }
    }

    /// The same for a request whose client waits: gives the queue two seconds.
    pub async fn announce_in_time(&self, lane: Lane, notice: AttemptMessage, due: Time, now: Time) {
        let delivery = notice.message.delivery.clone();
        if timeout(CLIENT_TIMEOUT, self.announce(lane, notice, due, now)).await.is_err() {
            let error = QueueError::Late;
            tracing::warn!(%error, deliveryId = %delivery, "not announced; the sweep will find it");
        }
    }

    /// Whether so many messages wait in both lanes together, by the queue's own estimate. An error is logged, and counts
    /// as few: then more is announced than need be.
    pub(crate) async fn holds(&self, messages: usize) -> bool {
        let waiting = try_join_all(self.lanes.iter().map(|url| waiting(&self.client, url))).await;
        match waiting {
            Ok(waiting) => waiting.into_iter().sum::<usize>() >= messages,
            Err(error) => {
                tracing::warn!(error = %logging::chain(&error), "not known how much waits in the queue");
                false
            }
        }
    }

    async fn send(&self, lane: Lane, notice: AttemptMessage, due: Time, now: Time) -> Result<(), QueueError> {
        let wait = due.since(now);
        if wait > MAX_DELAY {
            return Ok(());
        }
        // Rounded up: a message that comes too early would be dropped.
        let delay = i32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(900);
        let queue = match lane {
            Lane::Quick => &self.quick,
            Lane::Slow => &self.slow,
        };
        queue.submit(DelayedMessage { notice, delay }).await?
    }
}

/// How many messages wait in a queue to be received.
async fn waiting(client: &Client, url: &str) -> Result<usize, QueueError> {
    let attribute = QueueAttributeName::ApproximateNumberOfMessages;
    let asked = client.get_queue_attributes().queue_url(url).attribute_names(attribute.clone()).send().await;
    let attributes = asked.map_err(|error| QueueError::batch(&error))?.attributes.unwrap_or_default();
    Ok(attributes.get(&attribute).and_then(|number| number.parse().ok()).unwrap_or_default())
}

/// A message, with the delay in seconds that SQS gives it.
struct DelayedMessage {
    notice: AttemptMessage,
    delay: i32,
}

/// Messages that share a call.
struct Messages {
    client: Client,
    url: String,
}

impl Calls for Messages {
    type Request = DelayedMessage;
    type Response = Result<(), QueueError>;
    const LIMIT: usize = MESSAGES_AT_ONCE;

    async fn call(&self, notices: Vec<DelayedMessage>) -> Vec<Self::Response> {
        let entries = notices.iter().enumerate();
        let entries = entries.filter_map(|(number, notice)| notice.entry(number)).collect();
        match self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries)).send().await {
            Ok(response) => {
                let taken = |number: usize| response.successful().iter().any(|entry| entry.id() == number.to_string());
                let numbers = 0..notices.len();
                numbers.map(|number| if taken(number) { Ok(()) } else { Err(QueueError::Message) }).collect()
            }
            Err(error) => vec![Err(QueueError::batch(&error)); notices.len()],
        }
    }
}

impl DelayedMessage {
    fn entry(&self, number: usize) -> Option<SendMessageBatchRequestEntry> {
        let mut entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(self.notice.body());
        for (name, value) in self.notice.attributes() {
            let value = MessageAttributeValue::builder().data_type("String").string_value(value).build().ok()?;
            entry = entry.message_attributes(name, value);
        }
        entry.message_group_id(self.notice.owner.entity.as_str()).delay_seconds(self.delay).build().ok()
    }
}

/// Where due deliveries are announced: `QUEUE_URL` and `SLOW_QUEUE_URL`.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    pub(crate) url: String,
    pub(crate) slow_url: String,
}

impl FromEnvironment for QueueSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let url = environment.required("QUEUE_URL");
        let slow_url = environment.required("SLOW_QUEUE_URL");
        Some(Self { url: url?, slow_url: slow_url? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::{
        queue::message::DueMessage,
        store::item::tests::{NOW, head},
    };

    const BODY: &str = r#"{"delivery":"dlv_01m7wh697q3m7qqm482zyh92yd","attempt":1}"#;

    fn notice() -> AttemptMessage {
        let message: DueMessage = serde_json::from_str(BODY).expect("well formed");
        AttemptMessage { message, ..AttemptMessage::of(&head(), 1) }
    }

    #[test]
    fn an_announced_notice_is_read_again() {
        for notice in [notice(), notice().waiting(), notice().since(NOW)] {
            let entry = DelayedMessage { notice: notice.clone(), delay: 0 }.entry(0).expect("a message");
            assert_eq!(entry.message_group_id(), Some("hotel"));
            let attributes = entry.message_attributes().expect("some").clone();
            let read = AttemptMessage::read(entry.message_body(), |name| attributes.get(name)?.string_value());
            assert_eq!(read.expect("one of ours"), notice);
        }
    }

    #[test]
    fn a_message_without_its_delivery_its_owner_or_its_event_is_refused() {
        let entry = DelayedMessage { notice: notice(), delay: 0 }.entry(0).expect("a message");
        let attributes = entry.message_attributes().expect("some");
        for missing in ["entity", "webhook", "event"] {
            let rest = |name: &str| attributes.get(name).filter(|_| name != missing)?.string_value();
            assert!(AttemptMessage::read(BODY, rest).is_err(), "{missing}");
        }
        assert!(AttemptMessage::read("{}", |name| attributes.get(name)?.string_value()).is_err());
    }
}
