//! `show_webhook`: one webhook with its health.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::Value;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Shows a webhook.
pub const SHOW_WEBHOOK: Tool = Tool {
    name: "show_webhook",
    title: "Show a webhook",
    description: "Shows one webhook: its endpoint, its event types, whether it is enabled, and the state of its \
                  deliveries (`deliveryState`: `active`, `failing`, `paused` or `disabled`). Send its `version` with \
                  `change_webhook` to detect concurrent changes. Header and query values are masked as `***`; the \
                  signing secret is not shown. To find out why a webhook fails, call `diagnose_webhook` instead.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output: || schemas::of("Webhook"),
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| show(use_cases, entity, call).boxed()),
};

async fn show(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    no_input(&call.body())?;
    result(&use_cases.showing.one(&entity, &webhook, call.caller.now).await?)
}
