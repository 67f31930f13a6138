//! A tool, as `tools` declares each, and a call of it.

use auth::{AuthorizedEntity, Scope};
use futures::future::BoxFuture;
use problem::Problem;
use serde_json::{Map, Value};

use crate::{caller::Caller, desk::Desk, untrusted};

/// A tool that agents may call.
pub struct Tool {
    /// For programs, in `snake_case`.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// For models: what it is for, when to use it, what to do next.
    pub description: &'static str,
    /// The schema of its arguments (JSON Schema 2020-12), an object. `managingEntity` is not among its properties: the
    /// door adds it to each tool that acts for a managing entity.
    pub input: fn() -> Value,
    /// The schema of its result, an object.
    pub output: fn() -> Value,
    /// The scopes that a call needs beside `mcp.read`: `mcp.write` where it changes something, `mcp.remove` where it
    /// removes something, and that of the endpoint that does the same.
    pub scopes: &'static [Scope],
    /// What clients may tell people about it.
    pub hints: Hints,
    /// Does it.
    pub run: Run,
}

impl Tool {
    /// A result of its work as its schema describes it, with the texts of strangers marked.
    pub fn shown(&self, result: Value) -> Value {
        untrusted::shown(result, &(self.output)())
    }
}

/// What clients may tell people about a tool before it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may replace or remove what there was, or show data to others: clients ask a person before they call it.
    pub destructive: bool,
    /// To call it again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It reaches servers beyond this service: the endpoints of webhooks.
    pub open_world: bool,
}

impl Hints {
    /// Of a tool that only reads.
    pub const READS: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
}

/// What does a tool's work: for one managing entity, or for none.
pub enum Run {
    /// For the managing entity that the call names, or the only one that the token covers.
    ForEntity(fn(&'static Desk, AuthorizedEntity, ToolCall) -> Running),
    /// For the service as a whole.
    ForAll(fn(&'static Desk, ToolCall) -> Running),
}

/// The work of a tool. The result conforms to the tool's output schema.
pub type Running = BoxFuture<'static, Result<Value, Problem>>;

/// A call of a tool.
#[derive(Debug)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: &'static str,
    /// Who calls, and when.
    pub caller: Caller,
    /// The arguments, without the managing entity.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// Takes an argument out.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.arguments.remove(name)
    }

    /// The arguments that were not taken, as the body of a request: use cases read their input from one.
    pub fn body(&self) -> Vec<u8> {
        Value::Object(self.arguments.clone()).to_string().into_bytes()
    }
}

/// A result as JSON.
///
/// # Errors
/// 500, when it cannot be written as JSON.
pub fn result(value: &impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(value).map_err(Problem::internal)
}

/// A result that may be the first one once more: then it says so.
///
/// # Errors
/// As of [`result`].
pub fn repeatable(value: &impl serde::Serialize, is_repeated: bool) -> Result<Value, Problem> {
    let mut result = result(value)?;
    if is_repeated {
        result["repeated"] = true.into();
    }
    Ok(result)
}
