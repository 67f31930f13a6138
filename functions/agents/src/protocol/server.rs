//! A server's interface: its description, tools, resources and prompts. The protocol handles message formats, revisions
//! and refusals.

use problem::Problem;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::caller::Caller;

/// A server of the protocol.
pub trait Server: Sync + 'static {
    /// Instructions for a model before it calls a tool.
    const INSTRUCTIONS: &'static str;

    /// The server's name and version (`Implementation`).
    fn info(&self) -> Value;

    /// The API's address, without a trailing slash. The pages of Problems are below it.
    fn base_url(&self) -> &str;

    /// The tools for this caller (`Tool`).
    fn tools(&self, caller: &Caller) -> impl Future<Output = Vec<Value>> + Send;

    /// Calls a tool.
    fn call_tool(
        &'static self,
        caller: Caller,
        name: &str,
        arguments: Map<String, Value>,
    ) -> impl Future<Output = Result<ToolResult, Refusal>> + Send;

    /// The resources for this caller that are few enough to list (`Resource`).
    fn resources(&self, caller: &Caller) -> Vec<Value>;

    /// The address templates of this caller's other resources (`ResourceTemplate`).
    fn resource_templates(&self, caller: &Caller) -> Vec<Value>;

    /// The content of the resource at an address (`TextResourceContents` or `BlobResourceContents`).
    fn read_resource(&self, caller: &Caller, uri: &str) -> impl Future<Output = Result<Value, Refusal>> + Send;

    /// The prompts (`Prompt`).
    fn prompts(&self) -> Vec<Value>;

    /// A prompt with these arguments (`GetPromptResult`).
    fn prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, Refusal>;
}

/// Why a server refuses a request.
#[derive(Debug)]
pub enum Refusal {
    /// The name or the address is unknown.
    Unknown,
    /// The token lacks a scope.
    Token(Problem),
    /// The operation failed with a Problem.
    Problem(Problem),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

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

    /// A structured result, repeated as text for clients without support for structured results.
    pub fn structured(value: Value) -> Self {
        Self { structured_content: Some(value.clone()), ..Self::of_parts(vec![text(&value)]) }
    }

    /// A Problem as text, since structured content must conform to the tool's output schema.
    pub fn refused(problem: &Value) -> Self {
        Self { is_error: true, ..Self::of_parts(vec![text(problem)]) }
    }
}

fn text(value: &Value) -> Value {
    json!({"type": "text", "text": value.to_string()})
}
