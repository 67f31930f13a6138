//! `resume_webhook`: ends a webhook's pause.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::Value;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Resumes a webhook.
pub const RESUME_WEBHOOK: Tool = Tool {
    name: "resume_webhook",
    title: "Resume a paused webhook",
    description: "Resumes a webhook that its owner or the service paused (`deliveryState` is `paused`), and attempts \
                  the waiting deliveries. First make sure that the endpoint works: if it still does not answer, the \
                  service pauses it again. Enable a `disabled` webhook with `change_webhook` instead.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output: || schemas::of("Webhook"),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| resume(use_cases, entity, call).boxed()),
};

async fn resume(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    no_input(&call.body())?;
    result(&use_cases.pausing.resume(&entity, &webhook).await?)
}
