//! POST …/application/{clientId}/secret: gives an application a further secret, and shows it this once.

use std::sync::Arc;

use auth::{revocations::RevocationList, scope::Scope};
use base::audit::Action;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use issuer::{
    applications::{Applications, secrets::SecretAddition},
    oauth::pepper::{Pepper, PepperSource},
};
use storage::{allowance::Allowances, secrets::SecretSettings};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountWrite).taking_json().audited(Action::CreateSecret);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let secrets = service.secrets(secrets);
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
