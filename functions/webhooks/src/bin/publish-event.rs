//! POST …/webhook/event: publishes an event to every webhook that wants it.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use webhooks::{
    deliveries::{queue::QueueSettings, schedule::ScheduleSettings},
    events::share::{PublishingShare, ShareSettings},
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule, share)) =
        Service::start::<(QueueSettings, ScheduleSettings, ShareSettings)>().await?;
    let publisher = Arc::new(functions_webhooks::publisher(&service, (queue, schedule)));
    let share = Arc::new(PublishingShare::new(service.table().clone(), service.clock().clone(), share));
    service
        .serve(ENDPOINT, move |call| {
            let (publisher, share) = (publisher.clone(), share.clone());
            async move { share.within(&call.entity, publisher.publish(&call)).await }
        })
        .await
}
