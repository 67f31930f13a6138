//! `resume_webhook`: ends the pause of a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::{Problem, nothing_said};
use serde_json::Value;

use crate::{
    arguments,
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
};

/// Resumes a webhook.
pub const RESUME_WEBHOOK: Tool = Tool {
    name: "resume_webhook",
    title: "Resume a paused webhook",
    description: "Ends the pause of a webhook whose endpoint did not answer (`deliveryState` is `paused`), and has \
                  the deliveries that wait for its end attempted now. Mend the endpoint first: if it still does not answer, the \
                  webhook is paused again. A webhook that is not paused stays as it is. One that is `disabled` is \
                  enabled by `change_webhook` instead.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output: || schemas::of("Webhook"),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    run: Run::ForEntity(|desk, entity, call| resume(desk, entity, call).boxed()),
};

async fn resume(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    nothing_said(&call.body())?;
    result(&desk.resuming.resume(&entity, &webhook).await?)
}
