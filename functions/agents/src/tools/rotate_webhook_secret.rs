//! `rotate_webhook_secret`: replaces a webhook's signing secret.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::Value;
use webhooks::subscriptions::rotate::RotationRequest;

use crate::{
    arguments,
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
};

/// Replaces a signing secret.
pub const ROTATE_WEBHOOK_SECRET: Tool = Tool {
    name: "rotate_webhook_secret",
    title: "Replace a webhook's signing secret",
    description: "Replaces the secret that signs what a webhook is sent, and returns the new `signingSecret`, this \
                  once: hand it to the person at once and repeat it nowhere. The former secret signs beside the \
                  new one for `overlapSeconds` (a day, unless you say otherwise), so that the receiver can be \
                  changed meanwhile; after that a receiver with the former secret refuses everything. With 0 it \
                  ends at once: only for a secret that others have seen. While a secret that was replaced before \
                  still signs, the call is refused unless `endPrevious` is true. Ask the person before you call it.",
    input: || {
        let request = schemas::with(schemas::of("SigningSecretRequest"), arguments::webhook());
        schemas::requiring(schemas::with(request, arguments::idempotency_key()), "webhookIdentifier")
    },
    output: || schemas::with(schemas::of("SigningSecretRotated"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
    run: Run::ForEntity(|desk, entity, call| rotate(desk, entity, call).boxed()),
};

async fn rotate(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let webhook = call.webhook()?;
    let request = RotationRequest::read(&call.body())?;
    let rotated = desk.rotation.rotate(&entity, &webhook, request, once.as_ref()).await?;
    repeatable(&rotated, rotated.is_repeated())
}
