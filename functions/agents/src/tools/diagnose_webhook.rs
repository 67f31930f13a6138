//! `diagnose_webhook`: a webhook's faults and their remedies.

use auth::{AuthorizedEntity, Scope::IntegrationsRead};
use futures::FutureExt;
use problem::{Problem, no_input};
use serde_json::{Value, json};
use webhooks::deliveries::queries::advice::Cause;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Diagnoses a webhook.
pub const DIAGNOSE_WEBHOOK: Tool = Tool {
    name: "diagnose_webhook",
    title: "Diagnose a webhook",
    description: "Finds out in one call why a webhook's events do not arrive, and what to do about it: the state of \
                  deliveries, statistics by hour and day (times in milliseconds), the numbers of open and recoverable \
                  deliveries, the last failures with the endpoint's answers, and `findings`. These explain each cause \
                  and its remedy, such as a failing endpoint, a feed without a reader, a blocked subject or a filter, \
                  most important first. Start here when a person reports that a webhook fails. Without findings, the \
                  webhook has no known fault: use `list_events` to check whether events of its types were published. \
                  After the fix, call `publish_test_event` to confirm it, then `recover_deliveries`.",
    input: || schemas::object(arguments::webhook(), &["webhookIdentifier"]),
    output,
    scopes: &[IntegrationsRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| diagnose(use_cases, entity, call).boxed()),
};

async fn diagnose(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    no_input(&call.body())?;
    result(&use_cases.diagnosing.diagnose(&entity, &webhook, call.caller.now).await?)
}

fn output() -> Value {
    let causes: Vec<_> = Cause::ALL.iter().map(|cause| cause.advice().cause).collect();
    let cause = json!({ "type": "string", "enum": causes, "description": "A cause's stable code." });
    let finding = json!({
        "cause": cause,
        "meaning": { "type": "string", "description": "The cause's meaning." },
        "remedy": { "type": "string", "description": "The remedy." },
        "detail": { "type": "string", "description": "The facts about this webhook, such as counts and identifiers." },
        "failures": { "type": "integer", "minimum": 0, "description": "The number of `failures` with this cause." },
    });
    let counted = json!({
        "count": { "type": "integer", "minimum": 0 },
        "countIsExact": { "type": "boolean", "description": "Whether `count` is complete." },
    });
    let oldest = json!({ "oldestCreatedDate": schemas::described(
        schemas::of("Timestamp"),
        "When the oldest was created: a `createdFrom` for `recover_deliveries`. Absent if there is none.",
    ) });
    let failure =
        schemas::with(schemas::of("DeliverySummary"), json!({ "cause": cause, "lastAttempt": schemas::of("Attempt") }));
    let counted = |what: &str| schemas::described(schemas::object(counted.clone(), &["count", "countIsExact"]), what);
    schemas::object(
        json!({
            "webhook": schemas::of("Webhook"),
            "stats": schemas::of("WebhookStats"),
            "recoverable": schemas::with(
                counted("Failed or cancelled deliveries that can be recovered."),
                oldest,
            ),
            "waiting": counted("Open deliveries: `pending` or `retrying`."),
            "findings": schemas::list(
                schemas::object(finding, &["cause", "meaning", "remedy", "failures"]),
                "Causes that block the whole webhook, then those of failed attempts (most frequent first), then its \
                 filter.",
            ),
            "failures": schemas::list(
                ["cause", "lastAttempt"].into_iter().fold(failure, schemas::requiring),
                "The latest deliveries that have not arrived, newest first, at most five.",
            ),
        }),
        &["webhook", "stats", "recoverable", "waiting", "findings", "failures"],
    )
}
