//! POST …/webhook/{webhookIdentifier}/recover: has the failed and cancelled deliveries of a range attempted again.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use webhooks::{
    deliveries::{Deliveries, jobs::Jobs, recover::Recovery, schedule::ScheduleSettings},
    subscriptions::Webhooks,
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, schedule) = Service::start::<ScheduleSettings>().await?;
    let recovery = Arc::new(Recovery {
        deliveries: Deliveries::new(service.table().clone()),
        webhooks: Webhooks::new(service.table().clone()),
        jobs: Jobs::new(service.table().clone()),
        retention: schedule.retention,
        clock: service.clock().clone(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let recovery = recovery.clone();
            async move { recovery.recover(&call).await }
        })
        .await
}
