//! DELETE …/webhook/{webhookIdentifier}: removes a webhook, and cancels its open deliveries.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::{
    deliveries::jobs::Jobs,
    subscriptions::{Webhooks, health::Healths, remove::Removal},
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let removal = Removal {
        webhooks: Webhooks::new(service.table()),
        healths: Healths::new(service.table()),
        jobs: Jobs::new(service.table()),
        clock: service.clock(),
    };
    service.serve(endpoints::REMOVE_WEBHOOK, removal, remove).await
}

async fn remove(removal: &Removal, call: EntityCall) -> Result<Reply, Problem> {
    let id = webhook_id(&call)?;
    removal.remove(&call.entity, &id).await?;
    Reply::removed(&id, "The webhook is removed; deliveries to it that are still open are being cancelled.")
}
