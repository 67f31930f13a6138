//! The result of a tool.

use serde::Serialize;
use serde_json::{Value, json};

/// The result of a tool (`CallToolResult`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    content: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    is_error: bool,
}

impl ToolResult {
    /// A result with these parts, for the model (`ContentBlock`).
    pub fn of_parts(content: Vec<Value>) -> Self {
        Self { content, structured_content: None, is_error: false }
    }

    /// A structured result, repeated as a text for clients without support for structured results.
    pub fn structured(value: Value) -> Self {
        Self { structured_content: Some(value.clone()), ..Self::of_parts(vec![text(&value)]) }
    }

    /// The Problem with these members, as a text: structured content must conform to the tool's output schema, which a
    /// Problem does not.
    pub fn refused(problem: &Value) -> Self {
        Self { is_error: true, ..Self::of_parts(vec![text(problem)]) }
    }
}

fn text(value: &Value) -> Value {
    json!({"type": "text", "text": value.to_string()})
}
