//! POST …/webhook/{webhookIdentifier}/recover: attempts the failed, cancelled and waiting deliveries of a range again.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::IdempotencyStore;
use webhooks::{
    deliveries::{
        Deliveries,
        jobs::{Jobs, RecoveryScope},
        requests::recover::Recovery,
        state::schedule::ScheduleSettings,
    },
    subscriptions::{Webhooks, health::resume::Pauses, request_limits::RequestLimits},
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, schedule) = Service::start::<ScheduleSettings>().await?;
    let recovery = Recovery {
        deliveries: Deliveries::new(service.table()),
        webhooks: Webhooks::new(service.table()),
        pauses: Pauses::new(&service.table()),
        jobs: Jobs::new(service.table()),
        answers: IdempotencyStore::new(service.table()),
        limits: RequestLimits::new(service.table()),
        retention: schedule.retention,
    };
    service.serve(endpoints::RECOVER_DELIVERIES, recovery, recover).await
}

async fn recover(recovery: &Recovery, call: EntityCall) -> Result<Reply, Problem> {
    let scope = RecoveryScope::read(&call.body, call.now)?;
    let webhook = webhook_id(&call)?;
    let once = idempotent_request(&call)?;
    let recovered = recovery.recover(&call.entity, &webhook, scope, once.as_ref(), call.now).await?;
    Ok(Reply::accepted(&recovered)?.replayed(recovered.is_repeated()))
}
