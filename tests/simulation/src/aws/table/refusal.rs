//! Errors, in DynamoDB's format.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Item, value::object};

/// A response that reports an error.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body, with the kind of error as `__type`.
    pub body: Value,
}

/// A malformed request, or a request for something that the simulated table does not support.
#[derive(Debug)]
pub(super) struct Invalid(pub String);

pub(super) type Checked<T> = Result<T, Invalid>;

/// Why DynamoDB did not perform a well-formed write of one item.
#[derive(Debug)]
pub(super) enum Fault {
    /// The condition was not met. Contains the item if it exists and the request asked for it.
    Lost(Option<Arc<Item>>),
    /// The partition currently refuses all requests.
    Throttled,
    /// A transaction that includes the item is in progress.
    Conflict,
    /// The write is not valid for the item.
    Invalid(String),
}

impl Invalid {
    /// The error for a part of a request that the simulated table does not know. Such a part must never be ignored,
    /// because DynamoDB would act on it.
    pub fn unknown(what: &str, name: impl std::fmt::Display) -> Self {
        Self(format!("the simulated table knows no such {what}: {name}"))
    }
}

impl Refusal {
    pub(super) fn of(kind: &str, message: &str) -> Self {
        Self { status: 400, body: json!({ "__type": kind_of(kind), "message": message }) }
    }

    pub(super) fn unknown_operation(operation: &str) -> Self {
        let kind = "com.amazon.coral.service#UnknownOperationException";
        Self { status: 400, body: json!({ "__type": kind, "message": operation }) }
    }

    /// The error for a read from a throttled partition of a table with on-demand capacity.
    pub(super) fn throttled() -> Self {
        Self::of("ThrottlingException", Fault::Throttled.message())
    }

    /// The error for a batch if no item could be read.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
    pub(super) fn nothing_read() -> Self {
        Self::of("ProvisionedThroughputExceededException", Fault::Throttled.message())
    }

    /// The error for a cancelled transaction, with the reason for each write that has one.
    pub(super) fn cancelled(reasons: &[Option<Fault>]) -> Self {
        let code = |reason: &Option<Fault>| reason.as_ref().map_or("None", Fault::code);
        let codes: Vec<_> = reasons.iter().map(code).collect();
        let message = format!(
            "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
            codes.join(", ")
        );
        let reasons: Vec<_> =
            reasons.iter().map(|reason| reason.as_ref().map_or(json!({ "Code": "None" }), Fault::reason)).collect();
        let kind = kind_of("TransactionCanceledException");
        Self { status: 400, body: json!({ "__type": kind, "Message": message, "CancellationReasons": reasons }) }
    }
}

impl Fault {
    /// The code that identifies the fault in a transaction's reasons and in the errors of a batch of statements.
    fn code(&self) -> &'static str {
        match self {
            Self::Lost(_) => "ConditionalCheckFailed",
            Self::Throttled => "ThrottlingError",
            Self::Conflict => "TransactionConflict",
            Self::Invalid(_) => "ValidationError",
        }
    }

    fn message(&self) -> &str {
        match self {
            Self::Lost(_) => "The conditional request failed",
            Self::Throttled => {
                "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling \
                 your table or index so please try again shortly."
            }
            Self::Conflict => "Transaction is ongoing for the item",
            Self::Invalid(message) => message,
        }
    }

    /// The fault as a transaction's reason, or as a statement's error.
    pub fn reason(&self) -> Value {
        let mut reason = json!({ "Code": self.code(), "Message": self.message() });
        if let Self::Lost(Some(item)) = self {
            reason["Item"] = object(item);
        }
        reason
    }
}

impl From<Invalid> for Refusal {
    fn from(Invalid(message): Invalid) -> Self {
        Self::of("ValidationException", &message)
    }
}

impl From<Invalid> for Fault {
    fn from(Invalid(message): Invalid) -> Self {
        Self::Invalid(message)
    }
}

/// The response for a single write.
impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let kind = match &fault {
            Fault::Lost(_) => "ConditionalCheckFailedException",
            Fault::Throttled => "ThrottlingException",
            Fault::Conflict => "TransactionConflictException",
            Fault::Invalid(_) => "ValidationException",
        };
        let mut refusal = Self::of(kind, fault.message());
        if let Fault::Lost(Some(item)) = &fault {
            refusal.body["Item"] = object(item);
        }
        refusal
    }
}

fn kind_of(name: &str) -> String {
    format!("com.amazonaws.dynamodb.v20120810#{name}")
}
