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
    description: "Lists events, the newest first, page by page, each with its webhooks by the status of their \
                  deliveries. Events that no webhook wanted are not kept: an empty list does not prove that nothing \
                  was published. A page may have fewer events than `limit`, or none, and still a `nextCursor`: send \
                  it as `cursor` with the same filters to continue. `show_event` shows one event with its data.",
    input,
    output,
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
        "createdFrom": schemas::described(schemas::of("GivenTime"), "Only events published at this time or later."),
        "createdTo": schemas::described(schemas::of("GivenTime"), "Only events published before this time."),
        "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 20, "description": "The maximum number of events on a page." },
        "cursor": schemas::cursor(),
    });
    schemas::object(filters, &[])
}

/// Few members have a description, since their names say enough and the list should be short.
fn output() -> Value {
    let in_state = json!({
        "status": schemas::of("DeliveryStatus"),
        "count": { "type": "integer", "minimum": 1 },
        "webhookIdentifiers": { "type": "array", "items": schemas::of("WebhookIdentifier") },
    });
    let in_state = schemas::object(in_state, &["status", "count", "webhookIdentifiers"]);
    let event = json!({
        "eventIdentifier": schemas::of("EventIdentifier"),
        "type": schemas::of("EventTypeKey"),
        "subject": schemas::of("EventWithDeliveries")["properties"]["subject"],
        "createdDate": schemas::described(schemas::of("Timestamp"), "When the event was published."),
        "erasedDate": schemas::described(schemas::of("Timestamp"), "When its content was erased. Absent otherwise."),
        "deliveries": schemas::list(in_state, "One for each webhook, counted by status."),
    });
    let event = schemas::object(event, &["eventIdentifier", "type", "createdDate", "deliveries"]);
    let page = json!({
        "items": { "type": "array", "items": event },
        "nextCursor": schemas::of("DeliveryPage")["properties"]["nextCursor"],
    });
    schemas::object(page, &["items"])
}
