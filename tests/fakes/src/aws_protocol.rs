//! Calls to AWS services in their JSON protocol, and the responses.

use serde_json::{Value, json};

use crate::Received;

/// A call to an AWS service in its JSON protocol.
#[derive(Debug, Clone)]
pub struct AwsCall {
    /// The operation's name, such as `BatchExecuteStatement`.
    pub operation: String,
    /// The operation's parameters.
    pub body: Value,
    text: String,
}

impl AwsCall {
    pub(crate) fn of(received: &Received) -> Self {
        let target = received.header("x-amz-target");
        let text = String::from_utf8_lossy(&received.body).into_owned();
        Self {
            operation: target.rsplit('.').next().unwrap_or_default().to_owned(),
            body: serde_json::from_str(&text).unwrap_or_default(),
            text,
        }
    }

    /// Whether the body contains this string when written as JSON.
    pub fn mentions(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Whether this is the same call as an earlier one. When its caller sends a transaction again, it has a new
    /// `ClientRequestToken`.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        let without_token = |call: &Self| {
            let mut body = call.body.clone();
            body.as_object_mut().map(|body| body.remove("ClientRequestToken"));
            body
        };
        self.operation == earlier.operation && without_token(self) == without_token(earlier)
    }

    /// The statements in a batch or a single call, with their parameters.
    pub fn statements(&self) -> Vec<&Value> {
        match self.body["Statements"].as_array() {
            Some(statements) => statements.iter().collect(),
            None if self.body["Statement"].is_string() => vec![&self.body],
            None => Vec::new(),
        }
    }
}

/// The proxy's response: either the server's, or one that the proxy made up.
pub(crate) struct ProxyResponse {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl ProxyResponse {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), b"application/x-amz-json-1.0".to_vec())];
        Self { status, headers, body: body.to_string().into_bytes() }
    }

    pub(crate) fn refusal(code: &str) -> Self {
        let status = if code.starts_with("Internal") || code.starts_with("Service") { 500 } else { 400 };
        Self::json(status, &json!({ "__type": format!("com.amazonaws#{code}"), "message": "as the test wants it" }))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("HTTP/1.1 {} Some Reason\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            if !["content-length", "connection", "transfer-encoding"].contains(&&**name) {
                bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
            }
        }
        bytes.extend(format!("content-length: {}\r\n\r\n", self.body.len()).bytes());
        bytes.extend(&self.body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(operation: &str, body: &Value) -> AwsCall {
        AwsCall { operation: operation.to_owned(), body: body.clone(), text: body.to_string() }
    }

    #[test]
    fn a_transaction_that_is_sent_again_with_a_new_token_repeats_the_first() {
        let write = |token: &str, item: &str| {
            call("TransactWriteItems", &json!({ "ClientRequestToken": token, "TransactItems": [item] }))
        };
        assert!(write("second", "one").repeats(&write("first", "one")));
        assert!(!write("first", "another").repeats(&write("first", "one")));
        assert!(!call("PutItem", &json!({})).repeats(&call("DeleteItem", &json!({}))));
    }
}
