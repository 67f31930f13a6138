//! GET …/webhook/{webhookIdentifier}/stats: how many attempts a webhook was sent, how many succeeded,
//! and how long they took.

use auth::scope::Scope;
use base::clock::SharedClock;
use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{Endpoint, EntityCall, Reply};
use problem::Problem;
use webhooks::subscriptions::show::Showing;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (showing, clock) = (Showing::new(service.table()), service.clock().clone());
    service.serve(ENDPOINT, move |call| show_stats(showing.clone(), clock.clone(), call)).await
}

async fn show_stats(showing: Showing, clock: SharedClock, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&showing.stats(&call.entity, &webhook_id(&call)?, clock.now()).await?)
}
