//! `list_events`: a page of a managing entity's events.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::deliveries::queries::list_events::EventListRequest;

use crate::{
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Lists events.
pub const LIST_EVENTS: Tool = Tool {
    name: "list_events",
    title: "List events",
    description: "Lists events in pages, newest first, each with its webhooks by delivery status; an event that \
                  matched no webhook has none. A page may have fewer events than `limit`, or none, and still a \
                  `nextCursor`: to continue, send it as `cursor` with the same filters. `show_event` shows one event \
                  with its data.",
    input,
    output: || schemas::of("EventPage"),
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| list(use_cases, entity, call).boxed()),
};

async fn list(use_cases: &UseCases, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    let request = call.read_query(&input(), |query| EventListRequest::read(query, &entity))?;
    result(&use_cases.listing.list_events(&entity, &request).await?)
}

fn input() -> Value {
    let filters = json!({
        "type": schemas::described(schemas::of("EventTypeKey"), "Only events of this type."),
        "subject": schemas::described(schemas::of("Subject"), "Only events with exactly this subject."),
        "createdFrom": schemas::described(schemas::of("TimestampInput"), "Only events published at this time or later."),
        "createdUntil": schemas::described(schemas::of("TimestampInput"), "Only events published before this time."),
        "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 20, "description": "The maximum number of events on a page." },
        "cursor": schemas::cursor(),
    });
    schemas::object(filters, &[])
}
