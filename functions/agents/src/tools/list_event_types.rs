//! `list_event_types`: the catalogue of event types, and one type with its schema.

use std::future::ready;

use auth::Scope::IntegrationsRead;
use futures::FutureExt;
use problem::{JsonBody, Problem, Rule};
use serde_json::{Value, json};
use webhooks::events::{
    catalogue,
    type_details::{self, EventTypeDetails},
};

use crate::{
    schemas,
    tool::{Hints, Run, Tool, ToolCall},
};

/// Lists the types of events.
pub const LIST_EVENT_TYPES: Tool = Tool {
    name: "list_event_types",
    title: "List event types",
    description: "Lists every event type that a webhook can subscribe to, as `{value, label}`: use `value` in a \
                  webhook's `eventList`. With `type`, it shows only that type, and `details` has its meaning, the JSON \
                  Schema of its data, and samples.",
    input,
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForAll(|_, call| ready(list(&call)).boxed()),
};

fn list(call: &ToolCall) -> Result<Value, Problem> {
    let body = call.body();
    let mut body = JsonBody::read(&body)?;
    let kind = body.optional::<String>("type", &catalogue::key_expected());
    let kind = kind.and_then(|kind| {
        body.violations.note("type", Rule::UnknownValue, type_details::named(&kind, "{managingEntity}"))
    });
    body.finish()?;
    let Some(kind) = kind else { return Ok(json!({ "eventTypes": catalogue::all() })) };
    Ok(json!({ "eventTypes": [kind], "details": EventTypeDetails::of(kind) }))
}

fn input() -> Value {
    let kind = json!({ "type": "string", "description": "A type's key." });
    schemas::object(json!({ "type": kind }), &[])
}

fn output() -> Value {
    let types = schemas::list(schemas::of("EventType"), "Every type, in a fixed order.");
    // No schema: the members explain themselves, and the list should be short.
    let details = json!({ "type": "object", "description": "Details of `type`.", "additionalProperties": true });
    schemas::object(json!({ "eventTypes": types, "details": details }), &["eventTypes"])
}
