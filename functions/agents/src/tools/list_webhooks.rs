//! `list_webhooks`: all of a managing entity's webhooks.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::{Value, json};

use crate::{
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Lists webhooks.
pub const LIST_WEBHOOKS: Tool = Tool {
    name: "list_webhooks",
    title: "List webhooks",
    description: "Lists a managing entity's webhooks, oldest first, each with its endpoint, its event types and the \
                  state of its deliveries (`deliveryState`): `active`, `failing` (the last attempts failed), `paused` \
                  (deliveries on hold; `pausedBy` says who paused it) or `disabled`. Signing secrets are not shown. Use \
                  it to find a webhook's identifier; if a webhook is not `active`, call `diagnose_webhook`.",
    input: || schemas::object(json!({}), &[]),
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| list(use_cases, entity, call).boxed()),
};

async fn list(use_cases: &UseCases, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    no_input(&call.body())?;
    Ok(json!({ "webhooks": result(&use_cases.showing.all(&entity, call.caller.now).await?)? }))
}

fn output() -> Value {
    let webhooks = schemas::list(schemas::of("Webhook"), "The webhooks, oldest first.");
    schemas::object(json!({ "webhooks": webhooks }), &["webhooks"])
}
