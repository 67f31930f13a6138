//! POST …/webhook/event: publishes an event to every webhook that wants it.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    deliveries::{Deliveries, queue::Queue},
    events::{publish::Publisher, store::Events},
    http::Endpoint,
    settings::{QueueSettings, ScheduleSettings},
    webhooks::Webhooks,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule)) = Service::start::<(QueueSettings, ScheduleSettings)>().await?;
    let publisher = Arc::new(Publisher {
        events: Events::new(service.table().clone()),
        webhooks: Webhooks::new(service.table().clone()),
        deliveries: Deliveries::new(service.table().clone()),
        queue: Queue::connect(service.aws(), queue.url),
        schedule: schedule.schedule,
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let publisher = publisher.clone();
            async move { publisher.publish(&call).await }
        })
        .await
}
