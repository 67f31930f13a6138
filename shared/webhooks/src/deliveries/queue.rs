//! The queues: they say "look now" or "look then", and nothing depends on them.
//!
//! There are two lanes. The quick one is for deliveries that are expected to be answered soon, the
//! slow one for webhooks whose recent exchanges were slow and for deliveries that found no place in
//! the quick one (`places.rs`). A message names the entity and the webhook, so that a dispatcher
//! can choose the lane before it touches the table.

use std::time::Duration;

use aws_sdk_sqs::{
    Client,
    error::DisplayErrorContext,
    types::{DeleteMessageBatchRequestEntry, MessageAttributeValue, SendMessageBatchRequestEntry},
};
use serde::{Deserialize, Serialize};

use auth::entity::EntityId;
use base::environment::{Environment, FromEnvironment};
use base::{
    clock::Time,
    gather::{Calls, Gather, Unanswered},
    ids::{DeliveryId, WebhookId},
};
use storage::aws::Aws;

/// The longest delay of a message. What is due later waits in the table, where the sweep finds it.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
/// How long a receiver waits for messages: below the time-out of a call, and short, since a round
/// cannot end while it waits here.
const WAIT_SECONDS: i32 = 1;
/// As many messages as one call of SQS takes or gives.
const MESSAGES_AT_ONCE: usize = 10;

/// "This attempt of this delivery is due": the body of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DueMessage {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The number of the attempt. A message for one that was made already is dropped.
    pub attempt: u32,
}

/// Whose a delivery is. It stands in attributes of the message, beside the body, so that a function
/// of an earlier version understands a message of a later one, and the other way round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The entity, which is also the group of SQS's fair queues, so that a tenant with a backlog
    /// does not hold up others.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>
    pub entity: EntityId,
    /// The webhook.
    pub webhook: WebhookId,
}

/// A message as it is sent and received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The attempt that is due.
    pub message: DueMessage,
    /// Whose it is; nothing when an earlier version has sent it.
    pub whose: Option<Whose>,
    /// Whether it has found no place before, or its delivery is overdue: then it comes before those
    /// that have not.
    pub has_waited: bool,
}

/// The two queues, by how soon their deliveries are expected to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// They are answered soon.
    Quick,
    /// They are answered late, or wait for a place.
    Slow,
}

impl Lane {
    /// The lane of a webhook that is slow, or is not.
    pub const fn of(is_slow: bool) -> Self {
        if is_slow { Self::Slow } else { Self::Quick }
    }
}

const ENTITY: &str = "entity";
const WEBHOOK: &str = "webhook";
const WAITED: &str = "waited";

impl Notice {
    /// A notice that goes out for the first time.
    pub fn new(message: DueMessage, entity: EntityId, webhook: WebhookId) -> Self {
        Self { message, whose: Some(Whose { entity, webhook }), has_waited: false }
    }

    /// The same of a delivery that waits already.
    pub fn waiting(self) -> Self {
        Self { has_waited: true, ..self }
    }

    /// The notice in a message with this body and these attributes.
    pub fn read<'a>(body: &str, attribute: impl Fn(&str) -> Option<&'a str>) -> Result<Self, serde_json::Error> {
        let entity = attribute(ENTITY).and_then(|entity| EntityId::parse(entity).ok());
        let whose = entity.zip(attribute(WEBHOOK).and_then(WebhookId::parse));
        let whose = whose.map(|(entity, webhook)| Whose { entity, webhook });
        Ok(Self { message: serde_json::from_str(body)?, whose, has_waited: attribute(WAITED).is_some() })
    }

    fn attributes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let whose = self
            .whose
            .iter()
            .flat_map(|Whose { entity, webhook }| [(ENTITY, entity.as_str()), (WEBHOOK, webhook.as_str())]);
        whose.chain(self.has_waited.then_some((WAITED, "yes")))
    }
}

/// The queues of due deliveries, one for each lane.
#[derive(Debug, Clone)]
pub struct Queue {
    quick: Gather<Messages>,
    slow: Gather<Messages>,
}

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
    /// The queues at these addresses.
    pub fn connect(aws: &Aws, settings: &QueueSettings) -> Self {
        let client = aws.sqs();
        let lane = |url: &str| Gather::new(Messages { client: client.clone(), url: url.to_owned() });
        Self { quick: lane(&settings.url), slow: lane(&settings.slow_url) }
    }

    /// Announces an attempt that is due at this time; does nothing when that is too far away.
    pub async fn announce(&self, lane: Lane, notice: Notice, due: Time, now: Time) -> Result<(), QueueError> {
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
        queue.ask(Announcement { notice, delay }).await?
    }
}

/// A message with what SQS is to do with it.
struct Announcement {
    notice: Notice,
    delay: i32,
}

/// Messages that share a call.
struct Messages {
    client: Client,
    url: String,
}

impl Calls for Messages {
    type Request = Announcement;
    type Response = Result<(), QueueError>;
    const LIMIT: usize = MESSAGES_AT_ONCE;

    async fn call(&self, announcements: Vec<Announcement>) -> Vec<Self::Response> {
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
        let body =
            serde_json::to_string(&self.notice.message).expect("an identifier and a number can always be written");
        let mut entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(body);
        for (name, value) in self.notice.attributes() {
            let value = MessageAttributeValue::builder().data_type("String").string_value(value).build().ok()?;
            entry = entry.message_attributes(name, value);
        }
        let group = self.notice.whose.as_ref().map(|whose| whose.entity.as_str());
        entry.set_message_group_id(group.map(str::to_owned)).delay_seconds(self.delay).build().ok()
    }
}

/// A message as Lambda handed it to the dispatcher.
#[derive(Debug)]
pub struct Handed {
    /// Its identifier, by which Lambda is told that it has to come again.
    pub message_id: String,
    /// What it says; an error when it is not one of ours.
    pub notice: Result<Notice, serde_json::Error>,
}

/// The receiving end of a lane.
pub struct Inbox {
    lane: Lane,
    client: Client,
    url: String,
    handled: Gather<Deletions>,
}

/// A message that was received, with the receipt that deletes it.
#[derive(Debug)]
pub struct Received {
    /// What it says; an error when it is not one of ours.
    pub notice: Result<Notice, serde_json::Error>,
    /// Deletes it.
    pub receipt: String,
}

impl Inbox {
    /// Both lanes' receiving ends.
    pub fn connect(aws: &Aws, settings: &QueueSettings) -> [Self; 2] {
        let client = aws.sqs();
        [(Lane::Quick, &settings.url), (Lane::Slow, &settings.slow_url)].map(|(lane, url)| {
            let handled = Gather::new(Deletions { client: client.clone(), url: url.clone() });
            Self { lane, client: client.clone(), url: url.clone(), handled }
        })
    }

    /// The lane that this queue is.
    pub const fn lane(&self) -> Lane {
        self.lane
    }

    /// Whether this is the queue of that ARN: both end with the queue's name.
    pub fn is_of(&self, arn: &str) -> bool {
        self.url.rsplit('/').next() == arn.rsplit(':').next()
    }

    /// Waits a second for messages, and takes `most` at most. A caller that drops the future hides
    /// the messages that it received until their visibility time-out.
    pub async fn receive(&self, most: usize) -> Result<Vec<Received>, QueueError> {
        let most = i32::try_from(most.clamp(1, MESSAGES_AT_ONCE)).unwrap_or(1);
        let request = self.client.receive_message().queue_url(&self.url).max_number_of_messages(most);
        let answer = request.wait_time_seconds(WAIT_SECONDS).message_attribute_names("All").send().await;
        let answer = answer.map_err(|error| QueueError::Batch(DisplayErrorContext(&error).to_string()))?;
        let received = answer.messages.unwrap_or_default().into_iter().filter_map(|message| {
            let attributes = message.message_attributes.unwrap_or_default();
            let attribute = |name: &str| attributes.get(name)?.string_value();
            let notice = Notice::read(message.body.as_deref().unwrap_or_default(), attribute);
            Some(Received { notice, receipt: message.receipt_handle? })
        });
        Ok(received.collect())
    }

    /// Deletes a message that was handled. One that is not deleted comes again, and finds nothing
    /// to do.
    pub async fn delete(&self, receipt: String) -> Result<(), QueueError> {
        self.handled.ask(receipt).await?
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
        let answer = request.send().await.map(drop);
        let answer = answer.map_err(|error| QueueError::Batch(DisplayErrorContext(&error).to_string()));
        receipts.iter().map(|_| answer.clone()).collect()
    }
}

/// Where due deliveries are announced: `QUEUE_URL` and `SLOW_QUEUE_URL`.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The address of the SQS queue.
    pub url: String,
    /// The address of that for webhooks that are slow.
    pub slow_url: String,
}

impl FromEnvironment for QueueSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let (url, slow_url) = (environment.required("QUEUE_URL"), environment.required("SLOW_QUEUE_URL"));
        Some(Self { url: url?, slow_url: slow_url? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::SystemRandom;

    const NOW: Time = Time::from_millis(1_795_167_900_000);
    const BODY: &str = r#"{"delivery":"dlv_01m7wh697q3m7qqm482zyh92yd","attempt":1}"#;

    fn notice() -> Notice {
        let message: DueMessage = serde_json::from_str(BODY).expect("well formed");
        let entity = EntityId::parse("demo-hotel").expect("an identifier");
        Notice::new(message, entity, WebhookId::new(NOW, &SystemRandom))
    }

    #[test]
    fn what_is_announced_is_read_again() {
        for notice in [notice(), notice().waiting()] {
            let entry = Announcement { notice: notice.clone(), delay: 0 }.entry(0).expect("a message");
            assert_eq!(entry.message_group_id(), Some("demo-hotel"));
            let attributes = entry.message_attributes().expect("some").clone();
            let read = Notice::read(entry.message_body(), |name| attributes.get(name)?.string_value());
            assert_eq!(read.expect("one of ours"), notice);
        }
    }

    /// Functions of two versions run side by side while a deployment is renewed.
    #[test]
    fn the_body_is_what_earlier_versions_understand_and_their_messages_are_understood() {
        let entry = Announcement { notice: notice(), delay: 0 }.entry(0).expect("a message");
        assert_eq!(entry.message_body(), BODY);
        let read = Notice::read(BODY, |_| None).expect("one of ours");
        assert_eq!((read.whose, read.has_waited), (None, false));
    }
}
