//! The list of tools, as a caller sees it: all of them, since a client that lacks a scope is told so when it calls.

use serde_json::{Value, json};

use crate::{
    caller::Caller,
    entity_argument,
    tool::{Run, Tool},
    tools,
};

/// Every tool, in their order.
pub fn of(caller: &Caller) -> Vec<Value> {
    tools::ALL.iter().map(|tool| entry(tool, caller)).collect()
}

fn entry(tool: &Tool, caller: &Caller) -> Value {
    let input = (tool.input)();
    let input = match tool.run {
        Run::ForEntity(_) => entity_argument::added_to(input, &caller.claims.entities),
        Run::ForAll(_) => input,
    };
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input,
        "outputSchema": (tool.output)(),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
    })
}
