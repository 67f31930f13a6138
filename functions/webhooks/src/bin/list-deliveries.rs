//! GET …/webhook/delivery/list: a managing entity's deliveries, newest first, page by page.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{KeyRings, SecretSettings};
use webhooks::deliveries::{
    Deliveries,
    queries::list::{ListRequest, Listing},
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
        rings: KeyRings::warm(service.secrets(secrets), service.clock()).await,
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::LIST_DELIVERIES, listing, list).await
}

async fn list(listing: &Listing, call: EntityCall) -> Result<Reply, Problem> {
    let request = ListRequest::read(call.read_query(), &call.entity)?;
    Reply::ok(&listing.list(&call.entity, &request).await?)
}
