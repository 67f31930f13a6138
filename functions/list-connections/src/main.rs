//! GET …/payment/provider/list: a managing entity's connections to payment providers.

use shared::{
    Service, StartError,
    auth::scope::Scope,
    http::{Call, Endpoint, Problem, Reply},
    payments::{Connection, Connections},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::PaymentRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let connections = Connections::new(service.table().clone());
    service.serve(ENDPOINT, move |call| list(connections.clone(), call)).await
}

async fn list(connections: Connections, call: Call) -> Result<Reply, Problem> {
    let found = connections.of(call.entity()).await?;
    Reply::ok(&found.iter().map(Connection::view).collect::<Vec<_>>())
}
