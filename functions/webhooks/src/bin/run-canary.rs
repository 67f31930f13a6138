//! A schedule: sends an event through the deployment as its clients do, and measures when it arrives.

use std::convert::Infallible;

use function::{Scheduled, Service, StartError};
use webhooks::canary::Canary;

pub fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start().await?;
    let addresses = service.settings();
    let canary = Canary::new(
        (service.secrets(secrets), service.table()),
        rules,
        (&addresses.base_url, &addresses.auth_url),
        (&addresses.environment, service.clock()),
    );
    service.serve_events(canary, run).await
}

/// A run that finds fault counts it and ends well: it is the deployment that failed, and not the run.
async fn run(canary: &Canary, Scheduled: Scheduled) -> Result<(), Infallible> {
    canary.run().await;
    Ok(())
}
