//! The attempts that messages on the queues announce.

use serde_json::Value;

use super::AwsCall;

/// An attempt that a message announces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DueAttempt {
    pub delivery: String,
    pub webhook: String,
    /// The number of the attempt.
    pub number: u64,
}

impl DueAttempt {
    /// The attempts in a message's text; empty if the message is not one of the service's.
    pub fn all_in(message: &str) -> Vec<Self> {
        let message: Value = serde_json::from_str(message).unwrap_or_default();
        let attempts = message["attempts"].as_array().into_iter().flatten();
        let text = |attempt: &Value, name: &str| attempt[name].as_str().expect("a text").to_owned();
        let attempts = attempts.map(|attempt| Self {
            delivery: text(attempt, "delivery"),
            webhook: text(attempt, "webhook"),
            number: attempt["attempt"].as_u64().expect("a number"),
        });
        attempts.collect()
    }
}

/// The attempts that a queue call announces; empty if it sends no messages.
pub fn announced(call: &AwsCall) -> Vec<DueAttempt> {
    if call.operation != "SendMessageBatch" {
        return Vec::new();
    }
    let entries = call.body["Entries"].as_array().into_iter().flatten();
    entries.flat_map(|entry| DueAttempt::all_in(entry["MessageBody"].as_str().unwrap_or_default())).collect()
}
