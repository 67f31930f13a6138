//! `list_deliveries`: a page of a managing entity's deliveries.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::{deliveries::queries::list::ListRequest, events::catalogue};

use crate::{
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Lists deliveries.
pub const LIST_DELIVERIES: Tool = Tool {
    name: "list_deliveries",
    title: "List deliveries",
    description: "Lists deliveries in pages, newest first, each with its status and the response to its last attempt. \
                  All filters must match; a `subject` is, for example, a booking's number. A page may have fewer \
                  deliveries than `limit`, or none, and still a `nextCursor`: to continue, send it as `cursor` with \
                  the same filters. `show_delivery` shows one delivery with its event and attempts.",
    input,
    output: || schemas::of("DeliveryPage"),
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| list(use_cases, entity, call).boxed()),
};

async fn list(use_cases: &UseCases, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    let request = call.read_query(&input(), |query| ListRequest::read(query, &entity))?;
    result(&use_cases.listing.list(&entity, &request).await?)
}

fn input() -> Value {
    let filters = json!({
        "status": {
            "type": "array",
            "items": schemas::of("DeliveryStatusFilter"),
            "uniqueItems": true,
            "minItems": 1,
            "maxItems": 5,
            "description": "Only deliveries with one of these states.",
        },
        "type": schemas::described(schemas::of("EventTypeKey"), "Only deliveries of events of this type."),
        "webhookIdentifier": schemas::described(schemas::of("WebhookIdentifier"), "Only deliveries to this webhook."),
        "eventIdentifier": schemas::described(schemas::of("EventIdentifier"), "Only deliveries of this event."),
        "subject": schemas::described(schemas::of("Subject"), "Only deliveries of events with exactly this subject."),
        "lastHttpStatus": {
            "type": "integer",
            "minimum": 100,
            "maximum": 999,
            "description": "Only deliveries whose last attempt got this status.",
        },
        "lastErrorCode": schemas::described(
            schemas::of("AttemptErrorCodeFilter"),
            "Only deliveries whose last attempt failed for this reason.",
        ),
        "createdFrom": schemas::described(schemas::of("TimestampInput"), "Only deliveries created at this time or later."),
        "createdUntil": schemas::described(schemas::of("TimestampInput"), "Only deliveries created before this time."),
        "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 25, "description": "The maximum number of deliveries on a page." },
        "cursor": schemas::cursor(),
    });
    schemas::with_examples(
        schemas::object(filters, &[]),
        json!([
            { "status": ["failed", "retrying"], "webhookIdentifier": "whk_01m74zy5eva3kj3s4w04zg1hhc" },
            { "type": catalogue::example().value, "createdFrom": "2026-11-20T00:00:00Z", "limit": 10 },
        ]),
    )
}
