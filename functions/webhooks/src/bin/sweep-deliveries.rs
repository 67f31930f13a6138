//! A schedule: publishes the events in the outbox, opens the deliveries of new events, announces overdue deliveries
//! again, and works on jobs.

use function::{Scheduled, Service, StartError};
use functions_webhooks::internal_publisher;
use webhooks::{
    deliveries::{
        Deliveries,
        jobs::{Jobs, Worker},
        queue::{Queue, QueueSettings},
        state::schedule::ScheduleSettings,
        sweep::Sweeper,
    },
    events::outbox::Outbox,
    subscriptions::Webhooks,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (queue, schedule)) = Service::start::<(QueueSettings, ScheduleSettings)>().await?;
    let sweeper = Sweeper {
        outbox: Outbox::new(service.table()),
        publisher: internal_publisher(&service, &queue, schedule),
        deliveries: Deliveries::new(service.table()),
        worker: worker(&service),
        webhooks: Webhooks::new(service.table()),
        queue: Queue::connect(service.aws(), &queue),
        clock: service.clock(),
        environment: service.settings().environment.clone(),
    };
    service.serve_events(sweeper, |sweeper, Scheduled| sweeper.sweep()).await
}

fn worker(service: &Service) -> Worker {
    Worker {
        jobs: Jobs::new(service.table()),
        deliveries: Deliveries::new(service.table()),
        webhooks: Webhooks::new(service.table()),
        clock: service.clock(),
        random: service.random(),
    }
}
