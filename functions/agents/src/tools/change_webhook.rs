//! `change_webhook`: changes the specified members of a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use storage::Once;
use webhooks::subscriptions::webhook::change::WebhookChange;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Changes a webhook.
pub const CHANGE_WEBHOOK: Tool = Tool {
    name: "change_webhook",
    title: "Change a webhook",
    description: "Changes the given members of a webhook and leaves the others unchanged. A list or an object replaces \
                  the whole previous one, so call `show_webhook` first and send its `version`: if the webhook has \
                  changed since then, the call fails with `version-conflict` and changes nothing. `***` keeps the \
                  stored value. Enabling a webhook or changing its address resets its failures and sends the \
                  deliveries that a pause held. Next, call `publish_test_event`.",
    input,
    output: || schemas::with(schemas::of("Webhook"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| change(use_cases, entity, call).boxed()),
};

async fn change(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let request = call.once(&entity)?;
    let once = Once::of(&use_cases.answers, request.as_ref());
    let webhook = call.webhook()?;
    let change = WebhookChange::read(&call.body(), entity.id(), &use_cases.changing.rules)?;
    let changed = use_cases.changing.change(&entity, &webhook, &change, once).await?;
    repeatable(&changed, changed.is_repeated)
}

fn input() -> Value {
    let webhook = "whk_01m74zy5eva3kj3s4w04zg1hhc";
    let change = schemas::with(schemas::of("WebhookChange"), arguments::webhook());
    schemas::with_examples(
        schemas::requiring(schemas::with(change, arguments::idempotency_key()), "webhookIdentifier"),
        json!([
            { "webhookIdentifier": webhook, "enabled": true },
            { "webhookIdentifier": webhook, "eventUrl": "https://hooks.example.com/waypost", "version": 3 },
        ]),
    )
}
