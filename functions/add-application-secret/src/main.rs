//! POST …/application/{clientId}/secret: gives an application a further secret, and shows it this once.

use std::sync::Arc;

use shared::{
    Service, StartError,
    allowance::Allowances,
    applications::{Applications, secrets::SecretAddition},
    audit::Action,
    auth::{revocations::RevocationList, scope::Scope},
    http::Endpoint,
    oauth::pepper::{Pepper, PepperSource},
    secrets::Secrets,
    settings::SecretSettings,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::AccountWrite).taking_json().audited(Action::CreateSecret);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let secrets = Secrets::connect(service.aws(), secrets.prefix);
    let addition = Arc::new(SecretAddition {
        applications: Applications::new(service.table().clone()),
        allowances: Allowances::new(service.table().clone()),
        revocations: RevocationList::new(service.table().clone()),
        pepper: Pepper::warm(PepperSource(secrets), service.clock().clone()).await,
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let addition = addition.clone();
            async move { addition.add(&call).await }
        })
        .await
}
