//! `resend_delivery`: attempts a delivery again, now.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::Value;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Sends a delivery again.
pub const RESEND_DELIVERY: Tool = Tool {
    name: "resend_delivery",
    title: "Send a delivery again",
    description: "Attempts one delivery again now, regardless of its status, with exactly the same body. A `delivered` \
                  one arrives a second time; receivers must treat it as the same event. A finished delivery gets a new \
                  schedule. For all failures of an outage, use `recover_deliveries`. The result shows the delivery \
                  before the attempt: call `show_delivery` after a few seconds.",
    input: || {
        let members = schemas::object(arguments::delivery(), &["deliveryIdentifier"]);
        schemas::with(members, arguments::idempotency_key())
    },
    output: || schemas::with(schemas::of("DeliverySummary"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| resend(use_cases, entity, call).boxed()),
};

async fn resend(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let delivery = call.delivery()?;
    no_input(&call.body())?;
    let resent = use_cases.resending.resend(&entity, &delivery, once.as_ref()).await?;
    repeatable(resent.delivery(), resent.is_repeated)
}
