//! GET …/application/{clientId}: one application, without its secrets.

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use issuer::applications::{Applications, show::Showing};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let applications = Applications::new(service.table().clone());
    let showing = Showing { applications, clock: service.clock().clone() };
    service
        .serve(ENDPOINT, move |call| {
            let showing = showing.clone();
            async move { showing.show(&call).await }
        })
        .await
}
