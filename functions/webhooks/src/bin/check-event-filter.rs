//! POST …/webhook/event/filter/check: compares a filter with a managing entity's past events.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::deliveries::{Deliveries, queries::check_filter::FilterCheckRequest};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::CHECK_EVENT_FILTER, Deliveries::new(service.table()), check).await
}

async fn check(deliveries: &Deliveries, call: EntityCall) -> Result<Reply, Problem> {
    let request = FilterCheckRequest::read(&call.body, call.entity.id(), call.now)?;
    Reply::ok(&deliveries.check_filter(&call.entity, &request, call.now).await?)
}
