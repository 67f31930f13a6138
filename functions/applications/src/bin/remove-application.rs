//! DELETE …/application/{clientId}: removes an application and revokes its tokens.

use std::sync::Arc;

use auth::{revocations::RevocationList, scope::Scope};
use base::audit::Action;
use function::{Service, StartError};
use gate::Endpoint;
use issuer::applications::{Applications, PATHS_BESIDE, remove::Removal};

const ENDPOINT: Endpoint =
    Endpoint::needs(Scope::AccountRemove).beside(PATHS_BESIDE).audited(Action::RemoveApplication);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let removal = Arc::new(Removal {
        applications: Applications::new(service.table().clone()),
        revocations: RevocationList::new(service.table().clone()),
        clock: service.clock().clone(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let removal = removal.clone();
            async move { removal.remove(&call).await }
        })
        .await
}
