//! GET …/webhook/delivery/{deliveryIdentifier}: one delivery with its whole attempt history.

use shared::{
    Service, StartError,
    auth::scope::Scope,
    deliveries::Deliveries,
    http::{Call, Endpoint, Problem, Reply},
    ids::DeliveryId,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let deliveries = Deliveries::new(service.table().clone());
    service.serve(ENDPOINT, move |call| show(deliveries.clone(), call)).await
}

async fn show(deliveries: Deliveries, call: Call) -> Result<Reply, Problem> {
    let delivery = DeliveryId::of_path(&call)?;
    let found = deliveries.with_attempts(call.entity(), &delivery).await?;
    Reply::ok(&found.ok_or_else(Problem::delivery_not_found)?) // another entity's looks the same
}
