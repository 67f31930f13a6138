//! What the protocol knows of a server: what it says of itself, and what it offers. How that looks in a message, which revision
//! a message is in, and how it is refused, is the protocol's own.

use problem::Problem;
use serde_json::{Map, Value};

use super::tool_result::ToolResult;
use crate::caller::Caller;

/// A server of the protocol.
pub trait Server: Sync + 'static {
    /// What a model should know before it calls a tool.
    const INSTRUCTIONS: &'static str;

    /// Its name and version, as messages have them (`Implementation`).
    fn info(&self) -> Value;

    /// The API's address, without a slash at its end, below which the pages of Problems are.
    fn base_url(&self) -> &str;

    /// Its tools, as this caller sees them (`Tool`).
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

    /// The forms of the others' addresses (`ResourceTemplate`).
    fn resource_templates(&self) -> Vec<Value>;

    /// The content of the resource at an address (`TextResourceContents` or `BlobResourceContents`).
    fn read_resource(&self, caller: &Caller, uri: &str) -> impl Future<Output = Result<Value, Refusal>> + Send;

    /// Its prompts (`Prompt`).
    fn prompts(&self) -> Vec<Value>;

    /// What a prompt says with these arguments (`GetPromptResult`).
    fn prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, Refusal>;
}

/// Why a server does not do what a request asks.
#[derive(Debug)]
pub enum Refusal {
    /// It offers nothing of this name, or at this address.
    Unknown,
    /// The token is not enough.
    Token(Problem),
    /// What was asked for ended in a Problem.
    Problem(Problem),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}
