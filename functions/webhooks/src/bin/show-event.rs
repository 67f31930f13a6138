//! GET …/webhook/event/{eventIdentifier}: one event with its deliveries.

use function::{Service, StartError};
use functions_webhooks::event_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::deliveries::Deliveries;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::SHOW_EVENT, Deliveries::new(service.table()), show).await
}

async fn show(deliveries: &Deliveries, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&deliveries.event(&call.entity, &event_id(&call)?, call.now).await?)
}
