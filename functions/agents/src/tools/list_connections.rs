//! `list_connections`: a managing entity's accounts at payment providers.

use auth::{AuthorizedEntity, Scope::PaymentRead};
use futures::FutureExt;
use payments::Connection;
use problem::{Problem, no_input};
use serde_json::{Value, json};

use crate::{
    schemas,
    tool::{Hints, Run, Tool, ToolCall},
    use_cases::UseCases,
};

/// Lists connections.
pub const LIST_CONNECTIONS: Tool = Tool {
    name: "list_connections",
    title: "List payment connections",
    description: "Lists the managing entity's connections to payment providers: provider, account, `status` \
                  (`connected` or `broken`), when the access ends, and why a connection broke or its last renewal \
                  failed. No token is shown. A `connected` connection is renewed automatically and needs nothing. A \
                  `broken` one must be connected again by a person in a browser, which no tool can do: say so.",
    input: || schemas::object(json!({}), &[]),
    output: || {
        let connections = schemas::list(schemas::of("Connection"), "The connections, at most one for each provider.");
        schemas::object(json!({ "connections": connections }), &["connections"])
    },
    scopes: &[PaymentRead],
    hints: Hints::READS,
    run: Run::ForEntity(|use_cases, entity, call| list(use_cases, entity, call).boxed()),
};

async fn list(use_cases: &UseCases, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    no_input(&call.body())?;
    let found = use_cases.connections.of(&entity).await?;
    Ok(json!({ "connections": found.iter().map(Connection::view).collect::<Vec<_>>() }))
}
