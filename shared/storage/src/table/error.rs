//! The table's errors, translated from DynamoDB's.

use std::sync::Arc;

use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use problem::Problem;

use super::key::Key;
use crate::aws::CallError;

/// A failed call to the table.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TableError {
    /// DynamoDB was unreachable, throttled the request or failed, after the SDK's retries.
    #[error("the table did not answer: {doing}")]
    Unavailable {
        /// The operation under way, for the log.
        doing: &'static str,
        /// Whether DynamoDB throttled the request, so that it was not carried out.
        throttled: bool,
        /// The SDK's error.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// DynamoDB refused the request: a fault of this program or of its permissions.
    #[error("the table refused a request: {doing}")]
    Refused {
        /// The operation under way, for the log.
        doing: &'static str,
        /// The SDK's error.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An item does not have the format that this program writes.
    #[error("an item in the table could not be read or written: {doing}{}", at(key.as_ref()))]
    Item {
        /// The operation under way, for the log.
        doing: &'static str,
        /// The item's key; `None` for a write.
        key: Option<Key>,
        /// The fault in the item.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An item that must exist is missing.
    #[error("an item that must exist is missing: {0}")]
    Missing(&'static str),
}

fn at(key: Option<&Key>) -> String {
    key.map(|key| format!(" (`{}` / `{}`)", key.partition, key.sort)).unwrap_or_default()
}

/// The codes of throttled requests, which were not carried out.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>
const THROTTLED: [&str; 5] = [
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionConflictException",
];
/// The codes of failures after which the request may have been carried out. An earlier call with the token of a
/// transaction in progress may still succeed.
const FAILED: [&str; 3] = ["InternalServerError", "ServiceUnavailable", "TransactionInProgressException"];

impl TableError {
    /// Translates an error of the SDK.
    pub(super) fn sdk<E>(doing: &'static str) -> impl Fn(SdkError<E>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        move |error| {
            let passing = match &error {
                SdkError::ServiceError(service) => {
                    service.raw().status().is_server_error() || service.err().code().is_some_and(is_transient)
                }
                SdkError::ConstructionFailure(_) => false,
                _ => true,
            };
            let throttled = error.as_service_error().is_some_and(|error| error.code().is_some_and(throttled_code));
            let source = Arc::new(CallError::of(&error));
            if passing { Self::Unavailable { doing, throttled, source } } else { Self::Refused { doing, source } }
        }
    }

    /// A request that could not be built.
    pub(super) fn unbuilt(doing: &'static str) -> impl Fn(BuildError) -> Self {
        move |error| Self::Refused { doing, source: Arc::new(error) }
    }

    /// The reason code of a request in a batch or a transaction, as an error.
    pub fn code(doing: &'static str, code: &str) -> Self {
        let source =
            Box::<dyn std::error::Error + Send + Sync>::from(format!("the response has the code {code}")).into();
        if is_transient(code) {
            Self::Unavailable { doing, throttled: throttled_code(code), source }
        } else {
            Self::Refused { doing, source }
        }
    }

    /// A request that got no response before the caller's deadline.
    pub fn late() -> Self {
        let source = Box::<dyn std::error::Error + Send + Sync>::from("no response before the deadline").into();
        Self::Unavailable { doing: "waiting for the table", throttled: false, source }
    }
}

fn is_transient(code: &str) -> bool {
    throttled_code(code) || FAILED.contains(&code)
}

/// Whether a code means that the request was throttled. The reason codes of batches and transactions differ from the
/// error codes of single calls.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html>
fn throttled_code(code: &str) -> bool {
    const REASONS: [&str; 4] =
        ["ProvisionedThroughputExceeded", "RequestLimitExceeded", "ThrottlingError", "TransactionConflict"];
    REASONS.contains(&code) || THROTTLED.contains(&code)
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Unavailable { .. } => Self::unavailable(error),
            TableError::Refused { .. } | TableError::Item { .. } | TableError::Missing(_) => Self::internal(error),
        }
    }
}
