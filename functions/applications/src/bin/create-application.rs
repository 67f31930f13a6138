//! POST …/application: makes an application, and shows its secret this once.

use std::sync::Arc;

use auth::scope::Scope;
use base::audit::Action;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use issuer::{
    applications::{Applications, register::Registration},
    oauth::pepper::{Pepper, PepperSource},
};
use storage::{allowance::Allowances, secrets::SecretSettings};

const ENDPOINT: Endpoint<EntityCall> =
    Endpoint::needs(Scope::AccountWrite).taking_json().audited(Action::CreateApplication);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let secrets = service.secrets(secrets);
    let registration = Arc::new(Registration {
        applications: Applications::new(service.table().clone()),
        allowances: Allowances::new(service.table().clone()),
        pepper: Pepper::warm(PepperSource(secrets), service.clock().clone()).await,
        base_url: service.settings().base_url.clone(),
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let registration = registration.clone();
            async move { registration.create(&call).await }
        })
        .await
}
