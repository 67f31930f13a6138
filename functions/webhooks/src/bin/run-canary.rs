//! A schedule: sends an event through the deployment like a client, and measures its arrival.

use std::convert::Infallible;

use function::{Scheduled, Service, StartError};
use webhooks::canary::Canary;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start().await?;
    let addresses = service.settings();
    let canary = Canary::new(
        service.secrets(secrets),
        service.table(),
        rules,
        &addresses.base_url,
        &addresses.auth_url,
        &addresses.environment,
        service.clock(),
    );
    service.serve_events(canary, run).await
}

/// Runs the canary. A fault in the deployment is counted in a metric and does not fail the run.
async fn run(canary: &Canary, Scheduled: Scheduled) -> Result<(), Infallible> {
    canary.run().await;
    Ok(())
}
