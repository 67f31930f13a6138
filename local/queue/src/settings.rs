//! The queue attributes that a queue's creator sets.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html>

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use serde::Deserialize;
use serde_json::Value;

use crate::refusal::{Kind, Refusal};

/// The maximum size of a message with its attributes, and of all messages in a batch together, in bytes.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// Attributes that are stored but have no effect.
const WITHOUT_EFFECT: [&str; 5] =
    ["KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "Policy", "RedriveAllowPolicy", "SqsManagedSseEnabled"];
/// Attributes that only FIFO queues have.
const OF_FIFO: [&str; 4] = ["ContentBasedDeduplication", "DeduplicationScope", "FifoQueue", "FifoThroughputLimit"];

/// A queue's attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The visibility timeout.
    pub visibility: Duration,
    /// The delay of a new message.
    pub delay: Duration,
    /// The age at which a message is dropped.
    pub retention: Duration,
    /// The maximum size of a message with its attributes, in bytes.
    pub max_bytes: usize,
    /// How long a receive waits by default.
    pub wait: Duration,
    pub redrive: Option<Redrive>,
    /// Attributes without effect, stored unchanged.
    pub others: BTreeMap<String, String>,
}

/// The redrive policy: the dead-letter queue, and when messages move there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redrive {
    /// The name of the dead-letter queue.
    pub queue: String,
    /// How often a message is received before it moves to that queue.
    pub receives: u32,
    pub policy: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            visibility: Duration::from_secs(30),
            delay: Duration::ZERO,
            retention: Duration::from_secs(4 * 24 * 3600),
            max_bytes: MAX_BYTES,
            wait: Duration::ZERO,
            redrive: None,
            others: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The settings of a new queue. `queue_of` looks up a queue's name by its ARN.
    pub fn read(
        attributes: &BTreeMap<String, String>,
        queue_of: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Refusal> {
        let mut settings = Self::default();
        for (name, value) in attributes {
            let seconds = |range| Ok(Duration::from_secs(number(name, value, range)?));
            match name.as_str() {
                "VisibilityTimeout" => settings.visibility = seconds(0..=43_200)?,
                "DelaySeconds" => settings.delay = seconds(0..=900)?,
                "MessageRetentionPeriod" => settings.retention = seconds(60..=1_209_600)?,
                "MaximumMessageSize" => {
                    let bytes = number(name, value, 1024..=1_048_576)?;
                    settings.max_bytes = bytes.try_into().unwrap_or(MAX_BYTES);
                }
                "ReceiveMessageWaitTimeSeconds" => settings.wait = seconds(0..=20)?,
                "RedrivePolicy" => settings.redrive = Some(Redrive::read(value, &queue_of)?),
                other if WITHOUT_EFFECT.contains(&other) => {
                    settings.others.insert(name.clone(), value.clone());
                }
                other if OF_FIFO.contains(&other) => {
                    let message = format!("{other}: FIFO queues are not supported on one machine.");
                    return Err(Refusal::new(Kind::UnsupportedOperation, message));
                }
                other => return Err(unknown(other)),
            }
        }
        Ok(settings)
    }

    /// The attributes in the form that `GetQueueAttributes` returns.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        let seconds = |duration: Duration| duration.as_secs().to_string();
        let mut attributes = self.others.clone();
        attributes.entry("SqsManagedSseEnabled".to_owned()).or_insert_with(|| "true".to_owned());
        let known = [
            ("VisibilityTimeout", seconds(self.visibility)),
            ("DelaySeconds", seconds(self.delay)),
            ("MessageRetentionPeriod", seconds(self.retention)),
            ("MaximumMessageSize", self.max_bytes.to_string()),
            ("ReceiveMessageWaitTimeSeconds", seconds(self.wait)),
        ];
        attributes.extend(known.map(|(name, value)| (name.to_owned(), value)));
        attributes.extend(self.redrive.iter().map(|redrive| ("RedrivePolicy".to_owned(), redrive.policy.clone())));
        attributes
    }

    /// Whether an optional attribute has this name.
    pub fn is_name(name: &str) -> bool {
        let settable = ["RedrivePolicy"].into_iter().chain(WITHOUT_EFFECT).chain(OF_FIFO);
        settable.into_iter().any(|known| known == name)
    }
}

impl Redrive {
    fn read(policy: &str, queue_of: impl Fn(&str) -> Option<String>) -> Result<Self, Refusal> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Policy {
            dead_letter_target_arn: String,
            max_receive_count: Value,
        }
        let bad = |reason: &str| {
            let message = format!("Value {policy} for parameter RedrivePolicy is invalid. Reason: {reason}.");
            Refusal::new(Kind::InvalidAttributeValue, message)
        };
        let read: Policy = serde_json::from_str(policy)
            .map_err(|_| bad("it must be a JSON object with deadLetterTargetArn and maxReceiveCount"))?;
        // SQS also accepts this number as a string.
        let receives = match &read.max_receive_count {
            Value::String(text) => text.parse().ok(),
            number => number.as_u64(),
        };
        let receives = receives.filter(|receives| (1..=1000).contains(receives));
        let receives = receives.and_then(|receives| u32::try_from(receives).ok());
        Ok(Self {
            queue: queue_of(&read.dead_letter_target_arn).ok_or_else(|| bad("Dead letter target does not exist"))?,
            receives: receives.ok_or_else(|| bad("maxReceiveCount must be between 1 and 1000"))?,
            policy: policy.to_owned(),
        })
    }
}

/// Refuses an attribute that no queue has.
pub(crate) fn unknown(name: &str) -> Refusal {
    Refusal::new(Kind::InvalidAttributeName, format!("Unknown Attribute {name}."))
}

fn number(name: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    let message = || format!("Invalid value for the parameter {name}.");
    number.ok_or_else(|| Refusal::new(Kind::InvalidAttributeValue, message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(attributes: &[(&str, &str)]) -> Result<Settings, Kind> {
        let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let queue_of = |arn: &str| (arn == "arn:of:dead").then(|| "dead".to_owned());
        Settings::read(&attributes, queue_of).map_err(|refusal| refusal.kind)
    }

    #[test]
    fn unset_attributes_have_the_defaults_of_sqs() {
        let attributes = read(&[("DelaySeconds", "5"), ("Policy", "{}")]).unwrap().attributes();
        let expected = [
            ("DelaySeconds", "5"),
            ("MaximumMessageSize", "1048576"),
            ("MessageRetentionPeriod", "345600"),
            ("Policy", "{}"),
            ("ReceiveMessageWaitTimeSeconds", "0"),
            ("SqsManagedSseEnabled", "true"),
            ("VisibilityTimeout", "30"),
        ];
        assert_eq!(attributes, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn attributes_out_of_range_and_unknown_ones_are_refused() {
        for (name, value) in [
            ("VisibilityTimeout", "43201"),
            ("DelaySeconds", "-1"),
            ("DelaySeconds", "901"),
            ("MessageRetentionPeriod", "59"),
            ("MaximumMessageSize", "1023"),
            ("ReceiveMessageWaitTimeSeconds", "x"),
        ] {
            assert_eq!(read(&[(name, value)]), Err(Kind::InvalidAttributeValue), "{name} {value}");
        }
        assert_eq!(read(&[("Delay", "1")]), Err(Kind::InvalidAttributeName));
        assert_eq!(read(&[("FifoQueue", "true")]), Err(Kind::UnsupportedOperation));
    }

    #[test]
    fn the_dead_letter_queue_must_exist() {
        for count in ["5", "\"5\""] {
            let policy = format!(r#"{{"deadLetterTargetArn":"arn:of:dead","maxReceiveCount":{count}}}"#);
            let settings = read(&[("RedrivePolicy", &policy)]).unwrap();
            assert_eq!(settings.attributes()["RedrivePolicy"], policy);
            let redrive = settings.redrive.unwrap();
            assert_eq!((redrive.queue.as_str(), redrive.receives), ("dead", 5));
        }
        for policy in [
            "",
            "{}",
            "\"text\"",
            r#"{"deadLetterTargetArn":"arn:of:other","maxReceiveCount":5}"#,
            r#"{"deadLetterTargetArn":"arn:of:dead","maxReceiveCount":0}"#,
            r#"{"deadLetterTargetArn":"arn:of:dead","maxReceiveCount":1001}"#,
            r#"{"deadLetterTargetArn":"arn:of:dead","maxReceiveCount":[]}"#,
        ] {
            assert_eq!(read(&[("RedrivePolicy", policy)]), Err(Kind::InvalidAttributeValue), "{policy}");
        }
    }
}
