//! GET …/payment/provider/list: a managing entity's connections to payment providers.

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use payments::{Connection, Connections};
use problem::Problem;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::PaymentRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let connections = Connections::new(service.table().clone());
    service.serve(ENDPOINT, move |call| list(connections.clone(), call)).await
}

async fn list(connections: Connections, call: EntityCall) -> Result<Reply, Problem> {
    let found = connections.of(&call.entity).await?;
    Reply::ok(&found.iter().map(Connection::view).collect::<Vec<_>>())
}
