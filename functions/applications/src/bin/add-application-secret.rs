//! POST …/application/{clientId}/secret: gives an application a further secret, and shows the
//! secret this once.

use std::sync::Arc;

use auth::scope::Scope;
use base::{audit::Action, clock::Time};
use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{Endpoint, EntityCall, Reply};
use http::header::CACHE_CONTROL;
use issuer::{
    applications::{
        Applications,
        secrets::{self, SecretAddition},
    },
    oauth::pepper::{Pepper, PepperSource},
};
use problem::Problem;
use storage::{allowance::Allowances, secrets::SecretSettings};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountWrite).taking_json().audited(Action::CreateSecret);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let secrets = service.secrets(secrets);
    let addition = Arc::new(SecretAddition {
        applications: Applications::new(service.table().clone()),
        allowances: Allowances::new(service.table().clone()),
        pepper: Pepper::warm(PepperSource(secrets), service.clock().clone()).await,
        random: service.shared_random(),
    });
    let clock = service.clock().clone();
    service
        .serve(ENDPOINT, move |call| {
            let (addition, now) = (addition.clone(), clock.now());
            async move { add(&addition, &call, now).await }
        })
        .await
}

async fn add(addition: &SecretAddition, call: &EntityCall, now: Time) -> Result<Reply, Problem> {
    let overlap = secrets::overlap(&call.body)?;
    let added = addition.add(&caller(call)?, client_id(call), overlap, &call.notes, now).await?;
    Ok(Reply::ok(&added)?.with_header(CACHE_CONTROL, "no-store"))
}
