//! A schedule: publishes what stands in the outbox, and announces again whatever is overdue.

use std::sync::Arc;

use shared::{
    Service, StartError,
    deliveries::{Deliveries, queue::Queue, sweep::Sweeper},
    events::{outbox::Outbox, publish::Publisher, store::Events},
    settings::{QueueSettings, ScheduleSettings},
    webhooks::Webhooks,
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule)) = Service::start::<(QueueSettings, ScheduleSettings)>().await?;
    let (table, queue) = (service.table(), Queue::connect(service.aws(), queue.url));
    let publisher = Publisher {
        events: Events::new(table.clone()),
        webhooks: Webhooks::new(table.clone()),
        deliveries: Deliveries::new(table.clone()),
        queue: queue.clone(),
        schedule: schedule.schedule,
        clock: service.clock().clone(),
        random: service.shared_random(),
    };
    let sweeper = Arc::new(Sweeper {
        outbox: Outbox::new(table.clone()),
        publisher,
        deliveries: Deliveries::new(table.clone()),
        queue,
        clock: service.clock().clone(),
    });
    Service::serve_schedule(move || {
        let sweeper = sweeper.clone();
        async move { sweeper.sweep().await }
    })
    .await
}
