//! A schedule: announces again whatever is overdue.

use std::sync::Arc;

use shared::{
    Service, StartError,
    deliveries::{Deliveries, queue::Queue, sweep::Sweeper},
    settings::QueueSettings,
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, queue) = Service::start::<QueueSettings>().await?;
    let sweeper = Arc::new(Sweeper {
        deliveries: Deliveries::new(service.table().clone()),
        queue: Queue::connect(service.aws(), queue.url),
        clock: service.clock().clone(),
    });
    Service::serve_schedule(move || {
        let sweeper = sweeper.clone();
        async move { sweeper.sweep().await }
    })
    .await
}
