//! DELETE …/application/{clientId}/key/{kid}: ends a public key of an application at once.

use std::sync::Arc;

use shared::{
    Service, StartError,
    applications::{Applications, keys::Keys},
    audit::Action,
    auth::scope::Scope,
    http::Endpoint,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::AccountRemove).audited(Action::RemoveKey);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let applications = Applications::new(service.table().clone());
    let keys = Arc::new(Keys { applications, clock: service.clock().clone() });
    service
        .serve(ENDPOINT, move |call| {
            let keys = keys.clone();
            async move { keys.remove(&call).await }
        })
        .await
}
