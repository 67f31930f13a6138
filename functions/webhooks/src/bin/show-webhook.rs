//! GET …/webhook/{webhookIdentifier}: one webhook, with its health and without its secret.

use auth::scope::Scope;
use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{Endpoint, EntityCall, Reply};
use problem::Problem;
use webhooks::subscriptions::show::Showing;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let showing = Showing::new(service.table());
    service.serve(ENDPOINT, move |call| show(showing.clone(), call)).await
}

async fn show(showing: Showing, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&showing.one(&call.entity, &webhook_id(&call)?).await?)
}
