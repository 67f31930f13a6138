//! DELETE …/webhook/event/{eventIdentifier}/content: erases an event's body and the responses in its deliveries.

use function::{Service, StartError};
use functions_webhooks::event_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
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
    service.serve(endpoints::ERASE_EVENT, erasing, erase).await
}

async fn erase(erasing: &Erasing, call: EntityCall) -> Result<Reply, Problem> {
    let erased = erasing.erase(&call.entity, &event_id(&call)?).await?;
    if erased.is_complete { Reply::ok(&erased) } else { Reply::accepted(&erased) }
}
