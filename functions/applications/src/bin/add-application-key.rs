//! POST …/application/{clientId}/key: gives an application a further public key.

use std::sync::Arc;

use auth::scope::Scope;
use base::audit::Action;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use issuer::applications::{Applications, keys::Keys};
use storage::allowance::Allowances;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::AccountWrite).taking_json().audited(Action::CreateKey);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let keys = Arc::new(Keys {
        applications: Applications::new(service.table().clone()),
        allowances: Allowances::new(service.table().clone()),
        clock: service.clock().clone(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let keys = keys.clone();
            async move { keys.add(&call).await }
        })
        .await
}
