//! GET /openapi.json: the public contract for machines. The build generates it from `openapi.yaml`.

use function::{Service, StartError};
use functions_public::{DOCUMENT, with_addresses};
use gate::{Reply, endpoints};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let document = with_addresses(DOCUMENT, service.settings());
    let show = async |document: &String, _| Ok(Reply::ok_text("application/json", document.as_str()).cacheable(300));
    service.serve(endpoints::OPENAPI, document, show).await
}
