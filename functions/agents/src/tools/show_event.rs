//! `show_event`: one event with its deliveries.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::Value;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Shows an event.
pub const SHOW_EVENT: Tool = Tool {
    name: "show_event",
    title: "Show an event",
    description: "Shows one event as published, with its deliveries and their status: one for each webhook that it \
                  matched. Other webhooks got none: their types or filter do not match, or they were disabled \
                  or created later; correct them, then `replay_events`. Events that were not stored are unknown.",
    input: || schemas::object(arguments::event(), &["eventIdentifier"]),
    output: || schemas::of("EventWithDeliveries"),
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| show(use_cases, entity, call).boxed()),
};

async fn show(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let event = call.event()?;
    no_input(&call.body())?;
    let event = use_cases.deliveries.event(&entity, &event, call.caller.now).await?;
    result(&event)
}
