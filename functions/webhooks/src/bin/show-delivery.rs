//! GET …/webhook/delivery/{deliveryIdentifier}: one delivery with its whole attempt history.

use function::{Service, StartError};
use functions_webhooks::delivery_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::deliveries::{Deliveries, DeliveryError};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::SHOW_DELIVERY, Deliveries::new(service.table()), show).await
}

async fn show(deliveries: &Deliveries, call: EntityCall) -> Result<Reply, Problem> {
    let found = deliveries.with_attempts(&call.entity, &delivery_id(&call)?, call.now).await?;
    Reply::ok(&found.ok_or(DeliveryError::NotFound)?) // another entity's delivery is indistinguishable
}
