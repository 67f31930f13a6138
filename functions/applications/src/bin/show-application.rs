//! GET …/application/{clientId}: one application, without its secrets.

use auth::scope::Scope;
use base::clock::Time;
use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{Endpoint, EntityCall, Reply};
use issuer::applications::Applications;
use problem::Problem;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (applications, clock) = (Applications::new(service.table().clone()), service.clock().clone());
    service
        .serve(ENDPOINT, move |call| {
            let (applications, now) = (applications.clone(), clock.now());
            async move { show(&applications, &call, now).await }
        })
        .await
}

async fn show(applications: &Applications, call: &EntityCall, now: Time) -> Result<Reply, Problem> {
    let application = applications.show(&caller(call)?, client_id(call), &call.notes).await?;
    Reply::ok(&application.view(now, None))
}
