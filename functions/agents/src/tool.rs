//! A tool's declaration, and a call to it.

use std::collections::BTreeMap;

use auth::{AuthorizedEntity, Scope};
use futures::future::BoxFuture;
use problem::Problem;
use serde_json::{Map, Value, value::RawValue};

use crate::{caller::Caller, untrusted, use_cases::UseCases};

/// A tool that agents may call.
pub struct Tool {
    /// The name for programs, in `snake_case`.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// The description for models: its purpose, when to use it, and the next step.
    pub description: &'static str,
    /// The schema of its arguments (JSON Schema 2020-12), an object. It lacks `managingEntity`, which the list adds to
    /// tools that act for a managing entity.
    pub input: fn() -> Value,
    /// The schema of its result, an object.
    pub output: fn() -> Value,
    /// The scopes that a call needs in addition to `mcp.read`: `mcp.write` if it changes something, `mcp.remove` if it
    /// removes something, and the scope of the corresponding endpoint.
    pub scopes: &'static [Scope],
    /// The tool's effects, for clients to show to people.
    pub hints: Hints,
    /// The tool's implementation.
    pub run: Run,
}

impl Tool {
    /// A result in the form of the tool's output schema, with third-party text marked.
    pub fn shown(&self, result: Value) -> Value {
        untrusted::shown(result, &(self.output)())
    }
}

/// A tool's effects, for clients to show to people before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// The tool may replace, remove or disclose data, so clients ask a person before they call it.
    pub destructive: bool,
    /// A repeated call with the same arguments has no further effect.
    pub idempotent: bool,
    /// The tool reaches servers beyond this service: webhooks' endpoints.
    pub open_world: bool,
}

impl Hints {
    /// The hints of a tool that only reads.
    pub const READS: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
}

/// A tool's implementation: for one managing entity, or for none.
pub enum Run {
    /// For the managing entity that the call names, or the only one that the token covers.
    ForEntity(fn(&'static UseCases, AuthorizedEntity, ToolCall) -> Running),
    /// For the service as a whole.
    ForAll(fn(&'static UseCases, ToolCall) -> Running),
}

/// A tool's work. The result conforms to the tool's output schema.
pub type Running = BoxFuture<'static, Result<Value, Problem>>;

/// A call to a tool.
#[derive(Debug)]
pub struct ToolCall {
    /// The tool's name.
    pub tool: &'static str,
    /// The caller.
    pub caller: Caller,
    /// The arguments, without the managing entity.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// Takes an argument out.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.arguments.remove(name)
    }

    /// The remaining arguments, as a request's body, from which use cases read their input.
    pub fn body(&self) -> Vec<u8> {
        Value::Object(self.arguments.clone()).to_string().into_bytes()
    }
}

/// The members kept as unparsed text, since their numbers may be too large or too precise to parse.
const EXACT: [&str; 2] = ["data", "eventFilter"];

/// A result as JSON.
///
/// # Errors
/// 500 if it cannot be written as JSON.
pub fn result(value: &impl serde::Serialize) -> Result<Value, Problem> {
    let json = serde_json::to_string(value).map_err(Problem::internal)?;
    parsed(&json).map_err(Problem::internal)
}

fn parsed(json: &str) -> serde_json::Result<Value> {
    match json.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json)?;
            let member = |(name, value): (String, &RawValue)| {
                let value = if EXACT.contains(&&*name) { value.get().into() } else { parsed(value.get())? };
                Ok((name, value))
            };
            members.into_iter().map(member).collect()
        }
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(json)?.iter().map(|item| parsed(item.get())).collect(),
        _ => serde_json::from_str(json),
    }
}

/// A result, marked if the call was a repetition.
///
/// # Errors
/// As in [`result`].
pub fn repeatable(value: &impl serde::Serialize, is_repeated: bool) -> Result<Value, Problem> {
    let mut result = result(value)?;
    if is_repeated {
        result["repeated"] = true.into();
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_an_event_and_a_filter_are_shown_unchanged() {
        let event = r#"{ "n": 1e999, "big": 12345678901234567890.10 }"#;
        let json = format!(r#"{{"id":"evt_1","data":{event},"webhooks":[{{"eventFilter":{event},"n":[1]}}]}}"#);
        let result = result(&RawValue::from_string(json).expect("JSON")).expect("a result");
        assert_eq!(result["id"], "evt_1");
        assert_eq!((&result["data"], &result["webhooks"][0]["eventFilter"]), (&event.into(), &event.into()));
        assert_eq!(result["webhooks"][0]["n"], serde_json::json!([1]));
    }
}
