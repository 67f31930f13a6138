//! DELETE …/webhook/event/{eventIdentifier}/content: erases an event's body and the responses in its deliveries.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::event_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{IdempotencyStore, Once};
use webhooks::deliveries::{Deliveries, jobs::Jobs, requests::erase::Erasing};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let erasing = Erasing {
        deliveries: Deliveries::new(service.table()),
        jobs: Jobs::new(service.table()),
        clock: service.clock(),
    };
    let answers = IdempotencyStore::new(service.table());
    service.serve(endpoints::ERASE_EVENT, (erasing, answers), erase).await
}

async fn erase((erasing, answers): &(Erasing, IdempotencyStore), call: EntityCall) -> Result<Reply, Problem> {
    let request = idempotent_request(&call)?;
    let once = Once::of(answers, request.as_ref());
    let erased = erasing.erase(&call.entity, &event_id(&call)?, once).await?;
    let reply = if erased.state.is_complete { Reply::ok(&erased) } else { Reply::accepted(&erased) };
    Ok(reply?.replayed(erased.is_repeated))
}
