//! DELETE …/webhook/{webhookIdentifier}: removes a webhook, and cancels deliveries that wait for it.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{Endpoint, EntityCall, Reply};
use problem::Problem;
use webhooks::{
    deliveries::{Deliveries, jobs::Jobs},
    subscriptions::{Webhooks, health::Healths, remove::Removal, stats::Stats},
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRemove);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let table = service.table();
    let removal = Arc::new(Removal {
        webhooks: Webhooks::new(table.clone()),
        healths: Healths::new(table.clone()),
        stats: Stats::new(table.clone()),
        deliveries: Deliveries::new(table.clone()),
        jobs: Jobs::new(table.clone()),
        clock: service.clock().clone(),
    });
    service.serve(ENDPOINT, move |call| remove(removal.clone(), call)).await
}

async fn remove(removal: Arc<Removal>, call: EntityCall) -> Result<Reply, Problem> {
    let id = webhook_id(&call)?;
    removal.remove(&call.entity, &id).await?;
    Reply::removed(&id, "The webhook is removed; deliveries to it that are still open are being cancelled.")
}
