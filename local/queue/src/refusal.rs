//! Refused requests, with SQS's codes and messages.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html>

use std::ops::RangeInclusive;

/// A request that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The kind of error, for programs to read.
    pub kind: Kind,
    /// The human-readable message.
    pub message: String,
}

/// The kinds of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No queue has this name.
    QueueDoesNotExist,
    /// A queue with this name exists with other attributes.
    QueueNameExists,
    /// The batch has no entries.
    EmptyBatchRequest,
    /// The batch has more than ten entries.
    TooManyEntries,
    /// An entry's identifier is missing, is too long or has invalid characters.
    InvalidBatchEntryId,
    /// Two entries have the same identifier.
    EntryIdsNotDistinct,
    /// Together, the messages in the batch are too large.
    BatchRequestTooLong,
    /// The text contains a character that SQS does not accept.
    InvalidMessageContents,
    /// The receipt is malformed or belongs to another queue.
    ReceiptHandleIsInvalid,
    /// Queues have no attribute with this name.
    InvalidAttributeName,
    /// A queue's attribute cannot have this value.
    InvalidAttributeValue,
    /// SQS supports the request, but this crate does not.
    UnsupportedOperation,
    /// A value is out of range or malformed.
    InvalidParameterValue,
    /// A value is missing.
    MissingParameter,
    /// SQS has no operation with this name.
    InvalidAction,
    /// The body is not JSON, or does not have the operation's shape.
    Serialization,
}

impl Kind {
    /// The name in the member `__type`.
    pub(crate) const fn shape(self) -> &'static str {
        match self {
            Self::QueueDoesNotExist => "com.amazonaws.sqs#QueueDoesNotExist",
            Self::QueueNameExists => "com.amazonaws.sqs#QueueNameExists",
            Self::EmptyBatchRequest => "com.amazonaws.sqs#EmptyBatchRequest",
            Self::TooManyEntries => "com.amazonaws.sqs#TooManyEntriesInBatchRequest",
            Self::InvalidBatchEntryId => "com.amazonaws.sqs#InvalidBatchEntryId",
            Self::EntryIdsNotDistinct => "com.amazonaws.sqs#BatchEntryIdsNotDistinct",
            Self::BatchRequestTooLong => "com.amazonaws.sqs#BatchRequestTooLong",
            Self::InvalidMessageContents => "com.amazonaws.sqs#InvalidMessageContents",
            Self::ReceiptHandleIsInvalid => "com.amazonaws.sqs#ReceiptHandleIsInvalid",
            Self::InvalidAttributeName => "com.amazonaws.sqs#InvalidAttributeName",
            Self::InvalidAttributeValue => "com.amazonaws.sqs#InvalidAttributeValue",
            Self::UnsupportedOperation => "com.amazonaws.sqs#UnsupportedOperation",
            Self::InvalidParameterValue => "com.amazon.coral.service#InvalidParameterValueException",
            Self::MissingParameter => "com.amazon.coral.service#MissingRequiredParameterException",
            Self::InvalidAction => "com.amazon.coral.service#UnknownOperationException",
            Self::Serialization => "com.amazon.coral.service#SerializationException",
        }
    }

    /// The code that SDKs use to distinguish errors. The code comes from the older query protocol; the JSON protocol
    /// sends it in a header.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-json-faqs.html>
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::QueueDoesNotExist => "AWS.SimpleQueueService.NonExistentQueue",
            Self::QueueNameExists => "QueueAlreadyExists",
            Self::EmptyBatchRequest => "AWS.SimpleQueueService.EmptyBatchRequest",
            Self::TooManyEntries => "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
            Self::InvalidBatchEntryId => "AWS.SimpleQueueService.InvalidBatchEntryId",
            Self::EntryIdsNotDistinct => "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
            Self::BatchRequestTooLong => "AWS.SimpleQueueService.BatchRequestTooLong",
            Self::InvalidMessageContents => "InvalidMessageContents",
            Self::ReceiptHandleIsInvalid => "ReceiptHandleIsInvalid",
            Self::InvalidAttributeName => "InvalidAttributeName",
            Self::InvalidAttributeValue => "InvalidAttributeValue",
            Self::UnsupportedOperation => "AWS.SimpleQueueService.UnsupportedOperation",
            Self::InvalidParameterValue => "InvalidParameterValue",
            Self::MissingParameter => "MissingParameter",
            Self::InvalidAction => "InvalidAction",
            Self::Serialization => "MalformedInput",
        }
    }
}

impl Refusal {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidParameterValue, message)
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        Self::new(Kind::MissingParameter, format!("The request must contain the parameter {parameter}."))
    }

    pub(crate) fn receipt() -> Self {
        Self::new(Kind::ReceiptHandleIsInvalid, "The input receipt handle is invalid.")
    }
}

/// The value, or the default if the value is missing.
///
/// # Errors
///
/// Fails if the value is out of range.
pub(crate) fn within<T: TryFrom<i64>>(
    parameter: &str,
    value: Option<i64>,
    range: RangeInclusive<i64>,
    default: T,
) -> Result<T, Refusal> {
    let Some(value) = value else { return Ok(default) };
    let fits = range.contains(&value).then(|| T::try_from(value).ok()).flatten();
    fits.ok_or_else(|| {
        let least = range.start();
        let most = range.end();
        let reason = format!("Must be between {least} and {most}, if provided.");
        Refusal::invalid(format!("Value {value} for parameter {parameter} is invalid. Reason: {reason}"))
    })
}
