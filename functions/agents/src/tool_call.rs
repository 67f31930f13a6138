//! A call of a tool: rights first, then the managing entity, then the tool's own work.

use problem::Problem;
use serde_json::{Map, Value};

use crate::{
    caller::Caller,
    desk::Desk,
    entity_argument,
    protocol::{Refusal, ToolResult},
    tool::{Run, Running, Tool, ToolCall},
    tools,
};

/// Calls the tool of this name.
///
/// # Errors
/// There is no such tool, the token lacks a scope, or the tool's work ends in a Problem.
pub async fn result(
    desk: &'static Desk,
    caller: Caller,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<ToolResult, Refusal> {
    let tool = tools::find(name).ok_or(Refusal::Unknown)?;
    tracing::info!(tool = tool.name, "called");
    caller.needs(tool.scopes).map_err(Refusal::Token)?;
    let value = started(desk, tool, caller, arguments)?.await?;
    Ok(ToolResult::structured(tool.shown(value)))
}

fn started(
    desk: &'static Desk,
    tool: &Tool,
    caller: Caller,
    mut arguments: Map<String, Value>,
) -> Result<Running, Problem> {
    match tool.run {
        Run::ForAll(run) => Ok(run(desk, ToolCall { tool: tool.name, caller, arguments })),
        Run::ForEntity(run) => {
            let named = entity_argument::take(&mut arguments)?;
            let entity = caller.entity(named.as_deref())?;
            Ok(run(desk, entity, ToolCall { tool: tool.name, caller, arguments }))
        }
    }
}
