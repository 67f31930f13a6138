//! GET …/webhook/list: all webhooks of a managing entity, the oldest first.

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use problem::Problem;
use webhooks::subscriptions::show::Showing;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let showing = Showing::new(service.table());
    service.serve(ENDPOINT, move |call| list(showing.clone(), call)).await
}

async fn list(showing: Showing, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&showing.all(&call.entity).await?)
}
