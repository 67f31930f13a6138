//! POST …/application: makes an application, and shows its secret this once.

use std::sync::Arc;

use auth::scope::Scope;
use base::{audit::Action, clock::Time};
use function::{Service, StartError};
use functions_applications::caller;
use gate::{Endpoint, EntityCall, Reply};
use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION},
};
use issuer::{
    applications::{Applications, new_application::NewApplication, register::Registration},
    oauth::pepper::{Pepper, PepperSource},
};
use problem::Problem;
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
        random: service.shared_random(),
    });
    let (base_url, clock) = (service.settings().base_url.clone(), service.clock().clone());
    service
        .serve(ENDPOINT, move |call| {
            let (registration, base_url, now) = (registration.clone(), base_url.clone(), clock.now());
            async move { create(&registration, &base_url, &call, now).await }
        })
        .await
}

async fn create(registration: &Registration, base_url: &str, call: &EntityCall, now: Time) -> Result<Reply, Problem> {
    let entity = call.entity.id();
    let new = NewApplication::read(&call.body, entity, now)?;
    let created = registration.create(&caller(call)?, new, &call.notes, now).await?;
    let location = format!("{base_url}/api/managing-entity/{entity}/application/{}", created.application.client_id);
    Reply::json(StatusCode::CREATED, &created.view(now))?
        .with_header(CACHE_CONTROL, "no-store")
        .with_computed_header(LOCATION, &location)
}
