//! What a request to AWS asks of IAM.

mod dynamodb;
mod s3;
mod secrets_manager;
mod sqs;

use std::fmt;

use serde_json::Value;

use crate::{access::Access, partiql::Unread, rights::Rights};

pub use s3::sees_absence;

/// The parts of a request by which IAM decides: operation, resources and partition keys.
#[derive(Debug, Clone, Copy)]
pub enum Call<'a> {
    /// In JSON: the header `X-Amz-Target`, and the body.
    Json {
        /// The service's interface and the operation: `DynamoDB_20120810.GetItem`.
        target: &'a str,
        /// The body.
        body: &'a [u8],
    },
    /// Of S3, with the bucket in the path.
    S3 {
        /// The verb, in capitals.
        method: &'a str,
        /// The path, as it is sent.
        path: &'a str,
        /// The query, as it is sent.
        query: &'a str,
    },
}

/// Why it is not known what a request asks.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Another service, or an operation that is not read here.
    #[error("the operation {0} is not known here")]
    Operation(String),
    /// The body is not JSON.
    #[error("the body is not JSON")]
    Json(#[source] serde_json::Error),
    /// Something is missing that the operation needs.
    #[error("{0} is missing or has another form")]
    Member(&'static str),
    /// A statement in PartiQL.
    #[error(transparent)]
    Statement(#[from] Unread),
}

/// Everything that a request asks; each has to be allowed.
///
/// # Errors
/// When it is not known, so that nothing of it is.
pub fn accesses(rights: &Rights, call: Call<'_>) -> Result<Vec<Access>, CallError> {
    match call {
        Call::S3 { method, path, query } => s3::accesses(method, path, query),
        Call::Json { target, body } => {
            let request: Value = serde_json::from_slice(body).map_err(CallError::Json)?;
            match target.split_once('.') {
                Some(("DynamoDB_20120810", operation)) => dynamodb::accesses(rights, operation, &request),
                Some(("AmazonSQS", operation)) => sqs::accesses(&rights.deployed, operation, &request),
                Some(("secretsmanager", operation)) => secrets_manager::accesses(&rights.deployed, operation, &request),
                _ => Err(CallError::Operation(target.to_owned())),
            }
        }
    }
}

impl fmt::Display for Call<'_> {
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
