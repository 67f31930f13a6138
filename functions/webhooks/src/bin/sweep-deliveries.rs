//! A schedule: publishes the events in the outbox, announces overdue deliveries again, and works on jobs.

use std::sync::Arc;

use function::{Service, StartError};
use webhooks::{
    deliveries::{
        Deliveries,
        jobs::{Jobs, Worker},
        queue::{Queue, QueueSettings},
        schedule::ScheduleSettings,
        sweep::Sweeper,
    },
    events::{outbox::Outbox, publish::Publisher},
    subscriptions::Webhooks,
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule)) = Service::start::<(QueueSettings, ScheduleSettings)>().await?;
    let (table, queue) = (service.table(), Queue::connect(service.aws(), &queue));
    let worker = Worker {
        jobs: Jobs::new(table.clone()),
        deliveries: Deliveries::new(table.clone()),
        webhooks: Webhooks::new(table.clone()),
        clock: service.clock().clone(),
        random: service.shared_random(),
    };
    let sweeper = Arc::new(Sweeper {
        outbox: Outbox::new(table.clone()),
        publisher: Publisher::new(table, queue.clone(), schedule, service.clock_and_random()),
        deliveries: Deliveries::new(table.clone()),
        worker,
        webhooks: Webhooks::new(table.clone()),
        queue,
        clock: service.clock().clone(),
    });
    Service::serve_schedule(move || {
        let sweeper = sweeper.clone();
        async move { sweeper.sweep().await }
    })
    .await
}
