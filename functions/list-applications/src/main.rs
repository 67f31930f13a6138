//! GET …/application/list: all applications of a managing entity, the newest first.

use shared::{
    Service, StartError,
    applications::{Applications, show::Showing},
    auth::scope::Scope,
    http::Endpoint,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::AccountRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let applications = Applications::new(service.table().clone());
    let showing = Showing { applications, clock: service.clock().clone() };
    service
        .serve(ENDPOINT, move |call| {
            let showing = showing.clone();
            async move { showing.list(&call).await }
        })
        .await
}
