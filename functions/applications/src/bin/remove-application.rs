//! DELETE …/application/{clientId}: removes an application and revokes its tokens.

use auth::scope::Scope;
use base::{audit::Action, clock::Time};
use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{Endpoint, EntityCall, Reply};
use issuer::applications::{Applications, grants};
use problem::Problem;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountRemove).audited(Action::RemoveApplication);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (applications, clock) = (Applications::new(service.table().clone()), service.clock().clone());
    service
        .serve(ENDPOINT, move |call| {
            let (applications, now) = (applications.clone(), clock.now());
            async move { remove(&applications, &call, now).await }
        })
        .await
}

async fn remove(applications: &Applications, call: &EntityCall, now: Time) -> Result<Reply, Problem> {
    let confirmed = grants::confirmed(call.read_query())?;
    applications.remove(&caller(call)?, client_id(call), confirmed, &call.notes, now).await?;
    let message = "The application is removed; it gets no more tokens, and those that it has end within a minute.";
    Reply::removed(&client_id(call), message)
}
