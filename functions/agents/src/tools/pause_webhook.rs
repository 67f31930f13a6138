//! `pause_webhook`: pauses a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::subscriptions::webhook::pausing::PauseRequest;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Pauses a webhook.
pub const PAUSE_WEBHOOK: Tool = Tool {
    name: "pause_webhook",
    title: "Pause a webhook",
    description: "Holds a webhook's deliveries, for example during maintenance of its endpoint, until \
                  `resume_webhook` or the time in `until`. Test events and resends are still sent at once.",
    input,
    output: || schemas::of("Webhook"),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    run: Run::ForEntity(|use_cases, entity, call| pause(use_cases, entity, call).boxed()),
};

async fn pause(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    let request = PauseRequest::read(&call.body(), call.caller.now)?;
    result(&use_cases.pausing.pause(&entity, &webhook, request).await?)
}

fn input() -> Value {
    let request = schemas::with(schemas::of("PauseRequest"), arguments::webhook());
    let webhook = "whk_01m74zy5eva3kj3s4w04zg1hhc";
    schemas::with_examples(
        schemas::requiring(request, "webhookIdentifier"),
        json!([{ "webhookIdentifier": webhook, "until": "2026-11-21T06:00:00Z" }]),
    )
}
