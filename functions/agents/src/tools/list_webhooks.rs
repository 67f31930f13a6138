//! `list_webhooks`: all webhooks of a managing entity.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};

use crate::{
    desk::Desk,
    tool::{Hints, Run, Tool, ToolCall},
};

/// Lists webhooks.
pub const LIST_WEBHOOKS: Tool = Tool {
    name: "list_webhooks",
    title: "List webhooks",
    description: "Lists all webhooks of a managing entity, the oldest first, each with its endpoint, its event types and \
                  its health: `healthy`, `failing` (the last attempts failed) or `open` (the endpoint does not answer, \
                  and attempts pause). No signing secret is shown.",
    input: || json!({"type": "object", "properties": {}, "additionalProperties": false}),
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|desk, entity, call| list(desk, entity, call).boxed()),
};

async fn list(desk: &Desk, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    Ok(json!({"webhooks": desk.showing.all(&entity, call.caller.now).await?}))
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {"webhooks": {"type": "array", "items": {"type": "object"}}},
        "required": ["webhooks"],
    })
}
