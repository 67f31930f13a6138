//! POST …/webhook/delivery/{deliveryIdentifier}/resend: has a delivery attempted again, now.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use functions_webhooks::delivery_id;
use gate::{Endpoint, EntityCall, Reply};
use http::StatusCode;
use problem::{Problem, nothing_said};
use webhooks::{
    deliveries::{
        Deliveries,
        queue::{Queue, QueueSettings},
        resend::Resending,
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
    service.serve(ENDPOINT, move |call| resend(resending.clone(), call)).await
}

async fn resend(resending: Arc<Resending>, call: EntityCall) -> Result<Reply, Problem> {
    nothing_said(&call.body)?;
    Reply::json(StatusCode::ACCEPTED, &resending.resend(&call.entity, &delivery_id(&call)?).await?)
}
