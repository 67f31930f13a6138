//! The queue that a case uses, with shorthand methods for calls.

use std::collections::HashMap;

use aws_sdk_sqs::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    types::{
        Message, MessageAttributeValue, MessageSystemAttributeName as Own, QueueAttributeName as Attribute,
        SendMessageBatchRequestEntry,
    },
};

use crate::side::Side;

/// The error code of a refused call.
pub fn code<T: std::fmt::Debug, E: ProvideErrorMetadata, R>(outcome: Result<T, SdkError<E, R>>) -> String {
    match outcome {
        Err(SdkError::ServiceError(refused)) => refused.err().code().unwrap_or_default().to_owned(),
        Err(_) => "no answer".to_owned(),
        Ok(answer) => panic!("the call is not refused: {answer:?}"),
    }
}

/// A queue for one case.
pub struct Queue {
    pub client: Client,
    pub url: String,
}

impl Queue {
    pub async fn new(side: &Side) -> Self {
        Self::with(side, &[]).await
    }

    pub async fn with(side: &Side, attributes: &[(Attribute, &str)]) -> Self {
        let client = side.queues();
        let attributes = attributes.iter().map(|(name, value)| (name.clone(), (*value).to_owned())).collect();
        let made = client.create_queue().queue_name(side.unique("queue")).set_attributes(Some(attributes)).send();
        let url = made.await.expect("a new name").queue_url.expect("an address");
        Self { client, url }
    }

    pub async fn send(&self, body: &str) {
        self.client.send_message().queue_url(&self.url).message_body(body).send().await.expect("sent");
    }

    pub async fn send_delayed(&self, body: &str, delay: i32) {
        let send = self.client.send_message().queue_url(&self.url).message_body(body).delay_seconds(delay);
        send.send().await.expect("sent");
    }

    /// Receives at most ten messages, with all attributes.
    pub async fn receive(&self, wait: i32, visibility: i32) -> Vec<Message> {
        let receive = self.client.receive_message().queue_url(&self.url).max_number_of_messages(10);
        let receive = receive.message_system_attribute_names(Own::All).message_attribute_names("All");
        let received = receive.wait_time_seconds(wait).visibility_timeout(visibility).send().await;
        received.expect("an answer").messages.unwrap_or_default()
    }

    pub async fn receive_one(&self, wait: i32, visibility: i32) -> Message {
        let mut messages = self.receive(wait, visibility).await;
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    pub async fn delete(&self, message: &Message) {
        let delete = self.client.delete_message().queue_url(&self.url).receipt_handle(receipt(message));
        delete.send().await.expect("deleted");
    }

    pub async fn attributes(&self) -> HashMap<Attribute, String> {
        let asked = self.client.get_queue_attributes().queue_url(&self.url).attribute_names(Attribute::All);
        asked.send().await.expect("an answer").attributes.expect("there are some")
    }

    /// The numbers of visible, in-flight and delayed messages.
    pub async fn counts(&self) -> [String; 3] {
        let attributes = self.attributes().await;
        [
            Attribute::ApproximateNumberOfMessages,
            Attribute::ApproximateNumberOfMessagesNotVisible,
            Attribute::ApproximateNumberOfMessagesDelayed,
        ]
        .map(|name| attributes[&name].clone())
    }
}

pub fn receipt(message: &Message) -> &str {
    message.receipt_handle().expect("a receipt")
}

pub fn body(message: &Message) -> &str {
    message.body().expect("a text")
}

pub fn own(message: &Message, name: Own) -> Option<&str> {
    message.attributes()?.get(&name).map(String::as_str)
}

pub fn text(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder().data_type("String").string_value(value).build().expect("a type")
}

pub fn entry(id: &str, body: &str) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry::builder().id(id).message_body(body).build().expect("complete")
}
