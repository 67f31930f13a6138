//! `diagnose_webhook`: what is the matter with a webhook, and what to do about it.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::{Problem, nothing_said};
use serde_json::{Value, json};
use webhooks::deliveries::queries::advice::Cause;

use crate::{
    arguments,
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
};

/// Diagnoses a webhook.
pub const DIAGNOSE_WEBHOOK: Tool = Tool {
    name: "diagnose_webhook",
    title: "Diagnose a webhook",
    description: "Finds out in one call why events do not arrive at a webhook, and what to do about it: how \
                  deliveries go and until when they are paused, the statistics of 24 hours and 7 days (times in \
                  milliseconds), how many deliveries wait and how many can be recovered, the last failures with \
                  what the endpoint answered, and `findings`: for each cause what it means and how to mend it, the \
                  weightiest first. Begin here whenever somebody says that a webhook fails. No findings mean that \
                  nothing is known against the endpoint: then see with `list_deliveries` whether anything was \
                  published for it. Once the cause is mended, call `publish_test_event` to see that it is, and \
                  then `recover_deliveries`.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|desk, entity, call| diagnose(desk, entity, call).boxed()),
};

async fn diagnose(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    nothing_said(&call.body())?;
    result(&desk.diagnosing.diagnose(&entity, &webhook, call.caller.now).await?)
}

fn output() -> Value {
    let causes: Vec<_> = Cause::ALL.iter().map(|cause| cause.advice().cause).collect();
    let cause = json!({ "type": "string", "enum": causes, "description": "The stable code of a cause." });
    let finding = json!({
        "cause": cause,
        "meaning": { "type": "string", "description": "What the cause means." },
        "remedy": { "type": "string", "description": "What to do about it." },
        "failures": { "type": "integer", "minimum": 0, "description": "How many of `failures` have this cause." },
    });
    let counted = json!({
        "count": { "type": "integer", "minimum": 0 },
        "countIsExact": { "type": "boolean", "description": "Whether there are no more." },
    });
    let oldest = json!({ "oldestCreatedDate": schemas::described(
        schemas::of("Timestamp"),
        "When the oldest of them was made: a `since` for `recover_deliveries`. Absent when there is none.",
    ) });
    let failure =
        schemas::with(schemas::of("ListedDelivery"), json!({ "cause": cause, "lastAttempt": schemas::of("Attempt") }));
    let counted = |what: &str| schemas::described(schemas::object(counted.clone(), &["count", "countIsExact"]), what);
    schemas::object(
        json!({
            "webhook": schemas::of("Webhook"),
            "stats": schemas::of("WebhookStats"),
            "recoverable": schemas::with(
                counted("Deliveries that failed or were cancelled, and can be recovered."),
                oldest,
            ),
            "waiting": counted("Deliveries that wait for more than a minute, or for the end of a pause."),
            "findings": schemas::list(
                schemas::object(finding, &["cause", "meaning", "remedy", "failures"]),
                "What holds up the webhook itself, then the causes of failed attempts, the most frequent first.",
            ),
            "failures": schemas::list(
                ["cause", "lastAttempt"].into_iter().fold(failure, schemas::requiring),
                "The last deliveries that have not arrived, the newest first, five at most.",
            ),
        }),
        &["webhook", "stats", "recoverable", "waiting", "findings", "failures"],
    )
}
