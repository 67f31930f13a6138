//! `publish_test_event`: sends a test event to one webhook.

use auth::{
    AuthorizedEntity,
    Scope::{IntegrationsWrite, McpWrite},
};
use futures::FutureExt;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::subscriptions::test_event::TestRequest;

use crate::{
    arguments, schemas,
    tool::{Hints, Run, Tool, ToolCall, repeatable},
    use_cases::UseCases,
};

/// Sends a test event.
pub const PUBLISH_TEST_EVENT: Tool = Tool {
    name: "publish_test_event",
    title: "Send a test event",
    description: "Sends a test event of `webhook.test` or another type at once to one webhook, even if it is paused: \
                  an answer with any status ends the service's pause. The result names the delivery; call \
                  `show_delivery` after a few seconds to see the endpoint's answer.",
    input: || {
        let members = schemas::object(arguments::webhook(), &["webhookIdentifier"]);
        let event = json!({
            "type": { "type": "string", "description": "Sends an event of this type, marked as a test." },
            "data": { "type": "object", "description": "With `type`: the event's data. Default: the type's sample." },
        });
        schemas::with(schemas::with(members, event), arguments::idempotency_key())
    },
    output: || schemas::with(schemas::of("TestDelivery"), arguments::repeated()),
    scopes: &[McpWrite, IntegrationsWrite],
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: true },
    run: Run::ForEntity(|use_cases, entity, call| test(use_cases, entity, call).boxed()),
};

async fn test(use_cases: &UseCases, entity: AuthorizedEntity, mut call: ToolCall) -> Result<Value, Problem> {
    let once = call.once(&entity)?;
    let webhook = call.webhook()?;
    let body = call.body();
    let request = TestRequest::read(&body, entity.id())?;
    let sent = use_cases.testing.send(&entity, &webhook, &request, once.as_ref(), &call.caller.trace).await?;
    repeatable(&sent, sent.is_repeated())
}
