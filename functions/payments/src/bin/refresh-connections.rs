//! A schedule: refreshes the tokens of payment providers before they expire.

use function::{Scheduled, Service, StartError};
use outbound::{AddressRules, Outbound};
use payments::{Connections, Grants, Providers, refresh::Refresher};
use storage::{KeyRings, SecretSettings};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, AddressRules)>().await?;
    let secrets = service.secrets(secrets);
    let outbound = Outbound::within(rules.clone());
    let refresher = Refresher {
        connections: Connections::new(service.table()),
        providers: Providers::new(secrets.clone(), rules, service.clock()),
        grants: Grants::new(outbound, &service.settings().base_url, service.clock(), service.random()),
        rings: KeyRings::new(secrets, service.clock()), // not warm: most runs find no due connection
        environment: service.settings().environment.clone(),
        clock: service.clock(),
        random: service.random(),
    };
    service.serve_events(refresher, |refresher, Scheduled| refresher.run()).await
}
