//! Receiving from SQS: order, waiting, visibility, deletion and dead letters.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use aws_sdk_sqs::types::{
    MessageSystemAttributeName as Own, QueueAttributeName as Attribute, SendMessageBatchRequestEntry,
};
use serde_json::json;

use crate::{
    queue::{Queue, body, code, entry, own, receipt, text},
    side::{Side, cases},
};

cases![
    a_receiver_gets_the_attributes_that_it_names,
    a_receiver_takes_ten_messages_at_most_and_the_oldest_first,
    a_receiver_that_waits_gets_a_message_that_is_sent,
    a_receiver_that_waits_gets_a_message_when_its_delay_ends,
    a_receiver_that_waits_goes_without_messages_when_its_time_is_over,
    a_message_comes_again_when_it_is_visible_again,
    a_message_is_dead_when_it_was_received_too_often;
    values_have_their_bounds: "ministack takes a delay, a wait and a visibility of any length",
    a_message_is_deleted_again_without_an_error: "ministack refuses a used receipt, and one of an earlier receive",
    a_long_backlog_of_one_group_does_not_hold_up_the_others: "ministack knows no fair queues",
];

const SECOND: Duration = Duration::from_secs(1);

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
    let one = queue.client.receive_message().queue_url(&queue.url).visibility_timeout(600);
    let one = one.send().await.expect("an answer");
    assert_eq!(one.messages().iter().map(body).collect::<Vec<_>>(), ["0"], "one by default");
    let ten: Vec<_> = (1..11).map(|number| number.to_string()).collect();
    assert_eq!(queue.receive(0, 60).await.iter().map(body).collect::<Vec<_>>(), ten);
    for most in [0, 11] {
        let receive = queue.client.receive_message().queue_url(&queue.url).max_number_of_messages(most);
        assert_eq!(code(receive.send().await), "InvalidParameterValue");
    }
}

async fn a_receiver_that_waits_gets_a_message_that_is_sent(side: Side) {
    /// The number of tries: on a stalled machine, a receive may take as long as one that waits for its full time.
    const TRIES: usize = 5;
    let queue = Queue::new(&side).await;
    for _ in 0..TRIES {
        let sending = async {
            // Give the receiver enough time to be waiting when the message arrives.
            tokio::time::sleep(SECOND / 5).await;
            queue.send("text").await;
            Instant::now()
        };
        let receiving = async { (queue.receive(20, 600).await, Instant::now()) };
        let ((messages, received), sent) = tokio::join!(receiving, sending);
        assert_eq!(messages.iter().map(body).collect::<Vec<_>>(), ["text"]);
        if received.saturating_duration_since(sent) < 10 * SECOND {
            return;
        }
    }
    panic!("each receive waits to its end");
}

async fn a_receiver_that_waits_gets_a_message_when_its_delay_ends(side: Side) {
    let queue = Queue::new(&side).await;
    queue.send_delayed("much later", 900).await;
    assert_eq!(queue.counts().await, ["0", "0", "1"]);
    let begun = Instant::now();
    queue.send_delayed("later", 3).await;
    assert_eq!(body(&queue.receive_one(20, 60).await), "later");
    // SQS counts in whole milliseconds.
    assert!(begun.elapsed() > 3 * SECOND - Duration::from_millis(2));
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
    assert_eq!(own(&letter, Own::SentTimestamp), own(&sent, Own::SentTimestamp), "its age continues");
    letters.delete(&letter).await;
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
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html>
async fn a_message_is_deleted_again_without_an_error(side: Side) {
    let queue = Queue::new(&side).await;
    queue.send("x").await;
    let former = queue.receive_one(0, 0).await;
    let last = queue.receive_one(0, 60).await;
    queue.delete(&former).await;
    assert_eq!(queue.counts().await, ["0", "1", "0"], "the receipt of an earlier receive deletes nothing");
    queue.delete(&last).await;
    queue.delete(&last).await;
    assert_eq!(queue.counts().await, ["0", "0", "0"]);
    let delete = queue.client.delete_message().queue_url(&queue.url).receipt_handle("x");
    assert_eq!(code(delete.send().await), "ReceiptHandleIsInvalid");
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
    assert!(first <= 30, "30 in flight make a noisy group, and these are all: {first}");
}
