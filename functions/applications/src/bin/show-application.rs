//! GET …/application/{clientId}: one application, without its secrets.

use auth::scope::Scope;
use function::{Service, StartError};
use gate::Endpoint;
use issuer::applications::{Applications, PATHS_BESIDE, show::Showing};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::AccountRead).beside(PATHS_BESIDE);

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
