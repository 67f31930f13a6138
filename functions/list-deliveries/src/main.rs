//! GET …/webhook/delivery/list: a managing entity's deliveries, the newest first, a page at a time.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    deliveries::{Deliveries, list::Listing},
    http::Endpoint,
    sealing::{KeyRings, RingSource},
    secrets::Secrets,
    settings::{ScheduleSettings, SecretSettings},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, schedule)) = Service::start::<(SecretSettings, ScheduleSettings)>().await?;
    let secrets = Secrets::connect(service.aws(), secrets.prefix);
    let listing = Arc::new(Listing {
        deliveries: Deliveries::new(service.table().clone()),
        retention: schedule.retention,
        rings: KeyRings::warm(RingSource(secrets), service.clock().clone()).await,
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let listing = listing.clone();
            async move { listing.list(&call).await }
        })
        .await
}
