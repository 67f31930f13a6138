//! GET …/webhook/event/type/{value}: one event type with the schema of its data, and samples.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::events::type_details::EventTypeDetails;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::SHOW_EVENT_TYPE, (), async |(), call| show(&call)).await
}

fn show(call: &EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&EventTypeDetails::find(call.path("value"), call.entity.id())?)
}
