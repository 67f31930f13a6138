//! POST …/webhook/{webhookIdentifier}/resume: ends the pause of a webhook whose endpoint did not answer.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::{Problem, no_input};
use webhooks::subscriptions::{
    health::resume::{Pauses, Resuming},
    request_limits::RequestLimits,
    webhook::show::Showing,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let resuming = Resuming {
        showing: Showing::new(&service.table()),
        pauses: Pauses::new(&service.table()),
        limits: RequestLimits::new(service.table()),
        clock: service.clock(),
    };
    service.serve(endpoints::RESUME_WEBHOOK, resuming, resume).await
}

async fn resume(resuming: &Resuming, call: EntityCall) -> Result<Reply, Problem> {
    no_input(&call.body)?;
    Reply::ok(&resuming.resume(&call.entity, &webhook_id(&call)?).await?)
}
