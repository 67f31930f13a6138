//! Messages that SQS accepts, alone and in batches.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>

use aws_sdk_sqs::{
    primitives::Blob,
    types::{
        DeleteMessageBatchRequestEntry, MessageAttributeValue, MessageSystemAttributeName as Own,
        QueueAttributeName as Attribute,
    },
};

use crate::{
    queue::{Queue, code, entry, own, receipt, text},
    side::{Side, cases},
};

cases![
    a_message_is_sent_received_and_deleted,
    a_message_keeps_its_attributes,
    each_entry_of_a_batch_succeeds_or_fails_by_itself,
    a_batch_has_its_bounds,
    characters_that_sqs_does_not_take_are_refused,
    messages_name_a_group;
    a_message_is_measured_with_its_attributes: "ministack measures the text alone",
    an_attribute_has_a_name_a_type_and_a_value: "ministack takes any attribute",
];

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
    assert_eq!(queue.counts().await, ["0", "0", "0"], "none of them was sent");
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

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
async fn a_message_is_measured_with_its_attributes(side: Side) {
    let queue = Queue::with(&side, &[(Attribute::MaximumMessageSize, "1024")]).await;
    let send = |size: usize| {
        let send = queue.client.send_message().queue_url(&queue.url).message_body("x".repeat(size));
        send.message_attributes("name", text("value")).send()
    };
    // Together, the name, the type and the value are 15 bytes.
    send(1024 - 15).await.expect("the maximum size");
    assert_eq!(code(send(1024 - 14).await), "InvalidParameterValue");
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
