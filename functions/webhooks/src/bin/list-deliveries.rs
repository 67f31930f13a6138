//! GET …/webhook/delivery/list: a managing entity's deliveries, the newest first, a page at a time.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use problem::Problem;
use storage::{sealing::KeyRings, secrets::SecretSettings};
use webhooks::deliveries::{
    Deliveries,
    list::{ListRequest, Listing},
    schedule::ScheduleSettings,
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, schedule)) = Service::start::<(SecretSettings, ScheduleSettings)>().await?;
    let secrets = service.secrets(secrets);
    let listing = Arc::new(Listing {
        deliveries: Deliveries::new(service.table().clone()),
        retention: schedule.retention,
        rings: KeyRings::warm(secrets, service.clock().clone()).await,
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service.serve(ENDPOINT, move |call| list(listing.clone(), call)).await
}

async fn list(listing: Arc<Listing>, call: EntityCall) -> Result<Reply, Problem> {
    let request = ListRequest::read(call.read_query())?;
    Reply::ok(&listing.list(&call.entity, &request).await?)
}
