//! The requests. All members are optional here, so that a missing member is reported as missing, not as malformed JSON.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;

use crate::{
    message::{Attribute, AttributeValue, Attributes, NewMessage},
    refusal::{Refusal, within},
};

/// The only system attribute that a sender may set.
const TRACE: &str = "AWSTraceHeader";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct QueueRequest {
    pub queue_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListRequest {
    #[serde(default)]
    pub queue_name_prefix: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateRequest {
    pub queue_name: Option<String>,
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttributesRequest {
    pub queue_url: Option<String>,
    #[serde(default)]
    pub attribute_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SendRequest {
    pub queue_url: Option<String>,
    #[serde(flatten)]
    pub message: MessageRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReceiveRequest {
    pub queue_url: Option<String>,
    pub max_number_of_messages: Option<i64>,
    pub visibility_timeout: Option<i64>,
    pub wait_time_seconds: Option<i64>,
    #[serde(default)]
    pub attribute_names: Vec<String>,
    #[serde(default)]
    pub message_system_attribute_names: Vec<String>,
    #[serde(default)]
    pub message_attribute_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReceiptRequest {
    pub queue_url: Option<String>,
    pub receipt_handle: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BatchRequest<E> {
    pub queue_url: Option<String>,
    #[serde(default = "Vec::new")]
    pub entries: Vec<E>,
}

/// An entry of a batch.
pub trait Entry {
    fn id(&self) -> &str;
}

macro_rules! entries {
    ($($name:ident { $($field:tt)* })*) => {
        $(
            #[derive(Deserialize)]
            #[serde(rename_all = "PascalCase")]
            pub struct $name {
                #[serde(default)]
                pub id: String,
                $($field)*
            }

            impl Entry for $name {
                fn id(&self) -> &str {
                    &self.id
                }
            }
        )*
    };
}

entries! {
    NewEntry { #[serde(flatten)] pub message: MessageRequest, }
    ReceiptEntry { pub receipt_handle: Option<String>, }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MessageRequest {
    message_body: Option<String>,
    delay_seconds: Option<i64>,
    #[serde(default)]
    message_attributes: BTreeMap<String, AttributeRequest>,
    #[serde(default)]
    message_system_attributes: BTreeMap<String, AttributeRequest>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AttributeRequest {
    #[serde(default)]
    data_type: String,
    string_value: Option<String>,
    binary_value: Option<String>,
}

impl MessageRequest {
    pub fn read(self) -> Result<NewMessage, Refusal> {
        if self.message_deduplication_id.is_some() {
            let reason = "The request include parameter that is not valid for this queue type";
            let message = format!("Value for parameter MessageDeduplicationId is invalid. Reason: {reason}");
            return Err(Refusal::invalid(message));
        }
        let delay: Option<u64> = match self.delay_seconds {
            None => None,
            given => Some(within("DelaySeconds", given, 0..=900, 0)?),
        };
        let attributes = self.message_attributes.into_iter().map(|(name, attribute)| {
            let attribute = attribute.read(&name)?;
            Ok((name, attribute))
        });
        let attributes: Attributes = attributes.collect::<Result<_, Refusal>>()?;
        let mut trace = None;
        for (name, attribute) in self.message_system_attributes {
            match attribute.read(&name)? {
                Attribute { value: AttributeValue::Text(text), .. } if name == TRACE => trace = Some(text),
                _ => return Err(Refusal::invalid(format!("Message system attribute name '{name}' is invalid."))),
            }
        }
        Ok(NewMessage {
            body: self.message_body.ok_or_else(|| Refusal::missing("MessageBody"))?,
            attributes,
            trace,
            group: self.message_group_id,
            delay: delay.map(Duration::from_secs),
        })
    }
}

impl AttributeRequest {
    fn read(self, name: &str) -> Result<Attribute, Refusal> {
        let value = match (self.string_value, self.binary_value) {
            (Some(text), None) => AttributeValue::Text(text),
            (None, Some(encoded)) => {
                let malformed = |_| Refusal::invalid(format!("Message (user) attribute '{name}' is not Base64."));
                AttributeValue::Bytes(BASE64_STANDARD.decode(encoded).map_err(malformed)?)
            }
            _ => {
                let kind = &self.data_type;
                let message =
                    format!("Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'.");
                return Err(Refusal::invalid(message));
            }
        };
        Ok(Attribute { data_type: self.data_type, value })
    }
}
