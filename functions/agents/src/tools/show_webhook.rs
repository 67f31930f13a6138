//! `show_webhook`: one webhook with its health.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::{Problem, nothing_said};
use serde_json::Value;

use crate::{
    arguments,
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
};

/// Shows a webhook.
pub const SHOW_WEBHOOK: Tool = Tool {
    name: "show_webhook",
    title: "Show a webhook",
    description: "Shows one webhook: its endpoint, its event types, whether it is enabled, and how deliveries to \
                  it go (`deliveryState`: `active`, `failing`, `paused` or `disabled`). Its `version` is what \
                  `change_webhook` takes to be sure that nobody else has changed it meanwhile. Values of headers \
                  and of the address's query are masked as `***`, and no signing secret is shown. To find out why \
                  a webhook fails, call `diagnose_webhook` instead.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output: || schemas::of("Webhook"),
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|desk, entity, call| show(desk, entity, call).boxed()),
};

async fn show(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    nothing_said(&call.body())?;
    result(&desk.showing.one(&entity, &webhook, call.caller.now).await?)
}
