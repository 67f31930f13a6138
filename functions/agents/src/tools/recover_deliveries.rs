//! `recover_deliveries`: attempts deliveries from a time range again.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::deliveries::jobs::RecoveryScope;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Recovers deliveries.
pub const RECOVER_DELIVERIES: Tool = Tool {
    name: "recover_deliveries",
    title: "Recover deliveries",
    description: "Sends a webhook's deliveries from a time range again after an outage: failed and cancelled ones, \
                  waiting ones, or both. It runs in the background; the result counts the deliveries. Cover the whole \
                  outage with one call: set `createdFrom` to shortly before it began, because the range applies to \
                  when deliveries were created, or to the `oldestCreatedDate` from `diagnose_webhook`. The endpoint \
                  may get thousands of events. For events published while the webhook was disabled, use \
                  `replay_events`.",
    input,
    output: || schemas::with(schemas::of("Recovery"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| recover(use_cases, entity, call).boxed()),
};

async fn recover(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let webhook = call.webhook()?;
    let now = call.caller.now;
    let scope = RecoveryScope::read(&call.body(), now)?;
    let recovered = use_cases.recovery.recover(&entity, &webhook, scope, once.as_ref(), now).await?;
    repeatable(&recovered, recovered.is_repeated())
}

fn input() -> Value {
    let request = schemas::with(schemas::of("RecoveryRequest"), arguments::webhook());
    let request = schemas::requiring(schemas::with(request, arguments::idempotency_key()), "webhookIdentifier");
    let webhook = "whk_01m74zy5eva3kj3s4w04zg1hhc";
    schemas::with_examples(
        request,
        json!([{ "webhookIdentifier": webhook, "createdFrom": "2026-11-20T09:00:00Z", "include": "failed" }]),
    )
}
