//! The platform's event bus: publishes the events that its own services put there.

use std::sync::Arc;

use function::{Service, StartError};
use functions_webhooks::bus;
use serde_json::value::RawValue;
use webhooks::{
    deliveries::{queue::QueueSettings, schedule::ScheduleSettings},
    events::{
        ingest::Ingestion,
        rejected::{RejectedEvents, RejectedEventsSettings},
    },
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule, rejected)) =
        Service::start::<(QueueSettings, ScheduleSettings, RejectedEventsSettings)>().await?;
    let ingestion = Arc::new(Ingestion {
        publisher: functions_webhooks::publisher(&service, (queue, schedule)),
        rejected: RejectedEvents::connect(service.aws(), rejected.url),
        environment: service.settings().environment.clone(),
    });
    Service::serve_invocations(move |event: Box<RawValue>| {
        let ingestion = ingestion.clone();
        async move {
            let event = bus::unwrapped(&event);
            ingestion.ingest(event.get(), bus::read(event)).await
        }
    })
    .await
}
