//! GET …/webhook/delivery/{deliveryIdentifier}: one delivery with its whole attempt history.

use auth::scope::Scope;
use base::clock::SharedClock;
use function::{Service, StartError};
use functions_webhooks::delivery_id;
use gate::{Endpoint, EntityCall, Reply};
use problem::Problem;
use webhooks::deliveries::{Deliveries, delivery::delivery_not_found};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (deliveries, clock) = (Deliveries::new(service.table().clone()), service.clock().clone());
    service.serve(ENDPOINT, move |call| show(deliveries.clone(), clock.clone(), call)).await
}

async fn show(deliveries: Deliveries, clock: SharedClock, call: EntityCall) -> Result<Reply, Problem> {
    let delivery = delivery_id(&call)?;
    let found = deliveries.with_attempts(&call.entity, &delivery, clock.now()).await?;
    Reply::ok(&found.ok_or_else(delivery_not_found)?) // another entity's looks the same
}
