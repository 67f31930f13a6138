//! DELETE …/application/{clientId}/secret/{secretId}: ends a secret of an application at once, and
//! the tokens that were got with it.

use auth::scope::Scope;
use base::audit::Action;
use function::{Service, StartError};
use functions_applications::remove_credential;
use gate::{Endpoint, EntityCall};
use issuer::applications::{Applications, credential_removal::CredentialName};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountRemove).audited(Action::RemoveSecret);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (applications, clock) = (Applications::new(service.table().clone()), service.clock().clone());
    service
        .serve(ENDPOINT, move |call| {
            let (applications, now) = (applications.clone(), clock.now());
            async move { remove_credential(&applications, &call, CredentialName::Secret(call.path("secretId")), now).await }
        })
        .await
}
