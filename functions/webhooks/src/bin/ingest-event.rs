//! The platform's event bus: publishes the events of the platform's services.

use function::{Service, StartError, Traced};
use functions_webhooks::{bus, publisher};
use serde_json::value::RawValue;
use webhooks::{
    deliveries::{queue::QueueSettings, state::schedule::ScheduleSettings},
    events::{
        ingest::{IngestError, Ingested, Ingestion},
        publish::UnmatchedEvents,
        rejected::{RejectedEvents, RejectedEventsSettings},
        subject::SubjectMembers,
        validation::{DataValidator, EventValidation},
    },
};

type Settings =
    (QueueSettings, ScheduleSettings, SubjectMembers, UnmatchedEvents, EventValidation, RejectedEventsSettings);

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (queue, schedule, subjects, unmatched, validation, rejected)) = Service::start::<Settings>().await?;
    let environment = service.settings().environment.clone();
    let ingestion = Ingestion {
        publisher: publisher(&service, &queue, schedule, subjects).with_unmatched(unmatched),
        rejected: RejectedEvents::connect(service.aws(), rejected.url),
        validator: DataValidator::new(validation, environment.clone(), service.clock()),
        environment,
    };
    service.serve_events(ingestion, ingest).await
}

async fn ingest(
    ingestion: &Ingestion,
    Traced { event, trace }: Traced<Box<RawValue>>,
) -> Result<Ingested, IngestError> {
    let event = bus::unwrapped(&event);
    ingestion.ingest(event.get(), bus::read(event), &trace).await
}
