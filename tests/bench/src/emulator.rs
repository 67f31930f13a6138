//! Calls to a bundle's table and queue, in the AWS SDKs' protocol.

use fakes::AwsCaller;
use serde_json::Value;

use crate::{
    bundle::Bundle,
    connection::{Connection, TaskResult},
};

/// An emulator, and the credentials that it requires.
pub struct Emulator {
    pub address: String,
    caller: AwsCaller,
}

impl Emulator {
    /// The emulator whose address is in this variable of the bundle.
    pub fn of(bundle: &Bundle, name: &str) -> Self {
        Self { address: bundle.var(name).to_owned(), caller: bundle.aws_caller() }
    }
}

/// Calls an AWS service in its JSON protocol.
pub async fn call(
    emulator: &Emulator,
    connection: &mut Connection,
    operation: &str,
    request: &Value,
) -> TaskResult<Value> {
    let body = request.to_string();
    let url = format!("{}/", emulator.address.trim_end_matches('/'));
    let named = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", operation)];
    let signature = emulator.caller.signature("POST", &url, named.into_iter(), body.as_bytes());
    let signature = signature.iter().map(|(name, value)| (*name, value.as_str()));
    let headers: Vec<_> = named.into_iter().chain(signature).collect();
    let answer = connection.post("/", &headers, body).await?;
    if !answer.status.is_success() {
        return Err(format!("{operation}: {} {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
    }
    Ok(serde_json::from_slice(&answer.body)?)
}
