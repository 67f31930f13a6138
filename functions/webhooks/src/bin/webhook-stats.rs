//! GET …/webhook/{webhookIdentifier}/stats: how many attempts a webhook was sent, how many it took, and how long they took.

use auth::scope::Scope;
use base::clock::SharedClock;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use problem::Problem;
use webhooks::subscriptions::{Webhooks, stats::Stats};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (webhooks, stats) = (Webhooks::new(service.table().clone()), Stats::new(service.table().clone()));
    let clock = service.clock().clone();
    service.serve(ENDPOINT, move |call| show(webhooks.clone(), stats.clone(), clock.clone(), call)).await
}

async fn show(webhooks: Webhooks, stats: Stats, clock: SharedClock, call: EntityCall) -> Result<Reply, Problem> {
    let webhook = call.webhook_id()?;
    // Another entity's looks the same as one that is gone.
    webhooks.find(&call.entity, &webhook).await?.ok_or_else(Problem::webhook_not_found)?;
    Reply::ok(&stats.of(&call.entity, &webhook, clock.now()).await?)
}
