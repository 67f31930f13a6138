//! DELETE …/application/{clientId}/key/{kid}: ends a public key of an application at once, and the tokens that were got with it.

use std::sync::Arc;

use auth::{revocations::RevocationList, scope::Scope};
use base::audit::Action;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use issuer::applications::{Applications, credential_removal::CredentialRemoval};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountRemove).audited(Action::RemoveKey);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let removal = Arc::new(CredentialRemoval {
        applications: Applications::new(service.table().clone()),
        revocations: RevocationList::new(service.table().clone()),
        clock: service.clock().clone(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let removal = removal.clone();
            async move { removal.remove_key(&call).await }
        })
        .await
}
