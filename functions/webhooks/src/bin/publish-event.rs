//! POST …/webhook/event: publishes an event to every webhook that subscribes to its type.

use function::{
    Service, StartError,
    idempotency::{idempotency_key, sender},
};
use functions_webhooks::publisher;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::events::{
    NewEvent,
    publish::Publisher,
    share::{AdmittedPublication, PublishingShare},
    validation::DataValidator,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (queue, schedule, subjects, unmatched, validation, share)) = Service::start().await?;
    let publisher = publisher(&service, &queue, schedule, subjects).with_unmatched(unmatched).limiting_waits();
    // Connect while keys and revocations are loading.
    service.beside_start(publisher.open_connection());
    let share = PublishingShare::new(service.table(), service.clock(), share);
    let validator = DataValidator::new(validation, service.settings().environment.clone(), service.clock());
    service.serve(endpoints::PUBLISH_EVENT, (publisher, validator, share), publish_within_share).await
}

async fn publish_within_share(
    (publisher, validator, share): &(Publisher, DataValidator, PublishingShare),
    call: EntityCall,
) -> Result<Reply, Problem> {
    let publication = |admitted| publish(publisher, validator, &call, admitted);
    share.within(&call.entity, call.body.len(), publication).await
}

async fn publish(
    publisher: &Publisher,
    validator: &DataValidator,
    call: &EntityCall,
    admitted: AdmittedPublication<'_>,
) -> Result<Reply, Problem> {
    let mut event = NewEvent::read(&call.body, idempotency_key(call), sender(call)?, publisher.retention())?;
    if let Err(refused) = validator.check(&mut event)
        && !publisher.has_accepted(&event).await?
    {
        return Err(refused);
    }
    let published = publisher.publish(&call.entity, event, &call.trace, Some(&admitted)).await?;
    Ok(Reply::accepted(&published)?.replayed(published.is_repeated))
}
