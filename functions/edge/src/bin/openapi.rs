//! GET /openapi.json: the public contract for machines. It stands in `openapi.yaml`; the build turns it into JSON.

use function::{Service, StartError};
use gate::{Endpoint, Reply};

const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let settings = service.settings();
    // The document's examples name a host that is nobody's; what is served names this deployment.
    let document = DOCUMENT
        .replace("https://auth.waypost.example", &settings.auth_url)
        .replace("https://api.waypost.example", &settings.base_url);
    service
        .serve(Endpoint::public(), move |_| {
            let reply = Reply::ok_text("application/json", document.as_str()).cacheable(300);
            async move { Ok(reply) }
        })
        .await
}
