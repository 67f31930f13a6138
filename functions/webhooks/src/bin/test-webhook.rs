//! POST …/webhook/{webhookIdentifier}/test: sends a test event to one webhook.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::{internal_publisher, webhook_id};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::IdempotencyStore;
use webhooks::{
    events::validation::DataValidator,
    subscriptions::{
        Webhooks,
        request_limits::RequestLimits,
        test_event::{TestRequest, Testing},
    },
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (queue, schedule, validation)) = Service::start().await?;
    let testing = Testing {
        webhooks: Webhooks::new(service.table()),
        answers: IdempotencyStore::new(service.table()),
        limits: RequestLimits::new(service.table()),
        publisher: internal_publisher(&service, &queue, schedule),
        validator: DataValidator::new(validation, service.settings().environment.clone(), service.clock()),
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::TEST_WEBHOOK, testing, test).await
}

async fn test(testing: &Testing, call: EntityCall) -> Result<Reply, Problem> {
    let request = TestRequest::read(&call.body, call.entity.id())?;
    let once = idempotent_request(&call)?;
    let sent = testing.send(&call.entity, &webhook_id(&call)?, &request, once.as_ref(), &call.trace).await?;
    Ok(Reply::accepted(&sent)?.replayed(sent.is_repeated()))
}
