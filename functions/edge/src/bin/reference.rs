//! GET /: the public contract for people. The build writes it from `openapi.yaml`.

use function::{Service, StartError};
use functions_edge::with_addresses;
use gate::{endpoints, page};

const CONTENT: &str = include_str!(concat!(env!("OUT_DIR"), "/reference.html"));

fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let html = page::html("Waypost API", &with_addresses(CONTENT, service.settings()));
    let show = async |html: &String, _| Ok(page::reply(html.as_str()).cacheable(300));
    service.serve(endpoints::REFERENCE, html, show).await
}
