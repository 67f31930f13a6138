//! DELETE …/webhook/{webhookIdentifier}: removes a webhook; what is still to be delivered to it is cancelled.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
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
    service
        .serve(ENDPOINT, move |call| {
            let removal = removal.clone();
            async move { removal.remove(&call).await }
        })
        .await
}
