//! Messages with SQS's limits and checksums. Each receive of a message creates a new receipt.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use base::Time;
use md5::{Digest, Md5};

use crate::{
    ready::Number,
    refusal::{Kind, Refusal},
};

/// The maximum number of attributes per message.
const MAX_ATTRIBUTES: usize = 10;
/// The maximum length of an attribute's name and of its type, in characters.
const MAX_NAME: usize = 256;
/// The maximum length of a group's name, in characters.
const MAX_GROUP: usize = 128;

/// A message to be sent.
#[derive(Debug, Clone, Default)]
pub struct NewMessage {
    /// The message's text.
    pub body: String,
    /// The sender's attributes, keyed by name.
    pub attributes: Attributes,
    /// The sender's trace, which becomes an attribute only on receipt.
    pub trace: Option<String>,
    /// The message group, for fairness between groups.
    pub group: Option<String>,
    /// The delay before the message can be received, by default the queue's.
    pub delay: Option<Duration>,
}

/// A message's attributes, keyed by name.
pub type Attributes = BTreeMap<String, Attribute>;

/// An attribute of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The type: `String`, `Number` or `Binary`, optionally followed by a dot and a custom label.
    pub data_type: String,
    /// The attribute's value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A `String` or `Number` value.
    Text(String),
    /// A `Binary` value.
    Bytes(Vec<u8>),
}

/// A sent message, which is immutable.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// The message's identifier, a UUID.
    pub id: String,
    /// The message's text.
    pub body: String,
    /// The MD5 hash of the text, in hexadecimal.
    pub md5: String,
    /// The sender's attributes.
    pub attributes: Attributes,
    /// The sender's trace.
    pub trace: Option<String>,
    /// The message group, for fairness between groups.
    pub group: Option<Arc<str>>,
    /// When the message was sent.
    pub sent: Time,
}

impl NewMessage {
    /// The size of the text and the attributes in bytes, which SQS limits.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
    pub fn size(&self) -> usize {
        let attributes = self.attributes.iter();
        let sizes =
            attributes.map(|(name, attribute)| name.len() + attribute.data_type.len() + attribute.value.bytes().len());
        self.body.len() + sizes.sum::<usize>()
    }

    /// The message with its identifier and time, if SQS would accept it.
    pub(crate) fn accepted(self, id: String, sent: Time, max_bytes: usize) -> Result<Message, Refusal> {
        if self.body.is_empty() {
            return Err(Refusal::missing("MessageBody"));
        }
        if self.size() > max_bytes {
            let reason = format!("Message must be shorter than {max_bytes} bytes.");
            return Err(Refusal::invalid(format!("One or more parameters are invalid. Reason: {reason}")));
        }
        check_characters(&self.body)?;
        if self.attributes.len() > MAX_ATTRIBUTES {
            let count = self.attributes.len();
            let message =
                format!("Number of message attributes [{count}] exceeds the allowed maximum [{MAX_ATTRIBUTES}].");
            return Err(Refusal::invalid(message));
        }
        self.attributes.iter().try_for_each(|(name, attribute)| attribute.check(name))?;
        self.group.as_deref().map_or(Ok(()), check_group)?;
        Ok(Message {
            id,
            md5: hexadecimal(&Md5::digest(&self.body)),
            body: self.body,
            attributes: self.attributes,
            trace: self.trace,
            group: self.group.map(Arc::from),
            sent,
        })
    }
}

impl AttributeValue {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Attribute {
    /// Checks an attribute's name, type and value.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html>
    fn check(&self, name: &str) -> Result<(), Refusal> {
        let lower = name.to_ascii_lowercase();
        let is_name = (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"_-.".contains(&letter))
            && !(name.starts_with('.') || name.ends_with('.') || name.contains(".."))
            && !(lower.starts_with("aws.") || lower.starts_with("amazon."));
        if !is_name {
            return Err(Refusal::invalid(format!("Invalid message attribute name '{name}'.")));
        }
        let of = |message: String| Err(Refusal::invalid(format!("Message (user) attribute '{name}' {message}")));
        let kind = self.data_type.split('.').next().unwrap_or_default();
        let fits = match (&self.value, kind) {
            (AttributeValue::Text(_), "String" | "Number") | (AttributeValue::Bytes(_), "Binary") => true,
            (_, "String" | "Number" | "Binary") => false,
            _ => return of(format!("has an invalid message attribute type, '{}'.", self.data_type)),
        };
        if !fits || self.value.bytes().is_empty() {
            return of(format!("must contain a non-empty value of type '{kind}'."));
        }
        if self.data_type.len() > MAX_NAME {
            return of("has a type that is too long.".to_owned());
        }
        match &self.value {
            AttributeValue::Text(text) => check_characters(text),
            AttributeValue::Bytes(_) => Ok(()),
        }
    }
}

/// Checks that a string contains only XML 1.0 characters, as SQS requires.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn check_characters(text: &str) -> Result<(), Refusal> {
    let is_taken = |letter| match letter {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        other => other >= ' ',
    };
    if text.chars().all(is_taken) {
        return Ok(());
    }
    let message = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to \
                   #xFFFD | #x10000 to #x10FFFF";
    Err(Refusal::new(Kind::InvalidMessageContents, message))
}

/// Checks that a group's name contains only ASCII letters, digits and punctuation.
fn check_group(group: &str) -> Result<(), Refusal> {
    if (1..=MAX_GROUP).contains(&group.len()) && group.bytes().all(|letter| letter.is_ascii_graphic()) {
        return Ok(());
    }
    let reason = "MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.";
    Err(Refusal::invalid(format!("Value {group} for parameter MessageGroupId is invalid. Reason: {reason}")))
}

/// The MD5 hash of the attributes, in hexadecimal; `None` if there are none.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html>
pub(crate) fn attributes_md5<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a Attribute)>) -> Option<String> {
    fn part(digest: &mut Md5, bytes: &[u8]) {
        // Every part is shorter than 4 GiB, since a message has at most 1 MiB.
        digest.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
        digest.update(bytes);
    }
    let mut attributes = attributes.into_iter().peekable();
    attributes.peek()?;
    let mut digest = Md5::new();
    for (name, Attribute { data_type, value }) in attributes {
        part(&mut digest, name.as_bytes());
        part(&mut digest, data_type.as_bytes());
        digest.update(match value {
            AttributeValue::Text(_) => [1],
            AttributeValue::Bytes(_) => [2],
        });
        part(&mut digest, value.bytes());
    }
    Some(hexadecimal(&digest.finalize()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// One receipt of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The queue's random number, so that a receipt from another queue or run deletes nothing.
    pub queue: u64,
    pub number: Number,
    /// The number of the receive, starting at 1.
    pub receive: u32,
}

const LENGTH: usize = 16 + 16 + 8;

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}{:08x}", self.queue, self.number, self.receive)
    }
}

impl FromStr for Receipt {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.len() != LENGTH || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Refusal::receipt());
        }
        let part = |from, to| u64::from_str_radix(&text[from..to], 16).map_err(|_| Refusal::receipt());
        let receive = u32::try_from(part(32, LENGTH)?).map_err(|_| Refusal::receipt())?;
        Ok(Self { queue: part(0, 16)?, number: part(16, 32)?, receive })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(data_type: &str, value: &str) -> Attribute {
        Attribute { data_type: data_type.to_owned(), value: AttributeValue::Text(value.to_owned()) }
    }

    fn bytes(data_type: &str, value: &[u8]) -> Attribute {
        Attribute { data_type: data_type.to_owned(), value: AttributeValue::Bytes(value.to_owned()) }
    }

    fn accepted(new: NewMessage) -> Result<Message, Kind> {
        new.accepted("id".to_owned(), Time::from_millis(0), 1024).map_err(|refusal| refusal.kind)
    }

    fn with(name: &str, attribute: Attribute) -> Result<Message, Kind> {
        let attributes = [(name.to_owned(), attribute)].into();
        accepted(NewMessage { body: "text".to_owned(), attributes, ..NewMessage::default() })
    }

    #[test]
    fn checksums_are_those_of_sqs() {
        let message = accepted(NewMessage { body: "This is a test message".to_owned(), ..NewMessage::default() });
        assert_eq!(message.unwrap().md5, "fafb00f5732ab283681e124bf8747ed1");
        // botocore and the SDK for Java compute the same hash.
        let attributes: Attributes = [
            ("timestamp".to_owned(), text("Number", "1493147359900")),
            ("blob".to_owned(), bytes("Binary", &[0, 1, 255])),
        ]
        .into();
        let encoded = b"\0\0\0\x04blob\0\0\0\x06Binary\x02\0\0\0\x03\0\x01\xff\
            \0\0\0\x09timestamp\0\0\0\x06Number\x01\0\0\0\x0d1493147359900";
        assert_eq!(attributes_md5(&attributes), Some(hexadecimal(&Md5::digest(encoded))));
        assert_eq!(attributes_md5(&Attributes::new()), None);
    }

    #[test]
    fn a_message_is_measured_with_its_attributes() {
        let sized = |body: usize| NewMessage {
            body: "x".repeat(body),
            attributes: [("name".to_owned(), text("String", "value"))].into(),
            ..NewMessage::default()
        };
        assert_eq!(sized(1).size(), 1 + 4 + 6 + 5);
        assert!(accepted(sized(1024 - 15)).is_ok());
        assert_eq!(accepted(sized(1024 - 14)), Err(Kind::InvalidParameterValue));
    }

    #[test]
    fn characters_outside_xml_are_refused() {
        for body in ["\0", "\u{8}", "a\u{1f}", "\u{fffe}", "\u{ffff}"] {
            let new = NewMessage { body: body.to_owned(), ..NewMessage::default() };
            assert_eq!(accepted(new), Err(Kind::InvalidMessageContents), "{body:?}");
        }
        for body in ["\t\r\n ", "\u{7f}", "\u{fffd}", "😀"] {
            assert!(accepted(NewMessage { body: body.to_owned(), ..NewMessage::default() }).is_ok(), "{body:?}");
        }
        assert_eq!(accepted(NewMessage::default()), Err(Kind::MissingParameter));
    }

    #[test]
    fn attributes_have_names_types_and_values_that_fit() {
        for name in ["", ".a", "a.", "a..b", "AWS.a", "amazon.a", "a b", "é", &"a".repeat(257)] {
            assert_eq!(with(name, text("String", "x")), Err(Kind::InvalidParameterValue), "{name}");
        }
        for attribute in [text("String", ""), text("Binary", "x"), text("Text", "x"), bytes("String", b"x")] {
            assert_eq!(with("name", attribute.clone()), Err(Kind::InvalidParameterValue), "{attribute:?}");
        }
        for attribute in [text("String.json", "{}"), text("Number", "1"), bytes("Binary.png", b"x")] {
            assert!(with("a_name-1.b", attribute).is_ok());
        }
        assert_eq!(with("name", text("String", "\0")), Err(Kind::InvalidMessageContents));
        let attributes = (0..11).map(|number| (number.to_string(), text("String", "x"))).collect();
        let many = NewMessage { body: "x".to_owned(), attributes, ..NewMessage::default() };
        assert_eq!(accepted(many), Err(Kind::InvalidParameterValue));
    }

    #[test]
    fn groups_have_names_without_spaces() {
        let of =
            |group: &str| NewMessage { body: "x".to_owned(), group: Some(group.to_owned()), ..NewMessage::default() };
        for group in ["", "a b", "é", &"a".repeat(129)] {
            assert_eq!(accepted(of(group)), Err(Kind::InvalidParameterValue), "{group}");
        }
        assert!(accepted(of("demo-hotel/1:2")).is_ok());
    }

    #[test]
    fn a_receipt_is_read_back_and_nothing_else_is_one() {
        let receipt = Receipt { queue: u64::MAX - 1, number: 7, receive: 3 };
        assert_eq!(receipt.to_string().parse(), Ok(receipt));
        for text in ["", "x", &"0".repeat(39), &"g".repeat(40), &"é".repeat(20), &format!("+{}", "0".repeat(39))] {
            assert!(text.parse::<Receipt>().is_err(), "{text}");
        }
    }
}
