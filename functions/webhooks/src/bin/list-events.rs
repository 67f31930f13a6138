//! GET …/webhook/event/list: the catalogue of event types.

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use webhooks::events::catalogue;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(ENDPOINT, async |_| Reply::ok(&catalogue::all())).await
}
