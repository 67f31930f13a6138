//! POST …/webhook/delivery/{deliveryIdentifier}/resend: has a delivery attempted again, now.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use webhooks::{
    deliveries::{
        Deliveries,
        queue::{Queue, QueueSettings},
        reopen::Resending,
    },
    subscriptions::Webhooks,
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

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
