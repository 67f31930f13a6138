//! POST …/webhook/{webhookIdentifier}/recover: has the failed, cancelled and waiting deliveries of a range attempted
//! again.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::{
    deliveries::{
        Deliveries,
        jobs::{Jobs, RecoveryScope},
        recover::Recovery,
        schedule::ScheduleSettings,
    },
    subscriptions::{Webhooks, resume::Pauses},
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, schedule) = Service::start::<ScheduleSettings>().await?;
    let recovery = Recovery {
        deliveries: Deliveries::new(service.table()),
        webhooks: Webhooks::new(service.table()),
        pauses: Pauses::new(&service.table()),
        jobs: Jobs::new(service.table()),
        retention: schedule.retention,
    };
    service.serve(endpoints::RECOVER_DELIVERIES, recovery, recover).await
}

async fn recover(recovery: &Recovery, call: EntityCall) -> Result<Reply, Problem> {
    let scope = RecoveryScope::read(&call.body, call.now)?;
    Reply::accepted(&recovery.recover(&call.entity, &webhook_id(&call)?, scope, call.now).await?)
}
