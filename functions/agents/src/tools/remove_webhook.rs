//! `remove_webhook`: removes a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsRemove, McpRemove},
};
use futures::FutureExt;
use problem::{Problem, nothing_said};
use serde_json::{Value, json};

use crate::{
    arguments,
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall},
};

/// Removes a webhook.
pub const REMOVE_WEBHOOK: Tool = Tool {
    name: "remove_webhook",
    title: "Remove a webhook",
    description: "Removes a webhook for good, with its signing secret. Deliveries to it that are still open are \
                  cancelled, and cannot be sent again. To stop deliveries for a time, disable it with \
                  `change_webhook` instead. Ask the person before you call it.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output,
    scopes: &[McpRemove, IntegrationsRemove],
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    run: Run::ForEntity(|desk, entity, call| remove(desk, entity, call).boxed()),
};

async fn remove(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    nothing_said(&call.body())?;
    desk.removal.remove(&entity, &webhook).await?;
    Ok(json!({ "id": webhook, "removed": true }))
}

fn output() -> Value {
    let removed = json!({ "type": "boolean", "description": "True: the webhook is removed." });
    schemas::object(json!({ "id": schemas::of("WebhookIdentifier"), "removed": removed }), &["id", "removed"])
}
