//! The queue of due deliveries: makes the attempts.

use std::sync::Arc;

use shared::{
    Service, StartError,
    deliveries::{Deliveries, dispatch::Dispatcher, queue::Queue},
    events::store::Events,
    outbound::Outbound,
    sealing::{KeyRings, RingSource},
    secrets::Secrets,
    settings::{EndpointSettings, QueueSettings, ScheduleSettings, SecretSettings},
    webhooks::Webhooks,
};

type Settings = (QueueSettings, SecretSettings, ScheduleSettings, EndpointSettings);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, secrets, schedule, rules)) = Service::start::<Settings>().await?;
    let secrets = Secrets::connect(service.aws(), secrets.prefix);
    let dispatcher = Arc::new(Dispatcher {
        deliveries: Deliveries::new(service.table().clone()),
        events: Events::new(service.table().clone()),
        webhooks: Webhooks::new(service.table().clone()),
        queue: Queue::connect(service.aws(), queue.url),
        outbound: Outbound::within(rules),
        rings: KeyRings::warm(RingSource(secrets), service.clock().clone()).await,
        schedule: schedule.schedule,
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    Service::serve_events(move |batch| dispatcher.clone().dispatch(batch)).await
}
