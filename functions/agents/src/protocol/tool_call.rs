//! A call of a tool: rights first, then the managing entity, then the tool's own work.

use problem::Problem;
use serde_json::{Map, Value, json};

use super::{
    answer::{Answer, Failure},
    json_rpc::{Request, RpcError},
};
use crate::{
    caller::Caller,
    desk::Desk,
    entity_argument,
    tool::{Run, Running, Tool, ToolCall},
    tools,
};

/// The answer to a call: the tool's result, or the Problem that it ended in, for the model to read.
///
/// # Errors
/// There is no such tool, or the token lacks a scope.
pub async fn answer(desk: &'static Desk, caller: Caller, request: &Request) -> Result<Answer, Failure> {
    let tool = tools::find(request.text("name")?).ok_or_else(|| RpcError::invalid_params("there is no such tool"))?;
    let arguments = request.arguments()?;
    tracing::info!(tool = tool.name, "called");
    caller.needs(tool.scopes).map_err(Failure::Token)?;
    let request_id = caller.request_id.clone();
    let outcome = match started(desk, tool, caller, arguments) {
        Ok(running) => running.await,
        Err(problem) => Err(problem),
    };
    Ok(match outcome {
        Ok(value) => done(&tool.shown(value)),
        Err(problem) => refused(problem, desk, &request_id),
    })
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

/// The result, and the same as a text for clients that know no structured results.
fn done(value: &Value) -> Answer {
    Answer::new(json!({
        "content": [{"type": "text", "text": value.to_string()}],
        "structuredContent": value,
        "isError": false,
    }))
}

/// The Problem as a text: what is structured conforms to the tool's output schema, which a Problem does not.
fn refused(problem: Problem, desk: &Desk, request_id: &str) -> Answer {
    let body = Value::Object(problem.body(&desk.base_url, request_id));
    let result = json!({"content": [{"type": "text", "text": body.to_string()}], "isError": true});
    Answer::telling(result, problem)
}
