//! The queues of due deliveries. Their messages are only hints, and no delivery depends on them. There are two lanes.
//! The quick lane is for deliveries that are expected to get a quick response. The slow lane is for webhooks whose
//! recent exchanges were slow, and for deliveries that got no permit in the quick lane. A message names its entity and
//! webhooks, so that a dispatcher can limit both before it reads the table.

pub mod inbox;
pub mod message;

use std::time::Duration;

use aws_sdk_sqs::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    types::{QueueAttributeName, SendMessageBatchRequestEntry},
};
use futures::{
    FutureExt,
    future::{BoxFuture, try_join_all},
};
use tokio::time::timeout;

use crate::deliveries::{
    queue::message::{ATTEMPTS_AT_ONCE, AttemptMessage},
    state::times::MAX_DELAY,
};
use auth::EntityId;
use base::batcher::{Batcher, Calls, Unanswered};
use base::{Environment, FromEnvironment, Time, logging};
use storage::aws::{Aws, CallError};

/// The maximum number of messages in one call to SQS.
pub(crate) const MESSAGES_AT_ONCE: usize = 10;
/// Time limit for calls to the queue during a client's request.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The two queues, by the expected speed of their deliveries' responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Deliveries with quick responses.
    Quick,
    /// Deliveries with slow responses, and deliveries waiting for a permit.
    Slow,
}

impl Lane {
    /// A webhook's lane, depending on whether it is slow.
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
    #[error("the queue refused an entry of a batch")]
    Entry,
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
        Self::over(aws.sqs(), settings)
    }

    /// The queues at these addresses, called through this client.
    pub fn over(client: Client, settings: &QueueSettings) -> Self {
        let lane = |url: &str| Batcher::new(Messages { client: client.clone(), url: url.to_owned() });
        let quick = lane(&settings.url);
        let slow = lane(&settings.slow_url);
        Self { lanes: [settings.url.clone(), settings.slow_url.clone()], client, quick, slow }
    }

    /// Opens a connection, so that the first message does not wait for the handshake. Sending an empty batch needs the
    /// same permission as sending messages; SQS refuses it, and the connection stays open. Any error is left for the
    /// first message to report.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
    pub fn open_connection(&self) -> BoxFuture<'static, ()> {
        let client = self.client.clone();
        let [quick, _] = self.lanes.clone();
        async move {
            let _refused = client.send_message_batch().queue_url(quick).set_entries(Some(Vec::new())).send().await;
        }
        .boxed()
    }

    /// Announces an attempt that is due at this time, unless that time is beyond the longest delay. Errors are logged,
    /// and the sweep announces the delivery instead.
    pub async fn announce(&self, lane: Lane, message: AttemptMessage, due: Time, now: Time) {
        let delivery = message.due.delivery.clone();
        let entity = message.entity.clone();
        if let Err(error) = self.send(lane, &entity, vec![message], due, now).await {
            tracing::warn!(
                error = %logging::chain(&error),
                deliveryId = %delivery,
                "an attempt was not announced; the sweep will announce it"
            );
        }
    }

    /// Announces attempts of one entity's deliveries during a client's request, within two seconds.
    pub async fn announce_in_time(
        &self,
        lane: Lane,
        entity: &EntityId,
        messages: Vec<AttemptMessage>,
        due: Time,
        now: Time,
    ) {
        let sent = messages.chunks(ATTEMPTS_AT_ONCE).map(|chunk| self.send(lane, entity, chunk.to_vec(), due, now));
        let sent = timeout(CLIENT_TIMEOUT, try_join_all(sent)).await;
        if let Err(error) = sent.map_err(|_| QueueError::Late).and_then(|sent| sent.map(drop)) {
            tracing::warn!(
                error = %logging::chain(&error),
                deliveryId = messages.first().map(|message| tracing::field::display(&message.due.delivery)),
                deliveries = messages.len(),
                "attempts were not announced; the sweep will announce them"
            );
        }
    }

    /// Whether both lanes together hold at least this many messages, by SQS's estimate. Errors are logged and count as
    /// few messages; the sweep then announces more than necessary.
    pub(crate) async fn holds(&self, lanes: &[Lane], messages: usize) -> bool {
        let [quick, slow] = &self.lanes;
        let urls = lanes.iter().map(|lane| if *lane == Lane::Quick { quick } else { slow });
        let waiting = try_join_all(urls.map(|url| waiting(&self.client, url))).await;
        match waiting {
            Ok(waiting) => waiting.into_iter().sum::<usize>() >= messages,
            Err(error) => {
                tracing::warn!(
                    error = %logging::chain(&error),
                    "the number of messages on the queue could not be read; the sweep assumes few"
                );
                false
            }
        }
    }

    async fn send(
        &self,
        lane: Lane,
        entity: &EntityId,
        attempts: Vec<AttemptMessage>,
        due: Time,
        now: Time,
    ) -> Result<(), QueueError> {
        let wait = due.since(now);
        if wait > MAX_DELAY {
            return Ok(());
        }
        // Rounded up, since a message that arrives too early would be dropped.
        let delay = i32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(900);
        let queue = match lane {
            Lane::Quick => &self.quick,
            Lane::Slow => &self.slow,
        };
        let body = AttemptMessage::body(entity, attempts);
        queue.submit(DelayedMessage { group: entity.clone(), body, delay }).await?
    }
}

/// The number of messages waiting in a queue.
async fn waiting(client: &Client, url: &str) -> Result<usize, QueueError> {
    let attribute = QueueAttributeName::ApproximateNumberOfMessages;
    let asked = client.get_queue_attributes().queue_url(url).attribute_names(attribute.clone()).send().await;
    let attributes = asked.map_err(|error| QueueError::batch(&error))?.attributes.unwrap_or_default();
    Ok(attributes.get(&attribute).and_then(|number| number.parse().ok()).unwrap_or_default())
}

/// A message with its delay in seconds.
struct DelayedMessage {
    group: EntityId,
    body: String,
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
    const STAGE: &'static str = "calls: messages";

    async fn call(&self, messages: Vec<DelayedMessage>) -> Vec<Self::Response> {
        let entries = messages.iter().enumerate();
        let entries = entries.filter_map(|(number, message)| message.entry(number)).collect();
        match self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries)).send().await {
            Ok(response) => {
                let taken = |number: usize| response.successful().iter().any(|entry| entry.id() == number.to_string());
                let numbers = 0..messages.len();
                numbers.map(|number| if taken(number) { Ok(()) } else { Err(QueueError::Entry) }).collect()
            }
            Err(error) => vec![Err(QueueError::batch(&error)); messages.len()],
        }
    }
}

impl DelayedMessage {
    fn entry(&self, number: usize) -> Option<SendMessageBatchRequestEntry> {
        let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(&self.body);
        entry.message_group_id(self.group.as_str()).delay_seconds(self.delay).build().ok()
    }
}

/// Addresses of the queues of due deliveries: `QUEUE_URL` and `SLOW_QUEUE_URL`.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    pub(crate) url: String,
    pub(crate) slow_url: String,
}

impl QueueSettings {
    /// The addresses of the quick lane and the slow lane.
    pub fn new(url: impl Into<String>, slow_url: impl Into<String>) -> Self {
        Self { url: url.into(), slow_url: slow_url.into() }
    }
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
    use crate::deliveries::state::head::tests::{NOW, head};

    #[test]
    fn announced_attempts_are_read_back() {
        let message = || AttemptMessage::of(&head(), 1);
        let messages = vec![message(), message().waiting(), message().since(NOW)];
        let entity = messages[0].entity.clone();
        let body = AttemptMessage::body(&entity, messages.clone());
        let entry = DelayedMessage { group: entity, body, delay: 0 }.entry(0).expect("a message");
        assert_eq!(entry.message_group_id(), Some("hotel"));
        assert_eq!(AttemptMessage::read(entry.message_body()).expect("well formed"), messages);
    }

    #[test]
    fn a_message_that_names_no_attempts_of_an_entity_is_refused() {
        let attempt =
            r#"{"delivery":"dlv_01m7wh697q3m7qqm482zyh92yd","attempt":1,"webhook":"whk_01m74zy5eva3kj3s4w04zg1hhc"}"#;
        assert!(AttemptMessage::read(&format!(r#"{{"entity":"hotel","attempts":[{attempt}]}}"#)).is_ok());
        for body in ["", "{}", attempt, r#"{"entity":"a b","attempts":[]}"#, r#"{"entity":"hotel","attempts":[{}]}"#] {
            assert!(AttemptMessage::read(body).is_err(), "{body}");
        }
    }
}
