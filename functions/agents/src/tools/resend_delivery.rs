//! `resend_delivery`: has a delivery attempted again, now.

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
    tool::{Hints, Run, Tool, ToolCall, repeatable},
};

/// Sends a delivery again.
pub const RESEND_DELIVERY: Tool = Tool {
    name: "resend_delivery",
    title: "Send a delivery again",
    description: "Has one delivery attempted again now, whatever its status, with the very same body; a \
                  `delivered` one arrives a second time, which receivers are to take as the same event. One that \
                  was over begins a fresh schedule. Use it for a single delivery, or to try out whether an \
                  endpoint is mended; for all that failed during an outage use `recover_deliveries`. The result \
                  shows the delivery as it is now, before the attempt: call `show_delivery` after a few seconds.",
    input: || {
        let members = schemas::object(arguments::delivery(), &["deliveryIdentifier"]);
        schemas::with(members, arguments::idempotency_key())
    },
    output: || schemas::with(schemas::of("ListedDelivery"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: true },
    run: Run::ForEntity(|desk, entity, call| resend(desk, entity, call).boxed()),
};

async fn resend(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let delivery = call.delivery()?;
    nothing_said(&call.body())?;
    let resent = desk.resending.resend(&entity, &delivery, once.as_ref()).await?;
    repeatable(resent.delivery(), resent.is_repeated)
}
