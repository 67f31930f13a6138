//! `list_deliveries`: a page of a managing entity's deliveries.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::deliveries::queries::list::ListRequest;

use crate::{
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
};

/// Lists deliveries.
pub const LIST_DELIVERIES: Tool = Tool {
    name: "list_deliveries",
    title: "List deliveries",
    description: "Lists deliveries, the newest first, a page at a time: each is one event on its way to one \
                  webhook, with its status and the answer to its last attempt. Filter by status, event type, \
                  webhook, event or time; filters that are given together must all hold. A page may have fewer \
                  deliveries than `limit`, or none, and still a `nextCursor`: send it as `cursor` with the same \
                  filters to go on. `show_delivery` shows one with its event and attempts.",
    input,
    output: || schemas::of("DeliveryPage"),
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|desk, entity, call| list(desk, entity, call).boxed()),
};

async fn list(desk: &Desk, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    let request = call.read_query(&input(), |query| ListRequest::read(query, &entity))?;
    result(&desk.listing.list(&entity, &request).await?)
}

fn input() -> Value {
    let filters = json!({
        "status": {
            "type": "array",
            "items": schemas::of("DeliveryStatus"),
            "uniqueItems": true,
            "minItems": 1,
            "maxItems": 5,
            "description": "Those in one of these states; in any, without it.",
        },
        "type": schemas::described(schemas::of("EventTypeKey"), "Those of this type of event."),
        "webhookIdentifier": schemas::described(schemas::of("WebhookIdentifier"), "Those to this webhook."),
        "eventIdentifier": schemas::described(schemas::of("EventIdentifier"), "Those of this event."),
        "createdFrom": schemas::described(schemas::of("GivenTime"), "Those made at this time or later."),
        "createdTo": schemas::described(schemas::of("GivenTime"), "Those made before this time."),
        "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 25, "description": "How many a page \
                                                                                                   has at most." },
        "cursor": {
            "type": "string",
            "maxLength": 1_000,
            "description": "The `nextCursor` of the page before, with the same filters.",
        },
    });
    schemas::with_examples(
        schemas::object(filters, &[]),
        json!([
            { "status": ["failed", "retrying"], "webhookIdentifier": "whk_01m74zy5eva3kj3s4w04zg1hhc" },
            { "type": "booking.created", "createdFrom": "2026-11-20T00:00:00Z", "limit": 10 },
        ]),
    )
}
