//! DELETE …/webhook/{webhookIdentifier}: removes a webhook, and cancels its open deliveries.

use function::{Service, StartError, remove_once};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::{Problem, Removed};
use storage::IdempotencyStore;
use webhooks::{
    deliveries::jobs::Jobs,
    subscriptions::{Webhooks, health::Healths, webhook::remove::Removal},
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
    let answers = IdempotencyStore::new(service.table());
    service.serve(endpoints::REMOVE_WEBHOOK, (removal, answers), remove).await
}

async fn remove((removal, answers): &(Removal, IdempotencyStore), call: EntityCall) -> Result<Reply, Problem> {
    const MESSAGE: &str = "The webhook is removed. Its open deliveries are being cancelled.";
    let id = webhook_id(&call)?;
    remove_once(answers, &call, Removed::with_success(&id, MESSAGE), |record| removal.remove(&call.entity, &id, record))
        .await
}
