//! GET …/webhook/event/list: the catalogue of event types.

use function::{Service, StartError};
use gate::{Reply, endpoints};
use webhooks::events::catalogue;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::LIST_EVENT_TYPES, (), async |(), _| Reply::ok(&catalogue::all())).await
}
