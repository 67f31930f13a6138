//! SQS, as far as functions, operators and the pump use it.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Operations.html>

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use aws_sdk_sqs::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    primitives::Blob,
    types::{
        ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, Message, MessageAttributeValue,
        MessageSystemAttributeName as Own, QueueAttributeName as Attribute, SendMessageBatchRequestEntry,
    },
};
use serde_json::json;

use crate::side::{Side, cases};

cases![
    a_queue_is_made_found_and_described,
    a_queue_is_made_again_with_the_same_attributes_only,
    attributes_of_a_queue_have_their_bounds,
    a_queue_that_is_not_there_is_not_found,
    a_message_is_sent_received_and_deleted,
    a_message_keeps_its_attributes,
    a_receiver_gets_the_attributes_that_it_names,
    a_receiver_takes_ten_messages_at_most_and_the_oldest_first,
    a_receiver_that_waits_gets_a_message_that_is_sent,
    a_receiver_that_waits_gets_a_message_when_its_delay_ends,
    a_receiver_that_waits_goes_without_messages_when_its_time_is_over,
    a_message_comes_again_when_it_is_visible_again,
    visibility_counts_from_the_change_on,
    each_entry_of_a_batch_succeeds_or_fails_by_itself,
    a_batch_has_its_bounds,
    a_message_is_dead_when_it_was_received_too_often,
    a_queue_counts_its_messages,
    a_purged_queue_is_empty,
    characters_that_sqs_does_not_take_are_refused,
    messages_name_a_group;
    values_have_their_bounds: "ministack takes a delay, a wait and a visibility of any length",
    a_message_is_measured_with_its_attributes: "ministack measures the text alone",
    a_message_is_deleted_again_without_an_error: "ministack refuses a receipt that was used, and one of a former receive",
    a_message_that_is_not_in_flight_stays_visible: "ministack hides it",
    an_attribute_has_a_name_a_type_and_a_value: "ministack takes any attribute",
    an_attribute_of_a_queue_that_is_not_known_is_refused: "ministack answers without it",
    a_long_backlog_of_one_group_does_not_hold_up_the_others: "ministack knows no fair queues",
];

const SECOND: Duration = Duration::from_secs(1);

/// What a call was refused with.
fn code<T: std::fmt::Debug, E: ProvideErrorMetadata, R>(outcome: Result<T, SdkError<E, R>>) -> String {
    match outcome {
        Err(SdkError::ServiceError(refused)) => refused.err().code().unwrap_or_default().to_owned(),
        Err(_) => "no answer".to_owned(),
        Ok(answer) => panic!("it is not refused: {answer:?}"),
    }
}

/// A queue of a case.
struct Queue {
    client: Client,
    url: String,
}

impl Queue {
    async fn new(side: &Side) -> Self {
        Self::with(side, &[]).await
    }

    async fn with(side: &Side, attributes: &[(Attribute, &str)]) -> Self {
        let client = side.queues();
        let attributes = attributes.iter().map(|(name, value)| (name.clone(), (*value).to_owned())).collect();
        let made = client.create_queue().queue_name(side.unique("queue")).set_attributes(Some(attributes)).send();
        let url = made.await.expect("a new name").queue_url.expect("an address");
        Self { client, url }
    }

    async fn send(&self, body: &str) {
        self.client.send_message().queue_url(&self.url).message_body(body).send().await.expect("sent");
    }

    async fn send_delayed(&self, body: &str, delay: i32) {
        let send = self.client.send_message().queue_url(&self.url).message_body(body).delay_seconds(delay);
        send.send().await.expect("sent");
    }

    /// Receives ten messages at most, with everything that is known of them.
    async fn receive(&self, wait: i32, visibility: i32) -> Vec<Message> {
        let receive = self.client.receive_message().queue_url(&self.url).max_number_of_messages(10);
        let receive = receive.message_system_attribute_names(Own::All).message_attribute_names("All");
        let received = receive.wait_time_seconds(wait).visibility_timeout(visibility).send().await;
        received.expect("an answer").messages.unwrap_or_default()
    }

    async fn receive_one(&self, wait: i32, visibility: i32) -> Message {
        let mut messages = self.receive(wait, visibility).await;
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    async fn delete(&self, message: &Message) {
        let delete = self.client.delete_message().queue_url(&self.url).receipt_handle(receipt(message));
        delete.send().await.expect("deleted");
    }

    async fn attributes(&self) -> HashMap<Attribute, String> {
        let asked = self.client.get_queue_attributes().queue_url(&self.url).attribute_names(Attribute::All);
        asked.send().await.expect("an answer").attributes.expect("there are some")
    }

    /// Visible, in flight, delayed.
    async fn counts(&self) -> [String; 3] {
        let attributes = self.attributes().await;
        [
            Attribute::ApproximateNumberOfMessages,
            Attribute::ApproximateNumberOfMessagesNotVisible,
            Attribute::ApproximateNumberOfMessagesDelayed,
        ]
        .map(|name| attributes[&name].clone())
    }
}

fn receipt(message: &Message) -> &str {
    message.receipt_handle().expect("a receipt")
}

fn body(message: &Message) -> &str {
    message.body().expect("a text")
}

fn own(message: &Message, name: Own) -> Option<&str> {
    message.attributes()?.get(&name).map(String::as_str)
}

fn text(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder().data_type("String").string_value(value).build().expect("a type")
}

fn entry(id: &str, body: &str) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry::builder().id(id).message_body(body).build().expect("complete")
}

async fn a_queue_is_made_found_and_described(side: Side) {
    let (client, name) = (side.queues(), side.unique("queue"));
    let made = client.create_queue().queue_name(&name).attributes(Attribute::VisibilityTimeout, "720").send().await;
    let url = made.expect("a new name").queue_url.expect("an address");
    assert!(url.ends_with(&format!("/000000000000/{name}")), "{url}");
    let found = client.get_queue_url().queue_name(&name).send().await.expect("it is there");
    assert_eq!(found.queue_url(), Some(url.as_str()));
    let listed = client.list_queues().queue_name_prefix(&name).send().await.expect("an answer");
    assert_eq!(listed.queue_urls(), [url.as_str()]);
    let attributes = Queue { client, url }.attributes().await;
    for (attribute, value) in [
        (Attribute::QueueArn, format!("arn:aws:sqs:us-east-1:000000000000:{name}").as_str()),
        (Attribute::VisibilityTimeout, "720"),
        (Attribute::DelaySeconds, "0"),
        (Attribute::MaximumMessageSize, "1048576"),
        (Attribute::MessageRetentionPeriod, "345600"),
        (Attribute::ReceiveMessageWaitTimeSeconds, "0"),
    ] {
        assert_eq!(attributes[&attribute], value, "{attribute}");
    }
    assert!(attributes[&Attribute::CreatedTimestamp].parse::<u64>().is_ok());
}

async fn a_queue_is_made_again_with_the_same_attributes_only(side: Side) {
    let (client, name) = (side.queues(), side.unique("queue"));
    let make = |delay: &str| client.create_queue().queue_name(&name).attributes(Attribute::DelaySeconds, delay).send();
    let first = make("1").await.expect("a new name");
    assert_eq!(make("1").await.expect("the same").queue_url(), first.queue_url());
    assert_eq!(client.create_queue().queue_name(&name).send().await.expect("the same").queue_url(), first.queue_url());
    assert_eq!(code(make("2").await), "QueueAlreadyExists");
}

async fn attributes_of_a_queue_have_their_bounds(side: Side) {
    let client = side.queues();
    let absent = "arn:aws:sqs:us-east-1:000000000000:absent";
    let policy = json!({ "deadLetterTargetArn": absent, "maxReceiveCount": 5 }).to_string();
    for (attribute, value) in [
        (Attribute::VisibilityTimeout, "43201"),
        (Attribute::DelaySeconds, "901"),
        (Attribute::MaximumMessageSize, "1023"),
        (Attribute::MessageRetentionPeriod, "59"),
        (Attribute::ReceiveMessageWaitTimeSeconds, "21"),
        (Attribute::RedrivePolicy, "{}"),
        (Attribute::RedrivePolicy, policy.as_str()),
    ] {
        let make = client.create_queue().queue_name(side.unique("queue")).attributes(attribute.clone(), value);
        assert_eq!(code(make.send().await), "InvalidAttributeValue", "{attribute} {value}");
    }
}

async fn a_queue_that_is_not_there_is_not_found(side: Side) {
    let (client, name) = (side.queues(), side.unique("absent"));
    let absent = "AWS.SimpleQueueService.NonExistentQueue";
    let url = Queue::new(&side).await.url;
    let url = format!("{}/{name}", url.rsplit_once('/').expect("an address").0);
    assert_eq!(code(client.get_queue_url().queue_name(&name).send().await), absent);
    assert_eq!(code(client.send_message().queue_url(&url).message_body("x").send().await), absent);
    assert_eq!(code(client.receive_message().queue_url(&url).send().await), absent);
    assert_eq!(code(client.delete_message().queue_url(&url).receipt_handle("x").send().await), absent);
    assert_eq!(code(client.purge_queue().queue_url(&url).send().await), absent);
    assert_eq!(code(client.get_queue_attributes().queue_url(&url).send().await), absent);
    let batch = client.send_message_batch().queue_url(&url).entries(entry("1", "x"));
    assert_eq!(code(batch.send().await), absent);
}

async fn a_message_is_sent_received_and_deleted(side: Side) {
    let queue = Queue::new(&side).await;
    let body = "{\"é\": \"😀\",\r\n\t\"a\": 1}";
    let sent = queue.client.send_message().queue_url(&queue.url).message_body(body).send().await.expect("sent");
    let message = queue.receive_one(0, 60).await;
    assert_eq!((message.body(), message.message_id()), (Some(body), sent.message_id()));
    assert_eq!(message.md5_of_body(), sent.md5_of_message_body());
    assert_eq!(sent.md5_of_message_body(), Some("a40d2983c59488c8ccc38b2b943a6ff6"));
    assert_eq!(own(&message, Own::ApproximateReceiveCount), Some("1"));
    assert_eq!(own(&message, Own::SenderId), Some("000000000000"));
    let millis = |name| own(&message, name).and_then(|millis| millis.parse::<u64>().ok()).expect("a time");
    assert!(millis(Own::ApproximateFirstReceiveTimestamp) >= millis(Own::SentTimestamp));
    assert!(queue.receive(0, 60).await.is_empty(), "it is hidden");
    queue.delete(&message).await;
    assert_eq!(queue.counts().await, ["0", "0", "0"]);
}

async fn a_message_keeps_its_attributes(side: Side) {
    let queue = Queue::new(&side).await;
    let number = MessageAttributeValue::builder().data_type("Number").string_value("1493147359900").build();
    let bytes = MessageAttributeValue::builder().data_type("Binary.raw").binary_value(Blob::new([0, 1, 255])).build();
    let send = queue.client.send_message().queue_url(&queue.url).message_body("x");
    let send = send.message_attributes("reason", text("é")).message_attributes("at", number.expect("a type"));
    let sent = send.message_attributes("blob", bytes.expect("a type")).send().await.expect("sent");
    let message = queue.receive_one(0, 60).await;
    let attributes = message.message_attributes().expect("some");
    assert_eq!(attributes.len(), 3);
    assert_eq!(attributes["reason"], text("é"));
    assert_eq!(attributes["at"].string_value(), Some("1493147359900"));
    assert_eq!(attributes["blob"].binary_value().map(AsRef::as_ref), Some(&[0, 1, 255][..]));
    assert_eq!(attributes["blob"].data_type(), "Binary.raw");
    assert!(sent.md5_of_message_attributes().is_some());
    assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
}

async fn a_receiver_gets_the_attributes_that_it_names(side: Side) {
    let queue = Queue::new(&side).await;
    let send = queue.client.send_message().queue_url(&queue.url).message_body("x");
    let send = send.message_attributes("a.one", text("1")).message_attributes("a.two", text("2"));
    send.message_attributes("b", text("3")).send().await.expect("sent");
    for (asked, expected) in [
        (Some("b"), vec!["b"]),
        (Some("a.*"), vec!["a.one", "a.two"]),
        (Some("All"), vec!["a.one", "a.two", "b"]),
        (None, vec![]),
    ] {
        let receive = queue.client.receive_message().queue_url(&queue.url).visibility_timeout(0);
        let receive = receive.message_system_attribute_names(Own::SentTimestamp);
        let receive = receive.set_message_attribute_names(asked.map(|name| vec![name.to_owned()]));
        let received = receive.send().await.expect("an answer");
        let [message] = received.messages() else { panic!("{received:?}") };
        let names: BTreeSet<_> = message.message_attributes().into_iter().flat_map(HashMap::keys).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), expected, "{asked:?}");
        assert_eq!(message.attributes().map(HashMap::len), Some(1));
    }
}

async fn a_receiver_takes_ten_messages_at_most_and_the_oldest_first(side: Side) {
    let queue = Queue::new(&side).await;
    for batch in 0..2 {
        let entries = (0..10).map(|number| entry(&number.to_string(), &(batch * 10 + number).to_string())).collect();
        let sent = queue.client.send_message_batch().queue_url(&queue.url).set_entries(Some(entries)).send().await;
        assert_eq!(sent.expect("sent").successful().len(), 10);
    }
    let one = queue.client.receive_message().queue_url(&queue.url).send().await.expect("an answer");
    assert_eq!(one.messages().iter().map(body).collect::<Vec<_>>(), ["0"], "one, if nothing is said");
    let ten: Vec<_> = (1..11).map(|number| number.to_string()).collect();
    assert_eq!(queue.receive(0, 60).await.iter().map(body).collect::<Vec<_>>(), ten);
    for most in [0, 11] {
        let receive = queue.client.receive_message().queue_url(&queue.url).max_number_of_messages(most);
        assert_eq!(code(receive.send().await), "InvalidParameterValue");
    }
}

async fn a_receiver_that_waits_gets_a_message_that_is_sent(side: Side) {
    let queue = Queue::new(&side).await;
    let sending = async {
        // Long enough for the receiver to wait, so that the message finds it waiting.
        tokio::time::sleep(SECOND / 5).await;
        queue.send("text").await;
        Instant::now()
    };
    let receiving = async { (queue.receive(20, 60).await, Instant::now()) };
    let ((messages, received), sent) = tokio::join!(receiving, sending);
    assert_eq!(messages.iter().map(body).collect::<Vec<_>>(), ["text"]);
    assert!(received.saturating_duration_since(sent) < 10 * SECOND);
}

async fn a_receiver_that_waits_gets_a_message_when_its_delay_ends(side: Side) {
    let queue = Queue::new(&side).await;
    let begun = Instant::now();
    queue.send_delayed("later", 1).await;
    assert_eq!(queue.counts().await, ["0", "0", "1"]);
    assert_eq!(body(&queue.receive_one(20, 60).await), "later");
    // SQS counts in whole milliseconds.
    assert!(begun.elapsed() > SECOND - Duration::from_millis(2));
}

async fn a_receiver_that_waits_goes_without_messages_when_its_time_is_over(side: Side) {
    let queue = Queue::with(&side, &[(Attribute::ReceiveMessageWaitTimeSeconds, "1")]).await;
    let begun = Instant::now();
    let waited = queue.client.receive_message().queue_url(&queue.url).send().await.expect("an answer");
    assert!(waited.messages().is_empty() && begun.elapsed() > SECOND - Duration::from_millis(2));
    assert!(queue.receive(0, 60).await.is_empty());
}

async fn a_message_comes_again_when_it_is_visible_again(side: Side) {
    let queue = Queue::with(&side, &[(Attribute::VisibilityTimeout, "1")]).await;
    queue.send("text").await;
    let first = queue.client.receive_message().queue_url(&queue.url).send().await.expect("an answer");
    let second = queue.receive_one(20, 60).await;
    assert_eq!(own(&second, Own::ApproximateReceiveCount), Some("2"));
    assert_eq!(first.messages()[0].message_id(), second.message_id());
    assert_ne!(receipt(&first.messages()[0]), receipt(&second));
    queue.delete(&second).await;
    assert_eq!(queue.counts().await, ["0", "0", "0"]);
}

async fn visibility_counts_from_the_change_on(side: Side) {
    let queue = Queue::new(&side).await;
    queue.send("text").await;
    let first = queue.receive_one(0, 60).await;
    let change = |message: &Message, seconds: i32| {
        let change = queue.client.change_message_visibility().queue_url(&queue.url).visibility_timeout(seconds);
        change.receipt_handle(receipt(message)).send()
    };
    change(&first, 0).await.expect("in flight");
    let second = queue.receive_one(0, 0).await;
    let third = queue.receive_one(0, 1).await;
    assert_eq!(own(&second, Own::ApproximateReceiveCount), Some("2"));
    change(&third, 60).await.expect("in flight");
    assert!(queue.receive(2, 60).await.is_empty(), "the second after which it would have come is over");
    let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id("1").visibility_timeout(0);
    let entry = entry.receipt_handle(receipt(&third)).build().expect("complete");
    let batch = queue.client.change_message_visibility_batch().queue_url(&queue.url).entries(entry);
    assert_eq!(batch.send().await.expect("an answer").successful().len(), 1);
    assert_eq!(own(&queue.receive_one(0, 60).await, Own::ApproximateReceiveCount), Some("4"));
}

async fn each_entry_of_a_batch_succeeds_or_fails_by_itself(side: Side) {
    let queue = Queue::new(&side).await;
    let batch = queue.client.send_message_batch().queue_url(&queue.url);
    let sent = batch.entries(entry("good", "x")).entries(entry("bad", "\u{ffff}")).send().await.expect("an answer");
    assert_eq!(sent.successful().iter().map(|entry| entry.id()).collect::<Vec<_>>(), ["good"]);
    let failed = sent.failed().iter().map(|entry| (entry.id(), entry.code(), entry.sender_fault()));
    assert_eq!(failed.collect::<Vec<_>>(), [("bad", "InvalidMessageContents", true)]);
    let message = queue.receive_one(0, 60).await;
    assert_eq!(sent.successful()[0].message_id(), message.message_id().expect("an identifier"));
    let entry = |id: &str, receipt: &str| {
        DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle(receipt).build().expect("complete")
    };
    let batch = queue.client.delete_message_batch().queue_url(&queue.url);
    let batch = batch.entries(entry("known", receipt(&message))).entries(entry("unknown", "x"));
    let deleted = batch.send().await.expect("an answer");
    assert_eq!(deleted.successful().iter().map(|entry| entry.id()).collect::<Vec<_>>(), ["known"]);
    let failed = deleted.failed().iter().map(|entry| (entry.id(), entry.code(), entry.sender_fault()));
    assert_eq!(failed.collect::<Vec<_>>(), [("unknown", "ReceiptHandleIsInvalid", true)]);
    assert_eq!(queue.counts().await, ["0", "0", "0"]);
}

async fn a_batch_has_its_bounds(side: Side) {
    let queue = Queue::new(&side).await;
    let large = "x".repeat(600_000);
    let eleven = (0..11).map(|number| entry(&number.to_string(), "x")).collect();
    for (entries, expected) in [
        (vec![], "EmptyBatchRequest"),
        (eleven, "TooManyEntriesInBatchRequest"),
        (vec![entry("1", "x"), entry("1", "x")], "BatchEntryIdsNotDistinct"),
        (vec![entry("a b", "x")], "InvalidBatchEntryId"),
        (vec![entry("1", &large), entry("2", &large)], "BatchRequestTooLong"),
    ] {
        let sent = queue.client.send_message_batch().queue_url(&queue.url).set_entries(Some(entries)).send().await;
        assert_eq!(code(sent), format!("AWS.SimpleQueueService.{expected}"));
    }
    assert_eq!(queue.counts().await, ["0", "0", "0"], "nothing of them was sent");
}

async fn a_message_is_dead_when_it_was_received_too_often(side: Side) {
    let letters = Queue::new(&side).await;
    let arn = letters.attributes().await[&Attribute::QueueArn].clone();
    let policy = json!({ "deadLetterTargetArn": arn, "maxReceiveCount": 2 }).to_string();
    let queue = Queue::with(&side, &[(Attribute::RedrivePolicy, &policy)]).await;
    queue.send("text").await;
    let sent = queue.receive_one(0, 0).await;
    queue.receive_one(0, 0).await;
    assert!(queue.receive(0, 0).await.is_empty());
    let letter = letters.receive_one(20, 60).await;
    assert_eq!((letter.message_id(), body(&letter)), (sent.message_id(), "text"));
    let source = queue.attributes().await[&Attribute::QueueArn].clone();
    assert_eq!(own(&letter, Own::DeadLetterQueueSourceArn), Some(source.as_str()));
    assert_eq!(own(&letter, Own::ApproximateReceiveCount), Some("3"));
    assert_eq!(own(&letter, Own::SentTimestamp), own(&sent, Own::SentTimestamp), "its age goes on");
    letters.delete(&letter).await;
}

async fn a_queue_counts_its_messages(side: Side) {
    let queue = Queue::new(&side).await;
    for body in ["one", "two", "three"] {
        queue.send(body).await;
    }
    queue.send_delayed("later", 900).await;
    queue.client.receive_message().queue_url(&queue.url).max_number_of_messages(2).send().await.expect("an answer");
    assert_eq!(queue.counts().await, ["1", "2", "1"]);
}

async fn a_purged_queue_is_empty(side: Side) {
    let queue = Queue::new(&side).await;
    for body in ["one", "two"] {
        queue.send(body).await;
    }
    queue.send_delayed("later", 900).await;
    queue.client.receive_message().queue_url(&queue.url).send().await.expect("an answer");
    queue.client.purge_queue().queue_url(&queue.url).send().await.expect("purged");
    assert_eq!(queue.counts().await, ["0", "0", "0"]);
}

async fn characters_that_sqs_does_not_take_are_refused(side: Side) {
    let queue = Queue::new(&side).await;
    for body in ["\u{fffe}", "\u{ffff}", "a\u{1}", "\0"] {
        let send = queue.client.send_message().queue_url(&queue.url).message_body(body);
        assert_eq!(code(send.send().await), "InvalidMessageContents", "{body:?}");
    }
    queue.send("\t\r\n\u{7f}\u{fffd}😀").await;
}

async fn messages_name_a_group(side: Side) {
    let queue = Queue::new(&side).await;
    let send = queue.client.send_message().queue_url(&queue.url).message_body("x").message_group_id("demo-hotel");
    send.send().await.expect("sent");
    assert_eq!(own(&queue.receive_one(0, 60).await, Own::MessageGroupId), Some("demo-hotel"));
}

async fn values_have_their_bounds(side: Side) {
    let queue = Queue::new(&side).await;
    let invalid = "InvalidParameterValue";
    let send = queue.client.send_message().queue_url(&queue.url).message_body("x");
    assert_eq!(code(send.clone().delay_seconds(901).send().await), invalid);
    assert_eq!(code(send.message_group_id("a b").send().await), invalid);
    let receive = queue.client.receive_message().queue_url(&queue.url);
    assert_eq!(code(receive.clone().wait_time_seconds(21).send().await), invalid);
    assert_eq!(code(receive.visibility_timeout(43_201).send().await), invalid);
    queue.send("x").await;
    let message = queue.receive_one(0, 60).await;
    let change = queue.client.change_message_visibility().queue_url(&queue.url).visibility_timeout(43_201);
    assert_eq!(code(change.receipt_handle(receipt(&message)).send().await), invalid);
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
async fn a_message_is_measured_with_its_attributes(side: Side) {
    let queue = Queue::with(&side, &[(Attribute::MaximumMessageSize, "1024")]).await;
    let send = |size: usize| {
        let send = queue.client.send_message().queue_url(&queue.url).message_body("x".repeat(size));
        send.message_attributes("name", text("value")).send()
    };
    // Name, type and value are 15 bytes.
    send(1024 - 15).await.expect("as large as it may be");
    assert_eq!(code(send(1024 - 14).await), "InvalidParameterValue");
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html>
async fn a_message_is_deleted_again_without_an_error(side: Side) {
    let queue = Queue::new(&side).await;
    queue.send("x").await;
    let (former, last) = (queue.receive_one(0, 0).await, queue.receive_one(0, 60).await);
    queue.delete(&former).await;
    assert_eq!(queue.counts().await, ["0", "1", "0"], "the receipt of a former receive deletes nothing");
    queue.delete(&last).await;
    queue.delete(&last).await;
    assert_eq!(queue.counts().await, ["0", "0", "0"]);
    let delete = queue.client.delete_message().queue_url(&queue.url).receipt_handle("x");
    assert_eq!(code(delete.send().await), "ReceiptHandleIsInvalid");
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html>
async fn a_message_that_is_not_in_flight_stays_visible(side: Side) {
    let queue = Queue::new(&side).await;
    queue.send("x").await;
    let message = queue.receive_one(0, 0).await;
    let change = queue.client.change_message_visibility().queue_url(&queue.url).visibility_timeout(60);
    let changed = change.receipt_handle(receipt(&message)).send().await;
    assert_eq!(code(changed), "AWS.SimpleQueueService.MessageNotInflight");
    assert_eq!(queue.counts().await, ["1", "0", "0"]);
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html>
async fn an_attribute_has_a_name_a_type_and_a_value(side: Side) {
    let queue = Queue::new(&side).await;
    let of_type = |data_type: &str| MessageAttributeValue::builder().data_type(data_type).string_value("x").build();
    for (name, value) in [
        ("AWS.name", text("x")),
        ("a b", text("x")),
        ("name", text("")),
        ("name", of_type("Text").expect("a type")),
        ("name", of_type("Binary").expect("a type")),
    ] {
        let send = queue.client.send_message().queue_url(&queue.url).message_body("x").message_attributes(name, value);
        assert_eq!(code(send.send().await), "InvalidParameterValue", "{name}");
    }
}

async fn an_attribute_of_a_queue_that_is_not_known_is_refused(side: Side) {
    let queue = Queue::new(&side).await;
    let colour = Attribute::from("Colour");
    let ask = queue.client.get_queue_attributes().queue_url(&queue.url).attribute_names(colour.clone());
    assert_eq!(code(ask.send().await), "InvalidAttributeName");
    let make = side.queues().create_queue().queue_name(side.unique("queue")).attributes(colour, "red");
    assert_eq!(code(make.send().await), "InvalidAttributeName");
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html>
async fn a_long_backlog_of_one_group_does_not_hold_up_the_others(side: Side) {
    let queue = Queue::new(&side).await;
    let send = async |group: &str, batches: usize| {
        for _ in 0..batches {
            let entries = (0..10).map(|number| {
                let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body("x");
                entry.message_group_id(group).build().expect("complete")
            });
            let sent = queue.client.send_message_batch().queue_url(&queue.url).set_entries(Some(entries.collect()));
            assert_eq!(sent.send().await.expect("sent").successful().len(), 10);
        }
    };
    send("loud", 10).await;
    send("quiet", 1).await;
    let mut groups = Vec::new();
    for _ in 0..5 {
        let received = queue.receive(0, 60).await;
        groups.extend(received.iter().filter_map(|message| own(message, Own::MessageGroupId)).map(str::to_owned));
    }
    let first = groups.iter().position(|group| group == "quiet").expect("it is received");
    assert!(first <= 30, "30 in flight are noisy, and these are all: {first}");
}
