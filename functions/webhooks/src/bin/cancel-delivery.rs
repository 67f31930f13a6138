//! POST …/webhook/delivery/{deliveryIdentifier}/cancel: ends an open delivery.

use function::{Service, StartError};
use functions_webhooks::delivery_id;
use gate::{EntityCall, Reply, endpoints};
use problem::{Problem, no_input};
use webhooks::{
    deliveries::{Deliveries, queue::Queue, requests::cancel::Cancelling},
    subscriptions::Webhooks,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, queue) = Service::start().await?;
    let cancelling = Cancelling {
        deliveries: Deliveries::new(service.table()),
        webhooks: Webhooks::new(service.table()),
        queue: Queue::connect(service.aws(), &queue),
        clock: service.clock(),
    };
    service.serve(endpoints::CANCEL_DELIVERY, cancelling, cancel).await
}

async fn cancel(cancelling: &Cancelling, call: EntityCall) -> Result<Reply, Problem> {
    no_input(&call.body)?;
    Reply::ok(&cancelling.cancel(&call.entity, &delivery_id(&call)?).await?)
}
