//! GET /panel/provider/{provider}: the page that people land on who come back from a provider.

use function::{Service, StartError};
use gate::Endpoint;
use payments::outcome_page;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(Endpoint::public(), async |call| outcome_page::reply(&call)).await
}
