//! `list_connections`: a managing entity's accounts at payment providers.

use auth::{AuthorizedEntity, Scope::PaymentRead};
use futures::FutureExt;
use payments::list::ConnectionListRequest;
use problem::Problem;
use serde_json::{Value, json};

use crate::{
    schemas,
    tool::{Hints, Run, Tool, ToolCall, result},
    use_cases::UseCases,
};

/// Lists connections.
pub const LIST_CONNECTIONS: Tool = Tool {
    name: "list_connections",
    title: "List payment connections",
    description: "Lists the managing entity's connections to payment providers, newest first, and why any broke or \
                  could not be renewed. A connection whose `status` is `connected` is renewed automatically and needs \
                  no action. Only a person can connect a `broken` one again, in a browser; no tool can, so say so.",
    input,
    output: || schemas::of("ConnectionPage"),
    scopes: &[PaymentRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| list(use_cases, entity, call).boxed()),
};

async fn list(use_cases: &UseCases, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    let request = call.read_query(&input(), ConnectionListRequest::of_query)?;
    result(&use_cases.connections.page(&entity, &request).await?.view())
}

fn input() -> Value {
    let page = json!({
        "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 25, "description": "The maximum number of connections on a page." },
        "cursor": schemas::cursor(),
    });
    schemas::object(page, &[])
}
