//! The platform's event bus: publishes what its own services put there.

use std::sync::Arc;

use shared::{
    Service, StartError,
    events::{ingest::Ingestion, publish::Publisher, rejected::RejectedEvents},
    settings::{QueueSettings, RejectedEventsSettings, ScheduleSettings},
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule, rejected)) =
        Service::start::<(QueueSettings, ScheduleSettings, RejectedEventsSettings)>().await?;
    let ingestion = Arc::new(Ingestion {
        publisher: Publisher::start(&service, (queue, schedule)),
        rejected: RejectedEvents::connect(service.aws(), rejected.url),
        environment: service.settings().environment.clone(),
    });
    Service::serve_invocations(move |event| {
        let ingestion = ingestion.clone();
        async move { ingestion.ingest(event).await }
    })
    .await
}
