//! `create_webhook`: registers a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::{events::catalogue, subscriptions::webhook::register::NewWebhook};

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Registers a webhook.
pub const CREATE_WEBHOOK: Tool = Tool {
    name: "create_webhook",
    title: "Create a webhook",
    description: "Registers an endpoint for a managing entity's events. First check with `list_webhooks` whether a \
                  webhook has the same address. The result has the `signingSecret`, which is shown only once: the \
                  receiver needs it to verify signatures, so give it to the person at once and do not repeat it. Next, \
                  call `publish_test_event`.",
    input,
    output: || schemas::with(schemas::of("WebhookWithSecret"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    // Destructive, so that clients ask a person first: it can disclose every event of the managing entity to a third
    // party.
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| create(use_cases, entity, call).boxed()),
};

async fn create(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let new = NewWebhook::read(&call.body(), entity.id(), &use_cases.changing.rules)?;
    let created = use_cases.registration.register(&entity, new, once.as_ref()).await?;
    repeatable(&created, created.is_repeated())
}

fn input() -> Value {
    schemas::with_examples(
        schemas::with(schemas::of("WebhookRequest"), arguments::idempotency_key()),
        json!([{
            "name": "Channel manager",
            "eventUrl": "https://hooks.example.com/waypost",
            "eventList": [catalogue::example_group()],
            "headers": { "X-Tenant": "demo" },
            "idempotencyKey": "4f9c2f1e-8f3b-4c55-9f0a-6d1f6f2f7a10",
        }]),
    )
}
