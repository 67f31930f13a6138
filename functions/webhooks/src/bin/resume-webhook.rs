//! POST …/webhook/{webhookIdentifier}/pause: pauses a webhook. POST …/webhook/{webhookIdentifier}/resume: ends its
//! pause, or the pause of a webhook whose endpoint did not respond.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::{Problem, no_input};
use webhooks::subscriptions::{
    health::resume::Pauses,
    request_limits::RequestLimits,
    webhook::{
        pausing::{PauseRequest, Pausing},
        show::Showing,
    },
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let pausing = Pausing {
        showing: Showing::new(&service.table()),
        pauses: Pauses::new(&service.table()),
        limits: RequestLimits::new(service.table()),
        clock: service.clock(),
    };
    service.serve(endpoints::RESUME_WEBHOOK, pausing, pause_or_resume).await
}

async fn pause_or_resume(pausing: &Pausing, call: EntityCall) -> Result<Reply, Problem> {
    if call.route().ends_with("/pause") {
        let request = PauseRequest::read(&call.body, pausing.clock.now())?;
        return Reply::ok(&pausing.pause(&call.entity, &webhook_id(&call)?, request).await?);
    }
    no_input(&call.body)?;
    Reply::ok(&pausing.resume(&call.entity, &webhook_id(&call)?).await?)
}
