//! `remove_webhook`: removes a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsRemove, McpRemove},
};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::{Value, json};

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall},
    use_cases::UseCases,
};

/// Removes a webhook.
pub const REMOVE_WEBHOOK: Tool = Tool {
    name: "remove_webhook",
    title: "Remove a webhook",
    description: "Removes a webhook permanently, with its signing secret. Its open deliveries are cancelled, and \
                  cannot be sent again. To stop deliveries temporarily, disable the webhook with `change_webhook` \
                  instead. Ask the person before you call it.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output,
    scopes: &[McpRemove, IntegrationsRemove],
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    run: Run::ForEntity(|use_cases, entity, call| remove(use_cases, entity, call).boxed()),
};

async fn remove(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    no_input(&call.body())?;
    use_cases.removal.remove(&entity, &webhook).await?;
    Ok(json!({ "id": webhook, "removed": true }))
}

fn output() -> Value {
    let removed = json!({ "type": "boolean", "description": "True: the webhook is removed." });
    schemas::object(json!({ "id": schemas::of("WebhookIdentifier"), "removed": removed }), &["id", "removed"])
}
