//! `list_connections`: a managing entity's accounts at payment providers.

use auth::{AuthorizedEntity, Scope::PaymentRead};
use futures::FutureExt;
use payments::Connection;
use problem::{Problem, nothing_said};
use serde_json::{Value, json};

use crate::{
    desk::Desk,
    schemas,
    tool::{Hints, Run, Tool, ToolCall},
};

/// Lists connections.
pub const LIST_CONNECTIONS: Tool = Tool {
    name: "list_connections",
    title: "List payment connections",
    description: "Lists the managing entity's connections to payment providers: provider, account, `status` \
                  (`connected` or `broken`), when the access ends, and why a connection broke or its last renewal \
                  failed. No token is shown. A connection that is `connected` is renewed by itself and needs \
                  nothing. One that is `broken` has to be connected again by a person in a browser, which no tool \
                  can do: say so.",
    input: || schemas::object(json!({}), &[]),
    output: || {
        let connections = schemas::list(schemas::of("Connection"), "The connections, one for each provider at most.");
        schemas::object(json!({ "connections": connections }), &["connections"])
    },
    scopes: &[PaymentRead],
    hints: Hints::READS,
    run: Run::ForEntity(|desk, entity, call| list(desk, entity, call).boxed()),
};

async fn list(desk: &Desk, entity: AuthorizedEntity, call: ToolCall) -> Result<Value, Problem> {
    nothing_said(&call.body())?;
    let found = desk.connections.of(&entity).await?;
    Ok(json!({ "connections": found.iter().map(Connection::view).collect::<Vec<_>>() }))
}
