//! `list_event_types`: the catalogue of event types.

use std::future::ready;

use auth::Scope::IntegrationsRead;
use futures::FutureExt;
use serde_json::{Value, json};
use webhooks::events::catalogue;

use crate::tool::{Hints, Run, Tool};

/// Lists the types of events.
pub const LIST_EVENT_TYPES: Tool = Tool {
    name: "list_event_types",
    title: "List event types",
    description: "Lists every type of event that a webhook can subscribe to, as `{value, label}`: `value` is what a \
                  webhook's `eventList` takes, `label` says it in words. The list is the same for everybody and is \
                  complete. Use it before you create or change a webhook.",
    input: || json!({"type": "object", "properties": {}, "additionalProperties": false}),
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForAll(|_, _| ready(Ok(json!({"eventTypes": catalogue::all()}))).boxed()),
};

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "eventTypes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"value": {"type": "string"}, "label": {"type": "string"}},
                    "required": ["value", "label"],
                },
            },
        },
        "required": ["eventTypes"],
    })
}
