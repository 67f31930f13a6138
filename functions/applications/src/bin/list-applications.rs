//! GET …/application/list: all applications of a managing entity, the newest first.

use auth::scope::Scope;
use base::clock::Time;
use function::{Service, StartError};
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
            async move { list(&applications, &call, now).await }
        })
        .await
}

async fn list(applications: &Applications, call: &EntityCall, now: Time) -> Result<Reply, Problem> {
    let found = applications.of(call.entity.id()).await?;
    Reply::ok(&found.iter().map(|application| application.view(now, None)).collect::<Vec<_>>())
}
