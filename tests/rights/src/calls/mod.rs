//! The functions' recorded calls, and the accesses of each.

mod dynamodb;
mod s3;
mod secrets_manager;
mod sqs;

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};
use template::Template;

use crate::{access::Access, partiql::Unread, rights::Rights};

/// A function's call, as `local` recorded it. [`crate::IDENTIFIER`] replaces identifiers in partition keys.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Call {
    /// The function's name.
    pub function: String,
    /// The recorded request.
    #[serde(flatten)]
    pub request: Request,
}

/// The parts of a request that contain the operation, the resources and the partition keys.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Request {
    /// A request in a JSON protocol.
    Json {
        /// The header `X-Amz-Target`, with the interface and the operation: `DynamoDB_20120810.GetItem`.
        target: String,
        /// The request's body.
        body: Value,
    },
    /// A request to S3, with the bucket in the path.
    S3 {
        /// The method, in capitals.
        method: String,
        /// The path, as sent.
        path: String,
        /// The query, as sent; values may be missing.
        query: String,
        /// Whether the response reported that the object does not exist.
        absent: bool,
    },
}

/// Why a request's accesses cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request is for another service or an unsupported operation.
    #[error("the operation {0} is unknown")]
    Operation(String),
    /// A required member is missing or has an unexpected format.
    #[error("{0} is missing or has another format")]
    Member(&'static str),
    /// A PartiQL statement cannot be read.
    #[error(transparent)]
    Statement(#[from] Unread),
}

/// The accesses that a request needs, all of which must be allowed.
///
/// # Errors
/// Fails if an access cannot be determined.
pub fn accesses(rights: &Rights, request: &Request) -> Result<Vec<Access>, CallError> {
    match request {
        Request::S3 { method, path, query, absent } => s3::accesses(method, path, query, *absent),
        Request::Json { target, body } => match target.split_once('.') {
            Some(("DynamoDB_20120810", operation)) => dynamodb::accesses(rights, operation, body),
            Some(("AmazonSQS", operation)) => sqs::accesses(&rights.deployed, operation, body),
            Some(("secretsmanager", operation)) => secrets_manager::accesses(&rights.deployed, operation, body),
            _ => Err(CallError::Operation(target.clone())),
        },
    }
}

/// The calls that Lambda makes with a function's role to serve the function's queues.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>
pub fn of_mappings(template: &Template) -> impl Iterator<Item = Call> {
    let mapped =
        template.functions().iter().flat_map(|function| function.queues.iter().map(move |queue| (function, queue)));
    mapped.flat_map(|(function, trigger)| {
        ["ReceiveMessage", "DeleteMessage", "GetQueueAttributes"].map(|operation| Call {
            function: function.name.clone(),
            request: Request::Json {
                target: format!("AmazonSQS.{operation}"),
                body: json!({ "QueueUrl": trigger.queue }),
            },
        })
    })
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { target, .. } => f.write_str(target),
            Self::S3 { method, path, .. } => write!(f, "{method} {path}"),
        }
    }
}

fn text<'a>(request: &'a Value, member: &'static str) -> Result<&'a str, CallError> {
    request[member].as_str().ok_or(CallError::Member(member))
}

fn list<'a>(request: &'a Value, member: &'static str) -> Result<&'a [Value], CallError> {
    request[member].as_array().map(Vec::as_slice).ok_or(CallError::Member(member))
}
