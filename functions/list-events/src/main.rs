//! GET …/webhook/event/list: the catalogue of event types.

use shared::{
    Service, StartError,
    auth::scope::Scope,
    events::catalogue,
    http::{Endpoint, Reply},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(ENDPOINT, async |_| Reply::ok(&catalogue::all())).await
}
