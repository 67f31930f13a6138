//! `replay_events`: delivers events from a time range that have no delivery to a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::deliveries::requests::replay::ReplayRequest;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Replays events.
pub const REPLAY_EVENTS: Tool = Tool {
    name: "replay_events",
    title: "Replay events",
    description: "Delivers a time range's stored events that match a webhook but have no delivery to it, because it \
                  was created, enabled or changed later. Count them with `dryRun` first: there may be thousands. A \
                  webhook has one replay at a time.",
    input,
    output: || schemas::with(schemas::of("Replay"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| replay(use_cases, entity, call).boxed()),
};

async fn replay(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let webhook = call.webhook()?;
    let now = call.caller.now;
    let request = ReplayRequest::read(&call.body(), entity.id(), now)?;
    let replayed = use_cases.replaying.replay(&entity, &webhook, request, once.as_ref(), now).await?;
    repeatable(&replayed, replayed.is_repeated())
}

fn input() -> Value {
    let request = schemas::with(schemas::of("ReplayRequest"), arguments::webhook());
    let request = schemas::requiring(schemas::with(request, arguments::idempotency_key()), "webhookIdentifier");
    let webhook = "whk_01m74zy5eva3kj3s4w04zg1hhc";
    schemas::with_examples(
        request,
        json!([{ "webhookIdentifier": webhook, "createdFrom": "2026-11-20T09:00:00Z", "dryRun": true }]),
    )
}
