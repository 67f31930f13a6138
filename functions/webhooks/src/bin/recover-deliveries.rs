//! POST …/webhook/{webhookIdentifier}/recover: attempts the failed, cancelled and waiting deliveries in a range again.
//! POST …/webhook/{webhookIdentifier}/replay: delivers the events in a range that have no delivery to the webhook.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::IdempotencyStore;
use webhooks::{
    deliveries::{
        Deliveries,
        jobs::{Jobs, RecoveryScope},
        requests::{
            recover::Recovery,
            replay::{ReplayRequest, Replaying},
        },
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
    let replaying = Replaying {
        deliveries: Deliveries::new(service.table()),
        webhooks: Webhooks::new(service.table()),
        jobs: Jobs::new(service.table()),
        answers: IdempotencyStore::new(service.table()),
        limits: RequestLimits::new(service.table()),
        retention: schedule.retention,
    };
    service.serve(endpoints::RECOVER_DELIVERIES, (recovery, replaying), recover_or_replay).await
}

async fn recover_or_replay((recovery, replaying): &(Recovery, Replaying), call: EntityCall) -> Result<Reply, Problem> {
    if call.route().ends_with("/replay") {
        return replay(replaying, call).await;
    }
    let scope = RecoveryScope::read(&call.body, call.now)?;
    let webhook = webhook_id(&call)?;
    let once = idempotent_request(&call)?;
    let recovered = recovery.recover(&call.entity, &webhook, scope, once.as_ref(), call.now).await?;
    Ok(Reply::accepted(&recovered)?.replayed(recovered.is_repeated()))
}

async fn replay(replaying: &Replaying, call: EntityCall) -> Result<Reply, Problem> {
    let request = ReplayRequest::read(&call.body, call.entity.id(), call.now)?;
    let webhook = webhook_id(&call)?;
    let once = idempotent_request(&call)?;
    let replayed = replaying.replay(&call.entity, &webhook, request, once.as_ref(), call.now).await?;
    Ok(Reply::accepted(&replayed)?.replayed(replayed.is_repeated()))
}
