//! The owner's operations on an existing webhook.

use serde_json::{Value, json};

use super::{ApiResponse, Call, Entity};

impl Entity {
    /// The webhook with this identifier, as its owner sees it.
    pub async fn webhook(&self, id: &str) -> Value {
        self.get(&format!("/webhook/{id}")).expect(200).await.json()
    }

    /// A request that changes a webhook.
    pub fn change(&self, id: &str, change: &Value) -> Call {
        self.call("PATCH", &format!("/webhook/{id}")).json(change)
    }

    /// Changes a webhook, and returns it.
    pub async fn changed(&self, id: &str, change: Value) -> Value {
        self.change(id, &change).expect(200).await.json()
    }

    /// A request that removes a webhook.
    pub fn remove(&self, id: &str) -> Call {
        self.call("DELETE", &format!("/webhook/{id}"))
    }

    /// A request for a new signing secret.
    pub fn rotate(&self, id: &str) -> Call {
        self.post(&format!("/webhook/{id}/secret"))
    }

    /// Replaces a webhook's signing secret, even if it was replaced recently, and returns the new one.
    pub async fn new_secret(&self, id: &str) -> String {
        secret_of(&self.rotate(id).json(&json!({ "endPrevious": true })).expect(200).await)
    }

    /// A request that ends the previous secret.
    pub fn end_previous_secret(&self, id: &str) -> Call {
        self.call("DELETE", &format!("/webhook/{id}/secret/previous"))
    }

    /// A request for a test event.
    pub fn test(&self, id: &str) -> Call {
        self.post(&format!("/webhook/{id}/test"))
    }
}

/// The signing secret in a response.
pub fn secret_of(answer: &ApiResponse) -> String {
    answer.json()["signingSecret"].as_str().expect("openapi.yaml says so").to_owned()
}
