//! POST …/webhook/delivery/{deliveryIdentifier}/resend: attempts a delivery again, now.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::delivery_id;
use gate::{EntityCall, Reply, endpoints};
use problem::{Problem, no_input};
use storage::IdempotencyStore;
use webhooks::{
    deliveries::{Deliveries, queue::Queue, requests::resend::Resending},
    subscriptions::{Webhooks, request_limits::RequestLimits},
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, queue) = Service::start().await?;
    let resending = Resending {
        deliveries: Deliveries::new(service.table()),
        webhooks: Webhooks::new(service.table()),
        answers: IdempotencyStore::new(service.table()),
        limits: RequestLimits::new(service.table()),
        queue: Queue::connect(service.aws(), &queue),
        clock: service.clock(),
    };
    service.serve(endpoints::RESEND_DELIVERY, resending, resend).await
}

async fn resend(resending: &Resending, call: EntityCall) -> Result<Reply, Problem> {
    no_input(&call.body)?;
    let resent = resending.resend(&call.entity, &delivery_id(&call)?, idempotent_request(&call)?.as_ref()).await?;
    Ok(Reply::accepted(&resent)?.replayed(resent.is_repeated))
}
