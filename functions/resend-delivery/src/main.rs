//! POST …/webhook/delivery/{deliveryIdentifier}/resend: has a delivery attempted again, now.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    deliveries::{Deliveries, queue::Queue, reopen::Resending},
    http::Endpoint,
    settings::QueueSettings,
    webhooks::Webhooks,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, queue) = Service::start::<QueueSettings>().await?;
    let resending = Arc::new(Resending {
        deliveries: Deliveries::new(service.table().clone()),
        webhooks: Webhooks::new(service.table().clone()),
        queue: Queue::connect(service.aws(), &queue),
        clock: service.clock().clone(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let resending = resending.clone();
            async move { resending.resend(&call).await }
        })
        .await
}
