//! GET …/webhook/event/{eventIdentifier}: one event with its deliveries. GET …/webhook/event: a managing entity's
//! events, newest first, page by page.

use function::{Service, StartError};
use functions_webhooks::event_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{KeyRings, SecretSettings};
use webhooks::deliveries::{
    Deliveries,
    queries::{list::Listing, list_events::EventListRequest},
    state::schedule::ScheduleSettings,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, schedule)) = Service::start::<(SecretSettings, ScheduleSettings)>().await?;
    let listing = Listing {
        deliveries: Deliveries::new(service.table()),
        retention: schedule.retention,
        // Not warm: only the list has cursors.
        rings: KeyRings::new(service.secrets(secrets), service.clock()),
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::SHOW_EVENT, listing, show_or_list).await
}

async fn show_or_list(listing: &Listing, call: EntityCall) -> Result<Reply, Problem> {
    if call.path("eventIdentifier").is_empty() { list(listing, &call).await } else { show(listing, &call).await }
}

async fn show(listing: &Listing, call: &EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&listing.deliveries.event(&call.entity, &event_id(call)?, call.now).await?)
}

async fn list(listing: &Listing, call: &EntityCall) -> Result<Reply, Problem> {
    let request = EventListRequest::read(call.read_query(), &call.entity)?;
    Reply::ok(&listing.list_events(&call.entity, &request).await?)
}
