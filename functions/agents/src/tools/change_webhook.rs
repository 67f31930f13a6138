//! `change_webhook`: changes the given members of a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::subscriptions::change::WebhookChange;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Changes a webhook.
pub const CHANGE_WEBHOOK: Tool = Tool {
    name: "change_webhook",
    title: "Change a webhook",
    description: "Changes the given members of a webhook and leaves the others unchanged. A list or an object \
                  replaces the previous one as a whole, so call `show_webhook` first, and send its `version`: if the \
                  webhook was changed since, the call fails with `version-conflict` and changes nothing. `***` keeps \
                  the stored value. Enabling a webhook, or giving it another address, resets its failures and sends \
                  the deliveries that wait for the end of a pause. Next, call `publish_test_event`.",
    input,
    output: || schemas::of("Webhook"),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| change(use_cases, entity, call).boxed()),
};

async fn change(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let webhook = call.webhook()?;
    let change = WebhookChange::read(&call.body(), entity.id(), &use_cases.changing.rules)?;
    result(&use_cases.changing.change(&entity, &webhook, &change).await?)
}

fn input() -> Value {
    let webhook = "whk_01m74zy5eva3kj3s4w04zg1hhc";
    schemas::with_examples(
        schemas::requiring(schemas::with(schemas::of("WebhookChange"), arguments::webhook()), "webhookIdentifier"),
        json!([
            { "webhookIdentifier": webhook, "enabled": true },
            { "webhookIdentifier": webhook, "eventUrl": "https://hooks.example.com/waypost", "version": 3 },
        ]),
    )
}
