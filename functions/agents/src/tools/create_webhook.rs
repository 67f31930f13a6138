//! `create_webhook`: registers a webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::subscriptions::register::NewWebhook;

use crate::{
    arguments,
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
};

/// Registers a webhook.
pub const CREATE_WEBHOOK: Tool = Tool {
    name: "create_webhook",
    title: "Create a webhook",
    description: "Registers an endpoint for a managing entity's events. From then on each event of its types is \
                  sent there. The result has the webhook's `signingSecret`, this once: the receiver needs it to \
                  verify signatures, so hand it to the person at once and repeat it nowhere. Look up event types \
                  with `list_event_types`, and see with `list_webhooks` whether there is one for the same address \
                  already. Give an `idempotencyKey`, so that a repetition makes no second webhook. Next, call \
                  `publish_test_event` to see whether the endpoint answers.",
    input,
    output: || schemas::with(schemas::of("WebhookCreated"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    // It can send every event of the managing entity to a stranger, so that clients ask a person first.
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
    run: Run::ForEntity(|desk, entity, call| create(desk, entity, call).boxed()),
};

async fn create(desk: &Desk, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let new = NewWebhook::read(&call.body(), entity.id(), &desk.changing.rules)?;
    let created = desk.registration.register(&entity, new, once.as_ref()).await?;
    repeatable(&created, created.is_repeated())
}

fn input() -> Value {
    schemas::with_examples(
        schemas::with(schemas::of("WebhookRequest"), arguments::idempotency_key()),
        json!([{
            "name": "Bookings to the channel manager",
            "eventUrl": "https://hooks.example.com/waypost",
            "eventList": ["booking.*", "payment.received"],
            "headers": { "X-Tenant": "demo" },
            "idempotencyKey": "4f9c2f1e-8f3b-4c55-9f0a-6d1f6f2f7a10",
        }]),
    )
}
