//! The operations' responses.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;

use super::{Batch, ReceiveRequest};
use crate::{
    message::{Attribute, AttributeValue, attributes_md5},
    queue::Received,
    queues::Sent,
};

/// Any operation's response.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Answer {
    Sent(SentAnswer),
    Batch(Batch),
    Messages(Messages),
    Attributes(AttributesAnswer),
    Url(QueueUrl),
    Urls(QueueUrls),
    Nothing(Nothing),
}

#[derive(Serialize)]
pub struct Nothing {}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct QueueUrl {
    pub queue_url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct QueueUrls {
    pub queue_urls: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttributesAnswer {
    pub attributes: BTreeMap<String, String>,
}

#[derive(Serialize)]
pub struct SentAnswer {
    #[serde(rename = "MessageId")]
    id: String,
    #[serde(rename = "MD5OfMessageBody")]
    md5: String,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    attributes_md5: Option<String>,
}

impl From<Sent> for SentAnswer {
    fn from(Sent { id, md5, attributes_md5 }: Sent) -> Self {
        Self { id, md5, attributes_md5 }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Messages {
    /// SQS omits a list that is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessageAnswer>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct MessageAnswer {
    message_id: String,
    receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    md5: String,
    body: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'static str, String>,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    attributes_md5: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    message_attributes: BTreeMap<String, AttributeAnswer>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct AttributeAnswer {
    data_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
}

impl Messages {
    /// The messages with the requested attributes.
    pub fn of(received: &[Received], request: &ReceiveRequest, account: &str) -> Self {
        let message = |received: &Received| {
            let message = &received.message;
            let asked: Vec<_> = message
                .attributes
                .iter()
                .filter(|(name, _)| request.message_attribute_names.iter().any(|asked| is_asked(asked, name)))
                .collect();
            let own = request.attribute_names.iter().chain(&request.message_system_attribute_names);
            let own: Vec<_> = own.map(String::as_str).collect();
            let mut attributes = received.attributes(account);
            attributes.retain(|name, _| own.contains(name) || own.contains(&"All"));
            MessageAnswer {
                message_id: message.id.clone(),
                receipt_handle: received.receipt.clone(),
                md5: message.md5.clone(),
                body: message.body.clone(),
                attributes,
                attributes_md5: attributes_md5(asked.iter().copied()),
                message_attributes: asked
                    .into_iter()
                    .map(|(name, attribute)| (name.clone(), AttributeAnswer::of(attribute)))
                    .collect(),
            }
        };
        Self { messages: received.iter().map(message).collect() }
    }
}

impl AttributeAnswer {
    fn of(attribute: &Attribute) -> Self {
        let (string_value, binary_value) = match &attribute.value {
            AttributeValue::Text(text) => (Some(text.clone()), None),
            AttributeValue::Bytes(bytes) => (None, Some(BASE64_STANDARD.encode(bytes))),
        };
        Self { data_type: attribute.data_type.clone(), string_value, binary_value }
    }
}

/// Whether a requested name or prefix covers the attribute with this name.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>
fn is_asked(asked: &str, name: &str) -> bool {
    match asked.strip_suffix(".*") {
        Some(beginning) => name.starts_with(beginning),
        None => asked == "All" || asked == name,
    }
}
