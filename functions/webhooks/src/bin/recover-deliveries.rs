//! POST …/webhook/{webhookIdentifier}/recover: has the failed and cancelled deliveries of a range attempted again.

use std::sync::Arc;

use auth::scope::Scope;
use base::clock::SharedClock;
use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{Endpoint, EntityCall, Reply};
use http::StatusCode;
use problem::Problem;
use webhooks::{
    deliveries::{
        Deliveries,
        jobs::Jobs,
        recover::{Recovery, RecoveryRange},
        schedule::ScheduleSettings,
    },
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
    });
    let clock = service.clock().clone();
    service.serve(ENDPOINT, move |call| recover(recovery.clone(), clock.clone(), call)).await
}

async fn recover(recovery: Arc<Recovery>, clock: SharedClock, call: EntityCall) -> Result<Reply, Problem> {
    let now = clock.now();
    let range = RecoveryRange::read(&call.body, now)?;
    let recovered = recovery.recover(&call.entity, &webhook_id(&call)?, range, now).await?;
    Reply::json(StatusCode::ACCEPTED, &recovered)
}
