//! POST …/application/{clientId}/key: gives an application a further public key.

use std::sync::Arc;

use auth::scope::Scope;
use base::{audit::Action, clock::Time};
use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{Endpoint, EntityCall, Reply};
use http::StatusCode;
use issuer::applications::{
    Applications,
    keys::{self, KeyAddition},
};
use problem::Problem;
use storage::allowance::Allowances;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountWrite).taking_json().audited(Action::CreateKey);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let addition = Arc::new(KeyAddition {
        applications: Applications::new(service.table().clone()),
        allowances: Allowances::new(service.table().clone()),
    });
    let clock = service.clock().clone();
    service
        .serve(ENDPOINT, move |call| {
            let (addition, now) = (addition.clone(), clock.now());
            async move { add(&addition, &call, now).await }
        })
        .await
}

async fn add(addition: &KeyAddition, call: &EntityCall, now: Time) -> Result<Reply, Problem> {
    let key = keys::read(&call.body, now)?;
    let application = addition.add(&caller(call)?, client_id(call), key, &call.notes, now).await?;
    Reply::json(StatusCode::CREATED, &application.view(now, None))
}
