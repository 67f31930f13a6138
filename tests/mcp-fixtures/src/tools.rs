//! The tools. They take no arguments, and each returns a different kind of result.

use functions_agents::protocol::{Refusal, ToolResult};
use problem::{Problem, ProblemKind};
use serde_json::{Value, json};

use crate::content::{audio, image, resource, text};

/// A tool: its name, its description, and the function that returns its result.
type Tool = (&'static str, &'static str, fn() -> Result<ToolResult, Problem>);

const ALL: [Tool; 8] = [
    ("test_simple_text", "A text.", || of(vec![text("A text.")])),
    ("test_image_content", "An image.", || of(vec![image()])),
    ("test_audio_content", "A sound.", || of(vec![audio()])),
    ("test_embedded_resource", "A resource.", || of(vec![resource("test://embedded", "text/plain", "A resource.")])),
    ("test_multiple_content_types", "A text, an image and a resource.", || {
        of(vec![text("A text."), image(), resource("test://mixed", "application/json", "{}")])
    }),
    ("test_error_handling", "An error.", || Err(Problem::new(ProblemKind::InvalidRequest, "An error."))),
    // The suite checks that the server sends nothing but these two tools' results.
    ("test_streaming_elicitation", "A text, and no request of the server's.", || of(vec![text("A text.")])),
    ("test_logging_tool", "A text, and nothing of the server's log.", || of(vec![text("A text.")])),
];

fn of(parts: Vec<Value>) -> Result<ToolResult, Problem> {
    Ok(ToolResult::of_parts(parts))
}

pub fn listed() -> Vec<Value> {
    let entry = |(name, description, _): &Tool| json!({ "name": name, "description": description, "inputSchema": { "type": "object" } });
    ALL.iter().map(entry).collect()
}

pub fn called(name: &str) -> Result<ToolResult, Refusal> {
    let (_, _, result) = ALL.iter().find(|(known, _, _)| *known == name).ok_or(Refusal::Unknown)?;
    Ok(result()?)
}
