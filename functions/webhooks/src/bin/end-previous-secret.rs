//! DELETE …/webhook/{webhookIdentifier}/secret/previous: ends the previous signing secret at once.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::subscriptions::{Webhooks, rotate::PreviousSecret};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::END_PREVIOUS_SECRET, Webhooks::new(service.table()), end).await
}

async fn end(webhooks: &Webhooks, call: EntityCall) -> Result<Reply, Problem> {
    let id = webhook_id(&call)?;
    let message = match webhooks.end_previous_secret(&call.entity, &id, call.now).await? {
        PreviousSecret::Ended => "The previous signing secret has ended; only the current one signs from now on.",
        PreviousSecret::Absent => "There was no previous signing secret; only the current one signs.",
    };
    Reply::removed(&id, message)
}
