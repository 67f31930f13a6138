//! Calls of a bundle's table and queue in the protocol of the AWS SDKs.

use serde_json::Value;

use crate::{
    bundle::Bundle,
    connection::{Connection, TaskResult},
};

/// An emulator, and the credentials that it requires.
pub struct Emulator {
    pub address: String,
    authorization: String,
}

impl Emulator {
    /// The emulator whose address is in this variable of the bundle.
    pub fn of(bundle: &Bundle, name: &str) -> Self {
        let credential = format!("{}/20260101/us-east-1/any/aws4_request", bundle.var("AWS_ACCESS_KEY_ID"));
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host;x-amz-date, Signature=00");
        Self { address: bundle.var(name).to_owned(), authorization }
    }
}

/// Calls a service of AWS in its JSON protocol.
pub async fn call(
    emulator: &Emulator,
    connection: &mut Connection,
    operation: &str,
    request: &Value,
) -> TaskResult<Value> {
    let headers = [
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", operation),
        ("authorization", &emulator.authorization),
        ("x-amz-date", "20260101T000000Z"),
    ];
    let answer = connection.post("/", &headers, request.to_string()).await?;
    if !answer.status.is_success() {
        return Err(format!("{operation}: {} {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
    }
    Ok(serde_json::from_slice(&answer.body)?)
}
