//! GET /openapi.json: the public contract for machines. It is written in `openapi.yaml`, which the build turns into JSON.

use function::{Service, StartError};
use gate::{Reply, endpoints};

const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let settings = service.settings();
    // The document names hosts that do not exist; the service puts this deployment's in their place.
    let document = DOCUMENT
        .replace("https://auth.waypost.example", &settings.auth_url)
        .replace("https://api.waypost.example", &settings.base_url);
    let show = async |document: &'static String, _| Ok(Reply::ok_text("application/json", document).cacheable(300));
    service.serve(endpoints::OPENAPI, document, show).await
}
