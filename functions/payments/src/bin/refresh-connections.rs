//! A schedule: refreshes the tokens of payment providers before they end.

use std::sync::Arc;

use function::{Service, StartError};
use outbound::EndpointSettings;
use payments::{Connections, Grants, Providers, refresh::Refresher};
use storage::{sealing::KeyRings, secrets::SecretSettings};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let (secrets, clock) = (service.secrets(secrets), service.clock().clone());
    let base_url = &service.settings().base_url;
    let refresher = Arc::new(Refresher {
        connections: Connections::new(service.table().clone()),
        providers: Providers::new(secrets.clone(), rules.clone(), clock.clone()),
        grants: Grants::new(rules, base_url, clock.clone(), service.shared_random()),
        rings: KeyRings::new(secrets, clock.clone()), // mostly nothing is due, and nothing to be opened
        environment: service.settings().environment.clone(),
        clock,
        random: service.shared_random(),
    });
    Service::serve_schedule(move || {
        let refresher = refresher.clone();
        async move { refresher.run().await }
    })
    .await
}
