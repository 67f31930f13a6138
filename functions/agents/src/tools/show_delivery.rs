//! `show_delivery`: one delivery with its event and its attempts.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use base::DeliveryId;
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::Value;
use webhooks::deliveries::DeliveryError;

use crate::{
    arguments,
    caller::Caller,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// The maximum number of shown attempts. A delivery that was resent repeatedly can have 200.
const MAX_ATTEMPTS: usize = 20;

/// Shows a delivery.
pub const SHOW_DELIVERY: Tool = Tool {
    name: "show_delivery",
    title: "Show a delivery",
    description: "Shows one delivery: its event, its status, when the next attempt is due, and its last 20 attempts, \
                  oldest first, each with the status and the beginning of the endpoint's answer, or with the \
                  `errorCode` and `errorDetail` of its failure. `durationMs` is in milliseconds. Use it to see a \
                  request and its answer; `resend_delivery` sends it again.",
    input: || schemas::object(arguments::delivery(), &["deliveryIdentifier"]),
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| show(use_cases, entity, call).boxed()),
};

async fn show(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let delivery = call.delivery()?;
    no_input(&call.body())?;
    shown(use_cases, &entity, &delivery, &call.caller).await
}

/// A delivery in the form that the tool and its resource return.
pub async fn shown(
    use_cases: &UseCases,
    entity: &AuthorizedEntity,
    id: &DeliveryId,
    caller: &Caller,
) -> Result<Value, Problem> {
    let found = use_cases.deliveries.with_attempts(entity, id, caller.now).await?;
    let mut whole = found.ok_or(DeliveryError::NotFound)?;
    whole.attempts.drain(..whole.attempts.len().saturating_sub(MAX_ATTEMPTS));
    result(&whole)
}

/// The schema of a delivery with its last attempts.
pub fn output() -> Value {
    let mut delivery = schemas::of("Delivery");
    delivery["properties"]["attempts"]["maxItems"] = MAX_ATTEMPTS.into();
    delivery["properties"]["attempts"]["description"] =
        "The last attempts, oldest first. `attemptCount` is the total number.".into();
    delivery
}
