//! DELETE …/application/{clientId}: removes an application and revokes its tokens.

use std::sync::Arc;

use auth::{revocations::RevocationList, scope::Scope};
use base::audit::Action;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use issuer::applications::{Applications, remove::Removal};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountRemove).audited(Action::RemoveApplication);

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
