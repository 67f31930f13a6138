//! GET /: the public contract for people. The build generates it from `openapi.yaml`.

use function::{Service, StartError};
use functions_public::with_addresses;
use gate::{endpoints, page};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let html = page::html("Waypost API", &with_addresses(functions_public::REFERENCE, service.settings()));
    let show = async |html: &String, _| Ok(page::reply(html.as_str()).cacheable(300));
    service.serve(endpoints::REFERENCE, html, show).await
}
