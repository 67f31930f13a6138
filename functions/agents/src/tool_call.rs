//! A tool call: checks the scopes, then reads the managing entity, then runs the tool.

use base::audit::Action;
use problem::Problem;
use serde_json::{Map, Value};

use crate::{
    arguments,
    caller::Caller,
    entity_argument,
    protocol::{Refusal, ToolResult},
    registration,
    tool::{Run, Tool, ToolCall},
    tools,
    use_cases::UseCases,
    words,
};

/// Calls the tool with this name.
///
/// # Errors
/// The tool does not exist, the client has not selected it, the token lacks a scope, or the tool returns a Problem.
pub async fn result(
    use_cases: &'static UseCases,
    caller: Caller,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<ToolResult, Refusal> {
    let tool = tools::find(name).filter(|tool| caller.selection.has(tool)).ok_or(Refusal::Unknown)?;
    tracing::info!(tool = tool.name, "called");
    let notes = caller.notes.clone();
    if !tool.hints.read_only {
        notes.action(Action::CallTool);
        notes.tool(tool.name);
    }
    registration::check(use_cases, &caller, tool.scopes).await?;
    let schema = match tool.run {
        Run::ForEntity(_) => entity_argument::beside((tool.input)()),
        Run::ForAll(_) => (tool.input)(),
    };
    let mut arguments = arguments::normalized(arguments, &schema);
    let named = match tool.run {
        Run::ForEntity(_) => entity_argument::take(&mut arguments),
        Run::ForAll(_) => Ok(None),
    };
    let subject = arguments::subject(&arguments);
    let done = match named.and_then(|named| arguments::check_left_out(&arguments).map(|()| named)) {
        Ok(named) => run(use_cases, tool, caller, named, arguments.clone()).await,
        Err(problem) => Err(problem),
    };
    // A tool that creates an object returns its identifier in the result.
    let created = done.as_ref().ok().and_then(|value| value["id"].as_str());
    if let Some(subject) = subject.as_deref().or(created) {
        notes.subject(subject);
    }
    match done {
        Ok(value) => Ok(ToolResult::structured(tool.shown(value))),
        Err(problem) => Err(words::of_tools(arguments::with_other_faults(problem, &arguments, &schema)).into()),
    }
}

async fn run(
    use_cases: &'static UseCases,
    tool: &Tool,
    caller: Caller,
    named: Option<String>,
    arguments: Map<String, Value>,
) -> Result<Value, Problem> {
    match tool.run {
        Run::ForAll(run) => run(use_cases, ToolCall { tool: tool.name, caller, arguments }).await,
        Run::ForEntity(run) => {
            let entity = caller.entity(named.as_deref())?;
            run(use_cases, entity, ToolCall { tool: tool.name, caller, arguments }).await
        }
    }
}
