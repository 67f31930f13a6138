//! `recover_deliveries`: has the deliveries of a range of time attempted again.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::deliveries::jobs::RecoveryScope;

use crate::{
    arguments,
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
};

/// Recovers deliveries.
pub const RECOVER_DELIVERIES: Tool = Tool {
    name: "recover_deliveries",
    title: "Recover deliveries",
    description: "Has a webhook's deliveries of a range of time attempted again, after an outage: those that \
                  failed or were cancelled, those that wait, or both. It begins in the background and goes on by \
                  itself; the result counts what there is. Ask for the whole outage at once: `since` is compared \
                  with when a delivery was made, so take a time shortly before the outage began, or the \
                  `oldestCreatedDate` that `diagnose_webhook` shows. Mend the endpoint first, and see with `publish_test_event` that it answers: else everything fails again. It ends a pause, and \
                  may send an endpoint thousands of events. What was published while the webhook was disabled made \
                  no delivery, and is not recovered.",
    input,
    output: || schemas::with(schemas::of("Recovery"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    run: Run::ForEntity(|desk, entity, call| recover(desk, entity, call).boxed()),
};

async fn recover(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let (webhook, now) = (call.webhook()?, call.caller.now);
    let scope = RecoveryScope::read(&call.body(), now)?;
    let recovered = desk.recovery.recover(&entity, &webhook, scope, once.as_ref(), now).await?;
    repeatable(&recovered, recovered.is_repeated())
}

fn input() -> Value {
    let request = schemas::with(schemas::of("RecoveryRequest"), arguments::webhook());
    let request = schemas::requiring(schemas::with(request, arguments::idempotency_key()), "webhookIdentifier");
    let webhook = "whk_01m74zy5eva3kj3s4w04zg1hhc";
    schemas::with_examples(
        request,
        json!([{ "webhookIdentifier": webhook, "since": "2026-11-20T09:00:00Z", "include": "failed" }]),
    )
}
