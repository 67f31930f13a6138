//! `list_event_types`: the catalogue of event types.

use std::future::ready;

use auth::Scope::IntegrationsRead;
use futures::FutureExt;
use problem::no_input;
use serde_json::{Value, json};
use webhooks::events::catalogue;

use crate::{
    schemas,
    tool::{Hints, Run, Tool},
};

/// Lists the types of events.
pub const LIST_EVENT_TYPES: Tool = Tool {
    name: "list_event_types",
    title: "List event types",
    description: "Lists every type of event that a webhook can subscribe to, as `{value, label}`: `value` is for a \
                  webhook's `eventList`, `label` describes it in words. The list is complete and the same for every \
                  managing entity. Use it before you create or change a webhook.",
    input: || schemas::object(json!({}), &[]),
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForAll(|_, call| {
        ready(no_input(&call.body()).map(|()| json!({ "eventTypes": catalogue::all() }))).boxed()
    }),
};

fn output() -> Value {
    let types = schemas::list(schemas::of("EventType"), "Every type, in a fixed order.");
    schemas::object(json!({ "eventTypes": types }), &["eventTypes"])
}
