//! GET /asyncapi.json: every event as webhooks receive it, for programs. The document is built once, at startup.

use function::{Service, StartError};
use gate::{Reply, endpoints};
use webhooks::events::asyncapi;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let document = asyncapi::document(&service.settings().base_url);
    let show = async |document: &String, _| Ok(Reply::ok_text("application/json", document.as_str()).cacheable(300));
    service.serve(endpoints::ASYNCAPI, document, show).await
}
