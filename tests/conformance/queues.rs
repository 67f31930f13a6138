//! The SQS queue operations that functions, operators and the pump use.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Operations.html>

use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use serde_json::json;

use crate::{
    queue::{Queue, code, entry},
    side::{Side, cases},
};

cases![
    a_queue_is_made_found_and_described,
    a_queue_is_made_again_with_the_same_attributes_only,
    attributes_of_a_queue_have_their_bounds,
    a_queue_that_is_not_there_is_not_found,
    a_queue_counts_its_messages,
    a_purged_queue_is_empty;
    an_attribute_of_a_queue_that_is_not_known_is_refused: "ministack answers without it",
];

async fn a_queue_is_made_found_and_described(side: Side) {
    let client = side.queues();
    let name = side.unique("queue");
    let made = client.create_queue().queue_name(&name).attributes(Attribute::VisibilityTimeout, "720").send().await;
    let url = made.expect("a new name").queue_url.expect("an address");
    assert!(url.ends_with(&format!("/000000000000/{name}")), "{url}");
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
    let client = side.queues();
    let name = side.unique("queue");
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
    let client = side.queues();
    let name = side.unique("absent");
    let absent = "AWS.SimpleQueueService.NonExistentQueue";
    let url = Queue::new(&side).await.url;
    let url = format!("{}/{name}", url.rsplit_once('/').expect("an address").0);
    assert_eq!(code(client.send_message().queue_url(&url).message_body("x").send().await), absent);
    assert_eq!(code(client.receive_message().queue_url(&url).send().await), absent);
    assert_eq!(code(client.delete_message().queue_url(&url).receipt_handle("x").send().await), absent);
    assert_eq!(code(client.purge_queue().queue_url(&url).send().await), absent);
    assert_eq!(code(client.get_queue_attributes().queue_url(&url).send().await), absent);
    let batch = client.send_message_batch().queue_url(&url).entries(entry("1", "x"));
    assert_eq!(code(batch.send().await), absent);
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

async fn an_attribute_of_a_queue_that_is_not_known_is_refused(side: Side) {
    let queue = Queue::new(&side).await;
    let colour = Attribute::from("Colour");
    let ask = queue.client.get_queue_attributes().queue_url(&queue.url).attribute_names(colour.clone());
    assert_eq!(code(ask.send().await), "InvalidAttributeName");
    let make = side.queues().create_queue().queue_name(side.unique("queue")).attributes(colour, "red");
    assert_eq!(code(make.send().await), "InvalidAttributeName");
}
