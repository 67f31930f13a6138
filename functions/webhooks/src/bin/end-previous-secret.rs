//! DELETE …/webhook/{webhookIdentifier}/secret/previous: ends the previous signing secret at once.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{IdempotencyStore, Once};
use webhooks::subscriptions::Webhooks;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let webhooks = Webhooks::new(service.table());
    let answers = IdempotencyStore::new(service.table());
    service.serve(endpoints::END_PREVIOUS_SECRET, (webhooks, answers), end).await
}

async fn end((webhooks, answers): &(Webhooks, IdempotencyStore), call: EntityCall) -> Result<Reply, Problem> {
    let request = idempotent_request(&call)?;
    let once = Once::of(answers, request.as_ref());
    let ended = webhooks.end_previous_secret(&call.entity, &webhook_id(&call)?, once, call.now).await?;
    Ok(Reply::ok(&ended)?.replayed(ended.is_repeated()))
}
