//! The interface of a server: its description and its tools, resources and prompts. The protocol itself handles the form
//! of messages, revisions and refusals.

use problem::Problem;
use serde_json::{Map, Value};

use super::tool_result::ToolResult;
use crate::caller::Caller;

/// A server of the protocol.
pub trait Server: Sync + 'static {
    /// Instructions for a model before it calls a tool.
    const INSTRUCTIONS: &'static str;

    /// Its name and version, as messages have them (`Implementation`).
    fn info(&self) -> Value;

    /// The API's address, without a slash at its end; the pages of Problems are below it.
    fn base_url(&self) -> &str;

    /// Its tools for this caller (`Tool`).
    fn tools(&self, caller: &Caller) -> impl Future<Output = Vec<Value>> + Send;

    /// Calls a tool.
    fn call_tool(
        &'static self,
        caller: Caller,
        name: &str,
        arguments: Map<String, Value>,
    ) -> impl Future<Output = Result<ToolResult, Refusal>> + Send;

    /// The resources that are few enough to list (`Resource`).
    fn resources(&self) -> Vec<Value>;

    /// The address templates of the other resources (`ResourceTemplate`).
    fn resource_templates(&self) -> Vec<Value>;

    /// The content of the resource at an address (`TextResourceContents` or `BlobResourceContents`).
    fn read_resource(&self, caller: &Caller, uri: &str) -> impl Future<Output = Result<Value, Refusal>> + Send;

    /// Its prompts (`Prompt`).
    fn prompts(&self) -> Vec<Value>;

    /// A prompt with these arguments (`GetPromptResult`).
    fn prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, Refusal>;
}

/// The reason why a server refuses a request.
#[derive(Debug)]
pub enum Refusal {
    /// The name or the address is unknown.
    Unknown,
    /// The token does not suffice.
    Token(Problem),
    /// The operation returned a Problem.
    Problem(Problem),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}
