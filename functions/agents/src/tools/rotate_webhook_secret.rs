//! `rotate_webhook_secret`: replaces a webhook's signing secret.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::Value;
use webhooks::subscriptions::endpoint::rotate::RotationRequest;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Replaces a signing secret.
pub const ROTATE_WEBHOOK_SECRET: Tool = Tool {
    name: "rotate_webhook_secret",
    title: "Replace a webhook's signing secret",
    description: "Replaces a webhook's signing secret and returns the new `signingSecret`, which is shown only once: \
                  give it to the person at once and do not repeat it. The previous secret stays valid for \
                  `overlapSeconds` (a day by default). With 0, it expires at once: use this only for a leaked secret. \
                  While an earlier secret is active, the call is refused unless `endPrevious` is true. Ask the person \
                  before you call this.",
    input: || {
        let request = schemas::with(schemas::of("SigningSecretRequest"), arguments::webhook());
        schemas::requiring(schemas::with(request, arguments::idempotency_key()), "webhookIdentifier")
    },
    output: || schemas::with(schemas::of("NewSigningSecret"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
    run: Run::ForEntity(|use_cases, entity, call| rotate(use_cases, entity, call).boxed()),
};

async fn rotate(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let webhook = call.webhook()?;
    let request = RotationRequest::read(&call.body())?;
    let rotated = use_cases.rotation.rotate(&entity, &webhook, request, once.as_ref()).await?;
    repeatable(&rotated, rotated.is_repeated())
}
