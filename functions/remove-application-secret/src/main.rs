//! DELETE …/application/{clientId}/secret/{secretId}: ends a secret of an application at once.

use std::sync::Arc;

use shared::{
    Service, StartError,
    applications::{Applications, secrets::SecretRemoval},
    audit::Action,
    auth::scope::Scope,
    http::Endpoint,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::AccountRemove).audited(Action::RemoveSecret);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let applications = Applications::new(service.table().clone());
    let removal = Arc::new(SecretRemoval { applications, clock: service.clock().clone() });
    service
        .serve(ENDPOINT, move |call| {
            let removal = removal.clone();
            async move { removal.remove(&call).await }
        })
        .await
}
