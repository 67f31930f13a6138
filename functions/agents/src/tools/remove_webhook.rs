//! `remove_webhook`: removes a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsRemove, McpRemove},
};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::{Value, json};
use storage::Once;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Removes a webhook.
pub const REMOVE_WEBHOOK: Tool = Tool {
    name: "remove_webhook",
    title: "Remove a webhook",
    description: "Permanently removes a webhook and its signing secret. Its open deliveries are cancelled and cannot \
                  be sent again. To stop deliveries for a while, disable the webhook with `change_webhook` instead. \
                  Ask the person before you call this.",
    input: || {
        let webhook = schemas::object(arguments::webhook(), &["webhookIdentifier"]);
        schemas::with(webhook, arguments::idempotency_key())
    },
    output,
    scopes: &[McpRemove, IntegrationsRemove],
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    run: Run::ForEntity(|use_cases, entity, call| remove(use_cases, entity, call).boxed()),
};

async fn remove(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let request = call.once(&entity)?;
    let once = Once::of(&use_cases.answers, request.as_ref());
    let webhook = call.webhook()?;
    no_input(&call.body())?;
    let removed = json!({ "id": webhook, "removed": true });
    let now = call.caller.now;
    let work = async {
        let record = once.record(&removed, &webhook, now).await?;
        use_cases.removal.remove(&entity, &webhook, record).await.map(|()| &removed)
    };
    let answered = once.carry_out(now, work).await?;
    repeatable(&answered, answered.is_repeated())
}

fn output() -> Value {
    let removed = json!({ "type": "boolean", "description": "True: the webhook is removed." });
    let object =
        schemas::object(json!({ "id": schemas::of("WebhookIdentifier"), "removed": removed }), &["id", "removed"]);
    schemas::with(object, arguments::repeated())
}
